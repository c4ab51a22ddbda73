"""Which verdicts to train on: those that samples and orders agree on, and that gold, if there is any, confirms."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.verdict import Status, Verdict
from dikast.prompts.gold import gold_of

Record = dict[str, Any]
_CHOICES = {"first": "a", "second": "b", "tie": "tie"}


@dataclass(slots=True)
class Ballot:
    """The verdicts on one question: the labels of each order, and for each label the reply of its earliest sample.

    Labels are those of the scale; for a pair `a` (the response with the smaller index), `b` or `tie`.
    """

    labels: dict[tuple[int, ...], Counter[str]] = field(default_factory=dict)
    said: dict[str, tuple[int, Verdict]] = field(default_factory=dict)

    def add(self, verdict: Verdict) -> None:
        """Count one verdict; a failed one gives no label and counts against agreement."""
        votes = self.labels.setdefault(verdict.question.responses, Counter())
        label = verdict.label
        if verdict.status is not Status.OK or label is None:
            return
        votes[label] += 1
        first = min(self.labels) == verdict.question.responses  # replies name the responses by position
        if first and (label not in self.said or verdict.question.sample < self.said[label][0]):
            self.said[label] = (verdict.question.sample, verdict)


def ballots(verdicts: Iterable[Verdict]) -> dict[str, Ballot]:
    """The ballots by item. Held in memory: the counts, and one reply for each label that was given."""
    found: dict[str, Ballot] = {}
    for verdict in sorted(verdicts, key=lambda each: each.question.responses):
        found.setdefault(verdict.question.item, Ballot()).add(verdict)
    return found


class Dropped(Exception):
    """Why a question is not used for training, in a few words."""


def agreed(ballot: Ballot, samples: int, agree: float) -> str:
    """The label that at least the share `agree` of the `samples` of every order gave; Dropped if there is none."""
    tops = []
    for votes in ballot.labels.values():
        if not votes:
            raise Dropped("no verdict")
        label, n = votes.most_common(1)[0]
        if n < agree * samples - 1e-9:
            raise Dropped("samples disagree")
        tops.append(label)
    if not tops:
        raise Dropped("no verdict")
    if len(set(tops)) > 1:
        raise Dropped("orders disagree")
    return tops[0]


def due_label(item: Item, rubric: Rubric) -> str | None:
    """The correct label according to gold, None without gold."""
    if item.gold is None or item.gold == {}:
        return None
    pair = len(item.responses) == 2
    label = gold_of(item, rubric, (0, 1) if pair else (0,)).label
    return _CHOICES[label] if pair else label


def learnt(item: Item, rubric: Rubric, ballot: Ballot, *, samples: int, agree: float, prose: bool) -> Record:
    """The gold that the item is trained with: the label that was agreed on, and the reply that gave it.

    Dropped if samples or orders disagree, if gold differs, or if `prose` is required and there is none.
    """
    label = agreed(ballot, samples, agree)
    due = due_label(item, rubric)
    if due is not None and due != label:
        raise Dropped("against gold")
    _, verdict = ballot.said.get(label, (0, None))
    told: Record = {"verified": due is not None, "agreement": _shares(ballot, samples, label)}
    if verdict is not None:
        told["feedback"] = verdict.feedback.strip()
        claims = [{"text": c.text, "verdict": c.verdict, "correction": c.note} for c in verdict.claims]
        told |= {"claims": claims} if claims else {}
    if prose and not told.get("feedback") and not told.get("claims"):
        raise Dropped("no feedback")
    if len(item.responses) == 2:
        return {"preference": label, **told}
    return {"score": rubric.scale.value(label), "label": label, **told}


def _shares(ballot: Ballot, samples: int, label: str) -> list[float]:
    return [votes[label] / samples for _, votes in sorted(ballot.labels.items())]


def stop_reason(values: list[float | None], least: float, patience: int) -> str:
    """Why to stop after the rounds with these held-out `values` (the first is from before training), "" to continue.

    A round improves if its value is at least `least` above the best earlier one; undefined values do not improve.
    """
    best, misses = values[0], 0
    for value in values[1:]:
        risen = value is not None and (best is None or value >= best + least)
        misses = 0 if risen else misses + 1
        if value is not None and (best is None or value > best):
            best = value
        if misses >= patience:
            return f"the held-out Pearson did not rise by {least:g} for {misses} round{'s' * (misses > 1)}"
    return ""


def with_gold(item: Item, rubric: Rubric, gold: Mapping[str, Any], meta: Mapping[str, Any]) -> Item:
    """The item as a training example."""
    return replace(item, rubric=rubric, gold=dict(gold), meta={**item.meta, **meta})
