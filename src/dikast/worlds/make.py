"""Making items: first the sentences, then the score, then the wrong claims, then a scene that makes them wrong."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dikast.core.errors import RunError, UserError
from dikast.worlds.domains.protocol import DRAWN, Slot, State
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.drafting import Drafted, Drafter
from dikast.worlds.sampling.error_choice import choose, cut_points, ways
from dikast.worlds.sampling.families import draw_family
from dikast.worlds.sampling.pairing import BASE, Cell, draw_cell
from dikast.worlds.sampling.response import Response, Sentence, compose
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.aspects import ASPECTS, points
from dikast.worlds.scoring.penalty import ONE_WAY, SCALES, Spec, cost, level_of
from dikast.worlds.settings import Settings

_ATTEMPTS = 5000  # attempts before giving up; about one item in a hundred needs a second one
_BUILDS = 40
_CUTTINGS = 10  # thresholds tried on one text of a pair
_OVERLAYS = ("5/5", "BEST", "PASS", "TOP")
_NARROW = ("scales", "claims", "aspects", "objects", "grid", "ties", "responses", "split")  # can be too restrictive
_WIDE = Settings()
Found = TypeVar("Found")


def make(settings: Settings, n: int, *, start: int = 0) -> Iterator[Sample]:
    """Items `start` to `start + n - 1` of a world. Each depends only on the settings (seed included) and its number."""
    maker = Maker(settings)
    return (maker.sample(index) for index in range(start, start + n))


class Maker:
    """Draws the items of one world by number."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.rules, self.domain = settings, settings.rules(), settings.the_domain()
        self._drafter = Drafter(settings)
        self._last: tuple[int, list[Sample]] = (-1, [])

    def sample(self, index: int) -> Sample:
        """Item number `index`. UserError, naming the settings, if they are too restrictive for it."""
        s = self.settings
        if s.version >= 4 and s.responses == 1 and self.domain.name not in DRAWN:
            return self.family(index // s.rubrics)[index % s.rubrics]
        return self._first(index, lambda text: self._found(text, index))

    def family(self, number: int) -> list[Sample]:
        """From version 4 on: response `number` under each of its rubrics, in an order that carries no information."""
        if self._last[0] != number:
            self._last = number, self._first(number, lambda text: self._under_rubrics(text, number))
        return self._last[1]

    def _first(self, index: int, make: Callable[[Drafted], Found | None]) -> Found:
        s = self.settings
        for attempt in range(_ATTEMPTS):
            rng = Stream("worlds", s.seed, s.split, s.domain, s.responses, index, attempt)
            text = self._drafter.draft(rng)
            found = make(text) if text else None
            if found:
                return found
        told = {name: getattr(s, name) for name in _NARROW if getattr(s, name) != getattr(_WIDE, name)}
        raise UserError(
            f"{', '.join(told) or 'settings'}: no item {index} of {s.domain!r} came of {_ATTEMPTS} drafts with"
            f" {', '.join(f'{name}={value}' for name, value in told.items()) or s}; widen one of them"
        )

    def _found(self, text: Drafted, index: int) -> Sample | None:
        if self.settings.responses == 1:
            return self._single(text, index)
        if self.domain.name in DRAWN:
            return self._drawn(text, index)
        return self._pair(text, index) if self.settings.responses == 2 else self._group(text, index)

    def _under_rubrics(self, text: Drafted, number: int) -> list[Sample] | None:
        """One response under the text's rubrics; see `families`."""
        family = draw_family(text, self.domain, self._scaled)
        for states, counts in zip(family.states, family.counts, strict=True) if family else ():
            missing = counts.get(self._left_out)
            graph = self.domain.build(text.draft, text.slots, states, missing)
            if graph is not None and family:
                form = {name: counts[name] for name in text.form}
                one = self._sample(text, family.specs[0], graph, number * self.settings.rubrics, form)
                shown = f"{one.id[: one.id.rindex('-')]}-{number:07d}"
                one = replace(one, shown=shown, notes=(("response", shown),))
                members = [
                    replace(one, spec=spec, index=one.index + k, rivals=(*family.specs[:k], *family.specs[k + 1 :]))
                    for k, spec in enumerate(family.specs)
                ]
                return [self._checked(each, [level]) for each, level in zip(members, family.levels, strict=True)]
        return None

    def _drawn(self, text: Drafted, index: int) -> Sample | None:
        """Several pictures for one request, with independent scores; of pairs the share `ties` is tied."""
        first, rng = self._single(text, index), text.draft.rng
        if first is None:
            return None
        [level], levels = first.levels, len(first.spec.cuts) + 1
        if self.settings.responses == 2 and not rng.chance(self.settings.ties):
            level = (level + 1 + rng.below(levels - 1)) % levels
        graphs = [first.graph]
        for _ in range(60 * self.settings.responses):
            other = self._single(text, index, first.spec, level if self.settings.responses == 2 else None)
            if other:
                graphs.append(other.graph)
                if len(graphs) == self.settings.responses:
                    return replace(first, graph=tuple(graphs), responses=first.responses * len(graphs))
        return None

    def twins(self, index: int, count: int = 2) -> list[Sample]:
        """The same text about `count` scenes in which different claims are true, so that every twin scores differently.

        Single responses only. Returns fewer if the rubric's scale has fewer levels.
        """
        for attempt in range(_ATTEMPTS):
            s = self.settings
            rng = Stream("twins", s.seed, s.split, s.domain, index, attempt)
            text = self._drafter.draft(rng)
            first = text and self._single(text, index)
            if not text or not first:
                continue
            found = {first.levels[0]: first}
            for _ in range(60):
                other = self._single(text, index, first.spec)
                if other and other.levels[0] not in found:
                    twin = replace(other, responses=first.responses, instruction=first.instruction, task=first.task)
                    found[other.levels[0]] = twin
            if len(found) >= count:
                return [found[level] for level in sorted(found)][:count]
        raise RunError(f"no twins for item {index} of {self.settings} in {_ATTEMPTS} attempts")

    def views(self, index: int, count: int, size: tuple[int, int]) -> list[Sample]:
        """`count` samples about one scene, each with its own instruction.

        For groups. Each asks about parts of the scene drawn for it, `size[0]` to `size[1]` of them if there are enough,
        and its responses mention only these.
        """
        s = self.settings
        for attempt in range(_ATTEMPTS):
            rng = Stream("views", s.seed, s.split, s.domain, s.responses, index, attempt)
            text = self._drafter.draft(rng)
            whole = text and self._group(text, index)
            if text and whole:
                parts = [rng.shuffled(text.slots)[: size[0] + rng.below(size[1] - size[0] + 1)] for _ in range(count)]
                return [self._sample(replace(text, slots=each), whole.spec, whole.graph, index, {}) for each in parts]
        raise RunError(f"no scene with {count} views for item {index} of {s} in {_ATTEMPTS} attempts")

    def ladder(self, index: int, kind: str) -> list[Sample]:
        """The same text with scenes in which one claim of this kind is off by 0, 1, 2, ... units, all else correct.

        `kind` may also be a counted aspect (`completeness`, `preservation`): then more and more things are left out or
        changed without a request. The rubric weighs only that aspect, claims by distance; the notes hold each rung's
        metric.
        """
        counted = kind in self.domain.kinds and not self.domain.kinds[kind]
        for attempt in range(_ATTEMPTS):
            s = self.settings
            rng = Stream("ladder", s.seed, s.split, s.domain, kind, index, attempt)
            text = self._drafter.draft(rng)
            at = next((i for i, slot in enumerate(text.slots) if slot.kind == kind), None) if text else None
            if text is None or (at is None and not counted) or len(text.slots) < 3:
                continue
            aspect = kind if at is None else text.slots[at].aspect
            scale = Spec(((aspect, 1),), not counted, (0, 1), "1-3", False, (0, 0, 0, 0))
            right = [
                next((x for x in s.universe if not self.domain.distance(s, s.stated[0], x)), None) for s in text.slots
            ]
            rungs: dict[int, State] = dict.fromkeys(range(ASPECTS[aspect].cap + 1)) if at is None else {}
            if at is not None:
                slot = text.slots[at]
                for state in slot.universe:
                    rungs.setdefault(self.domain.distance(slot, slot.stated[0], state), state)
            found: list[Sample] = []
            for metric, state in sorted(rungs.items()):
                states = [state if i == at else each for i, each in enumerate(right)]
                missing = metric if at is None else None
                for _ in range(_BUILDS):
                    graph = None if None in right else self.domain.build(text.draft, text.slots, states, missing)
                    if graph is not None:
                        first = found[0] if found else self._sample(text, scale, graph, index, {})
                        found.append(replace(first, graph=graph, notes=(("rung", metric),)))
                        break
            if len(found) == len(rungs) > 1:
                return found
        raise RunError(f"no ladder of {kind!r} for item {index} of {self.settings} in {_ATTEMPTS} attempts")

    # -- the score, what is wrong, the scene ------------------------------------------------------------------------

    def _cost(self, slot: Slot, stated: State, state: State, spec: Spec) -> int:
        metric = self.domain.distance(slot, stated, state)
        if spec.terms:
            return cost(self.domain.claim(slot, stated), metric, spec)
        if spec.entries:
            subject = self._drafter.subject(slot)
            return int(metric > 0 and any(e.kind == slot.kind and e.subject == subject for e in spec.entries))
        weight = dict(spec.weights).get(slot.aspect, 0)
        return weight * points(ASPECTS[slot.aspect], metric, spec.graded) if weight else 0

    def _scaled(self, rng: Stream, spec: Spec, reachable: Sequence[int]) -> Spec | None:
        """A scale that fits the reachable penalties, and its thresholds."""
        fits = [name for name in self.rules.scales if len(SCALES[name].labels) <= len(reachable)]
        if not fits:
            return None
        long = [name for name in fits if len(SCALES[name].labels) > 6]
        scale = rng.pick(long if long and rng.chance(40) else fits)  # few rubrics can carry a long scale
        lower = scale not in ONE_WAY and rng.chance(15)
        return replace(
            spec, scale=scale, lower_is_better=lower, cuts=cut_points(reachable, len(SCALES[scale].labels), rng)
        )

    def _single(self, text: Drafted, index: int, given: Spec | None = None, level: int | None = None) -> Sample | None:
        """A scene for the text with a uniformly drawn score; rubric thresholds (`given`) or a level may be set."""
        rng, spec = text.draft.rng, text.spec
        by_cost: list[dict[int, list[State]]] = []
        weight = dict(spec.weights)
        for slot in text.slots:
            options: dict[int, list[State]] = {}
            for state in slot.universe:
                options.setdefault(self._cost(slot, slot.stated[0], state, spec), []).append(state)
            by_cost.append(options)
        whole = [name for name, _ in spec.weights if ASPECTS[name].countable or name in text.form]
        for name in whole:
            most = min(ASPECTS[name].cap, text.draft.budget + 2) if name not in text.form else ASPECTS[name].cap
            by_cost.append({weight[name] * n: [n] for n in range(most + 1)})
        costs = [sorted(options) for options in by_cost]
        tables = ways(costs)
        reachable = sorted(tables[0])
        scaled = given or self._scaled(rng, spec, reachable)
        if scaled is None:
            return None
        level = rng.below(len(scaled.cuts) + 1) if level is None else level
        low = scaled.cuts[level - 1] if level else -1
        high = scaled.cuts[level] if level < len(scaled.cuts) else reachable[-1]
        total = rng.pick([p for p in reachable if low < p <= high])
        for _ in range(_BUILDS):
            chosen = choose(costs, tables, total, rng)
            states = [self._state(rng, text.slots[i] if i < len(text.slots) else None, options[c])
                      for i, (c, options) in enumerate(zip(chosen, by_cost, strict=True))]  # fmt: skip
            extra = dict(zip(whole, states[len(text.slots) :], strict=True))
            graph = self.domain.build(text.draft, text.slots, states[: len(text.slots)], extra.get(self._left_out))
            if graph is not None:
                sample = self._sample(text, scaled, graph, index, {a: extra[a] for a in text.form})
                if extra.get("concision", 0) > len(text.slots) and sample.levels != [level]:
                    continue  # each claim is said again once at most, so that this total is out of reach
                return self._checked(sample, [level])
        return None

    @property
    def _left_out(self) -> str:
        return "completeness" if "completeness" in self.domain.kinds else "preservation"

    def _state(self, rng: Stream, slot: Slot | None, options: list[State]) -> State:
        """One of the states with the chosen cost. Claims that are not weighed are correct or wrong equally often."""
        if slot is None or len(options) == 1 or len(options) < len(slot.universe):
            return rng.pick(options)
        right = [s for s in options if self.domain.distance(slot, slot.stated[0], s) == 0]
        wrong = [s for s in options if s not in right]
        return rng.pick(right if right and (not wrong or rng.chance(50)) else wrong)

    def _group(self, text: Drafted, index: int) -> Sample | None:
        """Several responses to one scene."""
        rng, spec = text.draft.rng, text.spec
        most = sum(max(self._cost(s, s.stated[0], state, spec) for state in s.universe) for s in text.slots)
        scaled = self._scaled(rng, spec, range(most + 1))
        for _ in range(_BUILDS if scaled else 0):
            states = [self._contested(rng, slot) for slot in text.slots]
            graph = self.domain.build(text.draft, text.slots, states, None)
            if graph is not None and scaled:
                return self._sample(text, scaled, graph, index, {})
        return None

    def _pair(self, text: Drafted, index: int) -> Sample | None:
        """Two responses to one scene, their scores drawn together and before it; see `pairing`."""
        rng, spec = text.draft.rng, text.spec
        by_cost: list[dict[int, list[State]]] = []
        for slot in text.slots:
            options: dict[int, list[State]] = {}
            for state in slot.universe:
                first, second = (self._cost(slot, stated, state, spec) for stated in slot.stated)
                options.setdefault(first * BASE + second, []).append(state)
            by_cost.append(options)
        for name, weight in spec.weights:  # both responses leave out the same things
            if ASPECTS[name].countable and name not in text.form:
                most = min(ASPECTS[name].cap, text.draft.budget + 2)
                by_cost.append({weight * n * (BASE + 1): [n] for n in range(most + 1)})
        costs = [sorted(options) for options in by_cost]
        tables = ways(costs)
        drawn = self._drawn_cell(rng, spec, sorted(tables[0]))
        if drawn is None:
            return None
        scaled, cell, totals = drawn
        total = rng.pick(totals)
        for _ in range(_BUILDS):
            picked = [options[cost] for options, cost in zip(by_cost, choose(costs, tables, total, rng), strict=True)]
            n = len(text.slots)
            states = [
                self._contested(rng, slot) if len(found) == len(slot.universe) else rng.pick(found)
                for slot, found in zip(text.slots, picked[:n], strict=True)
            ]
            graph = self.domain.build(text.draft, text.slots, states, picked[n][0] if picked[n:] else None)
            if graph is not None:
                return self._checked(self._sample(text, scaled, graph, index, {}), list(cell))
        return None

    def _drawn_cell(self, rng: Stream, spec: Spec, totals: list[int]) -> tuple[Spec, Cell, list[int]] | None:
        """A scale, both levels, and the totals that give them; None if the text allows no balanced table of levels."""
        both = [divmod(total, BASE) for total in totals]
        reachable = sorted({penalty for pair in both for penalty in pair})
        scaled = self._scaled(rng, spec, reachable)
        if scaled is None:
            return None
        for _ in range(_CUTTINGS):
            scaled = replace(scaled, cuts=cut_points(reachable, len(SCALES[scaled.scale].labels), rng))
            found: dict[Cell, list[int]] = {}
            for total, (first, second) in zip(totals, both, strict=True):
                cell = Cell(level_of(first, scaled.cuts), level_of(second, scaled.cuts))
                found.setdefault(cell, []).append(total)
            drawn = draw_cell(frozenset(found), len(scaled.cuts) + 1, self.settings.ties, rng)
            if drawn is not None:
                return scaled, drawn, found[drawn]
        return None

    def _checked(self, sample: Sample, levels: list[int]) -> Sample:
        if sample.levels != levels:
            raise RunError(f"item {sample.id}: planned levels {levels}, came out as {sample.levels}; report this bug")
        return sample

    def _contested(self, rng: Stream, slot: Slot) -> State:
        """A state that some response states or that none states, equally likely: agreement must not predict truth."""
        right = [s for s in slot.universe if any(self.domain.distance(slot, said, s) == 0 for said in slot.stated)]
        said = list(dict.fromkeys(map(str, slot.stated)))
        by_said = [[s for s in right if self.domain.distance(slot, v, s) == 0] for v in slot.stated if str(v) in said]
        distinct = [group for i, group in enumerate(by_said) if group and group not in by_said[:i]]
        wrong = [s for s in slot.universe if s not in right]
        return rng.pick(rng.pick([*distinct, wrong] if wrong else distinct))

    def _sample(self, text: Drafted, spec: Spec, graph: Any, index: int, form: dict[str, int]) -> Sample:
        rng, domain = text.draft.rng, self.domain
        task, instruction = domain.ask(text.draft, text.slots)
        responses: list[Response] = []
        for k in range(self._drafter.texts):
            voice = rng.pick(self.rules.voices)
            said = [domain.claim(slot, slot.stated[k]) for slot in text.slots]
            claims = [Sentence(domain.say(claim, voice), "claim", claim) for claim in said]
            contradicting = [self._contradiction(rng, slot, k, voice) for slot in text.opposed]
            order = claims if k == 0 else rng.shuffled(claims)
            responses.append(
                compose(
                    order,
                    form,
                    contradicting,
                    rng,
                    voice=voice,
                    edits=self.rules.edits,
                    language=self.rules.language,
                    repeats_fillers=self.rules.version < 4,
                )
            )
        if self.rules.edits and rng.chance(4) and hasattr(graph, "overlay"):
            graph.overlay = rng.pick(_OVERLAYS)
        rules = responses[0].rules_text()
        return Sample(
            self.settings,
            index,
            domain,
            task,
            " ".join(filter(None, (instruction, rules))),
            graph,
            spec,
            tuple(responses),
        )

    def _contradiction(self, rng: Stream, slot: Slot, k: int, voice: int) -> Sentence:
        others = [s for s in slot.universe if s != slot.stated[k] and (slot.kind != "count" or s != 1)]
        claim = self.domain.claim(slot, rng.pick(others))
        return Sentence(self.domain.say(claim, voice), "contradiction", claim)
