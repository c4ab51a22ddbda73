"""The settings of a world, checked before drawing."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dikast.core.errors import UserError
from dikast.core.text import near_miss
from dikast.worlds.domains.protocol import DRAWN, Domain, Rules
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.sampling.held_out import HELD_OUT_DOMAIN, rules_of
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.scoring.penalty import SCALES
from dikast.worlds.scoring.rubric_grammar import held_together

FORM_ASPECTS = ("relevance", "concision", "consistency", "format", "length")
_DRAWS = {"objects": ("scenes", "pictures"), "style": ("scenes", "clips", *DRAWN)}  # not all have them
_EIGHT = "tells its things apart by their shapes, and training shows as many things as there are shapes"
_WHY = {("objects", "clips"): _EIGHT, ("objects", "retouch"): _EIGHT}
TIES = 33  # percent
QUOTED = 2  # how lessons that quote the rubric are written: what was begun with another form does not go on
_FROM_4 = ("day",)  # aspects, and kinds of claims, that earlier versions have not
_LARGEST = 16  # responses to one instruction
_MANY = 10  # levels: four rubrics of a response that all have as many or more are hardly ever found


@dataclass(frozen=True, slots=True)
class Settings:
    """One world: `Settings(domain="scenes", split="train", seed=0)`.

    `responses` 1 gives single items, 2 pairs, K groups of K. `size` is a picture's side in pixels. `objects`, `claims`
    and `scales` override the split's; `clutter` (specks), `noise` (the most a pixel is off) and `occlusion` (percent of
    scenes with bars across things) are upper ends, drawn per item. `aspects` narrows what rubrics weigh. `form` is the
    percent of rubrics that also weigh aspects of the text alone, `ties` the percent of pairs whose scores are equal.
    `version` 4 has rubrics of terms, and each single response stands under `rubrics` of them, one item after the other.
    """

    domain: str = "scenes"
    split: str = "train"
    seed: int = 0
    responses: int = 1
    size: int = 96
    grid: int = 4
    objects: tuple[int, int] | None = None
    claims: tuple[int, int] | None = None
    clutter: int = 30
    noise: int = 10
    occlusion: int = 10
    aspects: tuple[str, ...] = ()
    scales: tuple[str, ...] = ()
    form: int = 20
    edits: bool = True
    ties: int = TIES
    version: int = 3
    rubrics: int = 4

    def __post_init__(self) -> None:
        self.rules()

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON values; up to version 3 without those that came later, so that folders stay the same."""
        found = asdict(self)
        for name in ("version", "rubrics") if self.version < 4 else ("version",):
            del found[name]
        return found

    @property
    def generator(self) -> str:
        """The version as records name it.

        4.1 draws other items than 4 did until 2026-11-24; 4.2 than 4.1, of text (notes) until 2026-11-26, of scenes
        (what is left out) until 2026-11-29. 4.3 words the rubrics otherwise, of the same items, and 4.4 some names and
        rules. 4.5 draws other items than 4.4 where a response would have repeated a filler. 4.6 are charts alone: of
        half of the pies the legend hides values.
        """
        if self.version < 4:
            return f"worlds/{self.version}"
        return "worlds/4.6" if self.domain == HELD_OUT_DOMAIN else "worlds/4.5"

    def the_domain(self) -> Domain:
        """The domain by name."""
        return DOMAINS[self.domain]

    def rules(self) -> Rules:
        """The split's rules with these settings put in; UserError names the setting that cannot be met."""
        rules = rules_of(self.split)
        if self.version < 4:
            rules = replace(rules, kinds_out=(*rules.kinds_out, *_FROM_4))
        self._check_names(rules)
        self._check_numbers()
        objects = self.objects or _fit(rules.objects, self.grid)
        claims = self.claims or rules.claims
        if self.version >= 4 and not self.claims:
            claims = claims[0] + 2, claims[1] + 2  # most of them are not weighed
        _check_range("objects", objects, 2, self.grid**2 - 3)
        _check_range("claims", claims, 1, 24)
        self._check_enough(claims)
        if self.split == "objects" and objects[1] <= rules_of("train").objects[1]:
            raise UserError(
                f"objects: the split 'objects' needs more than {rules_of('train').objects[1]}, got {objects[1]}"
            )
        return replace(
            rules,
            objects=objects,
            claims=claims,
            size=self.size,
            grid=self.grid,
            clutter=self.clutter,
            noise=self.noise,
            occlusion=self.occlusion,
            only_aspects=self.aspects or rules.only_aspects,
            scales=self.scales or rules.scales,
            form=self.form if self.responses == 1 and self.domain not in DRAWN else 0,
            edits=self.edits and self.domain not in DRAWN,
            version=self.version,
        )

    def _check_enough(self, claims: tuple[int, int]) -> None:
        """Refuse too few claims for rubrics of terms that differ: of up to four claims each rubric weighs one."""
        rubrics = self.rubrics if self.responses == 1 and self.domain not in DRAWN else 1
        needed = max(2, min(rubrics, 5))
        if self.version >= 4 and claims[1] < needed:
            cure = f"; {rubrics} different rubrics need {needed}: ask for fewer with --rubrics" if needed > 2 else ""
            raise UserError(f"claims: a response needs {needed} or more in version 4, got {claims[1]}{cure}")
        if self.version >= 4 and rubrics >= 4 and self.scales and all(_levels(name) >= _MANY for name in self.scales):
            fewest = min(map(_levels, self.scales))
            raise UserError(
                f"scales: {rubrics} rubrics of one response are not all even over {fewest} levels or more: ask for"
                " fewer with --rubrics 2, or add a scale of fewer levels"
            )

    def _check_names(self, rules: Rules) -> None:
        _known("domain", self.domain, DOMAINS)
        if (self.domain == HELD_OUT_DOMAIN) != rules.held_domain and self.split != "all":
            raise UserError(
                f"domain: {HELD_OUT_DOMAIN!r} is held out of training; it goes with the splits 'domain' and 'all' alone"
                if self.domain == HELD_OUT_DOMAIN
                else f"domain: the split 'domain' is about {HELD_OUT_DOMAIN!r}, not {self.domain!r}"
            )
        kinds = DOMAINS[self.domain].kinds
        self._check_split(rules, kinds)
        self._check_aspects(rules, kinds)
        for scale in self.scales:
            _known("scales", scale, SCALES)

    def _check_aspects(self, rules: Rules, kinds: Mapping[str, tuple[str, ...]]) -> None:
        for aspect in self.aspects:
            _known("aspects", aspect, ASPECTS)
            if aspect not in kinds and (aspect not in FORM_ASPECTS or self.domain in DRAWN):
                raise UserError(
                    f"aspects: no operator makes errors of {aspect!r} in {self.domain!r}; it has {', '.join(kinds)}"
                )
            if aspect in _FROM_4 and self.version < 4:
                raise UserError(f"aspects: {aspect!r} came with version 4: --version 4 has it")
            if aspect in rules.held_aspects or aspect in rules.kinds_out:
                raise UserError(f"aspects: {aspect!r} is held out of the split {self.split!r}; the split 'all' has it")
        if self.aspects and all(aspect in FORM_ASPECTS or not kinds[aspect] for aspect in self.aspects):
            raise UserError(
                f"aspects: at least one must be spoken of in claims: {', '.join(a for a in kinds if kinds[a])}"
            )
        if self.split in ("combinations", "attributes", "aspects", "operators") and self.aspects:
            raise UserError(f"aspects: the split {self.split!r} chooses its aspects itself; leave them out")

    def _check_split(self, rules: Rules, kinds: Mapping[str, tuple[str, ...]]) -> None:
        """Check that the domain has the aspects that the split tests."""
        wanted = set(rules.only_aspects) | set(rules.about)
        if wanted and not wanted & set(kinds):
            raise UserError(
                f"split: {self.split!r} is about {', '.join(sorted(wanted))}; {self.domain!r} has none of these"
            )
        if self.domain not in _DRAWS.get(self.split, DOMAINS):
            why = _WHY.get((self.split, self.domain), "has nothing of it")
            raise UserError(f"split: {self.split!r} is about {', '.join(_DRAWS[self.split])}; {self.domain!r} {why}")
        open_ = [a for a in kinds if a not in rules.held_aspects and a not in rules.kinds_out]
        if rules.held_together and not any(held_together(a, b) for a in open_ for b in open_ if a < b):
            raise UserError(
                f"split: {self.domain!r} has too few aspects to hold two apart in training ({', '.join(open_)});"
                " try 'scenes'"
            )
        if rules.must and not set(rules.must) & set(kinds) and (self.responses > 1 or self.domain in DRAWN):
            only = "no items" if self.domain in DRAWN else "single items only"
            raise UserError(f"split: {self.split!r} has {only} in the domain {self.domain!r}")

    def _check_numbers(self) -> None:
        _check("seed", self.seed, -(2**63), 2**63 - 1)
        _check("responses", self.responses, 1, _LARGEST)
        _check("version", self.version, 3, 4)
        _check("rubrics", self.rubrics, 1, 8)
        _check("size", self.size, 32, 1024)
        _check("grid", self.grid, 3, 6)
        for name in ("clutter", "noise", "occlusion", "form", "ties"):
            _check(name, getattr(self, name), 0, 100)
        if self.ties != TIES and self.responses != 2:
            raise UserError(f"ties: only pairs have a share of ties; ask for pairs or leave it at {TIES}")
        if self.size < 12 * self.grid:
            raise UserError(
                f"size: {self.size} pixels are too few for a grid of {self.grid}; use {12 * self.grid} or more"
            )


def _levels(scale: str) -> int:
    return len(SCALES[scale].labels)


def _known(setting: str, name: str, known: Iterable[str]) -> None:
    known = list(known)
    if name not in known:
        near = near_miss(name, known)
        raise UserError(f"{setting}: there is no {name!r}: {f'did you mean {near!r}?' if near else ', '.join(known)}")


def _fit(objects: tuple[int, int], grid: int) -> tuple[int, int]:
    """The split's number of objects, no more than the grid holds."""
    most = grid**2 - 3
    return min(objects[0], most), min(objects[1], most)


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UserError(f"{name}: must lie from {low} to {high}, got {value}")


def _check_range(name: str, value: tuple[int, int], low: int, high: int) -> None:
    if not low <= value[0] <= value[1] <= high:
        raise UserError(f"{name}: must be a range within {low}-{high}, got {value[0]}-{value[1]}")


def range_of(name: str, text: str) -> tuple[int, int] | None:
    """Read `3-6` or `4`; None for nothing. UserError names the setting."""
    if not text:
        return None
    low, dash, high = text.partition("-")
    if not low.isdecimal() or not (high if dash else low).isdecimal():
        raise UserError(f"{name}: write a number or a range such as 3-6, got {text!r}")
    return int(low), int(high or low)
