"""Drafting from version 4 on: claims about anything, and several rubrics of terms, each of which weighs a few."""

from collections.abc import Sequence
from typing import Any

from dikast.worlds.domains.protocol import Claim, Draft, Rules, Slot
from dikast.worlds.sampling.rng import Stream
from dikast.worlds.scoring.penalty import Spec
from dikast.worlds.scoring.rubric_grammar import draw_wording
from dikast.worlds.scoring.term_names import name_of
from dikast.worlds.scoring.terms import GROUPS, Term, draw_term, fits_split, unseen

_TRIES = 40  # rubrics drawn before a text is discarded
_STRAY = 25  # percent of rubrics with a term that nothing in the response falls under
_COUNTED, _COUNTED_ALONE = 15, 25  # percent of rubrics that also count what is left out or changed unasked; of
# responses that stand alone more are drawn, since more of their texts are discarded


def draw_specs(
    draft: Draft,
    slots: Sequence[Slot],
    opposed: Sequence[Slot],
    form: Sequence[str],
    domain: Any,
    n: int,
    *,
    alone: bool,
) -> list[Spec]:
    """`n` rubrics about the slots' claims, without scales; [] if there are none.

    Any two share at most half of the claims that they weigh, so that one score does not imply the other.
    alone: one response, so that `once` and aspects of form may be weighed. No rubric weighs a claim that a sentence of
    the response contradicts, since it would cost twice.
    """
    said = _Said(
        [tuple(domain.claim(slot, stated) for stated in slot.stated) for slot in slots],
        [domain.claim(slot, state) for slot in opposed for state in (*slot.stated, *slot.universe)],
    )
    open_ = [i for i, slot in enumerate(slots) if slot not in opposed]
    if not open_:
        return []
    found: list[Spec] = []
    weighed: list[frozenset[int]] = []
    for _ in range(_TRIES * n):
        terms = _terms(draft, slots, open_, said, domain.name, alone)
        covered = said.under(terms)
        if not terms or not all(2 * len(covered & other) <= len(covered | other) for other in weighed):
            continue
        spec = _spec(draft, terms, form, domain, alone=alone)
        if spec is not None:
            found.append(spec)
            weighed.append(covered)
            if len(found) == n:
                return found
    return []


class _Said:
    """What the responses claim, one tuple a slot, and what a contradicting sentence can claim."""

    def __init__(self, claims: Sequence[tuple[Claim, ...]], contradicting: Sequence[Claim]) -> None:
        self.claims, self._contradicting = claims, contradicting
        self._under: dict[tuple[str, str], frozenset[int]] = {}

    def under(self, terms: Sequence[Term]) -> frozenset[int]:
        """The slots about which a response says something that a term covers."""
        return frozenset().union(*map(self._of, terms))

    def contradicts(self, term: Term) -> bool:
        """Whether a contradicting sentence can say something that the term covers."""
        return any(term.covers(claim) for claim in self._contradicting)

    def _of(self, term: Term) -> frozenset[int]:
        heading = term.kind, term.word
        if heading not in self._under:
            self._under[heading] = frozenset(i for i, said in enumerate(self.claims) if any(map(term.covers, said)))
        return self._under[heading]


def _terms(
    draft: Draft, slots: Sequence[Slot], open_: Sequence[int], said: _Said, domain: str, alone: bool
) -> list[Term]:
    """The terms of one rubric, without weights and names; [] if they do not fit."""
    rng, rules, claims = draft.rng, draft.rules, said.claims
    wished = [i for i in open_ if slots[i].aspect in (*rules.only_aspects, *rules.about, *rules.must)]
    if rules.terms == "unseen":
        wished += [i for i in open_ if any(unseen(Term("", str(a), "", 0)) for c in claims[i] for a in c.args)]
    terms: list[Term] = []
    for k in range((1, 1, 2, 2, 2, 3)[rng.below(6)]):
        at = rng.pick(wished if k == 0 and wished else open_)
        term = draw_term(rng, rng.pick(claims[at]), domain, once=alone)
        if all(term[:2] != other[:2] for other in terms):
            terms.append(term)
    if rng.chance(_STRAY) and (stray := _stray(rng, terms)) is not None:
        terms.append(stray)
    return terms if _fits(terms, rules, said) else []


def _spec(draft: Draft, terms: Sequence[Term], form: Sequence[str], domain: Any, *, alone: bool) -> Spec | None:
    """The rubric of these terms, and of what it weighs in the response as a whole; None if two have one name."""
    rng, rules = draft.rng, draft.rules
    weighed = [name for name in form if rng.chance(60)]
    counted = [name for name, kinds in domain.kinds.items() if not kinds]
    if counted and rng.chance(_COUNTED_ALONE if alone else _COUNTED):
        weighed += counted
    even, one = rng.chance(20), (1, 1, 1, 2)[rng.below(4)]
    each = [one if even else 1 + rng.below(3) for _ in range(len(terms) + len(weighed))]
    if alone:  # what is counted costs no more than a mistake of the lightest term: see `families`
        each[len(terms) :] = [
            min(each[: len(terms)]) if name in counted else w
            for name, w in zip(weighed, each[len(terms) :], strict=True)
        ]
    named = tuple(
        t._replace(weight=w, name=name_of(rng, t, domain.name, rules.wordings))
        for t, w in zip(rng.shuffled(terms), each, strict=False)
    )
    weights = tuple(zip(weighed, each[len(terms) :], strict=True))
    names = tuple(name_of(rng, Term(name, "", "each", 0), domain.name, rules.wordings) for name in weighed)
    if len({*names, *(term.name for term in named)}) < len(each):
        return None
    return Spec(weights, False, (), "", False, draw_wording(rng, rules), (), named, names, domain.name)


def _stray(rng: Stream, terms: Sequence[Term]) -> Term | None:
    """A copy of an existing term, about another word."""
    with_words = [term for term in terms if term.word and term.kind]
    if not with_words:
        return None
    model = rng.pick(with_words)
    word = rng.pick(sorted(other for group in GROUPS if model.word in group for other in group if other != model.word))
    return model._replace(word=word, rule="each")


def _fits(terms: Sequence[Term], rules: Rules, said: _Said) -> bool:
    """Whether the split may have these terms, and they weigh some of the claims: two to four ninths of them."""
    slots = len(said.claims)
    most = max(1, 4 * slots // 9)
    if not min(2, most) <= len(said.under(terms)) <= most:
        return False
    if not fits_split(terms, rules.terms) or any(map(said.contradicts, terms)):
        return False
    kinds = {term.kind for term in terms}
    if rules.terms != "unseen" and rules.only_aspects and not kinds <= set(rules.only_aspects):
        return False
    if rules.about and not kinds & set(rules.about):
        return False
    return not rules.must or bool(kinds & set(rules.must)) or "consistency" in rules.must
