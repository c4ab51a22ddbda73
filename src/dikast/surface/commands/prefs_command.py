"""The verb `dikast prefs`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from dikast.core.checking import option
from dikast.judging.run_options import MediaOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, verb


@dataclass(frozen=True, kw_only=True)
class PrefsOptions:
    """Which pairs are taken, and the output format."""

    format: str = option(
        help="trl, kto, llava, llamafactory, llamafactory-kto, swift, verl or openrlhf.", metavar="TRAINER"
    )
    out: Path = option(help="The file: .jsonl; .json for llava and llamafactory, .parquet for verl.", metavar="FILE")
    margin: float = option(0.0, help="Minimum difference in goodness, or in |2p - 1| of a preference.", least=0, most=1)
    take: Literal["best-and-worst", "all"] = option(
        "best-and-worst", help="Pairs of each prompt: best-and-worst (one pair), or all."
    )
    match_length: bool = option(
        False, help="Keep equally many pairs in which the chosen response is longer and in which it is shorter."
    )
    criterion: str = option("", help="The criterion to use if there are several and no total.")
    items: str = option("", help="The items file, if it was moved.")


@verb
def prefs(
    run: Annotated[Path, typer.Argument(help="The run folder, of grades or comparisons.")],
    options: PrefsOptions,
    media: MediaOptions,
    *,
    shown: JsonOptions,
) -> None:
    """Write pairs of responses, the better and the worse, for trainers of preferences.

    Example: dikast prefs runs/first --format trl --out pairs.jsonl --margin 0.25
    """
    from dikast.core.errors import UserError
    from dikast.core.text import counted
    from dikast.rewards.pairs import pairs_of
    from dikast.surface.export.preference_file import write_preferences

    found = pairs_of(
        run,
        items=options.items,
        criterion=options.criterion,
        margin=options.margin,
        take=options.take,
        match_length=options.match_length,
    )
    if not found.pairs:
        raise UserError(f"no pair of {run} is left, so {options.out} is not written: {found.why_none}")
    rows, both_ways = write_preferences(found.pairs, options.out, options.format)
    told = found.summary()
    if shown.json:
        echo_json({"rows": rows, **({"both_ways": both_ways} if both_ways else {}), **told})
        return
    echo(f"{options.out}: {counted(rows, 'row')} from {counted(len(found.pairs), 'pair')}", err=True)
    for reason, n in sorted(found.dropped.items(), key=lambda each: -each[1]):
        echo(f"left out: {n:,} ({reason})", err=True)
    if both_ways:
        responses = counted(both_ways, "response")
        echo(f"left out: {responses} (preferred in one pair and rejected in another, so without a label)", err=True)
    if found.one_order:
        echo("each pair was asked in one order only: what the judge prefers may be the first slot", err=True)
    if found.unmatched:
        echo(
            f"left out: {found.unmatched:,} (so that the others differ in length as much one way as the other)",
            err=True,
        )
    echo(
        f"the chosen response is longer in {told['chosen_longer']:,} pairs, shorter in {told['chosen_shorter']:,}:"
        f" on average {found.words_longer:.1f} words longer",
        err=True,
    )
