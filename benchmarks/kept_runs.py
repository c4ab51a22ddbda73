"""Runs over drawn items that can be stopped: what has a verdict in a kept folder is not asked again."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.hiding import HIDE, write_hidden
from dikast.core.canonical import fingerprint
from dikast.core.item import item_to
from dikast.core.runs.current_verdicts import current_verdicts
from dikast.core.verdict import Verdict
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from dikast.judging.run_plan import Source
from dikast.worlds.sample import Sample
from dikast.worlds.write import write_samples


def answers(judge: Judge, samples: Sequence[Sample], keep: str = "", hide: str = "") -> dict[str, Verdict]:
    """The verdict on each sample, by its id. hide: the `picture`, `response` or `rubric` is not shown.

    keep: a folder for items and runs, one folder for each list of samples; "" keeps nothing. A second call asks only
    what has no answer; the runs can be audited and reported as any others.
    """
    told = fingerprint([*([hide] if hide else []), *(item_to(sample.item()) for sample in samples)])
    with nullcontext(str(Path(keep) / told)) if keep else TemporaryDirectory() as folder:
        (file,) = write_samples(samples, Path(folder) / "items", {"bench": told}).files
        if hide:
            shown, file = file, file.with_name("hidden.jsonl")
            write_hidden(shown, HIDE[hide], file)
        grade_file(judge, Source(str(file)), Path(folder) / "run")
        return {verdict.question.item: verdict for verdict in current_verdicts(Path(folder) / "run")}
