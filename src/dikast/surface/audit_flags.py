"""The flags of `dikast audit`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from dikast.surface.audit_config import load_audit_config

_COLUMN = "COLUMN[@FILE]"
_BESIDE = "Columns beside"
_PROBABILITIES = "Probabilities"
_PAIRS = "Pairs and rankings"
_INTERVALS = "Intervals and output"
FLOOR = -11.512925464970229  # ln 1e-5

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
ScaleText = Annotated[
    str,
    typer.Option(
        "--scale",
        help="Such as 1-5 or pass/fail, none to leave it open. Scores off it are failures, gold off it is refused.",
    ),
]
By = Annotated[list[str], typer.Option("--by", metavar=_COLUMN, help="Slices; several are crossed.")]
Cluster = Annotated[
    str,
    typer.Option(
        "--cluster", metavar=_COLUMN, help="Rows that share this are drawn together; a run's items are, unless 'none'."
    ),
]
Long = Annotated[
    str,
    typer.Option(
        "--long",
        metavar=_COLUMN,
        help="Long form: rows that share --id are one item, this names the rater of each; --gold 'RATING.*' is all.",
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
Parse = Annotated[
    str,
    typer.Option(
        "--parse",
        metavar="DIALECT",
        help="The verdict columns hold recorded replies: read them so (docs/prompts.md lists dialects).",
    ),
]
Soft = Annotated[
    bool,
    typer.Option(
        "--soft",
        help="Choices lie between the two numbers of --pair-labels: 1.3 prefers the second of 1,2 by 30 %.",
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
        help="Both orders as one verdict: both must agree, net (a win and a tie win), or tie (where they differ).",
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
        "--equate",
        metavar="SCALE",
        help="The scale scores are on, if gold's (--scale) is another; of a run alone, gold's. By equal ranks.",
    ),
]
Width = Annotated[float, typer.Option("--width", help="Tell the labels needed for ± this.", rich_help_panel=_INTERVALS)]
Draws = Annotated[int, typer.Option("--draws", help="Bootstrap draws.", rich_help_panel=_INTERVALS)]
Level = Annotated[float, typer.Option("--level", help="The level of intervals.", rich_help_panel=_INTERVALS)]
Seed = Annotated[int, typer.Option("--seed", help="Of the bootstrap.", rich_help_panel=_INTERVALS)]
Config = Annotated[  # the file's name on the command line, its derived columns once it is read
    Any,
    typer.Option(
        "--config",
        is_eager=True,
        callback=load_audit_config,
        help="Flags as YAML, and `columns:` derived from others; the command line wins.",
        rich_help_panel=_INTERVALS,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.", rich_help_panel=_INTERVALS)]
