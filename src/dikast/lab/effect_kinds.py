"""What an experiment measures: the kinds of effects as they are written in its file, and their checks."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dikast.audit.statistics.against_gold.measures import MEASURES
from dikast.core.checking import MOST_COUNT, option
from dikast.core.text import hint

_NOT_ON_SHARES = "within_1"  # scores are shares of their scale here
FIGURES = (*(name for name, each in MEASURES.items() if each.weighted and name != _NOT_ON_SHARES), "mean")
WATCHED = ("mean", "mae")  # figures that are means over items, which a sequence of them can be watched in
LEAST_OF_CURVE = 3  # doses: the law has three numbers
LEAST_DOSES = 5  # of a change point: a line and a broken line need four numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What arms show of one figure on one held-out set: one of seven kinds.

    `arm` minus `against`, a difference. `slope`: arm -> dose, the least-squares slope of the figure by the dose.
    `curve`: arm -> dose, what a dose twice the largest would add to the figure, by a saturating power law.
    `change_point`: arm -> dose, the dose from which the figure changes at another rate. `spread`: arms, the standard
    deviation of their figures. With `arm` and `against` on the same items, one after the other: `alarms`, in what share
    of sequences of so many items drift is found, and `delay`, after how many items on average.
    """

    figure: str
    held: str
    arm: str = ""
    against: str = ""
    slope: Mapping[str, float] = field(default_factory=dict)
    curve: Mapping[str, float] = field(default_factory=dict)
    change_point: Mapping[str, float] = field(default_factory=dict)
    spread: tuple[str, ...] = ()
    alarms: int = option(0, least=0, most=MOST_COUNT)
    delay: int = option(0, least=0, most=MOST_COUNT)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms that it is about."""
        several = (*self.doses, *self.spread)
        return several or tuple(each for each in (self.arm, self.against) if each)

    @property
    def doses(self) -> dict[str, float]:
        """The doses of the arms, where it is about doses."""
        return {**self.slope, **self.curve, **self.change_point}

    @property
    def linear(self) -> bool:
        """Whether it is a sum of the arms' figures, each with its weight."""
        return not self.curve and self.of_trained

    @property
    def of_trained(self) -> bool:
        """Whether its interval holds what another training would give, too."""
        return not (self.change_point or self.spread or self.alarms or self.delay)

    def weights(self) -> dict[str, float]:
        """The weight of each arm's figure in a difference or a slope, or of one arm alone."""
        if not self.slope:
            return {self.arm: 1.0, self.against: -1.0} if self.against else {self.arm: 1.0}
        middle = math.fsum(self.slope.values()) / len(self.slope)
        spread = math.fsum((dose - middle) ** 2 for dose in self.slope.values())
        return {arm: (dose - middle) / spread for arm, dose in self.slope.items()}

    def in_words(self) -> str:
        """What it is, such as `one - other`."""
        if self.slope:
            return f"slope over {', '.join(self.slope)}"
        if self.curve:
            return f"gain of the next doubling after {', '.join(self.curve)}"
        if self.change_point:
            return f"change point over {', '.join(self.change_point)}"
        if self.spread:
            return f"spread of {', '.join(self.spread)}"
        if self.alarms:
            return f"sequences of {self.alarms:,} items in which {self.arm} is told from {self.against}"
        if self.delay:
            return f"items until {self.arm} is told from {self.against}, of {self.delay:,} at most"
        return f"{self.arm} - {self.against}"


def check_effects(
    effects: Mapping[str, Effect], arms: Mapping[str, object], trained: bool, wrong: Callable[..., None]
) -> None:
    """Report every mistake in the effects, as `wrong(message, *keys)`."""
    for name, effect in effects.items():
        at = ("effects", name)
        kinds = [kind for kind in ("slope", "curve", "change_point", "spread") if getattr(effect, kind)]
        if kinds and (effect.arm or effect.against):
            wrong(f"give 'arm' and 'against', or {kinds[0]!r}", *at)
        elif len(kinds) > 1 or (effect.alarms and effect.delay) or (kinds and (effect.alarms or effect.delay)):
            wrong("is of one kind: a difference, 'slope', 'curve', 'change_point', 'spread', 'alarms' or 'delay'", *at)
        elif effect.slope and len(set(effect.slope.values())) < 2:
            wrong("a slope needs arms of two doses", *at, "slope")
        elif effect.curve and (len(set(effect.curve.values())) < LEAST_OF_CURVE or min(effect.curve.values()) <= 0):
            wrong(f"a curve needs arms of {LEAST_OF_CURVE} doses, all above 0", *at, "curve")
        elif effect.change_point and len(set(effect.change_point.values())) < LEAST_DOSES:
            wrong(f"a change point needs arms of {LEAST_DOSES} doses", *at, "change_point")
        elif not (effect.slope or effect.curve or effect.change_point) and len(set(effect.arms)) < 2:
            wrong("a spread needs two arms" if effect.spread else "give 'arm' and 'against', two different arms", *at)
        if trained and not effect.of_trained:
            wrong("is measured of judges that are not trained: its interval knows nothing of other trainings", *at)
        for arm in effect.arms:
            if arm not in arms:
                wrong(f"no arm is called {arm!r}: {hint(arm, arms)}", *at)
            if not math.isfinite(effect.doses.get(arm, 0)):
                wrong(f"the dose of {arm!r} is no finite number", *at)
        if effect.figure not in FIGURES:
            wrong(f"no figure is called {effect.figure!r}: {hint(effect.figure, FIGURES)}", *at, "figure")
        elif (effect.alarms or effect.delay) and effect.figure not in WATCHED:
            wrong(f"sequences are watched in one of {', '.join(WATCHED)}", *at, "figure")
