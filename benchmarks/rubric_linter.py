"""`python -m benchmarks.rubric_linter --n 10000`: faults in the text of rubrics, found by rules of its own.

A rubric must be decidable from its words: no doubled word, every rule and unit stated, no cost that the words do not
give, levels that cover every total once. It reads the text as it is shown and compares it with the specification.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, islice

from dikast.core.errors import UserError
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import SPLITS
from dikast.worlds.settings import Settings

_DOUBLED = re.compile(r"\b(\w+) \1\b", re.I)
_STIFF = re.compile(r"\bthe (the|a|an|how|what|which|where|when|all|one)\b", re.I)
_ARTICLE = re.compile(r"\ba [aeiou]\w|\ban [^aeiou\W]")
_PLURAL = re.compile(r"\b1 points\b|\b(?:[02-9]|\d\d+) point\b")
_ODD = re.compile(r"lost by|in all of it|anywhere in it|this once|take this off|on words|asked-for| alone\.")
_PATTERNS = {"doubled word": _DOUBLED, "stiff article": _STIFF, "article": _ARTICLE, "odd words": _ODD}
_UNITS = {  # what a text must say when it measures so
    "on the colour wheel": "The colour wheel is red,",
    "the size is 2 steps": "small, medium and large, one step apart",
    "the place is 2 or more steps": "a step goes sideways, up or down",
    "percent or more": "Percent are of the right number",
    "the day is off": "The week runs from Monday to Sunday",
    "letters are wrong": "that must be replaced, added or dropped",
}
_NUMBER = re.compile(r"\d+")


def faults(sample: Sample) -> Iterator[str]:
    """What is wrong with the rubric's text, by rule."""
    text, spec = sample.rubric.criterion, sample.spec
    names = [term.name for term in spec.terms] + list(spec.names)
    yield from (rule for rule, pattern in _PATTERNS.items() if pattern.search(text))
    if _PLURAL.search(text) or any(_PLURAL.search(told) for _, told in sample.rubric.levels):
        yield "plural"
    if "{" in text or "  " in text or not text[0].isupper() or text[-1] not in ".:?" or re.search(r"[.?] [a-z]", text):
        yield "form of sentences"
    yield from (f"name missing: {name}" for name in names if name not in text)
    if len(set(names)) < len(names):
        yield "one name for two"
    yield from (f"unit undefined: {said}" for said, told in _UNITS.items() if said in text and told not in text)
    ruled = [term.name for term in spec.terms if term.rule != "each"]
    for term in spec.terms:
        longer = [name for name in names if name != term.name and term.name in name]
        if term.rule == "each":  # "counts" is also a verb, in the rules of other terms
            longer += ruled
        told = [s for s in re.split(r"(?<=[.?]) ", text)[2:] if term.name in s and not any(n in s for n in longer)]
        if (term.rule != "each") != bool(told):
            yield f"rule {term.rule}: {'unsaid' if not told else 'said without need'}"
    costs = {term.weight for term in spec.terms} | {weight for _, weight in spec.weights}
    second = re.split(r"(?<=[.?]) ", text)[1]
    if not {str(cost) for cost in costs} <= set(_NUMBER.findall(second)):
        yield "cost unsaid"
    yield from _levels(sample)


def _levels(sample: Sample) -> Iterator[str]:
    """Every total from 0 to beyond the last cut must fall under exactly the level that the specification gives."""
    told = [text for _, text in sample.rubric.levels]
    best_first = told if sample.spec.lower_is_better else told[::-1]
    for total in range(max(sample.spec.cuts) + 3):
        level = sum(total > cut for cut in sample.spec.cuts)
        if [i for i, text in enumerate(best_first) if _holds(text, total)] != [level]:
            yield f"levels: {total} is not told apart"
            return


def _holds(text: str, total: int) -> bool:
    """Whether a level's words cover a total, read with no knowledge of its template."""
    numbers = [int(n) for n in _NUMBER.findall(text)]
    if re.search(r"\b(nothing|no|free)\b(?! more)", text) and not numbers:
        return total == 0
    if re.search(r"at least \d+ but no more", text) or len(numbers) == 2:
        return numbers[0] <= total <= numbers[1]
    if re.search(r"at most|up to|no more than|\d or less", text):
        return total <= numbers[0]
    if re.search(r"more than|over|above", text):
        return total > numbers[0]
    if re.search(r"at least|or more", text):
        return total >= numbers[0]
    return total == numbers[0]


def rubrics(seed: int = 0) -> Iterator[Sample]:
    """Samples of every domain and split in turns, without end."""
    worlds = []
    for domain in DOMAINS:
        for split in SPLITS:
            try:
                worlds.append(Settings(domain, split, seed, version=4))
            except UserError:  # a split that this domain cannot have
                continue
    streams = [make(world, 10**9) for world in worlds]
    for _ in count():
        for stream in streams:
            yield next(stream)


def lint(samples: Iterable[Sample]) -> Counter[str]:
    """How often each fault was found."""
    return Counter(fault for sample in samples for fault in faults(sample))


def main() -> None:
    """Print the faults of the first N rubrics."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rubric_linter", description=__doc__)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    samples = list(islice(rubrics(given.seed), given.n))
    found = lint(samples)
    different = len({sample.rubric.criterion for sample in samples})
    print(f"{given.n:,} rubrics, {different:,} different texts, {sum(found.values())} faults")
    for fault, times in found.most_common():
        print(f"{times:6}  {fault}")


if __name__ == "__main__":
    main()
