"""The verb `dikast audit`: a thin skin over `dikast.audit.audit.audit_file`."""

from typing import TYPE_CHECKING, Any

import typer

from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.surface import audit_flags as flags

if TYPE_CHECKING:
    from dikast.audit.report import Audit, Table

_MOST_INTERVALS = 3  # with more in a row, intervals are told as ±half


def audit(
    file: flags.File,
    score: flags.Score = "",
    gold: flags.Gold = [],  # noqa: B006 - typer reads it, nobody changes it
    gold_file: flags.GoldFile = None,
    key: flags.Key = "",
    long: flags.Long = "",
    scale: flags.ScaleText = "",
    by: flags.By = [],  # noqa: B006
    cluster: flags.Cluster = "",
    system: flags.System = "",
    where: flags.Where = [],  # noqa: B006
    status: flags.StatusColumn = "",
    failed: flags.Failed = [],  # noqa: B006
    gold_rule: flags.GoldRule = "",
    rival: flags.Rival = "",
    retest: flags.Retest = "",
    earlier: flags.Earlier = "",
    length: flags.Length = "",
    between: flags.Between = False,
    mean: flags.Means = [],  # noqa: B006
    logprobs: flags.LogProbs = "",
    logprob_floor: flags.Floor = flags.FLOOR,
    readout: flags.Readout = "mode",
    parse: flags.Parse = "",
    pairwise: flags.Pairwise = False,
    pair_labels: flags.PairLabelsText = "",
    soft: flags.Soft = False,
    swapped: flags.Swapped = "",
    swapped_as: flags.SwappedAs = "responses",
    first: flags.First = "",
    second: flags.Second = "",
    two_games: flags.TwoGames = "both",
    unscored: flags.Unscored = "drop",
    allow_unread: flags.AllowUnread = False,
    strong: flags.Strong = 1.0,
    strong_as: flags.StrongAs = "weight",
    anchor: flags.Anchor = "",
    covariate: flags.Covariates = [],  # noqa: B006
    ranked: flags.Ranked = False,
    epsilon: flags.Epsilon = 0.2,
    claims: flags.ClaimsColumn = "",
    gold_claims: flags.GoldClaims = "",
    spans: flags.Spans = "",
    equate: flags.Equate = "",
    width: flags.Width = 0.03,
    gold_spans: flags.GoldSpans = "",
    draws: flags.Draws = 2000,
    level: flags.Level = 0.95,
    seed: flags.Seed = 0,
    json: flags.Json = False,
    config: flags.Config = None,
) -> None:
    """How far verdicts can be trusted: failures first, then agreement with gold, its ceiling and its floor.

    Example: dikast audit verdicts.csv --score score --gold human_1 --gold human_2 --scale 1-5 --by rubric
    """
    from dikast.audit.audit import audit_file
    from dikast.audit.intervals import Resampling
    from dikast.audit.plan import AuditPlan, PairLabels
    from dikast.surface.audit_config import with_replies

    if not 0 < level < 1 or draws < 1:
        raise UserError("--level lies between 0 and 1 (.95), --draws is at least 1")
    if not 0 < width < 1:
        raise UserError("--width lies between 0 and 1 (.03)")
    plan = AuditPlan(
        file=file,
        score=score,
        gold=tuple(gold),
        gold_file=gold_file,
        key=tuple(part.strip() for part in key.split(",") if part.strip()),
        long=long,
        columns=tuple(config or ()),
        scale=Scale.parse(scale) if scale not in ("", "none") else None,
        unscaled=scale == "none",
        by=tuple(by),
        cluster=cluster,
        system=system,
        where=tuple(where),
        status=status,
        failed=tuple(failed),
        gold_rule=_one_of("--gold-rule", gold_rule, ("", "mean", "median", "majority", "first")),
        rival=rival,
        retest=retest,
        earlier=earlier,
        length=length,
        between=between,
        means=tuple(mean),
        logprobs=tuple(part.strip() for part in logprobs.split(",") if part.strip()),
        logprob_floor=logprob_floor,
        readout=_one_of("--readout", readout, ("mode", "expected")),
        pairwise=pairwise or bool(soft or pair_labels or swapped or first or second),
        pair_labels=PairLabels.parse(pair_labels) if pair_labels else None,
        soft=soft,
        swapped=swapped,
        swapped_as=_one_of("--swapped-as", swapped_as, ("responses", "slots")),
        first=first,
        second=second,
        two_games=_one_of("--two-games", two_games, ("both", "net", "tie")),
        allow_unread=allow_unread,
        unscored=_one_of("--unscored", unscored, ("drop", "tie", "wrong")),
        strong=strong,
        strong_as=_one_of("--strong-as", strong_as, ("weight", "copies")),
        anchor=anchor,
        covariates=tuple(covariate),
        ranked=ranked,
        epsilon=epsilon,
        claims=claims,
        gold_claims=gold_claims,
        spans=spans,
        equate=Scale.parse(equate) if equate else None,
        width=width,
        gold_spans=gold_spans,
        resampling=Resampling(draws, level, seed),
    )
    found = audit_file(with_replies(plan, parse))
    if json:
        import orjson

        typer.echo(orjson.dumps(found.to_dict(), option=orjson.OPT_INDENT_2).decode())
    else:
        show(found)


def show(found: "Audit") -> None:
    """Print an audit on stdout."""
    typer.echo(f"{found.source}: {found.rows:,} rows")
    for note in found.notes:
        typer.echo(f"  ! {note}")
    for each in found:
        typer.echo("")
        show_table(each)


def show_table(found: "Table") -> None:
    """Print one table on stdout. Tables are never cut; a narrow terminal wraps them."""
    from dikast.audit.estimate import Estimate
    from dikast.audit.report import shown

    many = bool(found.rows) and sum(isinstance(cell, Estimate) for cell in found.rows[0]) > _MOST_INTERVALS
    cells = [list(found.columns), *([shown(cell, compact=many) for cell in row] for row in found.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    typer.echo(typer.style(found.title, bold=True))
    for i, row in enumerate(cells):
        name, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        line = "  ".join([name.strip().ljust(widths[0]), *rest]).rstrip()
        typer.echo("  " + (typer.style(line, dim=True) if i == 0 else line))
    for note in found.notes:
        typer.echo(f"  * {note}")


def _one_of(option: str, value: str, known: tuple[str, ...]) -> Any:
    if value not in known:
        raise UserError(f"{option} {value!r}: choose {', '.join(each for each in known if each)}")
    return value
