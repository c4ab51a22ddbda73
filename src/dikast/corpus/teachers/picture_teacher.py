"""`world:scenes`, `world:plates`, `world:charts`: a teacher for recipes about pictures, with exact gold.

Several instructions can be given about each picture. Rubrics are proposed as a model would propose them: most weigh
what the picture shows, some weigh what it does not show, and the check of their fit finds those.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from statistics import median
from typing import Any

from dikast.core.errors import UserError
from dikast.core.rubric import Rubric
from dikast.corpus.sources.evaluation_prompts import Evaluation
from dikast.corpus.teachers.world_teacher import TaughtRubric, WorldTeacher, mixes
from dikast.engines.base import Engine
from dikast.worlds.domains.protocol import Claim
from dikast.worlds.drawing.raster import png
from dikast.worlds.make import Maker
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.error_choice import cut_points
from dikast.worlds.sampling.response import Response, count_words
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.scoring.penalty import SCALES, Spec, cost, subject_of
from dikast.worlds.scoring.rubric_grammar import draw_aspects, draw_weights, draw_wording, rubric_of
from dikast.worlds.settings import Settings

TEXT_RICH = ("plates", "charts")
STILL = ("scenes", *TEXT_RICH)
_SPLITS = {"charts": "domain"}  # charts are held out of the training splits of worlds
_GROUP = 12  # responses drawn to take sentences from
_SPOKEN = {"charts": (4, 6)}  # number of things that answers mention; a chart has few
_MOST_SPOKEN = (7, 9)
_ASKED = {"charts": (4, 5)}  # number of those that an instruction asks about
_MOST_ASKED = (5, 6)
_STRAY = 20  # per cent of rubrics that weigh something the picture does not show
_DRAWS = 40
_TRIES = 100
_LEVELS = 5
_LONGEST = 1.4  # words of the longest answer to an instruction, relative to the shortest
_SOON = 64  # pictures cached for the next few requests
_HELD = 4096  # pictures cached between stages, about 20 kB each
_NO_CUTS = (0, 1, 2, 3)
_ABOUT = {  # the aspects that families of evaluation prompts are about; other families are about all
    "detailed-description": ("colour", "size", "texture", "shape", "position", "count", "value", "reading", "number"),
    "visual-reasoning": ("relation", "comparison", "count", "position", "binding", "order", "extreme"),
    "knowledge-ocr": ("reading", "number", "cell", "value"),
}


class PictureTeacher(WorldTeacher):
    """Answers the stages of the recipes `perception` and `critic-pointwise` from the world `domain`.

    `per_rubric` instructions share a rubric. `text_rich` is the share of pictures that contain text, drawn alternately
    from plates and charts and evenly spread; 0 leaves the world as it is.
    """

    domains = STILL

    def __init__(
        self, domain: str, *, seed: int = 0, per_rubric: int = 1, text_rich: float = 0.0, split: str = "train"
    ) -> None:
        super().__init__(domain, seed=seed, per_rubric=per_rubric, split=split)
        if domain in TEXT_RICH and text_rich not in (0, 1):
            raise UserError(f"text_rich: every picture of world:{domain} contains text; teach with world:scenes to mix")
        self.text_rich = 0.0 if domain in TEXT_RICH else text_rich
        worlds = {domain, *(TEXT_RICH if self.text_rich else ())}
        self._makers = {name: self._maker((), name) for name in worlds}
        self._views = lru_cache(maxsize=_HELD)(self._drawn)
        self._rubric = lru_cache(maxsize=_HELD)(self._brainstormed)
        self._said = lru_cache(maxsize=_HELD)(self._answered)
        self._measured = lru_cache(maxsize=_SOON)(self._measures)
        self._judging = lru_cache(maxsize=_HELD)(self._judging_spec)

    def identity(self) -> Mapping[str, Any]:
        """World, version, seed, and the share of pictures with text if it is set."""
        told = super().identity()
        return {**told, "text_rich": self.text_rich} if self.text_rich else told

    # -- pictures -------------------------------------------------------------------------------------------------

    def domain_of(self, number: int) -> str:
        """The world that picture `number` is from."""
        rich = int((number + 1) * self.text_rich + 1e-9)
        return TEXT_RICH[rich % len(TEXT_RICH)] if rich > int(number * self.text_rich + 1e-9) else self.domain

    def picture(self, number: int) -> bytes:
        """Picture `number` as a PNG file."""
        sample = self._views(number)[0]
        return png(sample.domain.render(sample.graph, sample.settings.size)[0])

    def _maker(self, aspects: tuple[str, ...], domain: str = "") -> Maker:
        domain = domain or self.domain
        return Maker(
            Settings(
                domain=domain, split=_SPLITS.get(domain, self.split), seed=self.seed, responses=_GROUP, scales=("1-5",),
                claims=_SPOKEN.get(domain, _MOST_SPOKEN), edits=False, aspects=aspects,
            )
        )  # fmt: skip

    def _drawn(self, number: int) -> tuple[Sample, ...]:
        """The instructions about one picture; pictures are drawn until a rubric fits them."""
        maker = self._makers[self.domain_of(number)]
        for attempt in range(_TRIES):
            size = _ASKED.get(maker.domain.name, _MOST_ASKED)
            views = tuple(maker.views(number * _TRIES + attempt, self.per_rubric, size))
            if self._fitting(views, Stream("fits", self.seed, number, attempt)) is not None:
                return views
        raise UserError(f"teacher: world {self.domain!r} has no picture {number} in {_TRIES} draws; other seed?")

    # -- rubrics --------------------------------------------------------------------------------------------------

    def _brainstormed(self, number: int, rubric: int) -> tuple[Spec, TaughtRubric | None]:
        """Rubric `rubric` of a picture, and the answers under it, or None if it does not fit the picture."""
        views, rng = self._views(number), Stream("rubric", self.seed, self.domain, number, rubric)
        if not rng.chance(_STRAY):
            for _ in range(_DRAWS):
                plan = self._fitting(views, rng)
                if plan is not None:
                    return plan.instructions[0].spec, plan
        spoken = _spoken(views)
        absent = [name for name, each in ASPECTS.items() if each.sees and not each.countable and name not in spoken]
        spec = replace(views[0].spec, cuts=_NO_CUTS, lower_is_better=False, entries=())
        return _worded(spec, rng.shuffled(absent)[: 1 + rng.below(2)], views[0], rng), None

    def _fitting(self, views: tuple[Sample, ...], rng: Stream) -> TaughtRubric | None:
        """One draw of a rubric; None if some instruction lacks an answer of some level under it."""
        held = self._makers[views[0].domain.name].rules.held_aspects
        aspects = draw_aspects(rng, views[0].settings.rules(), [a for a in _spoken(views) if a not in held])
        if not aspects:
            return None
        spec = replace(views[0].spec, cuts=_NO_CUTS, lower_is_better=False, entries=())
        spec = _worded(spec, aspects, views[0], rng)
        draws = random.Random(rng.fork())
        found = [mixes(replace(view, spec=spec), draws) for view in views]
        common = sorted(set.intersection(*(set(each) for each in found)))
        if len(common) < _LEVELS:
            return None
        spec = replace(spec, cuts=tuple(sorted(draws.sample(common[:-1], _LEVELS - 1))))
        pairs = zip(views, found, strict=True)
        plan = TaughtRubric(tuple(self._graded(replace(view, spec=spec), each, draws) for view, each in pairs))
        return plan if all(map(_even, plan.instructions)) else None

    # -- questions and answers ------------------------------------------------------------------------------------

    def question(self, number: int) -> str:
        """The question about picture `number`."""
        return self._views(number)[0].instruction

    def answers(self, number: int, count: int) -> tuple[Response, ...]:
        """`count` answers, from nearly right to mostly wrong, in random order."""
        return self._said(number, count)[:-1]

    def reference(self, number: int, count: int) -> str:
        """The reference to picture `number`, of which there are `count` answers."""
        return self._reference_to(self._views(number)[0], self._said(number, count)[-1])

    def _answered(self, number: int, count: int) -> tuple[Response, ...]:
        view, rng = self._views(number)[0], random.Random(f"{self.seed} answers {number}")
        spec = replace(view.spec, weights=tuple((name, 1) for name in _spoken((view,))), graded=True, entries=())
        found = sorted(mixes(replace(view, spec=spec), rng).items())
        middle = median(count_words(each.text) for _, bucket in found for each in bucket)
        pool = [min(bucket, key=lambda each: abs(count_words(each.text) - middle)) for _, bucket in found]
        best, rest = pool[0], pool[1:] or pool
        start = rng.random()
        chosen = [rest[int((i + start) / count * len(rest))] for i in range(count)]
        return (*rng.sample(chosen, count), best)

    def judged(self, number: int, evaluation: Evaluation, count: int) -> Rubric | None:
        """The rubric by which the world scores its `count` answers about a picture for this prompt; None if it cannot.

        Its scale is the prompt's; it weighs what the family of prompts is about, as far as the answers mention it.
        """
        spec = self._judging(number, evaluation.family, evaluation.name, str(evaluation.rubric.scale), count)
        return None if spec is None else replace(rubric_of(spec), name=evaluation.rubric.name)

    def _judging_spec(self, number: int, family: str, name: str, scale: str, count: int) -> Spec | None:
        """The specification of such a rubric; its levels divide the points lost, whatever the length of the answers."""
        view, rng = self._views(number)[0], Stream("judged", self.seed, self.domain, number, family, name)
        about, rules = _ABOUT.get(family, ()), view.settings.rules()
        open_ = [a for a in _spoken((view,)) if (not about or a in about) and a not in rules.held_aspects]
        if scale not in SCALES or not open_:
            return None
        levels, off = len(SCALES[scale].labels), dict(pair for slot in self._measured(number) for pair in slot)
        for _ in range(_DRAWS):
            spec = replace(view.spec, cuts=_NO_CUTS, lower_is_better=False, entries=())
            spec = _worded(spec, draw_aspects(rng, rules, open_), view, rng)
            most = sum(max(cost(claim, far, spec) for claim, far in slot) for slot in self._measured(number))
            if not spec.weights or most + 1 < levels:
                continue
            lost = [sum(cost(claim, off[claim], spec) for claim in each.claims) for each in self.answers(number, count)]
            spread = max(lost) - min(lost) + 1
            wide = max(levels, spread)
            low = min(max(0, min(lost) - (wide - spread) // 2), most + 1 - wide)
            return replace(spec, scale=scale, cuts=cut_points(range(low, low + wide), levels, rng))
        return None

    def _measures(self, number: int) -> list[list[tuple[Claim, int]]]:
        """For each thing that answers mention: their claims, and how far off each claim is."""
        view, found = self._views(number)[0], dict[Any, list[tuple[Claim, int]]]()
        for claim in {claim for response in view.responses for claim in response.claims}:
            off = view.domain.measure(claim, view.graph).metric
            found.setdefault((claim.kind, subject_of(claim)), []).append((claim, off))
        return list(found.values())

    # -- the stages -----------------------------------------------------------------------------------------------

    def _rubrics(self, about: Mapping[str, Any]) -> dict[str, Any]:
        number, first, made = int(about["picture"]), int(about["first"]), []
        for i in range(first, first + int(about["count"])):
            rubric = rubric_of(self._rubric(number, i)[0])
            made.append({"criterion": rubric.criterion, "levels": dict(rubric.levels), "world": [number, i]})
        return {"rubrics": made}

    def _fit(self, about: Mapping[str, Any]) -> dict[str, Any]:
        spec, plan = self._rubric(*self._number(about))
        weighed = ", ".join(ASPECTS[name].names[0] for name, _ in spec.weights)
        reason = f"Answers about the picture differ in {weighed}." if plan else f"It does not show enough of {weighed}."
        return {"reason": reason, "fits": plan is not None}

    def _reference(self, about: Mapping[str, Any]) -> dict[str, Any]:
        return {"reference": self.reference(int(about["number"]), int(about["count"]))}

    def _judgement(self, about: Mapping[str, Any]) -> str:
        number = int(about["number"])
        evaluation: Evaluation = about["evaluation"]
        count = int(about["count"])
        spec = self._judging(number, evaluation.family, evaluation.name, str(evaluation.rubric.scale), count)
        if spec is None:
            raise UserError(f"teacher: {evaluation.rubric.name} does not fit picture {number}")
        said = self.answers(number, count)
        sample = replace(self._views(number)[0], spec=spec, responses=tuple(said[i] for i in about["responses"]))
        if not evaluation.pair:
            gold = sample.gold()
            best = SCALES[spec.scale].labels[-1]  # of the reference, which is flawless
            return evaluation.reply(gold["feedback"], gold["label"], best).text
        told = self._preference({"item": sample.item()})
        one, two = sample.levels
        sign = "=" if one == two else ">" if abs(one - two) == 1 else ">>"
        first, second = "AB" if one <= two else "BA"
        return evaluation.reply(f"{told['commonalities']} {told['differences']}", f"{first}{sign}{second}").text

    @staticmethod
    def _number(about: Mapping[str, Any]) -> Any:
        number, rubric = about["lineage"]["world"]
        return number, rubric

    def _made(self, number: Any) -> TaughtRubric:
        plan = self._rubric(*number)[1]
        if plan is None:
            raise UserError(f"teacher: rubric {number[1]} does not fit picture {number[0]}")
        return plan


def behind(engine: Engine) -> PictureTeacher:
    """The picture teacher inside a wrapping engine, such as a budget; UserError if there is none."""
    while not isinstance(engine, PictureTeacher):
        inner = getattr(engine, "engine", None)
        if inner is None:
            raise UserError(f"teacher: {engine.name} is not the world that the recipe names")
        engine = inner
    return engine


def teacher_of(world: str, seed: int) -> WorldTeacher:
    """The teacher of a text or picture world, for recipes that argue from the claims of existing responses."""
    return PictureTeacher(world, seed=seed) if world in STILL else WorldTeacher(world, seed=seed)


def _even(sample: Sample) -> bool:
    """Whether the answers to an instruction have about the same length."""
    lengths = [count_words(each.text) for each in sample.responses[:_LEVELS]]
    return max(lengths) <= _LONGEST * min(lengths)


def _spoken(views: tuple[Sample, ...]) -> list[str]:
    """The aspects that answers about a picture mention."""
    return sorted({claim.aspect for view in views for claim in view.responses[0].claims})


def _worded(spec: Spec, aspects: list[str], sample: Sample, rng: Stream) -> Spec:
    weights = draw_weights(rng, aspects)
    return replace(spec, weights=weights, graded=rng.chance(40), wording=draw_wording(rng, sample.settings.rules()))
