"""Replays of any run; of one of rankings its rankings too, from the replayed verdicts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dikast.core.errors import DataError
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import RANKINGS, SUMMARY, cure_of, write_checked
from dikast.core.runs.schema import RankingLine, derived_lines
from dikast.judging.recorded import replay_run
from dikast.prompts.format import Format
from dikast.ranking.contestants import Contestants
from dikast.ranking.item_ranking import ranking_of
from dikast.ranking.rank_file import comparisons_of, written
from dikast.ranking.rank_summary import Ranked, ranking_summary
from dikast.ranking.schedules import SCHEDULES
from dikast.ranking.tournament import Tournament


def replay(
    run: str | Path, *, format: str | Path | Format | None = None, out: str | Path | None = None
) -> dict[str, Any]:
    """Re-derive the verdicts of `run`, with its own format or another of the same kind; `out` takes a new run folder.

    Returns a summary like the run's own with `replay` counting what changed. With `out`, a run of rankings gets its
    `rankings.jsonl` again: the comparisons that were asked, with the values that they have now. Grades are those of
    the run. Raises UserError when `run` has no lock, or a format that is not the one it was made with would
    be used unasked.
    """
    run = Path(run)

    def rankings(out: Path) -> dict[str, Any]:
        tournament, ranked = _ranked_again(run, out)
        write_checked(out / RANKINGS, written(ranked))
        return {"ranking": ranking_summary(ranked, tournament, {})}

    return replay_run.replay(run, format=format, out=out, more=rankings if (run / RANKINGS).exists() else None)


def _ranked_again(run: Path, out: Path) -> tuple[Tournament, list[Ranked]]:
    """The rankings of `run` from the verdicts in `out`, by the values that were used."""
    told = Run(run).summary.get("ranking", {}) if (run / SUMMARY).exists() else {}
    values = told.get("values", "auto")
    tournament, contestants = Tournament(0, None if values == "auto" else values), dict[str, Contestants]()
    tokens = dict[str, tuple[int | None, int | None]]()
    for line, number in derived_lines(run, RANKINGS, RankingLine):
        if line["schedule"] not in SCHEDULES:
            why = f"unknown schedule {line['schedule']!r}: update Dikast, or {cure_of(run)}"
            raise DataError(why, path=str(run / RANKINGS), line=number)
        left_out = {int(i): why for i, why in line["left_out"].items()}
        inside = tuple(i for i in range(len(line["ranks"])) if i not in left_out)
        contestants[line["item"]] = Contestants(inside, left_out)
        tokens[line["item"]] = line.get("tokens_in"), line.get("tokens_out")
        given = line["grades"] and [line["grades"][i] for i in inside]
        grades = None if given is None else np.array([np.nan if each is None else each for each in given])
        tournament.enter(line["item"], len(inside), SCHEDULES[line["schedule"]], grades)
    mine = (v for v in current_verdicts(out) if v.question.item in contestants)
    tournament.note(comparisons_of(mine, contestants))
    rankings = [ranking_of(item, each, tournament) for item, each in contestants.items()]
    kept = [replace(each, tokens_in=tokens[each.item][0], tokens_out=tokens[each.item][1]) for each in rankings]
    return tournament, [Ranked(each, None) for each in kept]
