"""Post-processing of the items that a recipe made: balance, splits and Parquet shards."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.core.item import Item
from dikast.core.records import write_items
from dikast.core.runs.run_files import remove, written_together
from dikast.corpus.observations import goodness, label_of, observed, words_of
from dikast.corpus.pipeline.balance import capped, shares, uncorrelated
from dikast.corpus.pipeline.parquet_shards import write_shards
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.rubric_splits import split
from dikast.corpus.quality.topics import topics

ITEMS, PARQUET = "items.jsonl", "parquet"
_PART = "items.part.jsonl"
_MOST_TOLD = 50  # families listed in the report

Numbers = NDArray[np.int64]


@dataclass(slots=True)
class Finished:
    """What was written: `items` rows, `kept` by score or preference, `dropped` by reason, figures, and remarks."""

    items: int
    kept: Counter[str]
    dropped: Counter[str]
    figures: dict[str, Any]
    notes: list[str]


@dataclass(slots=True)
class _Columns:
    """The columns that decide which rows are kept: 28 bytes a row, and what the filters need of each group and rubric.

    A group is the consecutive rows under one instruction and rubric; a pair is a group of its own.
    """

    topics: bool
    splits: bool
    group: "array[int]" = field(default_factory=lambda: array("i"))
    label: "array[int]" = field(default_factory=lambda: array("i"))
    rubric: "array[int]" = field(default_factory=lambda: array("i"))  # where splits are asked for
    words: "array[float]" = field(default_factory=lambda: array("f"))
    good: "array[float]" = field(default_factory=lambda: array("f"))
    score: "array[float]" = field(default_factory=lambda: array("f"))
    labels: dict[str, int] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    families: list[tuple[int, ...]] = field(default_factory=list)  # of each group
    shared: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)
    instructions: list[str] = field(default_factory=list)  # of each group, where topics are asked for
    rubrics: dict[str, int] = field(default_factory=dict)
    wordings: list[str] = field(default_factory=list)  # of each rubric, where splits are asked for
    last: str = ""

    def noting(self, items: Iterable[Item]) -> Iterator[Item]:
        for number, item in enumerate(items):
            self._note(item, number)
            yield item

    def _note(self, item: Item, number: int) -> None:
        o = observed(item, number)
        counts = [len(words_of(each.response)) for each in o.responses]
        single = o.responses[0].score if len(o.responses) == 1 else None
        words = good = score = np.nan
        label = o.preference or "ungraded"
        if single is not None:
            words, good, score, label = counts[0], goodness(o, single), single, label_of(single)
        elif o.preference in ("a", "b"):
            words, good = counts[0] - counts[1], 1.0 if o.preference == "a" else -1.0
        key = o.key if single is not None else str(number)
        if key != self.last:
            self.last = key
            told = item.meta.get("families")
            own = tuple(dict.fromkeys(map(str, told))) if isinstance(told, list) else ()
            numbers = tuple(self.names.setdefault(name, len(self.names)) for name in own)
            self.families.append(self.shared.setdefault(numbers, numbers))
            if self.topics:
                self.instructions.append(o.instruction)
        self.group.append(len(self.families) - 1)
        self.label.append(self.labels.setdefault(label, len(self.labels)))
        self.words.append(words)
        self.good.append(good)
        self.score.append(score)
        if self.splits:
            hashed, wording = (o.rubric.hash, o.rubric.criterion) if o.rubric else (o.instruction, o.instruction)
            self.rubric.append(self.rubrics.setdefault(hashed, len(self.rubrics)))
            if len(self.rubrics) > len(self.wordings):
                self.wordings.append(wording)


def finish(recipe: Recipe, folder: Path, items: Iterable[Item]) -> Finished:
    """Write the balanced items, then splits and shards as the recipe asks; `Recipe` documents the keys."""
    columns, part = _Columns(recipe.topic_share < 1, bool(recipe.splits)), folder / _PART
    for stale in (*folder.glob("items.*.jsonl"), *(folder / PARQUET).glob("*.parquet")):
        remove(stale, folder)
    write_items(part, columns.noting(items))
    done = Finished(0, Counter(), Counter(), {}, [])
    group = np.array(columns.group).astype(np.int64)
    keep = _kept(recipe, columns, group, done)
    rows = keep[group]
    done.items = int(rows.sum())
    counts = np.bincount(np.array(columns.label)[rows], minlength=len(columns.labels)).tolist()
    done.kept = Counter({label: n for label, n in zip(columns.labels, counts, strict=True) if n})
    _copy(part, {folder / ITEMS: np.zeros(len(rows), np.int64)}, rows)
    files = {"train": folder / ITEMS}
    if recipe.splits and done.items:
        files = _split(recipe, columns, rows, part, folder, done)
    part.unlink()
    if recipe.parquet and done.items:
        for name, file in files.items():
            done.figures.setdefault("parquet", {})[name] = write_shards(
                file, folder / PARQUET, name, rows=recipe.parquet, embed=recipe.parquet_images == "bytes"
            )
    return done


def _kept(recipe: Recipe, columns: _Columns, group: Numbers, done: Finished) -> NDArray[np.bool_]:
    """Which groups are kept, by family, then topic, then length; each filter sees what the previous one left."""
    sizes = np.bincount(group, minlength=len(columns.families))
    keep = capped(columns.families, sizes, recipe.family_share, seed=recipe.seed)
    done.dropped["family share"] = int(sizes[~keep].sum())
    if recipe.topic_share < 1:
        found = topics(columns.instructions)
        members: list[tuple[int, ...]] = [
            (each,) if there else () for each, there in zip(found.of.tolist(), keep, strict=True)
        ]
        kept = capped(members, sizes, recipe.topic_share, seed=recipe.seed)
        done.dropped["topic share"] = int(sizes[keep & ~kept].sum())
        keep &= kept
        members = [each if there else () for each, there in zip(members, keep, strict=True)]
        part = shares(members, sizes, len(found.names))
        done.figures["topics"] = _largest(found.names, part, sizes, members)
        _note_largest_share(done, "topic", part, recipe.topic_share)
    kept = _by_length(recipe, columns, group, keep, done)
    done.dropped["length tells the score"] = int(sizes[keep & ~kept].sum())
    keep &= kept
    done.dropped += Counter()  # drops the zeros
    if columns.names:
        members = [each if there else () for each, there in zip(columns.families, keep, strict=True)]
        part = shares(members, sizes, len(columns.names))
        told = _largest(tuple(columns.names), part, sizes, members)
        scores = np.array(columns.score).astype(np.float64)
        _mean_scores(told["largest"], columns, group, np.where(keep[group], scores, np.nan))
        done.figures["families"] = told
        _note_largest_share(done, "family", part, recipe.family_share)
    return keep


def _by_length(
    recipe: Recipe, columns: _Columns, group: Numbers, keep: NDArray[np.bool_], done: Finished
) -> NDArray[np.bool_]:
    """Which groups to keep so that length does not predict the score, for graded responses and for pairs separately."""
    words, good = (np.array(each).astype(np.float64) for each in (columns.words, columns.good))
    single, kept = np.isfinite(np.array(columns.score)), np.ones_like(keep)
    figures = done.figures["length"] = {}
    for kind, of in (("graded", single), ("pairs", ~single)):
        length = np.where(keep[group] & of, words, np.nan)
        if not np.isfinite(length).any():
            continue
        left, told = uncorrelated(group, length, good, recipe.length_r if recipe.length_r < 1 else np.inf)
        figures[kind] = {key: each for key, each in told.items() if key != "bound" or recipe.length_r < 1}
        kept &= left
        if not told["reached"]:
            done.notes.append(
                f"length and score of {kind} correlate by r = {told['r']:.3f}, above the bound {told['bound']:.3f}, "
                "even without the half of the groups that was allowed to be left out"
            )
    return kept


def _note_largest_share(done: Finished, what: str, part: NDArray[np.float64], most: float) -> None:
    if part.max(initial=0) > most + 1e-9:
        told = f"the largest {what} has {part.max():.1%} of the rows, above {what}_share: {most:g}"
        done.notes.append(f"{told}, and leaving rows out cannot reduce it further")


def _largest(names: Sequence[str], part: NDArray[np.float64], sizes: Numbers, members: list[Any]) -> dict[str, Any]:
    rows = np.zeros(len(names), np.int64)
    for classes, size in zip(members, sizes.tolist(), strict=True):
        for each in classes:
            rows[each] += size
    order = [int(i) for i in np.argsort(-part, kind="stable") if rows[i]]
    effective = float(np.exp(-sum(p * np.log(p) for p in part if p > 0))) if order else 0.0
    return {
        "n": len(order), "effective": effective,
        "largest": [{"name": names[i], "rows": int(rows[i]), "share": float(part[i])} for i in order[:_MOST_TOLD]],
    }  # fmt: skip


def _mean_scores(told: list[dict[str, Any]], columns: _Columns, group: Numbers, scores: NDArray[np.float64]) -> None:
    n_groups = len(columns.families)
    known = np.isfinite(scores)
    sums = np.bincount(group[known], weights=scores[known], minlength=n_groups)
    counts = np.bincount(group[known], minlength=n_groups)
    totals = {columns.names[each["name"]]: [0.0, 0.0] for each in told}
    for number, families in enumerate(columns.families):
        for family in families:
            if family in totals:
                totals[family][0] += sums[number]
                totals[family][1] += counts[number]
    for each in told:
        total, n = totals[columns.names[each["name"]]]
        each["mean_score"] = float(total / n) if n else None


def _split(
    recipe: Recipe, columns: _Columns, rows: NDArray[np.bool_], part: Path, folder: Path, done: Finished
) -> dict[str, Path]:
    rubric = np.array(columns.rubric).astype(np.int64)
    sizes = np.bincount(rubric[rows], minlength=len(columns.wordings))
    there = np.flatnonzero(sizes)
    of = np.zeros(len(sizes), np.int64)
    of[there], done.figures["splits"] = split(
        [columns.wordings[i] for i in there], sizes[there].tolist(), recipe.splits, seed=recipe.seed,
        likeness=recipe.apart,
    )  # fmt: skip
    files = {name: folder / f"items.{name}.jsonl" for name in recipe.splits}
    _copy(part, {path: np.where(of[rubric] == i, 0, 1) for i, path in enumerate(files.values())}, rows)
    return files


def _copy(source: Path, targets: dict[Path, Numbers], rows: NDArray[np.bool_]) -> None:
    """Copy the lines in `rows` to each target whose number for the row is 0; no file is ever written in part."""
    with written_together(*targets) as parts, ExitStack() as stack:
        opened = [(stack.enter_context(part.open("wb")), of) for part, of in zip(parts, targets.values(), strict=True)]
        lines = stack.enter_context(source.open("rb"))
        for number, line in enumerate(lines):
            if rows[number]:
                for file, of in opened:
                    if not of[number]:
                        file.write(line)
