"""How varied the texts of a set are, by their words alone: distinct n-grams, and runs of words that texts share."""

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.corpus.observations import Observed, words_of

SAMPLE = 2_000  # texts of a kind that are looked at
WORDS = 20_000  # words over which distinct n-grams are counted, so that sets of different sizes can be compared
RUN = 5
TEMPLATED = 0.3  # a smaller share of distinct pairs of words: worlds have .03 to .15, recorded sets .55 and more


@dataclass(frozen=True, slots=True)
class Diversity:
    """Of `texts` distinct texts: the shares of distinct n-grams for n of 1, 2 and 3 among `words` words, and `shared`.

    shared: the share of the runs of five words that also occur in another of these texts. NaN without any run.
    """

    texts: int
    words: int
    distinct: tuple[float, float, float]
    shared: float

    @property
    def templated(self) -> bool:
        """Whether the same pairs of words return so often that the texts fill in templates."""
        return self.distinct[1] < TEMPLATED

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        distinct = {str(n): share for n, share in enumerate(self.distinct, 1)}
        return {"texts": self.texts, "words": self.words, "distinct": distinct, "shared": self.shared,
                "templated": self.templated}  # fmt: skip


@dataclass(slots=True)
class Sampled:
    """Keeps `SAMPLE` distinct texts of each kind: those with the smallest hashes, whatever their order."""

    kept: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    known: dict[str, set[int]] = field(default_factory=dict)

    def see(self, o: Observed) -> None:
        """Take the texts of one record into account."""
        self._add("instructions", o.instruction)
        for each in o.responses:
            self._add("responses", each.response)
        for text in (o.feedback, *(each.feedback for each in o.responses)):
            self._add("feedback", text)
        if o.rubric is not None:
            self._add("criteria", o.rubric.criterion)

    def _add(self, kind: str, text: str) -> None:
        if not text:
            return
        kept, known = self.kept.setdefault(kind, []), self.known.setdefault(kind, set())
        key = -int(fingerprint(text)[:15], 16)  # a heap's first is its smallest: here that of the largest hash
        if key in known or (len(kept) == SAMPLE and key < kept[0][0]):
            return
        known.add(key)
        if len(kept) < SAMPLE:
            heapq.heappush(kept, (key, text))
        else:
            known.remove(heapq.heappushpop(kept, (key, text))[0])

    def measured(self) -> dict[str, Diversity]:
        """The diversity of each kind of text."""
        return {kind: diversity([text for _, text in sorted(kept)]) for kind, kept in sorted(self.kept.items())}


def diversity(texts: list[str]) -> Diversity:
    """The diversity of distinct texts; distinct n-grams are counted up to the first `WORDS` words."""
    told = [words_of(text) for text in texts]
    counted, left = [], WORDS
    for words in told:
        counted.append(words[:left])
        left -= len(counted[-1])
    distinct = [_distinct(counted, n) for n in (1, 2, 3)]
    places: Counter[tuple[str, ...]] = Counter()
    for words in told:
        places.update(set(_runs(words, RUN)))
    runs = [places[run] > 1 for words in told for run in _runs(words, RUN)]
    shared = sum(runs) / len(runs) if runs else float("nan")
    return Diversity(len(texts), WORDS - left, (distinct[0], distinct[1], distinct[2]), shared)


def _distinct(told: list[list[str]], n: int) -> float:
    found = [run for words in told for run in _runs(words, n)]
    return len(set(found)) / len(found) if found else float("nan")


def _runs(words: list[str], n: int) -> Iterator[tuple[str, ...]]:
    return zip(*(islice(words, i, None) for i in range(n)), strict=False)
