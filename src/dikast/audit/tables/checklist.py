"""Checklists: the share of answers that hold, where an answer counts only if those it depends on hold."""

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any

from dikast.audit.plan import spelling
from dikast.audit.tables.columns import MISSING
from dikast.core.errors import UserError

_YES, _NO = frozenset({"yes", "true", "y"}), frozenset({"no", "false", "n"})


def checklist(
    answers: Mapping[str, Any], parents: Mapping[str, Any], *, skip: bool = False, failed: Set[str] = frozenset()
) -> float:
    """The mean of the answers, in [0, 1], an answer being 0 where one of its parents is 0; NaN without answers.

    answers: name -> yes, no, true, false, or a number from 0 to 1. parents: name -> the names it depends on (a list, or
    text with commas; 0 and nothing stand for none). A missing answer makes the mean NaN; with `skip` it, and what
    depends on it, is left out. `failed` holds spellings that count as missing.

    Source: Cho et al. 2024, "Davidsonian Scene Graph" (2310.18235), where the parents of a question are asked first.
    UserError for an answer that is none of these, for a parent without an answer, and for a circle.
    """
    known = {name: _answer(name, value, failed) for name, value in answers.items()}
    for name in parents:
        if name not in known:
            raise UserError(f"parents are given for {name!r}, which has no answer")
    held = dict[str, float]()

    def settle(name: str, below: tuple[str, ...]) -> float:
        if name in below:
            raise UserError(f"the parents of {name!r} form a cycle")
        if name not in held:
            above = [settle(each, (*below, name)) for each in _parents(name, parents, known)]
            unknown = any(math.isnan(each) for each in above)
            held[name] = 0.0 if 0.0 in above else math.nan if unknown else known[name]
        return held[name]

    counted = [settle(name, ()) for name in known]
    if any(map(math.isnan, counted)) and not skip:
        return math.nan
    rest = [each for each in counted if not math.isnan(each)]
    return math.fsum(rest) / len(rest) if rest else math.nan


def _answer(name: str, value: Any, failed: Set[str]) -> float:
    if value is None or (isinstance(value, str) and value.strip() in MISSING) or spelling(str(value)) in failed:
        return math.nan
    word = spelling(str(value))
    if word in _YES or word in _NO:
        return float(word in _YES)
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1:
        raise UserError(f"{value!r} answers {name!r} with neither yes nor no, nor with a number from 0 to 1")
    return number


def _parents(name: str, parents: Mapping[str, Any], known: Mapping[str, float]) -> list[str]:
    given = parents.get(name)
    if isinstance(given, str):
        given = given.split(",")
    each = given if isinstance(given, Sequence) else [given]
    found = [text for one in each if (text := _name(one)) not in ("", "0")]
    for one in found:
        if one not in known:
            raise UserError(f"{name!r} depends on {one!r}, which has no answer")
    return found


def _name(value: Any) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
