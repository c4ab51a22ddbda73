import ast
import re
from pathlib import Path

import benchmarks.independent_gold as check
import orjson
import pytest
from benchmarks.independent_gold import READERS, regrade, sentences
from benchmarks.independent_gold.image_edits import ImageEditReader
from benchmarks.independent_gold.scenes import SceneReader

from dikast.core.errors import UserError
from dikast.core.item import item_to
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.make import Maker, make
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import SPLITS
from dikast.worlds.settings import Settings


def _settings(responses: int, version: int = 3) -> list[Settings]:
    found = []
    for domain in DOMAINS:
        for split in SPLITS:
            try:
                found.append(Settings(domain=domain, split=split, responses=responses, seed=11, version=version))
            except UserError:  # a split that this domain cannot have
                continue
    return found


def _differing(sample: Sample) -> str:
    record = orjson.loads(orjson.dumps(item_to(sample.item())))
    gold = record["gold"]
    labels = gold["labels"] if "labels" in gold else [gold["label"]]
    got = regrade(record)
    return "" if got == labels else f"{sample.id}: gold {labels}, re-read {got}: {record.get('response')}"


def test_the_reader_shares_no_code_with_the_maker() -> None:
    for path in Path(str(check.__file__)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not str(node.module).startswith("dikast"), f"{path.name} imports {node.module}"
            assert not (isinstance(node, ast.Import) and any(a.name.startswith("dikast") for a in node.names))


@pytest.mark.slow
@pytest.mark.parametrize("responses", [1, 2, 5])
def test_an_independent_reading_gives_the_gold(responses: int) -> None:
    for settings in _settings(responses):
        for sample in make(settings, 40 // responses):
            assert not _differing(sample)


@pytest.mark.slow
@pytest.mark.parametrize("responses", [1, 2])
def test_an_independent_reading_gives_the_gold_of_terms(responses: int) -> None:
    for settings in _settings(responses, 4):
        for sample in make(settings, 4 // responses):
            assert not _differing(sample)


@pytest.mark.slow
@pytest.mark.soak(100_000)
def test_an_independent_reading_gives_the_gold_of_many_items_of_every_world(tries: int) -> None:
    worlds = _settings(1)
    each = -(-max(tries, 10_000) // len(worlds))
    bad = [told for settings in worlds for sample in make(settings, each) if (told := _differing(sample))]
    assert not bad, bad[:5]


_TURNS = {
    "left": "right",
    "right": "left",
    "above": "below",
    "below": "above",
    "top": "bottom",
    "bottom": "top",
    "centre": "top left",
    "small": "large",
    "medium": "small",
    "large": "small",
    "plain": "dotted",
    "striped": "plain",
    "dotted": "striped",
    "red": "teal",
    "orange": "blue",
    "yellow": "purple",
    "green": "pink",
    "teal": "red",
    "blue": "orange",
    "purple": "yellow",
    "pink": "green",
    "two": "three",
    "three": "five",
    "four": "two",
    "oslo": "rome",
    "rome": "lima",
    "lima": "cairo",
    "cairo": "paris",
    "paris": "oslo",
    "cat": "dog",
    "dog": "parrot",
    "parrot": "snake",
    "snake": "horse",
    "horse": "cat",
    "tea": "milk",
    "coffee": "tea",
    "milk": "juice",
    "juice": "water",
    "water": "coffee",
    "highest": "lowest",
    "lowest": "highest",
    "up": "down",
    "down": "left",
    "monday": "tuesday",
    "tuesday": "wednesday",
    "wednesday": "monday",
    "thursday": "sunday",
    "friday": "thursday",
    "saturday": "friday",
    "sunday": "saturday",
}
_SHAPES = ("circle", "square", "triangle", "diamond", "cross", "star", "ring", "heart")


def flipped(kind: str, sentence: str) -> str:
    """A false twin of a true sentence, written by hand for each kind of claim."""
    if kind in ("more", "larger"):
        nouns = re.findall(r"(circles?|squares?|triangles?|diamonds?|cross(?:es)?|stars?|rings?|hearts?)", sentence)
        return sentence.replace(nouns[0], "#").replace(nouns[1], nouns[0]).replace("#", nouns[1])
    if kind in ("shape", "sure"):
        noun = next(shape for shape in _SHAPES if shape in sentence)
        return sentence.replace(noun, _SHAPES[_SHAPES.index(noun) - 1])
    if kind == "before":
        first, second = re.findall(r"[a-z]+ (?:moves|appears|changes colour)", sentence)
        return sentence.replace(first, "#").replace(second, first).replace("#", second)
    if kind == "order":
        first, second = re.findall(r"\b[a-h]\b", sentence)
        return re.sub(r"\b[a-h]\b", lambda m: second if m[0] == first else first, sentence)
    if kind == "reading":
        *_, word = re.finditer(r"\b[b-z][aeiou][b-z][aeiou]\b", sentence)  # the last: "we note" has its pattern
        return sentence[: word.start()] + ("d" if word[0][0] == "b" else "b") + sentence[word.start() + 1 :]
    if kind == "cell":
        return re.sub(r"\d\d+", lambda m: str(int(m[0]) + 1), sentence)  # rows have one digit
    if kind == "remove":
        return f"add a red {next(shape for shape in _SHAPES if shape in sentence)}"
    if kind in ("age", "plus", "minus", "place", "moment", "number", "value"):
        return re.sub(r"\d+", lambda m: str(int(m[0]) + 1), sentence)
    words = "|".join(sorted(_TURNS, key=len, reverse=True))
    return re.sub(rf"\b({words})\b", lambda m: _TURNS[m[0]], sentence, count=1)


@pytest.mark.parametrize(("domain", "version"), [*((domain, 3) for domain in sorted(DOMAINS)), ("text", 4)])
def test_no_flipped_claim_goes_unnoticed(domain: str, version: int) -> None:
    maker = Maker(Settings(domain=domain, split="all", seed=5, edits=False, form=0, version=version))
    noticed, index = 0, 0
    kinds = set()
    while noticed < 1000:
        sample = maker.sample(index)
        index += 1
        reader = {**READERS, "pictures": SceneReader, "retouch": ImageEditReader}[domain](
            sample.domain.to_json(sample.graph)
        )
        for said, finding in zip(sample.responses[0].sentences, sample.graded[0].findings, strict=True):
            if finding.metric == 0 and said.claim is not None:
                false = flipped(said.claim.kind, said.text.lower())
                [plain] = sentences(false, foreign=False)
                assert reader.off(*reader.read(plain))[1] > 0, f"{said.text} -> {false}"
                noticed += 1
                kinds.add(said.claim.kind)
    came_later = {"day"} if version < 4 else set()
    assert kinds == {kind for each in DOMAINS[domain].kinds.values() for kind in each} - came_later


def test_a_sentence_without_a_reading_is_an_error() -> None:
    reader = READERS["scenes"]({"things": [], "grid": 4, "covers": []})
    with pytest.raises(ValueError, match="no reading"):
        reader.read("the star is heavy")
