"""Pairwise verdicts: accuracy under named tie rules, both orders, and how consistent they are.

A choice is a code: 0 the first response, 1 the second, 2 a tie, -1 no verdict, and of two orders 4 a disagreement;
always of responses, never of slots.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dikast.audit.plan import PairLabels, TwoGames, spelling
from dikast.audit.tables.columns import Words
from dikast.core.errors import UserError
from dikast.core.verdict import DISAGREE as JOINT_DISAGREE
from dikast.core.verdict import joint_outcome

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
FIRST, SECOND, TIE, NONE = 0, 1, 2, -1
WRONG = 3  # a verdict that is wrong for any gold: the unscored under the rule "wrong"
DISAGREE = 4  # two orders with different verdicts: neither a verdict on the responses nor a tie
NAMES = ("first", "second", "tie")
ONE_ORDER = "one order of each pair: a preference for a slot would look like one for a response"

TieRule = Literal["all", "no_gold_ties", "half", "decided"]
TIE_RULES: Mapping[TieRule, str] = {
    "all": "every pair counts; a tie is right only where gold is a tie, a disagreement of the orders never",
    "no_gold_ties": "pairs whose gold is a tie are left out; a judge's tie or disagreement is wrong",
    "half": "pairs whose gold is a tie are left out; a judge's tie or disagreement earns a half",
    "decided": "pairs where gold or the judge says tie, or the orders disagree, are left out",
}

TWO_GAMES: Mapping[TwoGames, str] = {
    "both": "both orders must agree; where they differ they disagree",
    "net": "a win and a tie are a win; where each order names another response they disagree",
    "tie": "where the orders differ it is a tie",
}

_SPELT: Mapping[int, str | None] = {NONE: None, FIRST: "a", SECOND: "b", TIE: "tie", DISAGREE: JOINT_DISAGREE}
_KNOWN = {"a": FIRST, "b": SECOND, "first": FIRST, "second": SECOND, "tie": TIE, JOINT_DISAGREE: DISAGREE}
_ARENA = re.compile(r"\[*\s*(?:A\s*(>>|>|=|<<|<)\s*B|B\s*(>>|>|=|<<|<)\s*A)\s*\]*")


class Choices(NamedTuple):
    """Codes (n,), whether each was a strong verdict (A>>B), and how often each word that is no choice stood there.

    `soft` (n,) is what the first response earns where preferences may lie between, NaN without a verdict.
    """

    codes: Codes
    strong: Masks
    other: dict[str, int]
    soft: Floats | None = None


def read_choices(words: Words, labels: PairLabels | None, column: str, worth: Floats | None = None) -> Choices:
    """Choices from text: by `labels`, else a, b, first, second, tie, or arena marks from A>>B to B>>A.

    With `worth` (one a word, what the first response earns), a preference is the choice that it is nearest to.
    `disagree`, as joint verdicts of two orders spell it, is always read. Any other word is no verdict. UserError if no
    word is a choice, since the labels must then be wrong.
    """
    spelt = None if labels is None else labels.codes()
    read = [_choice(name, spelt) for name in words.names] or [(NONE, False)]
    if worth is not None and len(worth):
        read = [(NONE if np.isnan(w) else TIE if w == 0.5 else FIRST if w > 0.5 else SECOND, False) for w in worth]
    codes, strong = np.array([code for code, _ in read]), np.array([mark for _, mark in read])
    if len(words.names) and (codes == NONE).all():
        seen = ", ".join(map(repr, words.names[:10]))
        raise UserError(
            f"column {column!r} holds {seen}: say how choices are spelt with --pair-labels FIRST,SECOND,TIE, with | "
            "between the spellings of several columns ('a|1,b|2,tie|0'); names of systems are read where columns such "
            "as model_a and model_b say whose response is which"
        )
    present = words.codes >= 0
    sizes = np.bincount(words.codes[present], minlength=len(words.names))
    other = {name: int(sizes[i]) for i, name in enumerate(words.names) if codes[i] == NONE and sizes[i]}
    soft = np.where(present, worth[words.codes], np.nan) if worth is not None and len(worth) else None
    return Choices(np.where(present, codes[words.codes], NONE), present & strong[words.codes], other, soft)


def in_slots(words: Words, slots: Sequence[Words], labels: PairLabels | None) -> Words:
    """The words with names of systems as the choice of the response that each wrote in its row.

    `slots`: whose the first and the second response is. Words that are choices, and names of both, stay.
    """
    if len(slots) != 2:
        return words
    spelt = None if labels is None else labels.codes()
    free = np.array([_choice(name, spelt)[0] == NONE for name in words.names] or [False])
    place, held = {name: i for i, name in enumerate(words.names)}, words.codes >= 0
    found = []
    for slot in slots:
        code = np.array([place.get(name, NONE) for name in slot.names] or [NONE])
        found.append(held & (slot.codes >= 0) & free[words.codes] & (code[slot.codes] == words.codes))
    first, second = found
    if not (first ^ second).any():
        return words
    one, two, _ = NAMES if labels is None else labels.one_each()
    n = len(words.names)
    codes = np.select([first & ~second, second & ~first], [n, n + 1], words.codes)
    return Words(codes.astype(np.int64), [*words.names, one, two])


def _choice(text: str, spelt: Mapping[str, int] | None) -> tuple[int, bool]:
    if spelt is not None:
        return {"tie": TIE, JOINT_DISAGREE: DISAGREE, **spelt}.get(spelling(text), NONE), False
    folded = text.strip().casefold()
    if folded in _KNOWN:
        return _KNOWN[folded], False
    match = _ARENA.fullmatch(text.strip())
    if match is None:
        return NONE, False
    mark, ahead = match[1] or match[2], FIRST if match[1] else SECOND
    if mark == "=":
        return TIE, False
    return (ahead if ">" in mark else 1 - ahead), len(mark) == 2


def swap(codes: ArrayLike) -> Codes:
    """The same choices with the two responses exchanged."""
    given = np.asarray(codes, np.int64)
    return np.where((given == FIRST) | (given == SECOND), 1 - given, given)


class Share(NamedTuple):
    """What each pair earns (n,), in [0, 1], and which pairs count at all (n,)."""

    worth: Floats
    counts: Masks

    @property
    def value(self) -> float:
        """The mean over the pairs that count; NaN of none."""
        return float(self.worth[self.counts].mean()) if self.counts.any() else float("nan")


def accuracy(choice: ArrayLike, gold: ArrayLike, rule: TieRule) -> Share:
    """Pairwise accuracy under a named tie rule (TIE_RULES). Pairs without a verdict or without gold never count.

    choice, gold: codes (n,).
    """
    said, right = np.asarray(choice, np.int64), np.asarray(gold, np.int64)
    counts = (said != NONE) & (right != NONE)
    worth = (said == right).astype(np.float64)
    if rule not in TIE_RULES:
        raise UserError(f"{rule!r} is no tie rule: choose {', '.join(TIE_RULES)}")
    if rule != "all":
        counts &= (right != TIE) & (right != DISAGREE)
    if rule == "half":
        worth[(said == TIE) | (said == DISAGREE)] = 0.5
    if rule == "decided":
        counts &= (said != TIE) & (said != DISAGREE)
    return Share(worth, counts)


def joint(first_order: ArrayLike, second_order: ArrayLike, rule: TwoGames = "both") -> Codes:
    """The joint verdict of two orders under a named rule (TWO_GAMES), by `joint_outcome` unless the rule says
    otherwise.

    NONE where either is missing; WRONG where either was counted as wrong.
    """
    one, two = np.asarray(first_order, np.int64), np.asarray(second_order, np.int64)
    return _JOINT[rule][one + 1, two + 1]


def _joint_code(one: int, two: int, rule: TwoGames) -> int:
    if WRONG in (one, two):
        return NONE if NONE in (one, two) else WRONG
    outcome = joint_outcome(_SPELT[one], _SPELT[two])
    if outcome is None:
        return NONE
    code = _KNOWN[outcome]
    if code == DISAGREE and rule == "net" and TIE in (one, two):
        return one if two == TIE else two
    return TIE if code == DISAGREE and rule == "tie" else code


_CODES = range(NONE, DISAGREE + 1)
_JOINT = {
    rule: np.array([[_joint_code(one, two, rule) for two in _CODES] for one in _CODES], np.int64) for rule in TWO_GAMES
}


def order_consistency(first_order: ArrayLike, second_order: ArrayLike) -> Share:
    """Pairs with a verdict in both orders that name the same response (or tie) in both. Chance level is not 0."""
    one, two = np.asarray(first_order, np.int64), np.asarray(second_order, np.int64)
    return Share((one == two).astype(np.float64), (one != NONE) & (two != NONE))


def flips(first_order: ArrayLike, second_order: ArrayLike) -> dict[str, Share]:
    """How orders disagree, each as a share of the pairs with a verdict in both; they sum to the share that disagree.

    `first slot both times`: the response shown first won in either order; `a tie in one order`: only one said tie.
    """
    one, two = np.asarray(first_order, np.int64), np.asarray(second_order, np.int64)
    said = (FIRST, SECOND, TIE)
    counts = np.isin(one, said) & np.isin(two, said)
    kinds = {
        "first slot both times": (one == FIRST) & (two == SECOND),
        "second slot both times": (one == SECOND) & (two == FIRST),
        "a tie in one order": (one == TIE) != (two == TIE),
    }
    return {name: Share(each.astype(np.float64), counts) for name, each in kinds.items()}


def slot_preference(first_order: ArrayLike, second_order: ArrayLike) -> Share:
    """Of the pairs decided both times but for different responses, those where the slot shown first won both times.

    One half without position bias; 1 if the first slot always wins, 0 if the second does.
    """
    one, two = np.asarray(first_order, np.int64), np.asarray(second_order, np.int64)
    decided = ((one == FIRST) & (two == SECOND)) | ((one == SECOND) & (two == FIRST))
    return Share((one == FIRST).astype(np.float64), decided)
