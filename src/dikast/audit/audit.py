"""The audit of a file: load the columns of the plan, compute every statistic they allow, report what was left out."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dikast.audit.graded_pairs import MOST_CRITERIA, not_sliced, of_choices, plan_of_choices, with_gold_beside
from dikast.audit.plan import BETWEEN, AuditPlan
from dikast.audit.rendering import Audit, Table
from dikast.audit.sections import slice_means
from dikast.audit.sections.extras import alt_test_table, drift_table, feedback_table, ppi_table, rankings_tables
from dikast.audit.sections.failures import failure_table
from dikast.audit.sections.judge_names import judge_names
from dikast.audit.sections.label_probabilities import (
    Distributions,
    abstain_table,
    calibration_table,
    from_logprobs,
    from_objects,
    from_objects_by_scale,
    readout_table,
    reliability_table,
    uncalibrated_table,
)
from dikast.audit.sections.leaderboard import leaderboard
from dikast.audit.sections.pair_tables import pair_tables
from dikast.audit.sections.raters import rater_pairs_table, raters_table
from dikast.audit.sections.score_intervals import Centres, conformal_table
from dikast.audit.sections.scores import (
    agreement_table,
    baselines_table,
    class_table,
    confusion_table,
    other_judge_table,
    systems_table,
)
from dikast.audit.sections.sheet_totals import sheet_totals, weights_told
from dikast.audit.sections.slices import Slices, slice_table, unlabelled_table
from dikast.audit.sections.within import within_table
from dikast.audit.statistics.intervals import Resampling
from dikast.audit.tables.canonical_order import in_canonical_order, sorted_names
from dikast.audit.tables.columns import group_codes
from dikast.audit.tables.load import Data, load
from dikast.audit.tables.questions import clustered, one_row_each
from dikast.audit.tables.record_rows import Watch
from dikast.audit.tables.refs import Ref
from dikast.audit.tables.row_scales import note_of, row_scales, scale_of, scales_by_rubric
from dikast.audit.tables.run_rows import RESPONSE, SAMPLES_MEAN, asked_orders, gold_scale_of, has_gold
from dikast.audit.tables.scored import Scored, equated, scored
from dikast.core.errors import UserError
from dikast.core.runs.current_verdicts import decoded_once
from dikast.core.runs.run_files import RUBRICS
from dikast.core.scale import Scale
from dikast.core.text import counted

NO_DISTRIBUTION = "no distribution"  # the status of a row with invalid probabilities
OF_PAIRS = " of pairs"  # names the tables of choices beside those of single responses
_MOST_LABELS = 20  # maximum labels of a confusion matrix as a table


def audit_file(plan: AuditPlan | str | Path, watch: Watch | None = None) -> Audit:
    """Audit the verdicts in the plan's file: every statistic that its columns allow.

    The path of a run folder (or of a file) stands for a plan with defaults. It holds scores, pairs (`plan.pairwise`) or
    rankings (`plan.ranked`); a run folder says by itself which. `watch` gets the rows as they are read, so that other
    uses of them need no second pass. Raises UserError or DataError for input that cannot be used.
    """
    return audit_rows(plan if isinstance(plan, AuditPlan) else AuditPlan(Path(plan)), watch)[0]


@decoded_once()
def audit_rows(plan: AuditPlan, watch: Watch | None = None, *, beside: Sequence[str] = ()) -> tuple[Audit, Data]:
    """As `audit_file`, with the rows that were measured, in an order of their own.

    Columns `beside` those of `plan.by` are read for other uses, and stand in the rows behind them ("by 1", ...).
    """
    asked = _completed(plan)
    _check(asked)
    plan = asked if asked.gold_rule == "first" else dataclasses.replace(asked, gold=tuple(sorted_names(asked.gold)))
    data = _loaded(dataclasses.replace(plan, by=(*plan.by, *beside)), watch)
    data.plan = dataclasses.replace(data.plan, by=plan.by)
    tables = (
        rankings_tables(data) if plan.ranked else pair_tables(data, _slices(data)) if plan.pairwise else _scores(data)
    )
    if data.gold_of_pairs and not plan.where:
        tables += _choices(plan, data, [each.name for each in tables])
    if plan.means:
        tables.append(slice_means.columns_table(data, _slices(data)))
    if not tables:
        raise UserError(f"{plan.file}: name a column of verdicts with --score, of gold with --gold, or both")
    told = dataclasses.replace(asked, scale=data.plan.scale)
    return Audit(str(plan.file), len(data), tuple(tables), tuple(data.notes), told.to_dict(), data.repeats), data


def _choices(plan: AuditPlan, data: Data, taken: Sequence[str]) -> Iterator[Table]:
    """The choices that follow from scores of single responses, against gold that says which of two is better."""
    with of_choices(plan_of_choices(plan)) as pairs:
        told = _loaded(pairs)
        for found in pair_tables(told, _slices(told)):
            yield dataclasses.replace(found, name=found.name + OF_PAIRS) if found.name in taken else found
        data.notes += [*told.notes, *not_sliced(plan, pairs)]


def rows_of(plan: AuditPlan) -> Data:
    """The rows that an audit of the plan measures, for figures that others define on them; raises as `audit_file`."""
    asked = _completed(plan)
    _check(asked)
    return _loaded(asked)


def _loaded(plan: AuditPlan, watch: Watch | None = None) -> Data:
    return _on_scales(in_canonical_order(clustered(one_row_each(load(plan, watch)))))


def _check(plan: AuditPlan) -> None:
    """Report columns and options that this kind of audit would ignore."""
    alone = {"system", "equate", "logprobs", "claims", "gold_claims", "spans", "gold_spans"}
    idle = alone if plan.pairwise else {"first", "second", "swapped"}
    idle = idle | {"rival", "retest", "earlier", "length", "by"} | alone if plan.ranked else idle
    given = sorted(name for name in idle if getattr(plan, name))
    if given:
        kind = "rankings" if plan.ranked else "pairs" if plan.pairwise else "scores"
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise UserError(f"{options}: does not apply to {kind}; leave it out")
    lone = ["rival", "system", "gold_rule", "equate"] if not plan.gold else []
    _refuse(plan, lone, "--gold")
    _refuse(plan, ["equate"] if plan.scale is None else [], "--scale, the scale of gold")
    also = ["rival", "retest", "earlier", "logprobs"] if plan.equate is not None else []
    _refuse(plan, also, "scores on the scale of gold, without --equate")
    _refuse(plan, [] if plan.claims else ["gold_claims"], "--claims")
    _refuse(plan, [] if plan.spans else ["gold_spans"], "--spans")
    _refuse(plan, [] if plan.gold_spans else ["spans"], "--gold-spans")
    _refuse(plan, [] if plan.first and plan.second else ["anchor", "covariates"], "--first and --second")


def _refuse(plan: AuditPlan, names: list[str], due: str) -> None:
    for name in names:
        if getattr(plan, name):
            option = {"covariates": "covariate"}.get(name, name.replace("_", "-"))
            raise UserError(f"--{option}: applies only with {due}")


def _completed(plan: AuditPlan) -> AuditPlan:
    """Fill in what a run folder implies, and allow a mean of scores between labels."""
    verdict = {column.name: column.operator for column in plan.columns}.get(plan.score)
    if verdict in BETWEEN and not plan.pairwise:
        plan = dataclasses.replace(plan, between=True)
    if not plan.file.is_dir():
        return plan
    plan = with_gold_beside(plan, plan.file)
    asked = asked_orders(plan.file)
    if asked is None:
        raise UserError(f"{plan.file}: the run holds no verdict of its current configuration")
    changes: dict[str, Any] = {}
    if asked:
        swapped = plan.swapped or ("swapped" if "swapped" in asked else "")
        score = "shown" if plan.score in ("", "choice") else plan.score  # both orders are read, and joined here
        changes = {"pairwise": True, "score": score, "swapped": swapped}
    elif not plan.score:
        changes = {"score": "score"}
    elif plan.score in ("expected", SAMPLES_MEAN):
        changes = {"between": True}
    if not plan.gold and (plan.gold_file is not None or has_gold(plan.file)):
        changes["gold"] = ("gold",)
    if changes.get("pairwise"):
        changes |= {"scale": plan.scale or scale_of(plan.file), "gold_scale": gold_scale_of(plan.file)}
    elif not plan.unscaled:
        changes |= _scales_of_run(plan)
    return dataclasses.replace(plan, **changes)


def _scales_of_run(plan: AuditPlan) -> dict[str, Any]:
    """The scale of a run's scores, and that of its gold: `--equate` without `--scale`, or what the run wrote down."""
    own = scale_of(plan.file)
    if plan.scale is not None:
        return {}
    stated = plan.equate or (gold_scale_of(plan.file) if plan.gold_file is None else None)
    if stated is None or (own is not None and (stated.labels, stated.values) == (own.labels, own.values)):
        return {"scale": own, "equate": None}
    if plan.equate is not None and own is not None:
        return {"scale": stated, "equate": own}
    return {"scale": own, "gold_scale": stated, "equate": None}


def _on_scales(data: Data) -> Data:
    """The scale of each row, if the rows of a run have several or gold has its own."""
    plan, path = data.plan, data.plan.file / RUBRICS
    if plan.unscaled or plan.equate is not None or "rubric" not in data.words:
        return data
    rubrics = scales_by_rubric(plan.file)
    if not rubrics:
        return data
    found = row_scales(rubrics, data.words["rubric"], data.words["criterion"], str(path))
    if len(found.scales) == 1 and plan.gold_scale is None:
        if found.scales[0].lower_is_better:
            data.notes.append(f"lower is better on the scale {found.scales[0]}: scores are reported as they are")
        data.plan = dataclasses.replace(plan, scale=plan.scale or found.scales[0])
        return data
    if plan.scale is not None and plan.gold_scale is None:
        raise UserError(
            f"--scale {plan.scale}: the rows lie on {found.listed()}; leave it out, or pick rows with --where"
        )
    data.scales = dataclasses.replace(found, gold=plan.gold_scale)
    data.plan = dataclasses.replace(plan, scale=None)
    data.notes.append(note_of(data.scales))
    return data


def judged_scores(data: Data) -> tuple[Scored | None, Distributions | None]:
    """The scores of the rows, equated or read from probabilities where the plan says so, and these probabilities."""
    plan = data.plan
    read = _distributions(data) if plan.equate is None else None
    between, absent = plan.between, "missing"
    if "score" in data.numbers:
        values = data.numbers["score"]
        if plan.equate is not None:
            values, between = equated(data, plan.equate), True
    elif read is not None:
        values, absent = (read.expected if plan.readout == "expected" else read.mode), "off_scale"
        between = between or plan.readout == "expected"
        if plan.readout == "mode" and (tied := int(read.tied.sum())):
            data.notes.append(
                f"{counted(tied, 'row')} with several labels equally likely: the score is the lowest of them "
                "(--readout expected takes the mean)"
            )
        if lost := int((~read.known).sum()) - read.refused:
            data.notes.append(
                f"{counted(lost, 'row')} without probability on any label: a failure, not the middle of the scale"
            )
        if read.refused:
            data.notes.append(
                f"{counted(read.refused, 'row')} whose numbers cannot be log-probabilities of different labels "
                f"({read.why}): failures of their own kind, {NO_DISTRIBUTION!r}"
            )
    else:
        return None, None
    flawed = {NO_DISTRIBUTION: read.flawed} if read is not None and read.flawed is not None and plan.logprobs else {}
    return scored(data, values, between=between, absent=absent, known=flawed), read


def _scores(data: Data) -> list[Table]:
    plan, how = data.plan, data.plan.resampling
    given, read = judged_scores(data)
    if given is None:
        _refuse(plan, ["by"] if not plan.means else [], "--score or --mean")
        return _raters(data, scored(data, np.full(len(data), np.nan))) if plan.gold else []
    tables = [
        failure_table(given.status, how.level, data.words.get("marker"), given.cluster, data.words.get("conflict"))
    ]
    totals = sheet_totals(data, given)
    data.notes += [] if totals is None else [weights_told(totals)]
    tables.extend(leaderboard(data, given, totals))
    slices = _slices(data)
    if not plan.gold:
        every = [("all", np.ones(len(data), bool))]
        tables.append(unlabelled_table(every, given, how, "", totals and totals.given))
        tables.extend(_sliced(given, slices, how, labelled=False))
    if not plan.gold and "retest" in data.numbers:
        tables.append(baselines_table(data, given, how))
    if plan.gold:
        tables += [agreement_table(given, how, plan.width, plan.gold_rule or "mean"), baselines_table(data, given, how)]
        if "within" in data.words and (inside := _within(data, given)) is not None:
            tables.append(inside)
        tables.extend(_labelled(data, given))
        tables.extend(_sliced(given, slices, how, labelled=True))
        if "system" in data.words:
            tables.append(systems_table(data.words["system"], given, how))
        if (few := ppi_table(data, given)) is not None:
            tables.append(few)
        tables.extend(_readouts(data, given, read, slices))
    if "earlier" in data.numbers:
        tables.append(drift_table(data, given, how))
    if "claims" in data.objects or "spans" in data.objects:
        tables.append(feedback_table(data, given, how))
    tables.extend(_raters(data, given))
    tables.extend(_alt_test(data, given))
    return tables


def _sliced(given: Scored, slices: Slices, how: Resampling, *, labelled: bool) -> Iterator[Table]:
    """A table for each way of slicing; where figures are of goodness, one by scale of the scores as they were given."""
    ways = [(codes, names, given, by) for (codes, names), by in slices]
    if given.own is not None and given.raw is not None and (given.shared or not labelled):
        ways.append((given.own.codes, given.own.names, given.raw, "scale"))
    for codes, names, view, by in ways:
        if labelled:
            yield slice_table(codes, names, view, how, by, given.own.scales if given.own and view is given.raw else ())
            if len(names) > 1 and view is given:  # a mean over several scales has no meaning
                yield slice_means.scores_table(codes, names, view, how.level, by)
        else:
            yield unlabelled_table([(each, codes == code) for code, each in enumerate(names)], view, how, by)


def _alt_test(data: Data, given: Scored) -> Iterator[Table]:
    if len(given.raters) > 2 and given.shared:
        yield alt_test_table(given.score, given.raters, data.plan, given.cluster, nominal=False)
    elif len(given.raters) > 2:
        data.notes.append(
            "no alt-test: it measures the distance between judge and raters, which needs one scale: state the --scale "
            "that they share, or put scores on that of raters with --equate (with --between, if between its labels)"
        )


def _within(data: Data, given: Scored) -> Table | None:
    over = {role.removeprefix("over "): words for role, words in data.words.items() if role.startswith("over ")}
    found = within_table(data.words["within"], given, data.plan.resampling, data.plan.within or RESPONSE, over)
    if found is None:
        data.notes.append("no group of --within has two rows with a score and gold")
    return found


def _on_labels(given: Scored) -> bool:
    scores = given.score[given.paired]
    return given.scale is not None and bool(np.isin(scores, np.asarray(given.scale.values)).all())


def _labelled(data: Data, given: Scored) -> Iterator[Table]:
    """What needs scores on labels: confusion and classes, and a second judge."""
    plan, chosen = data.plan, given.paired
    if given.scale is not None and chosen.any() and _on_labels(given):
        if len(given.scale.labels) <= _MOST_LABELS:
            yield confusion_table(given)
        if np.isin(given.gold[chosen], np.asarray(given.scale.values)).all():
            yield class_table(given, plan.resampling)
    if "rival" in data.numbers:
        yield other_judge_table(judge_names(plan), data.numbers["rival"], given, plan.resampling)


def _distributions(data: Data) -> Distributions | None:
    """Probabilities of the labels: from log-probability columns, or from the verdicts of a run."""
    plan = data.plan
    if plan.logprobs:
        if plan.scale is None or len(plan.scale.labels) != len(plan.logprobs):
            count = len(plan.logprobs)
            raise UserError(
                f"--logprobs names {count} columns: give a --scale with {count} labels, columns in its order"
            )
        columns = [data.numbers[f"logprob {i}"] for i in range(len(plan.logprobs))]
        return from_logprobs(columns, plan.scale, plan.logprob_floor)
    if plan.scale is not None and any(value is not None for value in data.objects.get("distribution", [])):
        return from_objects(data.objects["distribution"], plan.scale)
    return None


def _readouts(data: Data, given: Scored, read: Distributions | None, slices: Slices) -> Iterator[Table]:
    """Expected against mode, calibration, conformal width, abstaining."""
    if not data.plan.readouts:
        return
    scale = given.scale
    if given.own is not None and given.shared:
        scale = given.own.shared
    if read is None and given.own is not None and any(data.objects.get("distribution", [])):
        read = from_objects_by_scale(data.objects["distribution"], given.own) if given.shared else None
        if read is None:
            several = "the rows are on several scales: pick those of one with --where"
            yield uncalibrated_table(several if given.shared else "gold lies on a scale of its own")
    for found in _of_distributions(data, given, read, scale, slices):
        yield dataclasses.replace(found, title=found.title + given.unit)


def _of_distributions(
    data: Data, given: Scored, read: Distributions | None, scale: Scale | None, slices: Slices
) -> Iterator[Table]:
    """The tables themselves: `scale` is that of scores and gold, of goodness where these are."""
    how, cluster = data.plan.resampling, given.cluster
    parts = slices[0][0] if slices else None
    if read is not None:
        usable = read.known & ~np.isnan(given.score)  # a failed verdict stays failed, whatever its probabilities
        read = dataclasses.replace(read, probabilities=np.where(usable[:, None], read.probabilities, np.nan))
        family = parts[0] if parts else None
        yield readout_table(read, given.gold, how, cluster, family)
        yield calibration_table(read, given.gold, how, cluster, family)
        yield reliability_table(read, given.gold, how.level, cluster)
        yield abstain_table(read, given.gold, how.level, cluster)
    if scale is not None:
        centre = read.expected if read is not None else given.score
        found = conformal_table(Centres(centre, read, scale), given.gold, how, cluster, parts)
        if found is not None:
            yield found


def _slices(data: Data) -> Slices:
    criteria = len(data.words["criterion"].names) if "criterion" in data.words else 0
    if not data.plan.by and 1 < criteria <= MOST_CRITERIA:
        return [(group_codes([data.words["criterion"]]), "criterion")]
    words = [data.words[f"by {i}"] for i in range(len(data.plan.by))]
    return [(group_codes(words), " x ".join(Ref.of(name).name for name in data.plan.by))] if words else []


def _raters(data: Data, given: Scored) -> list[Table]:
    if len(given.raters) < 2:
        return []
    plan, how = data.plan, data.plan.resampling
    return [
        raters_table(given.raters, how, nominal=False, cluster=given.cluster),
        rater_pairs_table(given.raters, plan.gold, how, nominal=False, shared=True, cluster=given.cluster),
    ]
