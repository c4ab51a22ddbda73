"""What the answers of a run add up to: preferences of pairs, joint verdicts of samples; written beside them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from dikast.core.errors import RunError
from dikast.core.rubric import Rubric
from dikast.core.verdict import Preference, Verdict
from dikast.judging.joining import join_orders, join_samples
from dikast.judging.preference import EqualRule, from_scores
from dikast.judging.summary import Tally, preference_summary
from dikast.judging.task import Shape

PREFERENCES = "preferences.jsonl"
JOINED = "joined.jsonl"


def way_of(shape: Shape, equal: EqualRule | None) -> dict[str, Any]:
    """How a run judges, as its lock and its summary tell it."""
    if equal is not None:
        return {"kind": "from-absolute", "equal": equal}
    return {"kind": "absolute"} if shape == "each" else {"kind": "pairwise", "both_orders": shape == "both-orders"}


def outcome(
    verdicts: Iterable[Verdict], way: Mapping[str, Any], samples: int, rubrics: Mapping[str, Rubric], out: Path | None
) -> dict[str, Any]:
    """Join the verdicts of a run as its `way` says, write what comes of it into `out` unless None, and sum it up.

    Of pairs the key `preferences`, of several samples the key `joined`, else nothing. Reads `verdicts` to the end.
    """
    if way["kind"] == "absolute":
        joined = join_samples(verdicts, samples, rubrics)
        if samples > 1:
            return {"joined": _tallied(joined, out)}
        for _ in joined:
            pass
        return {}
    if way["kind"] == "pairwise":
        preferences = join_orders(verdicts, samples, both_orders=way["both_orders"])
    else:
        preferences = by_scores(verdicts, rubrics, way["equal"])
    return {"preferences": _summed(preferences, out)}


def by_scores(verdicts: Iterable[Verdict], rubrics: Mapping[str, Rubric], equal: EqualRule) -> Iterator[Preference]:
    """Preferences from the graded responses of each item, in the order of the items' first verdicts."""
    graded: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        light = replace(verdict, attempts=(), raw="", feedback="")  # all pairs are in memory at once
        graded.setdefault(verdict.question.item, []).append(light)
    for found in graded.values():
        found.sort(key=lambda v: (v.question.sample, v.question.responses))
        both = len(found) // 2 * 2  # in a run that was stopped one of two may be missing
        if both and found[0].hashes is not None:
            yield from_scores(found[:both:2], found[1:both:2], rubrics[found[0].hashes.rubric].scale, equal=equal)


def _summed(preferences: Iterable[Preference], out: Path | None) -> dict[str, Any]:
    if out is None:
        return preference_summary(preferences)

    def noted(write: Callable[[bytes], object]) -> Iterator[Preference]:
        for preference in preferences:
            value = {**asdict(preference), "orders": [order.key for order in preference.orders]}
            write(orjson.dumps(value) + b"\n")
            yield preference

    with _replacing(out / PREFERENCES) as file:
        return preference_summary(noted(file.write))


def _tallied(verdicts: Iterable[Verdict], out: Path | None) -> dict[str, Any]:
    tally = Tally()

    def count(write: Callable[[bytes], object]) -> None:
        for verdict in verdicts:
            line = orjson.dumps(replace(verdict, attempts=()))  # every reply stands in the run's verdicts
            write(line + b"\n")
            tally.add(orjson.loads(line))

    if out is None:
        count(len)
    else:
        with _replacing(out / JOINED) as file:
            count(file.write)
    return tally.summary()


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A file that takes the place of `path` when all of it is written."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise RunError(f"{path}: cannot write ({error.strerror}); the verdicts are kept") from error
        raise
