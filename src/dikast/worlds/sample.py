"""One sample: its scene, rubric and responses, and the record and gold derived from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from dikast.core.item import Item
from dikast.core.part import Content, Image, Text, Turn, Video
from dikast.core.rubric import Rubric
from dikast.worlds.domains.protocol import DRAWN, ClaimFinding, Domain, Picture
from dikast.worlds.feedback_voices import VOICES, Point, feedback_in
from dikast.worlds.sampling.held_out import rules_of
from dikast.worlds.sampling.response import Response
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.penalty import Spec, costs, extra_cost, label_of, level_of
from dikast.worlds.scoring.rubric_grammar import rubric_of
from dikast.worlds.scoring.term_names import pattern_of
from dikast.worlds.scoring.terms import composition_of
from dikast.worlds.settings import Settings


class Graded(NamedTuple):
    """One response with its gold: level 0 is the best; one finding for each distinct claim, in order."""

    level: int
    penalty: int
    findings: tuple[ClaimFinding, ...]
    costs: tuple[int, ...]
    counts: dict[str, int]


@dataclass(frozen=True)
class Sample:
    """Everything about one item. `dataclasses.replace` with another graph, rubric or response gives a counterfactual,
    whose gold is derived again. `rivals`: other rubrics for which the gold also gives the score.
    """

    settings: Settings
    index: int
    domain: Domain
    task: str
    instruction: str
    graph: Any
    spec: Spec
    responses: tuple[Response, ...]
    name: str = ""
    notes: tuple[tuple[str, Any], ...] = ()
    rivals: tuple[Spec, ...] = ()
    shown: str = ""  # names the pictures that items of one response share

    @property
    def id(self) -> str:
        """The item's id, unique within a world."""
        s = self.settings
        return self.name or f"{s.domain}-{s.split}-{s.responses}-{s.seed}-{self.index:07d}"

    @cached_property
    def graded(self) -> list[Graded]:
        """Every response measured against the scene."""
        found = []
        graphs = self._graphs * (len(self.responses) // len(self._graphs))
        for response, graph in zip(self.responses, graphs, strict=True):
            claims = response.claims
            findings = tuple(self.domain.measure(claim, graph) for claim in claims)
            lost = costs(claims, [finding.metric for finding in findings], self.spec)
            counts = response.counts()
            for name in ("completeness", "preservation"):
                if name in self.domain.kinds:
                    counts[name] = self.domain.missed(claims, graph)
            penalty = sum(lost) + extra_cost(counts, self.spec)
            found.append(Graded(level_of(penalty, self.spec.cuts), penalty, findings, lost, counts))
        return found

    @property
    def _graphs(self) -> tuple[Any, ...]:
        """The scenes shown: one, or one for each response if pictures are judged."""
        return self.graph if isinstance(self.graph, tuple) else (self.graph,)

    @property
    def _before(self) -> int:
        """The number of pictures that all graphs share: 1 for image edits (the image before), else 0."""
        return int(self.domain.name == "retouch")

    @property
    def levels(self) -> list[int]:
        """The level of every response, 0 the best."""
        return [graded.level for graded in self.graded]

    @cached_property
    def rubric(self) -> Rubric:
        """The rubric as it is shown to a judge."""
        return rubric_of(self.spec)

    @property
    def needs(self) -> str:
        """`image` if every weighed aspect needs the picture, `text` if none does, else `both`."""
        sees = {not name or ASPECTS[name].sees for name in self.spec.aspects}
        return "both" if len(sees) == 2 else "image" if sees == {True} else "text"

    def pictures(self) -> list[Picture]:
        """The picture or the frames; empty for worlds without pictures."""
        shown = [self.domain.render(graph, self.settings.size) for graph in self._graphs]
        return [picture for i, each in enumerate(shown) for picture in (each[self._before :] if i else each)]

    def paths(self) -> list[str]:
        """The paths of `pictures`, relative to the record's folder."""
        n = sum(self.domain.frames(graph) for graph in self._graphs) - self._before * (len(self._graphs) - 1)
        name = self.shown or self.id
        folder = f"images/{(int(name[-7:]) if self.shown else self.index) // 1000:05d}"
        return [f"{folder}/{name}.png"] if n == 1 else [f"{folder}/{name}-{i}.png" for i in range(n)]

    def files(self) -> list[tuple[str, Picture]]:
        """Every picture with its path."""
        return list(zip(self.paths(), self.pictures(), strict=True))

    def item(self, root: str = "") -> Item:
        """The record. Picture paths are relative to `root`."""
        frames = tuple(Image(path, root) for path in self.paths())
        if self.domain.name in DRAWN:
            asked: Content = (*frames[: self._before], Text(f"{self.instruction} {self.responses[0].text}"))
            turn, drawn = Turn("user", asked), tuple((frame,) for frame in frames[self._before :])
            return Item(self.id, (turn,), drawn, rubric=self.rubric, gold=self.gold(), meta=self.meta())
        shown: Content = frames if len(frames) < 2 else (Video(frames, tuple(float(i) for i in range(len(frames)))),)
        words = "\n".join(filter(None, (self.domain.prompt(self.graph), self.instruction)))
        return Item(
            id=self.id,
            instruction=(Turn("user", (*shown, Text(words))),),
            responses=tuple((Text(response.text),) for response in self.responses),
            rubric=self.rubric,
            gold=self.gold(),
            meta=self.meta(),
        )

    def gold(self) -> dict[str, Any]:
        """The score (one response), or scores and preference (several), with claims and feedback."""
        each = [self._gold_of(*pair, i) for i, pair in enumerate(zip(self.responses, self.graded, strict=True))]
        if len(each) == 1:
            rivals = [replace(self, spec=spec, rivals=()).gold()["score"] for spec in self.rivals]
            return {**each[0], "by_rubric": [each[0]["score"], *rivals]} if rivals else each[0]
        levels = self.levels
        best = min(levels)
        found: dict[str, Any] = {"scores": [one["score"] for one in each], "labels": [one["label"] for one in each]}
        if len(each) == 2:
            found["preference"] = "tie" if levels[0] == levels[1] else "a" if levels[0] == best else "b"
        return {**found, "responses": each}

    def _gold_of(self, response: Response, graded: Graded, which: int) -> dict[str, Any]:
        label = label_of(graded.level, self.spec)
        spoken = {s.claim: s.text for s in reversed(response.sentences) if s.claim is not None}
        claims, lines = [], []
        for claim, finding, points_lost in zip(response.claims, graded.findings, graded.costs, strict=True):
            aspect = ASPECTS[claim.aspect]
            verdict = "unsupported" if finding.gone and finding.metric else "wrong" if finding.metric else "right"
            entry: dict[str, Any] = {
                "text": spoken[claim],
                "verdict": verdict,
                "aspect": claim.aspect,
                "cost": points_lost,
            }
            if finding.metric:
                entry |= {
                    "correction": finding.truth,
                    "operator": aspect.operator,
                    "severity": finding.metric,
                    "unit": aspect.unit,
                }
            claims.append(entry)
            lines.append(f"{spoken[claim]} -> {verdict}" + (f": {finding.truth}" if finding.metric else ""))
        for name, _ in self.spec.weights:
            if name in graded.counts and not self.spec.entries:
                lines.append(f"{ASPECTS[name].names[0]}: {graded.counts[name]}")
        score = self.spec.the_scale.value(label)
        feedback = self._voiced(claims, graded, label, which) if self.spec.terms else "\n".join(lines)
        return {
            "score": score,
            "label": label,
            "penalty": graded.penalty,
            "claims": claims,
            "counts": graded.counts,
            "feedback": feedback,
        }

    def _voiced(self, claims: Sequence[Mapping[str, Any]], graded: Graded, label: str, which: int) -> str:
        """From version 4 on: the feedback in a voice drawn for the response and the rubric."""
        found = [Point(c["text"], c["verdict"], c.get("correction", ""), c["cost"]) for c in claims]
        for (aspect, weight), name in zip(self.spec.weights, self.spec.names, strict=True):
            count = graded.counts.get(aspect, 0)
            said = ("broken" if count else "kept") if ASPECTS[aspect].cap == 1 else f"{count} found"
            found.append(Point(name, "", said, weight * points(ASPECTS[aspect], count, self.spec.graded)))
        voice = Stream("feedback", self.id, which).pick(VOICES)
        return feedback_in(voice, found, label)

    def meta(self) -> dict[str, Any]:
        """Everything that made the item."""
        s = self.settings
        scenes = [self.domain.to_json(graph) for graph in self._graphs]
        scene = scenes if isinstance(self.graph, tuple) else scenes[0]
        return {
            "version": s.generator,
            "domain": s.domain,
            "split": s.split,
            "seed": s.seed,
            "index": self.index,
            "task": self.task,
            "needs": self.needs,
            "spec": self.spec.to_json(),
            "scene": scene,
            "voices": [response.voice for response in self.responses],
            "layouts": [response.layout for response in self.responses],
            "edits": [list(response.edits) for response in self.responses],
            "language": self.responses[0].language,
            **self._named(),
            **dict(self.notes),
        }

    def _named(self) -> dict[str, str]:
        """From version 4 on, what intervals over rubrics are clustered by: the phrase that names the first term, and
        what the rubric combines.
        """
        terms = self.spec.terms
        if not terms:
            return {}
        which = rules_of(self.settings.split).terms
        return {"phrase": pattern_of(terms[0], self.spec.domain), "composition": composition_of(terms, which)}

    def but(self, *, name: str, **changes: Any) -> "Sample":
        """A counterfactual: this sample with some fields changed, under its own name."""
        return replace(self, name=f"{self.id}-{name}", **changes)
