"""The result of parsing a reply."""

from dataclasses import dataclass, field
from typing import Literal

from dikast.core.scale import Scale
from dikast.core.verdict import Claim, Status

Slot = Literal["first", "second", "tie"]
SLOTS: tuple[Slot, ...] = ("first", "second", "tie")
PAIR_WORDS: tuple[tuple[str, str], ...] = (("first", "A"), ("second", "B"), ("tie", "tie"))


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed reply: a label, or a status that says why there is none.

    `label` is a label of the rubric's scale, or for a pair the slot that won: `first`, `second` or `tie`. `feedback` is
    the prose without verdict and marker; `reason` says, for people, why there is no verdict. `conflict` marks a verdict
    that other verdicts in the same reply contradict.
    """

    status: Status
    label: str | None = None
    feedback: str = ""
    reason: str = ""
    claims: tuple[Claim, ...] = ()
    conflict: bool = False

    def __post_init__(self) -> None:
        if (self.label is None) == (self.status is Status.OK):
            raise ValueError("a reading has either a label or a status that says why not")


@dataclass(frozen=True, slots=True)
class Target:
    """The possible verdicts of a reply: labels of `scale`, or, if that is None, slots of a pair.

    `marker` is the text after which the format asks for the verdict; `words` spells the slots as the format does, as
    (slot, word). A slot without a word (a format that allows no tie) is off the scale.
    """

    scale: Scale | None = None
    marker: str = ""
    words: tuple[tuple[str, str], ...] = PAIR_WORDS

    def __contains__(self, label: str) -> bool:
        return label in self.scale if self.scale is not None else label in dict(self.words)

    def __str__(self) -> str:
        """The possible verdicts, for messages."""
        return f"the scale {self.scale}" if self.scale is not None else ", ".join(word for _, word in self.words)


@dataclass(frozen=True, slots=True)
class Stated:
    """A verdict found in a text: `text[start:end]` holds it with its marker.

    `label` is None if the stated text (`said`) is not on the scale. `words`: it is a sentence, whose clause was
    examined already.
    """

    label: str | None
    said: str
    start: int
    end: int
    words: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a dialect on a text: the verdict that counts, or why there is none.

    `earlier` are the other verdicts of the text that do not count, most of them stated before the one that does.
    """

    stated: Stated | None
    reason: str = ""
    claims: tuple[Claim, ...] = field(default=())
    feedback: str | None = None  # if it is not simply the text around the verdict
    earlier: tuple[Stated, ...] = ()
    remarks: str = ""  # the text inside the verdict, after its label

    @property
    def conflict(self) -> bool:
        """Whether another verdict of the text contradicts the one that counts."""
        return self.stated is not None and any(each.label != self.stated.label for each in self.earlier)
