"""Whether scores can be told without looking: what length, form and words alone say about the gold of a world.

Every probe sees responses, rubrics and where errors stand, never the scene. Scores are taken as goodness, 0 worst to 1
best, so that scales of all kinds can be pooled; information is measured within each scale, since the scale is known.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import count_words
from dikast.worlds.sampling.rng import Stream, key_of
from dikast.worlds.settings import Settings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

BUCKETS = 1 << 16  # of hashed word sequences
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class Probe(NamedTuple):
    """What one feature says: `r` is Pearson's correlation with goodness, `r_error` its standard error under none;
    `bits` the mutual information with the level given the scale (Miller-Madow corrected, so about 0 may be below 0).
    """

    name: str
    n: int
    r: float
    r_error: float
    bits: float


@dataclass(slots=True)
class Table:
    """The probed features of many samples, column by column, and hashed words for the linear probe."""

    good: list[float] = field(default_factory=list)
    scale: list[str] = field(default_factory=list)
    level: list[int] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    grams: list[NDArray[np.uint32]] = field(default_factory=list)

    def add(self, sample: Sample, grams: bool = True) -> None:
        """Take in a sample with one response."""
        graded, response = sample.graded[0], sample.responses[0]
        scale, text = sample.spec.the_scale, response.text
        self.good.append(1 - graded.level / (len(scale.labels) - 1))
        self.scale.append(sample.spec.scale)
        self.level.append(graded.level)
        wrong = [i for i, c in enumerate(graded.costs) if c]
        at = wrong[Stream(sample.index).below(len(wrong))] if wrong else -1
        row = {
            "characters": len(text), "words": count_words(text), "claims": len(response.claims),
            "sentences": len(response.sentences), "voice": response.voice, "edits": len(response.edits),
            "position of an error": at / max(1, len(graded.costs) - 1) if wrong else math.nan,
            "rubric characters": len(sample.rubric.criterion), "aspects weighed": len(sample.spec.weights),
        }  # fmt: skip
        for name, value in row.items():
            self.columns.setdefault(name, []).append(float(value))
        if grams:
            self.grams.append(hashed(text, sample.rubric.criterion))


class Gap(NamedTuple):
    """The largest relative gap of a level's mean number of words from its scale's, and one level's standard error.

    `p` is the chance of means that differ as much or more where all are alike (one-way analysis of variance).
    """

    largest: float
    error: float
    p: float


class Report(NamedTuple):
    """The figures of one class of items. `counts` and `gaps` by scale; counts best level first."""

    n: int
    probes: tuple[Probe, ...]
    counts: Mapping[str, tuple[int, ...]]
    gaps: Mapping[str, Gap]


def collect(
    settings: Settings, n: int, *, needs: Sequence[str] = ("image",), start: int = 0, grams: bool = True
) -> Table:
    """The features of the first `n` samples from `start` on whose rubric needs what `needs` says."""
    table = Table()
    for sample in make(settings, 10**12, start=start):
        if sample.needs in needs:
            table.add(sample, grams)
            if len(table.good) == n:
                break
    return table


def probe(test: Table, train: Table | None = None) -> Report:
    """All probes on `test`; with `train`, also a ridge regression on words that has learnt from it."""
    good = np.array(test.good)
    scales, levels = np.array(test.scale), np.array(test.level)
    columns = {name: np.array(values) for name, values in test.columns.items()}
    if train is not None:
        columns["words of response x rubric"] = ridge(train.grams, np.array(train.good), test.grams)
    probes = tuple(_probe(name, values, good, levels, scales) for name, values in columns.items())
    counts = {s: tuple(np.bincount(levels[scales == s]).tolist()) for s in sorted(set(test.scale))}
    gaps = {s: _gap(columns["words"][scales == s], levels[scales == s]) for s in counts}
    return Report(len(good), probes, counts, gaps)


def _gap(words: NDArray[np.float64], levels: NDArray[np.int64]) -> Gap:
    from scipy.stats import f_oneway

    found = [words[levels == level] for level in sorted(set(levels.tolist()))]
    mean = words.mean()
    error = words.std() / math.sqrt(len(words) / len(found)) / mean
    known = len(found) > 1 and len(words) > len(found) and words.std() > 0
    p = float(f_oneway(*found).pvalue) if known else math.nan
    return Gap(float(max(abs(each.mean() / mean - 1) for each in found)), float(error), p)


def _probe(
    name: str,
    values: NDArray[np.float64],
    good: NDArray[np.float64],
    levels: NDArray[np.int64],
    scales: NDArray[np.str_],
) -> Probe:
    known = ~np.isnan(values)
    x, y = values[known], good[known]
    n = len(x)
    if n < 3 or x.std() == 0 or y.std() == 0:
        return Probe(name, n, math.nan, math.nan, math.nan)
    r = float(np.corrcoef(x, y)[0, 1])
    return Probe(name, n, r, 1 / math.sqrt(n - 1), information(x, levels[known], scales[known]))


def information(x: NDArray[np.float64], levels: NDArray[np.int64], scales: NDArray[np.str_]) -> float:
    """Mutual information of x (cut into ten bins of equal mass) and the level, given the scale, in bits.

    Plug-in estimate less the bias of Miller (1955): (cells - rows - columns + 1) / 2n nats for each scale.
    """
    total = 0.0
    for scale in sorted(set(scales.tolist())):
        here = scales == scale
        values, level = x[here], levels[here]
        edges = np.unique(np.quantile(values, np.linspace(0, 1, 11)[1:-1]))
        bins = np.searchsorted(edges, values, side="left")
        table = np.zeros((bins.max() + 1, level.max() + 1))
        np.add.at(table, (bins, level), 1.0)
        table = table[table.sum(1) > 0]
        share = table / table.sum()
        rows, columns = share.sum(1, keepdims=True), share.sum(0, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            bits = np.nansum(share * np.log2(share / (rows * columns)))
        bias = ((table > 0).sum() - (rows > 0).sum() - (columns > 0).sum() + 1) / (2 * table.sum() * math.log(2))
        total += (bits - bias) * here.mean()
    return float(total)


def hashed(response: str, rubric: str) -> NDArray[np.uint32]:
    """Buckets of the response's and the rubric's runs of one to three words, and of pairs of a word from each."""
    r, q = _words(response), _words(rubric)
    with np.errstate(over="ignore"):
        parts = [r, q + np.uint64(7)]
        for one in (r, q):
            if len(one) > 1:
                parts.append(one[:-1] * _MULTIPLIER + one[1:])
            if len(one) > 2:
                parts.append((one[:-2] * _MULTIPLIER + one[1:-1]) * _MULTIPLIER + one[2:])
        pairs = np.unique(q)[:, None] * _MULTIPLIER + np.unique(r)[None, :] + np.uint64(11)
        mixed = np.concatenate([*parts, pairs.ravel()])
        mixed ^= mixed >> np.uint64(29)
        mixed *= _MULTIPLIER
    return np.unique(mixed >> np.uint64(48)).astype(np.uint32)


_KEYS: dict[str, int] = {}


def _words(text: str) -> NDArray[np.uint64]:
    found = []
    for word in text.lower().replace(",", " ,").replace(".", " .").replace(":", " :").split():
        key = _KEYS.get(word)
        if key is None:
            key = _KEYS[word] = key_of(word)
        found.append(key)
    return np.array(found, dtype=np.uint64)


def _matrix(grams: Sequence[NDArray[np.uint32]]) -> "csr_matrix":
    from scipy.sparse import csr_matrix

    starts = np.concatenate([[0], np.cumsum([len(row) for row in grams])])
    columns = np.concatenate(grams).astype(np.int32)
    scale = np.repeat([1 / math.sqrt(max(1, len(row))) for row in grams], [len(row) for row in grams]).astype(
        np.float32
    )
    return csr_matrix((scale, columns, starts), shape=(len(grams), BUCKETS))


def ridge(
    train: Sequence[NDArray[np.uint32]],
    y: NDArray[np.float64],
    test: Sequence[NDArray[np.uint32]],
    *,
    penalty: float = 1.0,
) -> NDArray[np.float64]:
    """Predictions for `test` of a ridge regression with that squared penalty, by LSQR (Paige and Saunders 1982)."""
    from scipy.sparse.linalg import lsqr

    mean = y.mean()
    solution = lsqr(_matrix(train), y - mean, damp=math.sqrt(penalty), iter_lim=60)
    return np.asarray(_matrix(test) @ solution[0] + mean)


class Slots(NamedTuple):
    """How often the first of two responses wins where one does, with the standard error of a fair coin.

    `length_r` correlates winning with being longer. `counts` by scale: responses per level, best first.
    """

    n: int
    first: float
    error: float
    ties: float
    length_r: float
    counts: Mapping[str, tuple[int, ...]]


def first_slot(settings: Settings, n: int) -> Slots:
    """The first slot's share of wins over `n` pairs, and how scores and lengths lie in them."""
    signs, lengths = [], []
    counts: dict[str, NDArray[np.int64]] = {}
    for sample in make(settings, n):
        a, b = sample.levels
        found = counts.setdefault(sample.spec.scale, np.zeros(len(sample.spec.cuts) + 1, dtype=np.int64))
        np.add.at(found, [a, b], 1)
        signs.append((b > a) - (b < a))
        lengths.append(count_words(sample.responses[0].text) - count_words(sample.responses[1].text))
    sign = np.array(signs, dtype=float)
    won = int((sign > 0).sum()), int((sign < 0).sum())
    decided = sum(won)
    longer = np.array(lengths, dtype=float)
    r = float(np.corrcoef(sign, longer)[0, 1]) if longer.std() else math.nan
    by_scale = {scale: tuple(counts[scale].tolist()) for scale in sorted(counts)}
    return Slots(n, won[0] / decided, 0.5 / math.sqrt(decided), 1 - decided / n, r, by_scale)
