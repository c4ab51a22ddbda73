"""The interface of a domain: claims, slots that can be made true or false, findings, and the `Domain` protocol.

The order of generation prevents shortcuts: sentences are drawn first, then the score, then which claims are wrong, and
last a scene in which exactly those are wrong. Text and score are therefore independent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dikast.worlds.sampling.rng import Stream

Picture = NDArray[np.uint8]  # (height, width, 3), RGB
DRAWN = ("pictures", "retouch")  # domains in which the words are the request and pictures are the responses
State = Any  # the state of a slot's part of the scene: a colour, a count, a pair of sizes, ...


class Claim(NamedTuple):
    """The content of one sentence: the kind of statement, its aspect, and its arguments."""

    kind: str
    aspect: str
    args: tuple[str | int, ...]


class ClaimFinding(NamedTuple):
    """The truth about a claim in a scene: how far off it is in the aspect's unit (0: correct), and the truth in words.

    `gone`: the subject of the claim is not in the scene at all.
    """

    metric: int
    truth: str
    gone: bool = False


@dataclass(slots=True)
class Slot:
    """One part of the scene that one claim of each response is about.

    `universe` holds the states this part can take, `stated` what each response states about it. `about` names it in a
    checklist, `question` asks about it.
    """

    kind: str
    aspect: str
    subject: tuple[str, ...]
    universe: list[State]
    stated: list[State]
    about: str
    question: str = ""


@dataclass(slots=True)
class Draft:
    """The context while slots are drawn. `budget`: how many more things fit. `notes` belongs to the domain."""

    rng: Stream
    rules: "Rules"
    responses: int
    budget: int = 0
    notes: Any = None

    def stated(self, values: Sequence[State]) -> list[State]:
        """What each response states, drawn so that responses are exchangeable."""
        base = self.rng.below(len(values))
        found = [values[base]]
        if self.responses > 1:
            found = []
            for _ in range(self.responses):
                same = len(values) == 1 or self.rng.chance(60)
                found.append(values[base if same else (base + 1 + self.rng.below(len(values) - 1)) % len(values)])
        return found


@dataclass(frozen=True, slots=True)
class Rules:
    """The numbers and choices that a split and the settings allow; `held_out` and `settings` determine them."""

    objects: tuple[int, int] = (2, 12)
    claims: tuple[int, int] = (3, 6)
    grid: int = 4
    size: int = 96
    clutter: int = 30
    noise: int = 10
    occlusion: int = 10
    voices: tuple[int, ...] = (0, 1, 2, 3)
    pairs: str = "seen"  # which colour x shape pairs claims may state: seen, held_out, all
    only_aspects: tuple[str, ...] = ()  # rubrics weigh only these
    about: tuple[str, ...] = ()  # as only_aspects, if the split concerns the content of claims
    must: tuple[str, ...] = ()  # rubrics weigh at least one of these
    held_aspects: tuple[str, ...] = ()  # may occur in claims, but are never weighed
    held_together: bool | None = False  # False: no held-out pair of aspects in a rubric; True: at least one; None: any
    kinds_out: tuple[str, ...] = ()
    wordings: str = "seen"  # seen, held_out, all
    scales: tuple[str, ...] = ("1-5", "1-5", "1-5", "0-10", "A-E", "pass/fail", "1-3")
    style: int = 0
    language: int = 0
    held_domain: bool = False
    edits: bool = True
    form: int = 20  # per cent of rubrics that also weigh aspects of the response's text alone
    terms: str = "seen"  # from version 4 on: seen, held_out (compositions), unseen (atoms), all
    version: int = 3  # of the worlds; from 4 on pictures do not reveal whether claims about them are true


class Domain(Protocol):
    """One kind of world. All methods are pure, except that they may change the draft they are given."""

    @property
    def name(self) -> str:
        """The domain's name."""

    @property
    def kinds(self) -> Mapping[str, tuple[str, ...]]:
        """Aspect -> kinds of claims about it."""

    def begin(self, draft: Draft) -> None:
        """Prepare the draft: what claims can be about."""

    def draw(self, draft: Draft, kind: str) -> Slot | None:
        """A slot of this kind with every response's statement, or None if there is no room for one."""

    def settle(self, draft: Draft, slots: list[Slot]) -> list[Slot]:
        """The slots that can be both correct and wrong in the finished context, with their final universes."""

    def distance(self, slot: Slot, stated: State, state: State) -> int:
        """How far off a statement would be in that state, in the aspect's unit."""

    def build(self, draft: Draft, slots: Sequence[Slot], states: Sequence[State], missing: int | None) -> Any | None:
        """A scene graph where the slots have these states and `missing` things are unmentioned; None if none fits."""

    def claim(self, slot: Slot, stated: State) -> Claim:
        """The claim a response makes of a slot."""

    def say(self, claim: Claim, voice: int) -> str:
        """The claim as a sentence."""

    def measure(self, claim: Claim, graph: Any) -> ClaimFinding:
        """The truth about a claim in any scene graph of the domain."""

    def missed(self, claims: Sequence[Claim], graph: Any) -> int:
        """The number of things that the claims leave out."""

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """The task's name and the instruction."""

    def prompt(self, graph: Any) -> str:
        """The text that the instruction shows (worlds without pictures)."""

    def render(self, graph: Any, size: int) -> list[Picture]:
        """The picture, or the frames of a clip; empty for worlds without pictures."""

    def frames(self, graph: Any) -> int:
        """The number of pictures that `render` returns."""

    def to_json(self, graph: Any) -> dict[str, Any]:
        """The scene graph as JSON."""
