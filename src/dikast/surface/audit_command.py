"""The verb `dikast audit`: a thin skin over `dikast.audit.audit.audit_file`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dikast.core.errors import UserError
from dikast.core.scale import Scale

if TYPE_CHECKING:
    from dikast.audit.report import Audit, Table

_COLUMN = "COLUMN[@FILE]"
_BESIDE = "Columns beside"
_PROBABILITIES = "Probabilities"
_PAIRS = "Pairs and rankings"
_INTERVALS = "Intervals and output"
_MOST_INTERVALS = 3  # with more in a row, intervals are told as ±half
_FLOOR = -11.512925464970229  # ln 1e-5

File = Annotated[
    Path, typer.Argument(help="A run folder, or CSV, TSV, JSONL, JSON (also .gz) or Parquet: whoever judged.")
]
Score = Annotated[
    str, typer.Option("--score", metavar=_COLUMN, help="The judge's verdicts. Run folders: score, or expected.")
]
Gold = Annotated[list[str], typer.Option("--gold", metavar=_COLUMN, help="What people said; once for each rater.")]
GoldFile = Annotated[Path | None, typer.Option("--gold-file", help="Where the --gold columns stand, matched by --id.")]
Key = Annotated[
    str, typer.Option("--id", metavar="COLUMN[,COLUMN...]", help="What identifies a row; 'line' is its position.")
]
ScaleText = Annotated[str, typer.Option("--scale", help="Such as 1-5 or pass/fail. Scores off the scale are failures.")]
By = Annotated[list[str], typer.Option("--by", metavar=_COLUMN, help="Slices; several are crossed.")]
Cluster = Annotated[
    str,
    typer.Option(
        "--cluster", metavar=_COLUMN, help="Rows that share this are drawn together; a run's items are, unless 'none'."
    ),
]
System = Annotated[
    str,
    typer.Option(
        "--system", metavar=_COLUMN, help="What was judged, for the ranking of systems.", rich_help_panel=_BESIDE
    ),
]
Where = Annotated[list[str], typer.Option("--where", metavar="COLUMN=VALUE", help="Only these rows.")]
StatusColumn = Annotated[str, typer.Option("--status", metavar=_COLUMN, help="Says 'ok' or why there is no verdict.")]
Failed = Annotated[list[str], typer.Option("--failed", metavar="TEXT", help="Text that stands where a verdict failed.")]
GoldRule = Annotated[
    str, typer.Option("--gold-rule", help="One label of several raters: mean, median, majority, first.")
]
Rival = Annotated[
    str, typer.Option("--rival", metavar=_COLUMN, help="A second judge of the same items.", rich_help_panel=_BESIDE)
]
Retest = Annotated[
    str, typer.Option("--retest", metavar=_COLUMN, help="The same judge, asked again.", rich_help_panel=_BESIDE)
]
Earlier = Annotated[
    str,
    typer.Option(
        "--earlier", metavar=_COLUMN, help="The same judge on the same items, earlier: drift.", rich_help_panel=_BESIDE
    ),
]
Length = Annotated[
    str,
    typer.Option(
        "--length", metavar=_COLUMN, help="Length of the response: the length-only judge.", rich_help_panel=_BESIDE
    ),
]
Between = Annotated[
    bool,
    typer.Option("--between", help="Scores may lie between labels (expected scores).", rich_help_panel=_PROBABILITIES),
]
Means = Annotated[
    list[str], typer.Option("--mean", metavar=_COLUMN, help="Also the mean of this column.", rich_help_panel=_BESIDE)
]
LogProbs = Annotated[
    str,
    typer.Option(
        "--logprobs",
        metavar="COLUMN,...",
        help="Log-probabilities of the scale's labels, in order.",
        rich_help_panel=_PROBABILITIES,
    ),
]
Floor = Annotated[
    float,
    typer.Option(
        "--logprob-floor",
        help="Log-probabilities at or below this mean 'not among the top k'.",
        rich_help_panel=_PROBABILITIES,
    ),
]
Readout = Annotated[
    str,
    typer.Option(
        "--readout",
        help="With --logprobs and no --score: judge by mode or by expected.",
        rich_help_panel=_PROBABILITIES,
    ),
]
Pairwise = Annotated[
    bool, typer.Option("--pairwise", help="Verdicts are choices between two responses.", rich_help_panel=_PAIRS)
]
PairLabelsText = Annotated[
    str,
    typer.Option(
        "--pair-labels",
        metavar="FIRST,SECOND[,TIE]",
        help="How choices are spelt; | stands between spellings of one, such as 1,2,0|1.5.",
        rich_help_panel=_PAIRS,
    ),
]
Swapped = Annotated[
    str,
    typer.Option(
        "--swapped",
        metavar=_COLUMN,
        help="The choice when the pair was shown in the other order.",
        rich_help_panel=_PAIRS,
    ),
]
SwappedAs = Annotated[
    str,
    typer.Option(
        "--swapped-as", help="--swapped names responses, or slots (first shown, second shown).", rich_help_panel=_PAIRS
    ),
]
First = Annotated[
    str,
    typer.Option(
        "--first", metavar="COLUMN|=NAME", help="Who the first response is by: ranks players.", rich_help_panel=_PAIRS
    ),
]
Second = Annotated[
    str, typer.Option("--second", metavar="COLUMN|=NAME", help="Who the second response is by.", rich_help_panel=_PAIRS)
]
Unscored = Annotated[
    str, typer.Option("--unscored", help="Pairs without a verdict: drop, tie or wrong.", rich_help_panel=_PAIRS)
]
TwoGames = Annotated[
    str,
    typer.Option(
        "--two-games",
        help="Both orders as one verdict: both must agree, or net (a win and a tie are a win).",
        rich_help_panel=_PAIRS,
    ),
]
AllowUnread = Annotated[
    bool,
    typer.Option(
        "--allow-unread", help="Go on although over a tenth of the choices cannot be read.", rich_help_panel=_PAIRS
    ),
]
Strong = Annotated[
    float, typer.Option("--strong", help="Weight of a strong verdict (A>>B) in the ranking.", rich_help_panel=_PAIRS)
]
StrongAs = Annotated[
    str,
    typer.Option(
        "--strong-as",
        help="For intervals: one game of that weight, or copies drawn one by one.",
        rich_help_panel=_PAIRS,
    ),
]
Anchor = Annotated[
    str,
    typer.Option("--anchor", metavar="NAME", help="The player the ranking is told against.", rich_help_panel=_PAIRS),
]
Covariates = Annotated[
    list[str],
    typer.Option(
        "--covariate", metavar=_COLUMN, help="Second less first: held equal in the ranking.", rich_help_panel=_PAIRS
    ),
]
Ranked = Annotated[
    bool,
    typer.Option(
        "--ranked", help="Verdicts and gold are rankings: lists, best first, or B>A=C.", rich_help_panel=_PAIRS
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon", help="What a human costs more than the judge, in the alt-test.", rich_help_panel=_INTERVALS
    ),
]
ClaimsColumn = Annotated[
    str,
    typer.Option(
        "--claims", metavar=_COLUMN, help="The judge's claims: a list of {text, verdict}.", rich_help_panel=_BESIDE
    ),
]
GoldClaims = Annotated[
    str,
    typer.Option("--gold-claims", metavar=_COLUMN, help="The true claims, in the same form.", rich_help_panel=_BESIDE),
]
Spans = Annotated[
    str,
    typer.Option(
        "--spans", metavar=_COLUMN, help="Characters the judge marked: a list of [start, end].", rich_help_panel=_BESIDE
    ),
]
GoldSpans = Annotated[
    str, typer.Option("--gold-spans", metavar=_COLUMN, help="The same, by people.", rich_help_panel=_BESIDE)
]
Equate = Annotated[
    str,
    typer.Option(
        "--equate", metavar="SCALE", help="The scale scores are on, if not gold's: put on gold's by equal ranks."
    ),
]
Width = Annotated[float, typer.Option("--width", help="Tell the labels needed for ± this.", rich_help_panel=_INTERVALS)]
Draws = Annotated[int, typer.Option("--draws", help="Bootstrap draws.", rich_help_panel=_INTERVALS)]
Level = Annotated[float, typer.Option("--level", help="The level of intervals.", rich_help_panel=_INTERVALS)]
Seed = Annotated[int, typer.Option("--seed", help="Of the bootstrap.", rich_help_panel=_INTERVALS)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.", rich_help_panel=_INTERVALS)]


def audit(
    file: File,
    score: Score = "",
    gold: Gold = [],  # noqa: B006 - typer reads it, nobody changes it
    gold_file: GoldFile = None,
    key: Key = "",
    scale: ScaleText = "",
    by: By = [],  # noqa: B006
    cluster: Cluster = "",
    system: System = "",
    where: Where = [],  # noqa: B006
    status: StatusColumn = "",
    failed: Failed = [],  # noqa: B006
    gold_rule: GoldRule = "",
    rival: Rival = "",
    retest: Retest = "",
    earlier: Earlier = "",
    length: Length = "",
    between: Between = False,
    mean: Means = [],  # noqa: B006
    logprobs: LogProbs = "",
    logprob_floor: Floor = _FLOOR,
    readout: Readout = "mode",
    pairwise: Pairwise = False,
    pair_labels: PairLabelsText = "",
    swapped: Swapped = "",
    swapped_as: SwappedAs = "responses",
    first: First = "",
    second: Second = "",
    two_games: TwoGames = "both",
    unscored: Unscored = "drop",
    allow_unread: AllowUnread = False,
    strong: Strong = 1.0,
    strong_as: StrongAs = "weight",
    anchor: Anchor = "",
    covariate: Covariates = [],  # noqa: B006
    ranked: Ranked = False,
    epsilon: Epsilon = 0.2,
    claims: ClaimsColumn = "",
    gold_claims: GoldClaims = "",
    spans: Spans = "",
    equate: Equate = "",
    width: Width = 0.03,
    gold_spans: GoldSpans = "",
    draws: Draws = 2000,
    level: Level = 0.95,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """How far verdicts can be trusted: failures first, then agreement with gold, its ceiling and its floor.

    Example: dikast audit verdicts.csv --score score --gold human_1 --gold human_2 --scale 1-5 --by rubric
    """
    from dikast.audit.audit import audit_file
    from dikast.audit.intervals import Resampling
    from dikast.audit.plan import AuditPlan, PairLabels

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
        scale=Scale.parse(scale) if scale else None,
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
        pairwise=pairwise or bool(pair_labels or swapped or first or second),
        pair_labels=PairLabels.parse(pair_labels) if pair_labels else None,
        swapped=swapped,
        swapped_as=_one_of("--swapped-as", swapped_as, ("responses", "slots")),
        first=first,
        second=second,
        two_games=_one_of("--two-games", two_games, ("both", "net")),
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
    found = audit_file(plan)
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
