"""Responses: ordered sentences, a layout, and edits that must not change the score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from dikast.worlds.domains.paraphrases import INJECTIONS, NEUTRAL, OFF_TOPIC, second_language
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.penalty import subject_of

LAYOUTS = ("prose", "lines", "bullets", "numbers")
_ASK_LAYOUT = {
    "lines": "Write one sentence per line.",
    "bullets": "Write a list with dashes.",
    "numbers": "Number the sentences.",
}


class Sentence(NamedTuple):
    """One sentence and its role: claim, repeat, contradiction, neutral, off_topic, injection."""

    text: str
    role: str
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """One response. `asked` is the layout the instruction asks for, `limit` the most words; both may be absent."""

    sentences: tuple[Sentence, ...]
    voice: int
    layout: str = "prose"
    asked: str = ""
    limit: int = 0
    edits: tuple[str, ...] = ()
    language: int = 0

    @property
    def claims(self) -> list[Claim]:
        """Every distinct claim, in order of first appearance."""
        return list(dict.fromkeys(s.claim for s in self.sentences if s.claim is not None))

    @property
    def text(self) -> str:
        """The response as it is shown to a judge."""
        said = [second_language(s.text) if self.language else s.text for s in self.sentences]
        if "restyle" in self.edits:
            said = [f"**{text}**" for text in said]
        if self.layout == "bullets":
            said = [f"- {text}" for text in said]
        elif self.layout == "numbers":
            said = [f"{i}. {text}" for i, text in enumerate(said, 1)]
        return (" " if self.layout == "prose" else "\n").join(said)

    @property
    def padded(self) -> "Response":
        """The response with all neutral sentences appended, which make no claim and cost nothing."""
        return replace(self, sentences=(*self.sentences, *(Sentence(text, "neutral") for text in NEUTRAL)))

    def counts(self) -> dict[str, int]:
        """The counts of whole-response errors that depend on the text alone, by aspect."""
        found = {"relevance": sum(s.role == "off_topic" for s in self.sentences), "concision": 0, "consistency": 0}
        said: dict[tuple[str, tuple[str, ...]], Claim] = {}
        seen: set[Claim] = set()
        for sentence in self.sentences:
            claim = sentence.claim
            if claim is None:
                continue
            key = (claim.kind, subject_of(claim))
            if claim in seen:
                found["concision"] += 1
            elif key in said:
                found["consistency"] += 1
            seen.add(claim)
            said.setdefault(key, claim)
        if self.asked:
            found["format"] = int(self.layout != self.asked)
        if self.limit:
            found["length"] = max(0, count_words(self.text) - self.limit)
        return found

    def rules_text(self) -> str:
        """The sentences of the instruction about layout and length."""
        parts = [_ASK_LAYOUT[self.asked]] if self.asked else []
        return " ".join([*parts, f"Use at most {self.limit} words."] if self.limit else parts)


def count_words(text: str) -> int:
    """The number of space-separated tokens that contain a letter."""
    return sum(any(c.isalpha() for c in token) for token in text.split())


@dataclass(slots=True)
class Form:
    """The errors of form in a text: how many sentences of each faulty kind, among how many extra ones."""

    counts: dict[str, int] = field(default_factory=dict)
    contradicting: tuple[Sentence, ...] = ()


def compose(
    claims: Sequence[Sentence],
    form: Mapping[str, int],
    contradicting: Sequence[Sentence],
    rng: Stream,
    *,
    voice: int,
    edits: bool,
    language: int,
    repeats_fillers: bool = False,
) -> Response:
    """Compose a response. Every aspect in `form` adds exactly two sentences, faulty or neutral, so that the number of
    sentences says nothing about the score. `repeats_fillers`: a neutral sentence may stand there twice, as it did up to
    version 3, though repetitions are counted among claims alone.
    """
    extra: list[Sentence] = []
    for aspect, bad in form.items():
        if aspect in _MAKERS:
            made = [Sentence(t, "off_topic") for t in rng.shuffled(OFF_TOPIC)[:bad]] if aspect == "relevance" else []
            if aspect == "concision":
                made = [s._replace(role="repeat") for s in rng.shuffled(claims)[:bad]]
            if aspect == "consistency":
                made = list(contradicting[:bad])
            used = () if repeats_fillers else {sentence.text for sentence in extra}
            neutral = [Sentence(text, "neutral") for text in rng.shuffled(NEUTRAL) if text not in used]
            extra += made + neutral[: 2 - len(made)]
    sentences = list(claims)
    for sentence in extra:
        at = rng.below(len(sentences) + 1)
        if sentence.role in ("repeat", "contradiction"):
            first = max(i for i, s in enumerate(sentences) if s.claim is not None and _same_subject(s, sentence))
            at = first + 1 + rng.below(len(sentences) - first)
        sentences.insert(at, sentence)
    done: list[str] = []
    if edits and rng.chance(10) and not form:
        done.append("padding")
        for text in rng.shuffled(NEUTRAL)[: 1 + rng.below(2)]:
            sentences.insert(rng.below(len(sentences) + 1), Sentence(text, "neutral"))
    if edits and rng.chance(4):
        done.append("injection")
        sentences.insert(rng.below(len(sentences) + 1), Sentence(rng.pick(INJECTIONS), "injection"))
    if edits and rng.chance(6):
        done.append("restyle")
    layout = LAYOUTS[(0, 0, 1, 2, 3)[rng.below(5)]]
    asked, limit = "", 0
    if "format" in form:
        asked = LAYOUTS[1 + rng.below(3)]
        others = [each for each in LAYOUTS if each != asked]
        layout = rng.pick(others) if form["format"] else asked
    response = Response(tuple(sentences), voice, layout, asked, limit, tuple(done), language)
    if "length" in form:
        words, off = count_words(response.text), 1 + rng.below(5)
        limit = max(1, words - off) if form["length"] else words + off - 1
        response = Response(tuple(sentences), voice, layout, asked, limit, tuple(done), language)
    return response


_MAKERS = ("relevance", "concision", "consistency")


def _same_subject(a: Sentence, b: Sentence) -> bool:
    assert a.claim is not None
    assert b.claim is not None
    return a.claim.kind == b.claim.kind and subject_of(a.claim) == subject_of(b.claim)
