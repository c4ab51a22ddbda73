"""`world:DOMAIN`: a teacher that answers every stage from a procedural world, so that its gold is exact.

It is an engine like any other: its replies are the JSON that the prompts ask for, and pass the same readers, checks
and filters. It uses only a request's `about` (which rubric, instruction, score), as mock engines do.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import median
from typing import Any

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.errors import EngineError, UserError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.verdict import Usage
from dikast.corpus.observations import words_of
from dikast.corpus.pipeline.recipe import Recipe
from dikast.engines.base import Completion, Engine, Request
from dikast.worlds.make import Maker
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import Response, Sentence, count_words
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.penalty import Spec, cost, level_of, subject_of
from dikast.worlds.settings import Settings
from dikast.worlds.teach import worked
from dikast.worlds.truths import reference_text

_GROUP = 12  # responses drawn to take sentences from
_MIXES = 120
_ATTEMPTS = 300
_LEVELS = 5
_A_CLAIM = 5.4  # words of a claim on average, in the voices that training has
_CLAIMS = (5, 24)  # the fewest that five levels need often enough, and the most that the world has
_CHOICE = 12  # instructions to choose from, for each that goes with a composed rubric
_SAID = 8  # ways of saying the same claims, of which the one nearest in length is taken
WORDS = (20, 130)  # lengths of responses that version 4 can draw, to a fifth
_PLANS = 4096  # rubrics cached between stages, about 20 kB each
DOMAINS = ("text",)  # the facts are in the instruction, so no picture is needed


@dataclass(frozen=True, slots=True)
class TaughtRubric:
    """One rubric with its instructions; `responses[i][level]` answers instruction i; level 0 is the best."""

    instructions: tuple[Sample, ...]

    @property
    def rubric(self) -> Any:
        """The rubric as it is shown to a judge."""
        return self.instructions[0].rubric


class WorldTeacher:
    """Answers the stages of the recipes `feedback` and `preference` from the world `domain`.

    Equal `seed`s give equal answers. `per_rubric` instructions share a rubric. `specs` are rubrics on the scale 1-5;
    responses mention what any of them weighs; without `specs` rubrics are drawn. `split` is the world's. With `specs`,
    `fit` may change a drawn sample before its answers are composed; if it returns None, another one is drawn.
    References are flawless, unless `flawless` is false: then each is another response of the best level, faults
    included, as in folders that were begun before (`as_begun`).

    `version` is the world's. From 4 on rubrics are composed, and responses have about `words` words, 0 for any length;
    the world itself sets the length in version 3. UserError for a length that the world cannot draw.
    """

    domains: tuple[str, ...] = DOMAINS

    def __init__(
        self,
        domain: str = "text",
        *,
        seed: int = 0,
        per_rubric: int = 1,
        specs: Sequence[Spec] = (),
        split: str = "train",
        fit: Callable[[Sample], Sample | None] | None = None,
        version: int = 3,
        words: int = 0,
    ) -> None:
        if domain not in self.domains:
            known = ", ".join(self.domains)
            raise UserError(f"teacher: there is no world {domain!r} for this recipe; known: {known}")
        for key, told in wrong_world(domain, version, words):
            raise UserError(f"{key}: {told}")
        self.version, self.words = version, words if version > 3 else 0
        self.name, self.domain, self.seed, self.per_rubric = f"world:{domain}", domain, seed, per_rubric
        self.specs, self.split, self.fit = tuple(specs), split, fit
        self._spoken = {name for spec in specs for name, _ in spec.weights}
        self.flawless = True
        self._plan = lru_cache(maxsize=_PLANS)(self._made)
        self._base = self._maker(())

    def identity(self) -> Mapping[str, Any]:
        """World, version and seed; the split if it is not `train`; the rubrics if given."""
        told = {
            "engine": "world",
            "version": self.versions()["worlds"],
            "domain": self.domain,
            "seed": self.seed,
            "n": self.per_rubric,
        }
        split = {} if self.split == "train" else {"split": self.split}
        specs = {"specs": fingerprint([spec.to_json() for spec in self.specs])} if self.specs else {}
        fit = {"fit": self.fit.__qualname__} if self.fit else {}
        references = {"references": "flawless"} if self.flawless else {}
        words = {"words": self.words} if self.words else {}
        return {**told, **split, **specs, **fit, **references, **words}

    def versions(self) -> Mapping[str, str]:
        """The version of the worlds."""
        return {"worlds": Settings(domain=self.domain, split="all", version=self.version).generator}

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Replies in order; a request of a stage that this teacher does not know is a failed completion."""
        for request in requests:
            about = request.about
            stage = str(about.get("stage"))
            answer = getattr(self, f"_{stage.replace('-', '_')}", None)
            if answer is None:
                told = f"the world teacher has no answer for the stage {stage!r}"
                yield Completion(request.key, finish="error", error=EngineError(told, kind="stage"))
                continue
            said = answer(about)
            text = said if isinstance(said, str) else orjson.dumps(said).decode()
            tokens = sum(len(message.text) for message in request.messages) // 4
            yield Completion(request.key, text, usage=Usage(tokens_in=tokens, tokens_out=len(text) // 4))

    # -- the stages -----------------------------------------------------------------------------------------------

    def _rubrics(self, about: Mapping[str, Any]) -> dict[str, Any]:
        first, count = int(about["first"]), int(about["count"])
        made = []
        for number in range(first, first + count):
            rubric = self._plan(number).rubric
            made.append({"criterion": rubric.criterion, "levels": dict(rubric.levels), "world": number})
        return {"rubrics": made}

    def _refine(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """The rubric unchanged: a world's rubric is already exact."""
        number = self._number(about)
        rubric = self._plan(number).rubric
        return {"rubrics": [{"criterion": rubric.criterion, "levels": dict(rubric.levels), "world": number}]}

    def _instructions(self, about: Mapping[str, Any]) -> dict[str, Any]:
        plan, made = self._plan(self._number(about)), []
        for sample in plan.instructions[: int(about["count"])]:
            asked = text_of(sample.item().instruction[0].content)
            made.append({"instruction": asked, "reference": self._reference_to(sample, sample.responses[_LEVELS])})
        return {"instructions": made}

    def _responses(self, about: Mapping[str, Any]) -> dict[str, Any]:
        sample = self._plan(self._number(about)).instructions[int(about["instruction"])]
        at = _LEVELS - int(about["score"])
        claims = sample.gold()["responses"][at]["claims"]
        return {"response": sample.responses[at].text, "feedback": worked(sample, at), "claims": claims}

    def _regrade(self, about: Mapping[str, Any]) -> str:
        sample = self._plan(self._number(about)).instructions[int(about["instruction"])]
        found = next((i for i, each in enumerate(sample.responses[:_LEVELS]) if each.text == about["response"]), None)
        if found is None:
            return "Verdict: unknown"
        return f"{worked(sample, found)}\nVerdict: {sample.gold()['labels'][found]}"

    def _preference(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """Feedback from the claims of both responses: what they share, then how they differ."""
        common, differs = self._compared(about["item"], ("A", "B"))
        return {"commonalities": common, "differences": differs, "better": about["item"].gold["preference"]}

    def _critic_pairwise(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """The same comparison as reasons, with the drawn template's names for the responses."""
        said = self._compared(about["item"], about["called"])
        return {"reasons": " ".join(said), "better": about["item"].gold["preference"]}

    @staticmethod
    def _compared(item: Item, called: Sequence[str]) -> tuple[str, str]:
        """What both responses share, and how they differ, from their claims."""
        parts = item.gold["responses"]
        said = [{claim["text"]: claim["verdict"] for claim in part.get("claims", ())} for part in parts]
        right = [sum(verdict == "right" for verdict in each.values()) for each in said]
        total = [len(each) for each in said]
        shared = sorted(set(said[0]) & set(said[1]))
        common = f"Both say: {' '.join(shared)}" if shared else "Both state their facts one by one."
        first = called[0][0].upper() + called[0][1:]
        differs = f"{first} has {right[0]} of {total[0]} statements right, {called[1]} {right[1]} of {total[1]}."
        wrong = ["; ".join(c["text"] for c in part.get("claims", ()) if c["verdict"] != "right") for part in parts]
        told = " ".join(f"Wrong in {side}: {text}." for side, text in zip(called, wrong, strict=True) if text)
        return common, f"{differs} {told}".strip()

    def _reference_to(self, sample: Sample, best: Response) -> str:
        """A flawless answer about everything that the responses mention, in its own voice and order; or `best`."""
        if not self.flawless:
            return best.text
        return reference_text(sample, Stream("reference text", self.seed, sample.id))

    @staticmethod
    def _number(about: Mapping[str, Any]) -> int:
        return int(about["lineage"]["world"])

    # -- the world ------------------------------------------------------------------------------------------------

    def _maker(self, aspects: tuple[str, ...]) -> Maker:
        claims = (4, 7)
        if self.words:
            middle = round(self.words / _A_CLAIM)
            claims = max(_CLAIMS[0], middle - 1), min(_CLAIMS[1], max(_CLAIMS[0], middle) + 1)
        return Maker(
            Settings(
                domain=self.domain, split=self.split, seed=self.seed, responses=_GROUP, scales=("1-5",), claims=claims,
                edits=False, aspects=aspects, version=self.version,
            )
        )  # fmt: skip

    def _made(self, number: int) -> TaughtRubric:
        """A rubric and its instructions, drawn until every instruction has answers of all levels."""
        rng = random.Random(f"{self.seed} {number}")
        if self.specs:
            return TaughtRubric(tuple(self._under(self.specs[number], number, i, rng) for i in range(self.per_rubric)))
        for attempt in range(_ATTEMPTS):
            first = self._base.sample(number * _ATTEMPTS + attempt)
            spec = replace(first.spec, lower_is_better=False)
            if spec.entries:  # a checklist is about the facts of one instruction
                continue
            samples, found = [first], [mixes(replace(first, spec=spec), rng, words=self.words)]
            common = sorted(found[0])
            if self.version > 3 and len(common) < _LEVELS:
                continue
            for sample in self._further(spec, number * _ATTEMPTS + attempt) if self.per_rubric > 1 else ():
                made = mixes(replace(sample, spec=spec), rng, words=self.words)
                if self.version > 3 and len(set(common) & set(made)) < _LEVELS:
                    continue  # composed rubrics weigh little of what another instruction asks about
                samples, found, common = [*samples, sample], [*found, made], sorted(set(common) & set(made))
                if len(samples) == self.per_rubric:
                    break
            if len(common) < _LEVELS or len(samples) < self.per_rubric:
                continue
            cuts = tuple(sorted(rng.sample(common[:-1], _LEVELS - 1)))
            spec = replace(spec, cuts=cuts)
            return TaughtRubric(
                tuple(self._graded(replace(s, spec=spec), m, rng) for s, m in zip(samples, found, strict=True))
            )
        raise UserError(
            f"teacher: world {self.domain!r} has no rubric number {number} in {_ATTEMPTS} draws; other seed?"
        )

    def _further(self, spec: Spec, place: int) -> Iterator[Sample]:
        """Other instructions that a rubric may go with: as many as are needed, from version 4 on more."""
        maker = self._maker(tuple(name for name in spec.aspects if name))
        each = self.per_rubric * (_CHOICE if self.version > 3 else 1)
        return (maker.sample(place * each + i) for i in range(1, each))

    def _under(self, spec: Spec, number: int, at: int, rng: random.Random) -> Sample:
        """Instruction `at` of a given rubric, drawn until it has answers of all levels."""
        maker = self._maker(tuple(name for name, _ in spec.weights))
        start = (number * self.per_rubric + at) * _ATTEMPTS
        for index in range(start, start + _ATTEMPTS):
            drawn = replace(maker.sample(index), spec=spec)
            sample = self.fit(drawn) if self.fit else drawn
            if sample is None or not {claim.aspect for claim in sample.responses[0].claims} <= self._spoken:
                continue
            found = mixes(sample, rng, even=True, words=self.words)
            if len({level_of(penalty, spec.cuts) for penalty in found}) == _LEVELS:
                return self._graded(sample, found, rng)
        raise UserError(f"teacher: rubric number {number} has no instruction of all levels in {_ATTEMPTS} draws")

    def _graded(self, sample: Sample, mixes: dict[int, list[Response]], rng: random.Random) -> Sample:
        """One response for each level, of about equal length, and a reference: another response of the best level."""
        by_level: dict[int, list[Response]] = {}
        for penalty, responses in mixes.items():
            by_level.setdefault(level_of(penalty, sample.spec.cuts), []).extend(responses)

        def length(each: Response) -> int:
            return len(words_of(each.text)) if self.words else count_words(each.text)

        middle = self.words or median(length(each) for found in by_level.values() for each in found)
        chosen = []
        for level in range(_LEVELS):
            found = by_level[level]
            rng.shuffle(found)
            chosen.append(min(found, key=lambda each: abs(length(each) - middle)))
        turned = replace(chosen[0], sentences=chosen[0].sentences[::-1])
        others = [each for each in by_level[0] if each.text != chosen[0].text]
        return replace(sample, responses=(*chosen, others[0] if others else turned))


def as_begun(engine: Engine, identity: Mapping[str, Any]) -> None:
    """Make the world behind `engine` answer as the teacher of this identity did, with which a folder was begun."""
    found: Any = engine
    while found is not None and not isinstance(found, WorldTeacher):
        found = getattr(found, "engine", None)
    if found is not None:
        found.flawless = "references" in identity


def text_teacher(recipe: Recipe, split: str = "train") -> WorldTeacher:
    """The teacher of a recipe with the options `instructions`, `words` and `world_version`."""
    told = recipe.options
    return WorldTeacher(
        recipe.world, seed=recipe.seed, per_rubric=told.instructions, split=split, version=told.world_version,
        words=told.words,
    )  # fmt: skip


def wrong_world(domain: str, version: int, words: int = 0) -> Iterator[tuple[str, str]]:
    """The mistakes, each with its key, in the version of a world and in the length of responses that it is to draw.

    `domain` is "" for another teacher.
    """
    if version > 3 and domain not in DOMAINS:
        known = ", ".join(f"world:{each}" for each in DOMAINS)
        yield "world_version", f"version {version} is taught by {known} alone; leave it out"
    elif version > 3 and words and not WORDS[0] <= words <= WORDS[1]:
        yield "words", f"world:{domain} draws responses of {WORDS[0]} to {WORDS[1]} words, not of {words:,}"


def mixes(sample: Sample, rng: random.Random, *, even: bool = False, words: int = 0) -> dict[int, list[Response]]:
    """Responses composed of the sample's sentences, one for each thing mentioned, grouped by their penalty.

    `even`: the number of wrong claims is uniform from none to all; otherwise every claim is equally likely. `words`:
    how long they are, as nearly as the sentences allow; 0 for whatever is drawn.
    """
    variants: dict[tuple[Any, ...], dict[Any, list[Sentence]]] = {}
    for response in sample.responses:
        for sentence in response.sentences:
            if sentence.claim is not None:
                slot = (sentence.claim.kind, subject_of(sentence.claim))
                variants.setdefault(slot, {}).setdefault(sentence.claim, []).append(sentence)
    costs = {
        claim: cost(claim, sample.domain.measure(claim, sample.graph).metric, sample.spec)
        for claims in variants.values()
        for claim in claims
    }
    wrong = {c for claims in variants.values() for c in claims if sample.domain.measure(c, sample.graph).metric}
    slots = [list(claims) for claims in variants.values()]
    found: dict[int, list[Response]] = {}
    for _ in range(_MIXES):
        share = rng.random() if even else 0.0
        claims = [
            rng.choice(_half(options, wrong, right=rng.random() < share) if even else options) for options in slots
        ]
        bucket = found.setdefault(sum(costs[claim] for claim in claims), [])
        if len(bucket) < 6:
            ways = [
                [rng.choice(variants[slot][claim]) for slot, claim in zip(variants, claims, strict=True)]
                for _ in range(_SAID if words else 1)
            ]
            said = min(ways, key=lambda each: abs(sum(len(words_of(sentence.text)) for sentence in each) - words))
            rng.shuffle(said)
            bucket.append(Response(tuple(said), voice=0))
    return found


def _half(claims: list[Any], wrong: set[Any], *, right: bool) -> list[Any]:
    """The correct (`right`) or incorrect claims; all claims if there are none."""
    return [claim for claim in claims if (claim not in wrong) == right] or claims
