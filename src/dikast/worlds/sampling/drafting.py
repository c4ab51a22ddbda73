"""Drafting: the sentences and the weights of the rubric, which are fixed before a score is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

from dikast.worlds.domains.protocol import DRAWN, Draft, Slot
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.sampling.term_drafting import draw_specs
from dikast.worlds.scoring.penalty import Entry, Spec, subject_of
from dikast.worlds.scoring.rubric_grammar import draw_aspects, draw_weights, draw_wording, held_together
from dikast.worlds.settings import FORM_ASPECTS, Settings

_OPPOSABLE = ("colour", "size", "texture", "position", "count", "fact", "number", "day", "reading", "value", "moment")


@dataclass(slots=True)
class Drafted:
    """A draft, fixed before the score is drawn. `form` are the weighed aspects of the text alone, `opposed` the slots
    that a sentence may contradict, `rubrics` (from version 4 on) all rubrics that the responses stand under.
    """

    draft: Draft
    slots: list[Slot]
    spec: Spec
    form: tuple[str, ...]
    opposed: list[Slot]
    rubrics: tuple[Spec, ...] = ()


class Drafter:
    """Draws the sentences and rubrics of one world, except for the rubrics' scales."""

    def __init__(self, settings: Settings) -> None:
        self.settings, self.rules, self.domain = settings, settings.rules(), settings.the_domain()

    @property
    def texts(self) -> int:
        """The number of texts of an item: one (the request) if pictures are the responses."""
        return 1 if self.domain.name in DRAWN else self.settings.responses

    def draft(self, rng: Stream) -> Drafted | None:
        """One draft; None if what was drawn does not fit together."""
        draft = Draft(rng, self.rules, self.texts)
        self.domain.begin(draft)
        if self.rules.version >= 4:
            return self._draft_terms(draft)
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
        return Drafted(draft, slots, spec, form, opposed)

    def _draft_terms(self, draft: Draft) -> Drafted | None:
        """From version 4 on: claims about anything, under rubrics of terms."""
        rng, rules, kinds = draft.rng, self.rules, self.domain.kinds
        spoken = [a for a in kinds if kinds[a] and self._open(a)]
        wished = [a for a in (*rules.only_aspects, *rules.about, *rules.must) if a in spoken]
        form = self._form(rng)
        slots, opposed = self._slots(draft, spoken, "consistency" in form, rng.shuffled(wished)[:2])
        if len(slots) < 2 or ("consistency" in form and len(opposed) < 2):
            return None
        slots = rng.shuffled(self.domain.settle(draft, slots))
        alone = self.settings.responses == 1 and self.domain.name not in DRAWN
        n = self.settings.rubrics if alone else 1
        rubrics = draw_specs(draft, slots, opposed, form, self.domain, n, alone=alone)
        return Drafted(draft, slots, rubrics[0], form, opposed, tuple(rubrics)) if rubrics else None

    def _form(self, rng: Stream) -> tuple[str, ...]:
        """The aspects of the text alone that some of its rubrics weigh."""
        rules = self.rules
        forms = [a for a in FORM_ASPECTS if a not in rules.kinds_out and self.domain.name not in DRAWN]
        forms = [a for a in forms if a != "consistency" and (not rules.only_aspects or a in rules.only_aspects)]
        if "consistency" in rules.must and self.domain.name == "text" and self.settings.responses == 1:
            return ("consistency",)
        return tuple(rng.shuffled(forms)[: 1 + rng.below(2)]) if forms and rng.chance(rules.form) else ()

    def _aspects(self, rng: Stream) -> tuple[list[str], tuple[str, ...]]:
        """The aspects that a rubric weighs: those of the domain, and those of form (the text alone)."""
        rules, kinds = self.rules, self.domain.kinds
        only = rules.only_aspects or rules.about
        open_ = [a for a in kinds if (not only or a in only) and self._open(a)]
        aspects = draw_aspects(rng, rules, open_)
        forms = [a for a in FORM_ASPECTS if a not in rules.kinds_out and self.domain.name not in DRAWN]
        forms = [a for a in forms if not rules.only_aspects or a in rules.only_aspects]
        forced = [a for a in rules.must if a in open_ or (a in forms and self.settings.responses == 1)]
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
        if "consistency" in form:  # contradicted claims must not be weighed as well, or they would cost twice
            aspects = aspects[:2]
        return aspects, tuple(form)

    def _open(self, aspect: str) -> bool:
        kinds = self.domain.kinds[aspect]
        return not kinds or any(kind not in self.rules.kinds_out for kind in kinds)

    def _slots(
        self, draft: Draft, aspects: Sequence[str], oppose: bool, first: Sequence[str] | None = None
    ) -> tuple[list[Slot], list[Slot]]:
        """Slots of these aspects, and those that sentences may contradict. `first`: drawn first, else each aspect."""
        rng, kinds = draft.rng, self.domain.kinds
        low, high = self.rules.claims
        wanted = low + rng.below(high - low + 1)
        spoken = [a for a in aspects if kinds[a]]
        if not spoken:
            return [], []
        off = [a for a in kinds if (first is not None or a not in aspects) and kinds[a] and self._open(a)]
        slots: list[Slot] = []
        opposed: list[Slot] = []
        if oppose:
            for aspect in 2 * rng.shuffled([a for a in off if a in _OPPOSABLE]):
                slot = self._slot(draft, aspect) if len(opposed) < 2 else None
                if slot:
                    opposed.append(slot)
        queue = rng.shuffled(spoken) if first is None else list(first)
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
            entries = tuple(Entry(s.kind, self.subject(s), s.about) for s in listed)
            weights, graded = tuple((name, 1) for name in sorted({s.aspect for s in listed})), False
        return Spec(weights, graded, (), "", False, draw_wording(rng, self.rules), entries)

    def subject(self, slot: Slot) -> tuple[str, ...]:
        """The subject of a slot's claims."""
        return subject_of(self.domain.claim(slot, slot.stated[0]))
