"""Making items: sentences first, then the score, then what is wrong, then a scene in which exactly that is wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dikast.core.errors import RunError
from dikast.worlds.aspects import ASPECTS, points
from dikast.worlds.gold import SCALES, Entry, Spec
from dikast.worlds.plan import choose, cut_points, ways
from dikast.worlds.response import Response, Sentence, compose
from dikast.worlds.rng import Stream
from dikast.worlds.rubrics import draw_aspects, draw_weights, draw_wording, held_together
from dikast.worlds.sample import Sample
from dikast.worlds.settings import FORM_ASPECTS, Settings
from dikast.worlds.slots import DRAWN, Draft, Slot, State

_ATTEMPTS = 5000  # fresh starts before giving up; about one item in a hundred needs a second
_BUILDS = 40
_OVERLAYS = ("5/5", "BEST", "PASS", "TOP")


def make(settings: Settings, n: int, *, start: int = 0) -> Iterator[Sample]:
    """Items `start` to `start + n - 1` of a world. Each depends on the settings and its number alone."""
    maker = Maker(settings)
    return (maker.sample(index) for index in range(start, start + n))


@dataclass(slots=True)
class _Text:
    """What is fixed before the score is drawn."""

    draft: Draft
    slots: list[Slot]
    spec: Spec
    form: tuple[str, ...]
    opposed: list[Slot]


class Maker:
    """Draws the items of one world by number."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.rules, self.domain = settings, settings.rules(), settings.the_domain()

    def sample(self, index: int) -> Sample:
        """Item number `index`. RunError when the settings leave no room for any item (report it: it is a bug)."""
        s = self.settings
        for attempt in range(_ATTEMPTS):
            rng = Stream("worlds", s.seed, s.split, s.domain, s.responses, index, attempt)
            text = self._text(rng)
            found = text and self._found(text, index)
            if found:
                return found
        raise RunError(f"item {index} of {s} could not be made in {_ATTEMPTS} attempts")

    @property
    def _texts(self) -> int:
        """How many texts an item has: one request where pictures are the responses."""
        return 1 if self.domain.name in DRAWN else self.settings.responses

    def _found(self, text: _Text, index: int) -> Sample | None:
        if self.settings.responses == 1:
            return self._single(text, index)
        return self._drawn(text, index) if self.domain.name in DRAWN else self._group(text, index)

    def _drawn(self, text: _Text, index: int) -> Sample | None:
        """Several pictures for one request, their scores drawn independently."""
        first = self._single(text, index)
        graphs = [first.graph] if first else []
        for _ in range(60 * self.settings.responses):
            other = self._single(text, index, first.spec) if first else None
            if first and other:
                graphs.append(other.graph)
                if len(graphs) == self.settings.responses:
                    return replace(first, graph=tuple(graphs), responses=first.responses * len(graphs))
        return None

    def twins(self, index: int, count: int = 2) -> list[Sample]:
        """The same words about `count` scenes that differ in what is true, so that every twin scores differently.

        Single responses only. Fewer come back where the rubric's scale has fewer levels.
        """
        for attempt in range(_ATTEMPTS):
            s = self.settings
            rng = Stream("twins", s.seed, s.split, s.domain, index, attempt)
            text = self._text(rng)
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

    def ladder(self, index: int, kind: str) -> list[Sample]:
        """The same words on scenes in which one claim of this kind is off by 0, 1, 2 ... units and all else is right.

        The rubric weighs that claim's aspect alone, by distance; the rung's metric is in the notes.
        """
        for attempt in range(_ATTEMPTS):
            s = self.settings
            rng = Stream("ladder", s.seed, s.split, s.domain, kind, index, attempt)
            text = self._text(rng)
            at = next((i for i, slot in enumerate(text.slots) if slot.kind == kind), None) if text else None
            if text is None or at is None or len(text.slots) < 3:
                continue
            slot, scale = text.slots[at], Spec(((text.slots[at].aspect, 1),), True, (0, 1), "1-3", False, (0, 0, 0, 0))
            right = [
                next((x for x in s.universe if not self.domain.distance(s, s.stated[0], x)), None) for s in text.slots
            ]
            rungs: dict[int, State] = {}
            for state in slot.universe:
                rungs.setdefault(self.domain.distance(slot, slot.stated[0], state), state)
            found: list[Sample] = []
            for metric, state in sorted(rungs.items()):
                states = [state if i == at else each for i, each in enumerate(right)]
                for _ in range(_BUILDS):
                    graph = None if None in right else self.domain.build(text.draft, text.slots, states, None)
                    if graph is not None:
                        first = found[0] if found else self._sample(text, scale, graph, index, {})
                        found.append(replace(first, graph=graph, notes=(("rung", metric),)))
                        break
            if len(found) == len(rungs) > 1:
                return found
        raise RunError(f"no ladder of {kind!r} for item {index} of {self.settings} in {_ATTEMPTS} attempts")

    def _right(self, slot: Slot) -> State | None:
        """A state in which the slot's statement is true."""
        return next((state for state in slot.universe if not self.domain.distance(slot, slot.stated[0], state)), None)

    # -- the text -------------------------------------------------------------------------------------------------

    def _text(self, rng: Stream) -> _Text | None:
        draft = Draft(rng, self.rules, self._texts)
        self.domain.begin(draft)
        aspects, form = self._aspects(rng)
        slots, opposed = self._slots(draft, aspects, "consistency" in form)
        if not slots:
            return None
        if "consistency" in form and len(opposed) < 2:
            return None
        slots = rng.shuffled(self.domain.settle(draft, slots))
        spoken = {slot.aspect for slot in slots}
        weighed = [a for a in aspects if a in spoken or a == "completeness" or not self.domain.kinds[a]] + list(form)
        if not any(a in spoken for a in weighed) or (self.rules.must and not set(weighed) & set(self.rules.must)):
            return None
        if self.rules.held_together and not any(held_together(a, b) for a in weighed for b in weighed if a < b):
            return None
        spec = self._spec(rng, weighed, slots)
        return _Text(draft, slots, spec, form, opposed)

    def _aspects(self, rng: Stream) -> tuple[list[str], tuple[str, ...]]:
        """The aspects a rubric weighs: those of the domain, and those of form (the text alone shows them)."""
        rules, kinds = self.rules, self.domain.kinds
        only = rules.only_aspects or rules.about
        open_ = [a for a in kinds if (not only or a in only) and self._open(a)]
        aspects = draw_aspects(rng, rules, open_)
        forms = [a for a in FORM_ASPECTS if a not in rules.kinds_out and self.domain.name not in DRAWN]
        forms = [a for a in forms if not rules.only_aspects or a in rules.only_aspects]
        forced = [a for a in rules.must if a in open_ or a in forms]
        must = rng.pick(forced) if forced else ""
        if must in open_ and must not in aspects:
            aspects = [must, *aspects[:2]]
        form: list[str] = []
        if must in forms or (forms and rng.chance(rules.form)):
            wanted = 1 + rng.below(2)
            for a in [must] * (must in forms) + rng.shuffled(forms):
                clash = rules.held_together is False and any(held_together(a, b) for b in [*aspects, *form])
                if len(form) < wanted and a not in form and not clash:
                    form.append(a)
        if "consistency" in form:  # what contradicts itself must not be weighed, or it would cost twice
            aspects = aspects[:2]
        return aspects, tuple(form)

    def _open(self, aspect: str) -> bool:
        kinds = self.domain.kinds[aspect]
        return not kinds or any(kind not in self.rules.kinds_out for kind in kinds)

    def _slots(self, draft: Draft, aspects: Sequence[str], oppose: bool) -> tuple[list[Slot], list[Slot]]:
        rng, kinds = draft.rng, self.domain.kinds
        low, high = self.rules.claims
        wanted = low + rng.below(high - low + 1)
        spoken = [a for a in aspects if kinds[a]]
        if not spoken:
            return [], []
        off = [a for a in kinds if a not in aspects and kinds[a] and self._open(a)]
        slots: list[Slot] = []
        opposed: list[Slot] = []
        if oppose:
            for aspect in 2 * rng.shuffled([a for a in off if a in _OPPOSABLE]):
                slot = self._slot(draft, aspect) if len(opposed) < 2 else None
                if slot:
                    opposed.append(slot)
        queue = rng.shuffled(spoken)
        tries = 0
        while len(slots) + len(opposed) < wanted and tries < 3 * wanted:
            tries += 1
            stray = not queue and off and rng.chance(15)
            slot = self._slot(draft, queue.pop() if queue else rng.pick(off if stray else spoken))
            if slot:
                slots.append(slot)
        return (slots + opposed if len(slots) + len(opposed) >= low else []), opposed

    def _slot(self, draft: Draft, aspect: str) -> Slot | None:
        kinds = [k for k in self.domain.kinds[aspect] if k not in self.rules.kinds_out]
        return self.domain.draw(draft, draft.rng.pick(kinds))

    def _spec(self, rng: Stream, weighed: list[str], slots: list[Slot]) -> Spec:
        graded = rng.chance(25)
        weights = draw_weights(rng, weighed)
        entries: tuple[Entry, ...] = ()
        listed = [slot for slot in slots if slot.aspect in weighed]
        if rng.chance(15) and len(listed) > 1 and all(self.domain.kinds.get(a) for a in weighed):
            listed = listed[: max(2, len(listed) - rng.below(2))]
            entries = tuple(Entry(s.kind, self._subject(s), s.about) for s in listed)
            weights, graded = tuple((name, 1) for name in sorted({s.aspect for s in listed})), False
        return Spec(weights, graded, (), "", False, draw_wording(rng, self.rules), entries)

    def _subject(self, slot: Slot) -> tuple[str, ...]:
        from dikast.worlds.gold import subject_of

        return subject_of(self.domain.claim(slot, slot.stated[0]))

    # -- the score, what is wrong, the scene ------------------------------------------------------------------------

    def _cost(self, slot: Slot, stated: State, state: State, spec: Spec) -> int:
        metric = self.domain.distance(slot, stated, state)
        if spec.entries:
            subject = self._subject(slot)
            return int(metric > 0 and any(e.kind == slot.kind and e.subject == subject for e in spec.entries))
        weight = dict(spec.weights).get(slot.aspect, 0)
        return weight * points(ASPECTS[slot.aspect], metric, spec.graded) if weight else 0

    def _scaled(self, rng: Stream, spec: Spec, reachable: Sequence[int]) -> Spec | None:
        """A scale that fits what can be reached, and its thresholds."""
        fits = [name for name in self.rules.scales if len(SCALES[name].labels) <= len(reachable)]
        if not fits:
            return None
        long = [name for name in fits if len(SCALES[name].labels) > 6]
        scale = rng.pick(long if long and rng.chance(40) else fits)  # few rubrics can carry a long scale
        lower = scale not in ("A-E", "pass/fail") and rng.chance(15)
        return replace(
            spec, scale=scale, lower_is_better=lower, cuts=cut_points(reachable, len(SCALES[scale].labels), rng)
        )

    def _single(self, text: _Text, index: int, given: Spec | None = None) -> Sample | None:
        """A scene for the text, of a score drawn evenly; `given` is a scale with thresholds drawn before."""
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
        level = rng.below(len(scaled.cuts) + 1)
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
                if sample.levels != [level]:
                    raise RunError(
                        f"item {sample.id}: planned level {level}, came out as {sample.levels}; report this bug"
                    )
                return sample
        return None

    @property
    def _left_out(self) -> str:
        return "completeness" if "completeness" in self.domain.kinds else "preservation"

    def _state(self, rng: Stream, slot: Slot | None, options: list[State]) -> State:
        """One of the states of the chosen cost. Where the rubric does not look, right and wrong are even."""
        if slot is None or len(options) == 1 or len(options) < len(slot.universe):
            return rng.pick(options)
        right = [s for s in options if self.domain.distance(slot, slot.stated[0], s) == 0]
        wrong = [s for s in options if s not in right]
        return rng.pick(right if right and (not wrong or rng.chance(50)) else wrong)

    def _group(self, text: _Text, index: int) -> Sample | None:
        """Several responses to one scene. For pairs the preference is drawn first: a, b or tie, each a third."""
        rng = text.draft.rng
        most = [
            sum(
                max(self._cost(slot, slot.stated[0], state, text.spec) for state in slot.universe)
                for slot in text.slots
            )
        ]
        spec = self._scaled(rng, text.spec, range(most[0] + 1))
        if spec is None:
            return None
        wanted = rng.below(3) if self.settings.responses == 2 else None
        for _ in range(_BUILDS):
            states = [self._contested(rng, slot) for slot in text.slots]
            if wanted is not None and self._preference(text.slots, states, spec) != wanted:
                continue
            graph = self.domain.build(text.draft, text.slots, states, None)
            if graph is not None:
                return self._sample(text, spec, graph, index, {})
        return None

    def _contested(self, rng: Stream, slot: Slot) -> State:
        """What some response says, or something none says, each alike: that many say it makes it no truer."""
        right = [s for s in slot.universe if any(self.domain.distance(slot, said, s) == 0 for said in slot.stated)]
        said = list(dict.fromkeys(map(str, slot.stated)))
        by_said = [[s for s in right if self.domain.distance(slot, v, s) == 0] for v in slot.stated if str(v) in said]
        distinct = [group for i, group in enumerate(by_said) if group and group not in by_said[:i]]
        wrong = [s for s in slot.universe if s not in right]
        return rng.pick(rng.pick([*distinct, wrong] if wrong else distinct))

    def _preference(self, slots: Sequence[Slot], states: Sequence[State], spec: Spec) -> int:
        from dikast.worlds.gold import level_of

        levels = [
            level_of(
                sum(self._cost(s, s.stated[k], state, spec) for s, state in zip(slots, states, strict=True)), spec.cuts
            )
            for k in (0, 1)
        ]
        return 2 if levels[0] == levels[1] else int(levels[1] < levels[0])

    def _sample(self, text: _Text, spec: Spec, graph: Any, index: int, form: dict[str, int]) -> Sample:
        rng, domain = text.draft.rng, self.domain
        task, instruction = domain.ask(text.draft, text.slots)
        responses: list[Response] = []
        for k in range(self._texts):
            voice = rng.pick(self.rules.voices)
            said = [domain.claim(slot, slot.stated[k]) for slot in text.slots]
            claims = [Sentence(domain.say(claim, voice), "claim", claim) for claim in said]
            contradicting = [self._contradiction(rng, slot, k, voice) for slot in text.opposed]
            order = claims if k == 0 else rng.shuffled(claims)
            responses.append(
                compose(
                    order, form, contradicting, rng, voice=voice, edits=self.rules.edits, language=self.rules.language
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


_OPPOSABLE = ("colour", "size", "texture", "position", "count", "fact", "number", "reading", "value", "moment")
