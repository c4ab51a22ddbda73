"""The index of near duplicates: what it finds is what datasketch's own index finds, in a third of the memory."""

import random
import tracemalloc
from typing import Any

import pytest

from dikast.corpus.dedup.text_dedup import Index, Match
from dikast.corpus.observations import words_of

datasketch: Any = pytest.importorskip("datasketch")
WORDS = [f"word{n}" for n in range(400)]


class Datasketch:
    """The index as it was, on datasketch's `MinHashLSH`."""

    def __init__(self, likeness: float) -> None:
        self.likeness, self.lsh = likeness, datasketch.MinHashLSH(threshold=likeness, num_perm=64)
        self.exact: dict[str, str] = {}
        self.hashes: dict[str, Any] = {}

    def add(self, text: str, name: str) -> Match | None:
        words = words_of(text)
        if " ".join(words) in self.exact:
            return Match(self.exact[" ".join(words)], 1.0)
        hashed = datasketch.MinHash(num_perm=64, seed=1)
        runs = {" ".join(words[i : i + 3]) for i in range(max(1, len(words) - 2))}
        hashed.update_batch([run.encode() for run in sorted(runs)])
        best = max(((hashed.jaccard(self.hashes[each]), each) for each in self.lsh.query(hashed)), default=(0.0, ""))
        if best[0] >= self.likeness:
            return Match(best[1], best[0])
        self.exact[" ".join(words)], self.hashes[name] = name, hashed
        self.lsh.insert(name, hashed)
        return None


def varied(drawn: random.Random, earlier: list[str]) -> str:
    """A new text, an earlier one, or one with a few words changed."""
    if not earlier or drawn.random() < 0.4:
        return " ".join(drawn.choices(WORDS, k=drawn.randrange(1, 60)))
    words = drawn.choice(earlier).split()
    for _ in range(drawn.randrange(4)):
        words[drawn.randrange(len(words))] = drawn.choice(WORDS)
    return " ".join(words)


@pytest.mark.parametrize("likeness", [0.5, 0.8])
def test_it_finds_what_datasketch_s_own_index_finds(likeness: float) -> None:
    drawn, texts = random.Random(7), list[str]()
    ours, theirs = Index(likeness), Datasketch(likeness)
    found = []
    for n in range(500):
        texts.append(varied(drawn, texts))
        match = ours.add(texts[-1], f"text {n}")
        assert match == theirs.add(texts[-1], f"text {n}")
        found.append(match)
    near = [match for match in found if match is not None and match.likeness < 1]
    assert len(near) > 20  # and some are new, some the same
    assert 100 < found.count(None) < 450
    assert len(ours) == found.count(None)


def test_a_text_takes_a_kilobyte() -> None:
    drawn = random.Random(3)
    index = Index()
    index.add("the first one loads what is imported on first use", "first")
    tracemalloc.start(1)
    try:
        before, _ = tracemalloc.get_traced_memory()
        for n in range(1_000):
            index.add(" ".join(drawn.choices(WORDS, k=40)), f"line {n} response 0")
        taken = (tracemalloc.get_traced_memory()[0] - before) / 1_000
    finally:
        tracemalloc.stop()
    assert len(index) == 1_001
    assert taken < 1_300  # bytes; datasketch's own index took 3,000
