"""Judge metrics on held-out items with gold during training, through the ordinary Judge and local engine."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from dikast.audit.estimate import Estimate, undefined
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.claim_agreement import ClaimVerdict, claims_of, feedback_scores
from dikast.audit.statistics.intervals import Resampling, rate
from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.media import check_image
from dikast.core.records.items import read_items
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.verdict import Choice, Preference, Status, Verdict
from dikast.engines.base import Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.loading import Loaded
from dikast.judging.judge import Judge
from dikast.judging.settling import with_frames
from dikast.prompts.format import Format, load_format
from dikast.prompts.gold import gold_of
from dikast.training.config import Config
from dikast.training.data.examples import files_of, named_format

_HOW = Resampling(draws=500)
_CHOICES: dict[str, Choice] = {"first": "a", "second": "b", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Items with gold that are judged repeatedly while a model is trained."""

    items: tuple[Item, ...]
    formats: tuple[Format, ...]
    rubric: Rubric | Sheet | None

    @property
    def asked(self) -> set[str]:
        """Names of the formats that fit some of the items; each gives one line at every evaluation."""
        return {form.name for form in self.formats if _fitting(form, self.items)}


def held_out(config: Config) -> HeldOut | None:
    """The items of the evaluation, at most `limit` of a file, checked for gold and media; None if there are none."""
    if not config.eval.items:
        return None
    rubric = load_rubric(config.eval.rubric, root=config.root) if config.eval.rubric else None
    formats = tuple(load_format(named_format(config, name)) for name in config.eval.formats)
    items: list[Item] = []
    for file in files_of(config, config.eval.items):
        items.extend(islice(read_items(file), config.eval.limit or None))
    known: dict[str, Item] = {}
    for item in items:
        if (other := known.setdefault(item.id, item)) is not item:
            raise DataError(
                f"item {item.id!r} is in {other.origin} too: give each held-out item a unique id",
                path=item.origin,
                field="id",
            )
        try:
            for image in with_frames(item, tuple(range(len(item.responses))), config.frames).images:
                check_image(image)
        except DataError as error:
            raise DataError(f"held-out item {item.id!r}: {error}", path=item.origin) from error
        for one in _rubrics(item, rubric):
            for responses in ((i,) for i in range(len(item.responses))) if len(item.responses) == 1 else ((0, 1),):
                gold_of(item, one, responses)
    if not any(_fitting(form, items) for form in formats):
        raise DataError(
            f"none of the formats {', '.join(form.name for form in formats)} can ask about the held-out items: name "
            "one for single responses or for pairs, as they are",
            path=config.source,
            field="eval.formats",
        )
    return HeldOut(tuple(items), formats, rubric)


def judge_metrics(loaded: Loaded, held: HeldOut, config: Config, *, step: int) -> Iterator[dict[str, Any]]:
    """One line for each format that fits some of the items: statistics with n and interval, as in `Estimate.to_dict`.

    Correlations are of goodness (0 worst, 1 best), so that rubrics on different scales can be pooled.
    """
    engine = LocalEngine.of(loaded, name=f"step-{step}", batch_size=config.eval.batch_size)
    sampling = Sampling(max_tokens=config.eval.max_tokens)
    for form in held.formats:
        pair, items = form.kind == "pairwise", _fitting(form, held.items)
        if not items:
            continue
        judge = Judge(
            engine,
            held.rubric,
            format="absolute" if pair else form,
            compare_format=form if pair else "pairwise",
            sampling=sampling,
            read=config.eval.read,
            min_mass=config.eval.min_mass,
            frames=config.frames,
        )
        found = (
            _of_pairs(judge.compare_many(items), items, held.rubric)
            if pair
            else _of_grades(judge.grade_many(items), items, held.rubric)
        )
        yield {"step": step, "format": form.name, **{name: each.to_dict() for name, each in found.items()}}


def _fitting(form: Format, items: Sequence[Item]) -> list[Item]:
    """The items that a format can ask about."""
    return [item for item in items if item.responses and (len(item.responses) == 2) == (form.kind == "pairwise")]


def _of_grades(
    verdicts: Iterable[Verdict], items: Sequence[Item], fallback: Rubric | Sheet | None
) -> dict[str, Estimate]:
    by_id = {item.id: item for item in items}
    said, due, scores, golds, forced, n = [], [], [], [], 0, 0
    masses: list[float] = []
    for verdict in verdicts:
        n += 1
        item = by_id[verdict.question.item]
        rubric = next(r for r in _rubrics(item, fallback) if r.name == verdict.question.criterion)
        gold = gold_of(item, rubric, verdict.question.responses)
        if gold.claims:
            said.append(_claims([{"text": c.text, "verdict": c.verdict} for c in verdict.claims]))
            due.append(_claims([{"text": c.text, "verdict": c.verdict} for c in gold.claims]))
        forced += verdict.marker == "forced"
        masses.extend([verdict.mass] if verdict.mass is not None else [])
        if verdict.status is Status.OK and verdict.score is not None:
            scores.append(rubric.scale.goodness(verdict.score))
            golds.append(rubric.scale.goodness(rubric.scale.value(gold.label)))
    found = {"failed": rate(n - len(scores), n), "forced": rate(forced, n)}
    arrays = np.array(scores), np.array(golds)
    found |= measure(*arrays, ["pearson", "exact"], _HOW, dropped=n - len(scores))
    found["mass"] = _median(masses)
    if said and any(said):
        each = feedback_scores(said, due, _HOW)
        found |= {"claim_f1": each.claim_f1, "verdict_f1": each.verdict_f1, "fault_f1": each.fault_f1}
    return found


def _of_pairs(
    preferences: Iterable[Preference], items: Sequence[Item], fallback: Rubric | Sheet | None
) -> dict[str, Estimate]:
    by_id = {item.id: item for item in items}
    n = known = right = same = first = forced = orders = clear = clear_right = 0
    for each in preferences:
        n += 1
        item = by_id[each.item]
        rubric = next(r for r in _rubrics(item, fallback) if r.name == each.criterion)
        gold = _CHOICES[gold_of(item, rubric, each.pair).label]
        forced += sum(verdict.marker == "forced" for verdict in each.orders)
        orders += len(each.orders)
        if each.choice is None:
            continue
        known += 1
        right += each.outcome == gold  # orders that disagree are not a tie
        same += bool(each.consistent)
        if gold != "tie" and each.logit_a is not None:
            clear += 1
            clear_right += (each.logit_a > 0) == (gold == "a") and each.logit_a != 0
        labels = {verdict.label for verdict in each.orders}
        first += not each.consistent and labels == {"a", "b"} and each.orders[0].label == "a"
    return {
        "failed": rate(n - known, n),
        "forced": rate(forced, orders),
        "accuracy": rate(right, known, dropped=n - known, note="both orders agree on the gold"),
        "clear_accuracy": rate(clear_right, clear, note="gold is no tie; sign of the symmetric read-out"),
        "swap_consistency": rate(same, known, dropped=n - known),
        "first_slot": rate(
            first, known, dropped=n - known, note="the response shown first was preferred in both orders"
        ),
    }


def _claims(claims: list[dict[str, str]]) -> list[ClaimVerdict]:
    return claims_of(claims) or []


def _median(values: Sequence[float]) -> Estimate:
    if not values:
        return undefined(0, "no verdict was read from a distribution")
    drawn = np.median(np.random.default_rng(0).choice(values, (_HOW.draws, len(values))), axis=1)
    return Estimate(float(np.median(values)), len(values), *_HOW.interval(drawn), _HOW.level, "bootstrap of the median")


def _rubrics(item: Item, fallback: Rubric | Sheet | None) -> tuple[Rubric, ...]:
    rubric = item.rubric or fallback
    if rubric is None:
        raise DataError(f"item {item.id!r} has no rubric: give it one, or 'eval' a 'rubric'", path=item.origin)
    return tuple(rubric) if isinstance(rubric, Sheet) else (rubric,)
