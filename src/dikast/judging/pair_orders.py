"""From verdicts to a preference between two responses."""

from collections.abc import Sequence
from typing import Literal

from dikast.core.scale import Scale
from dikast.core.verdict import DISAGREE, Choice, Preference, Status, Verdict, joint_outcome
from dikast.judging.label_scores import symmetric_logit

EqualRule = Literal["tie", "expected", "resample"]
EQUAL_RULES: dict[str, str] = {
    "tie": "equal scores are a tie",
    "expected": "equal scores are decided by the expected scores of the distributions, where there are any",
    "resample": "equal scores are drawn again, at most twice, and are a tie if still equal (needs a temperature)",
}
RESAMPLES = 2


def from_orders(verdicts: Sequence[Verdict]) -> Preference:
    """Join the verdicts of a pair in one order or both.

    One failed order is no preference. Orders that disagree are `tie` with `consistent=False` and say so in `reason`.
    """
    first = verdicts[0]
    low, high = sorted(first.question.responses)
    orders = tuple(sorted(verdicts, key=lambda verdict: verdict.question.responses))
    failed = next((verdict for verdict in orders if verdict.status is not Status.OK), None)
    common = {"item": first.question.item, "criterion": first.question.criterion, "pair": (low, high), "orders": orders}
    if failed is not None:
        shown = "a first" if failed.question.responses[0] == low else "b first"
        return Preference(choice=None, status=failed.status, reason=f"{shown}: {failed.reason}", **common)  # type: ignore[arg-type]
    labels: list[Choice] = [verdict.label for verdict in orders]  # type: ignore[misc]
    consistent = joint_outcome(*labels) != DISAGREE if len(labels) == 2 else None
    preference = bias = None
    if len(orders) == 2 and orders[0].distribution and orders[1].distribution:
        both = symmetric_logit(orders[0].distribution, orders[1].distribution)
        preference, bias = both.preference, both.bias
    return Preference(
        choice="tie" if consistent is False else labels[0],
        status=Status.OK,
        reason=f"the orders disagree: {labels[0]} with a first, {labels[1]} with b first"
        if consistent is False
        else "",
        logit_a=preference,
        position_bias=bias,
        consistent=consistent,
        **common,  # type: ignore[arg-type]
    )


def from_scores(a: Sequence[Verdict], b: Sequence[Verdict], scale: Scale, *, equal: EqualRule) -> Preference:
    """Prefer the better absolute score. `a` and `b` hold one verdict each, or several samples in order.

    A pair with a failed verdict is no preference. `equal` names the rule for equal scores (`EQUAL_RULES`).
    """
    pair = (a[0].question.responses[0], b[0].question.responses[0])
    question = a[0].question
    used: list[Verdict] = []
    choice: Choice = "tie"
    reason = ""
    for one, other in zip(a, b, strict=True):
        used += [one, other]
        failed = next((verdict for verdict in (one, other) if verdict.status is not Status.OK), None)
        if failed is not None:
            where = f"response {failed.question.responses[0]}: {failed.reason}"
            return Preference(question.item, question.criterion, pair, None, failed.status, tuple(used), where)
        choice, reason = _better(one, other, scale, equal), ""
        if choice != "tie":
            break
        reason = f"equal scores {one.score:g}"
    return Preference(question.item, question.criterion, pair, choice, Status.OK, tuple(used), reason)


def _better(a: Verdict, b: Verdict, scale: Scale, equal: EqualRule) -> Choice:
    assert a.score is not None
    assert b.score is not None
    one, other = scale.goodness(a.score), scale.goodness(b.score)
    if one == other and equal == "expected" and a.expected is not None and b.expected is not None:
        # sums of the same probabilities may differ by rounding, which decides nothing
        one, other = round(scale.goodness(a.expected), 12), round(scale.goodness(b.expected), 12)
    return "a" if one > other else "b" if other > one else "tie"
