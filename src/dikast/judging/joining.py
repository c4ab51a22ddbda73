"""Joining single verdicts: the samples of one question, the orders of one pair."""

from collections.abc import Iterable, Iterator, Mapping

from dikast.core.rubric import Rubric
from dikast.core.verdict import Preference, Verdict
from dikast.judging.label_scores import combine_samples
from dikast.judging.pair_orders import from_orders


def join_samples(verdicts: Iterable[Verdict], samples: int, rubrics: Mapping[str, Rubric]) -> Iterator[Verdict]:
    """One verdict for each response and criterion, as soon as its last sample is there; `rubrics` by their hash."""
    waiting: dict[tuple[str, str, tuple[int, ...]], list[Verdict]] = {}
    for verdict in verdicts:
        if samples == 1:
            yield verdict
            continue
        question, hashes = verdict.question, verdict.hashes
        assert hashes is not None
        what = (question.item, question.criterion, question.responses)
        group = waiting.setdefault(what, [])
        group.append(verdict)
        if len(group) == samples:
            del waiting[what]
            yield combine_samples(sorted(group, key=lambda v: v.question.sample), rubrics[hashes.rubric].scale)


def join_orders(verdicts: Iterable[Verdict], samples: int, *, both_orders: bool | None) -> Iterator[Preference]:
    """Preferences from pairwise verdicts in any order, each as soon as its last verdict is there.

    `both_orders` None: some pairs were asked in both orders and some in one; the latter come at the end.
    """
    due = samples * (1 if both_orders is False else 2)
    waiting: dict[tuple[str, str, tuple[int, ...]], list[Verdict]] = {}
    for verdict in verdicts:
        question = verdict.question
        pair = (question.item, question.criterion, tuple(sorted(question.responses)))
        group = waiting.setdefault(pair, [])
        group.append(verdict)
        if len(group) == due:
            del waiting[pair]
            yield _joined(group)
    for group in waiting.values() if both_orders is None else ():
        if len(group) == samples:
            yield _joined(group)


def _joined(group: list[Verdict]) -> Preference:
    orders: dict[tuple[int, ...], list[Verdict]] = {}
    for each in sorted(group, key=lambda v: v.question.sample):
        orders.setdefault(each.question.responses, []).append(each)
    return from_orders([combine_samples(order, None) for order in orders.values()])
