"""The definition of an experiment: one small YAML file, checked strictly, with its rule written before the
first run.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from dikast.core.canonical import fingerprint
from dikast.core.checking import MOST_COUNT, MOST_SEED, Mistakes, fit, option, read_settings
from dikast.core.errors import UserError
from dikast.core.secrets import without_secrets
from dikast.core.text import Located, hint, parse_located, read_located
from dikast.engines.key_use import check_key_use, key_uses
from dikast.lab.effect_kinds import Effect, check_effects
from dikast.lab.effects import range_of_effect
from dikast.lab.item_changes import Change
from dikast.lab.region import Region, overlap
from dikast.worlds.settings import Settings

MOST_LINES = 60
_ALIKE = 0.01  # budgets that differ by a larger share are different
_FOLLOWS = {
    "data": "from 'data' of the arm", "out": "from the folder of the run", "seed": "from 'seeds'",
    "steps": "from 'budget'", "epochs": "from 'budget'", "stop_at": "from 'budget'", "shards": "from the arm",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Items that a world draws (`world`: its settings, `n` of them) or that a file holds (`items`, the first `n`, 0 for
    all).

    `lessons`: with worked feedback (`dikast world teach`); `quote`, `reference` and `padding` as there, the latter two
    in percent. `different_rubrics`: how many different rubrics the lessons have between them (0: as drawn). `change`:
    the changes made to them.
    """

    world: Mapping[str, Any] = field(default_factory=dict)
    items: str = ""
    n: int = option(0, least=0, most=MOST_COUNT)
    lessons: bool = False
    quote: bool = False
    reference: int = option(0, least=0, most=100)
    padding: int = option(0, least=0, most=100)
    different_rubrics: int = option(0, least=0, most=MOST_COUNT)
    change: Change = field(default_factory=Change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught(Items):
    """Items that a judge is taught, in `formats`, `repeat` times.

    `taught_by`: the judge of that arm gives label and feedback, two draws for each item, of which `keep` takes all,
    those that agree on the label (`consistent`), or those whose label is that of the gold (`right`).
    """

    formats: tuple[str, ...] = ("absolute",)
    repeat: int = option(1, least=1, most=MOST_COUNT)
    taught_by: str = ""
    keep: Literal["all", "consistent", "right"] = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBudget:
    """The amount of training of every arm: either `examples` or `tokens` (prompt and reply)."""

    examples: int = option(0, least=0, most=MOST_COUNT)
    tokens: int = option(0, least=0, most=MOST_COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedArms:
    """The judges of the arms `of`, merged as `dikast train merge` does, with equal weights."""

    of: tuple[str, ...]
    method: Literal["linear", "ties"] = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One configuration.

    `data` and `train` (a training configuration without data, seed and steps) make a judge, `merge` one of other arms';
    else `judge` is an existing one. `held`: the items that it grades. `format`, `without`, `read` and `max_tokens` as
    for `dikast grade`. `begin`: `feedback` begins the reply with the feedback of the item's gold, after which the judge
    says its verdict alone. `draw`: which of the random draws; it changes the seed of the training and nothing else.
    """

    held: Mapping[str, Items]
    data: Mapping[str, Taught] = field(default_factory=dict)
    train: Mapping[str, Any] = field(default_factory=dict)
    budget: ArmBudget = field(default_factory=ArmBudget)
    merge: MergedArms | None = None
    judge: str = ""
    format: str = ""
    without: tuple[str, ...] = ()
    read: Literal["auto", "only", "never"] = "auto"
    max_tokens: int = option(512, least=1, most=MOST_COUNT)
    begin: Literal["", "feedback"] = ""
    draw: int = option(0, least=0, most=MOST_COUNT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The keys of the file."""

    claim: str
    source: str
    base: Mapping[str, Any]
    arms: Mapping[str, Any]
    effects: Mapping[str, Effect]
    holds: Mapping[str, Region]
    fails: Mapping[str, Region]
    seeds: tuple[int, ...] = option((1, 2, 3), least=0, most=MOST_SEED)
    variable: str = ""
    note: str = ""


@dataclass(frozen=True)
class Experiment:
    """A claim, the arms that test it, the effects that are measured, and the rule that decides.

    `folder` is where relative paths start; `told` is the document as read, of which `hash` is the fingerprint.
    """

    name: str
    folder: Path
    told: Mapping[str, Any]
    written: Document
    arms: Mapping[str, Arm]

    @cached_property
    def hash(self) -> str:
        """Fingerprint of everything the file says."""
        return fingerprint(self.told)

    @property
    def trains(self) -> bool:
        """Whether any arm trains a judge."""
        return any(arm.train for arm in self.arms.values())


def names() -> list[str]:
    """The experiments that come with Dikast."""
    folder = resources.files("dikast.lab") / "catalogue"
    return sorted(each.name.removesuffix(".yaml") for each in folder.iterdir() if each.name.endswith(".yaml"))


def load_experiment(
    name: str | Path, changes: Mapping[str, Any] | None = None, allow_keys: Iterable[str] = ()
) -> Experiment:
    """An experiment by name, or of a YAML file; `changes` are put into its base (a model, a judge of one's own).

    DataError with line, key and cure for every mistake in it; UserError for an unknown name, and where a judge of the
    file would send a key to a server that it does not belong to, unless `allow_keys` names both (NAME@HOST), and where
    the spec of a judge holds a secret.
    """
    text = str(name)
    if text.endswith((".yaml", ".yml")):
        path = Path(text)
        document, folder, short = read_located(path), path.resolve().parent, path.stem
    elif text in names():
        file = resources.files("dikast.lab") / "catalogue" / f"{text}.yaml"
        document, folder, short = parse_located(file.read_text("utf-8"), f"{text}.yaml"), Path(), text
        path = Path(str(file))
    else:
        raise UserError(f"there is no experiment {text!r}: {hint(text, names())}; or name a .yaml file")
    if (lines := len(path.read_bytes().splitlines())) > MOST_LINES:
        raise UserError(f"{path}: has {lines} lines; an experiment has at most {MOST_LINES}: split it")
    if changes and isinstance(document.value, dict) and isinstance(document.value.get("base"), dict):
        document.value["base"] = merged(document.value["base"], changes)
    if not short.strip("."):
        raise UserError(f"{path}: the file's name is the experiment's, and this one is no name: call it NAME.yaml")
    experiment = read_experiment(document, folder, short)
    _check_written(experiment.written, mistakes := Mistakes(document))
    _check_files(experiment, mistakes)
    typed = str((changes or {}).get("judge") or "")
    allowed = (*allow_keys, *(map(str, key_uses(typed)) if typed else ()))
    for arm in experiment.arms.values():
        if without_secrets(arm.judge) != arm.judge:  # the plan, which is fixed before the judge opens, repeats it
            raise UserError(
                f"the judge {without_secrets(arm.judge)!r} holds a secret, which would be written down: put it into an"
                " environment variable and name that: export JUDGE_KEY=... and key_env=JUDGE_KEY"
            )
        if arm.judge:
            check_key_use(arm.judge, allowed, file="experiment")
    return experiment


def read_experiment(document: Located, folder: Path, name: str) -> Experiment:
    """The experiment of a document; DataError with all its mistakes. Files that it names may be missing by now."""
    mistakes = Mistakes(document)
    written = read_settings(Document, mistakes)
    mistakes.raise_all()
    assert written is not None
    arms = {each: _arm(each, written, mistakes) for each in written.arms}
    _check_rule(written, mistakes)
    trained = any(arm is not None and arm.train for arm in arms.values())
    check_effects(written.effects, written.arms, trained, mistakes.add)
    mistakes.raise_all()
    found = {each: arm for each, arm in arms.items() if arm is not None}
    _check_arms(written, found, mistakes)
    mistakes.raise_all()
    return Experiment(name, folder, document.value, written, found)


def merged(base: Any, changes: Any) -> Any:
    """`base` with `changes` put in, mapping by mapping; None takes a key away."""
    if not isinstance(base, Mapping) or not isinstance(changes, Mapping):
        return changes
    found = dict(base)
    for key, value in changes.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def _arm(name: str, written: Document, mistakes: Mistakes) -> Arm | None:
    changes = written.arms[name] or {}

    def wrong(message: str, *at: object) -> None:
        own = at and _has(changes, at)
        told = UserError(str(mistakes.document.error(message, *(("arms", name) if own else ("base",)), *at)))
        if str(told) not in map(str, mistakes):  # mistakes in the base are reported once, not for every arm
            mistakes.append(told)

    if not isinstance(changes, dict):
        wrong(f"an arm is a mapping of what differs from the base, got {changes!r}")
        return None
    before = len(mistakes)
    arm: Arm | None = fit(Arm, merged(written.base, changes), wrong)
    if arm is None or len(mistakes) > before:
        return None
    for at, each in _sets(arm):
        if bool(each.world) == bool(each.items):
            wrong("give 'world' (settings) or 'items' (a file), one of them", *at)
        elif each.world:
            if not each.n:
                wrong("say how many items the world draws: n", *at)
            try:
                fit(Settings, each.world, wrong, *at, "world")
            except UserError as error:
                wrong(str(error), *at, "world")
    if (bool(arm.train), bool(arm.judge), arm.merge is not None).count(True) != 1:
        wrong("give 'train' (a training configuration), 'merge' (of arms) or 'judge' (one that is there), one of them")
    for key in sorted(_FOLLOWS.keys() & arm.train.keys()):
        wrong(f"follows {_FOLLOWS[key]}: leave it out", "train", key)
    if arm.train and not arm.data:
        wrong("there is nothing to train on: name sources under 'data'")
    if arm.train and bool(arm.budget.examples) == bool(arm.budget.tokens):
        wrong("give 'budget' as 'examples' or as 'tokens', one of them")
    return arm


def _has(value: Any, at: Sequence[object]) -> bool:
    """Whether the keys lead to a value."""
    for key in at:
        if not isinstance(value, Mapping) or key not in value:
            return False
        value = value[key]
    return True


def _sets(arm: Arm) -> Iterator[tuple[tuple[str, str], Items]]:
    for place, sets in (("data", arm.data), ("held", arm.held)):
        for name, each in sets.items():
            yield (place, name), each


def _check_rule(written: Document, mistakes: Mistakes) -> None:
    wrong = mistakes.add
    for key in ("holds", "fails"):
        rule = getattr(written, key)
        if not rule:
            wrong(f"a claim needs a rule that would {'confirm' if key == 'holds' else 'refute'} it: an effect and where"
                  " its interval lies then", key)  # fmt: skip
        for name, region in rule.items():
            if name not in written.effects:
                wrong(f"no effect is called {name!r}: {hint(name, written.effects)}", key, name)
            if sum(each is not None for each in (region.above, region.below, region.within)) != 1:
                wrong("give 'above', 'below' or 'within', one of them", key, name)
    for name in written.holds.keys() & written.fails.keys():
        if overlap(written.holds[name], written.fails[name]):
            wrong("the regions in which the claim holds and fails overlap", "fails", name)
    if not written.seeds or len(set(written.seeds)) < len(written.seeds):
        wrong("name one seed or more, each once", "seeds")
    if not written.effects:
        wrong("name at least one effect", "effects")


def _check_written(written: Document, mistakes: Mistakes) -> None:
    """Check what plans of before may lack: a claim and its source, and regions that an interval can lie in, since a
    claim that nothing could refute is not tested.
    """
    for key, cure in (("claim", "what is claimed"), ("source", "where the claim is made")):
        if not getattr(written, key).strip():
            mistakes.add(f"say {cure}", key)
    if written.variable not in ("", "budget"):
        mistakes.add(f"'budget' is the one that may differ, got {written.variable!r}", "variable")
    for key in ("holds", "fails"):
        for name, region in getattr(written, key).items():
            effect = written.effects[name]
            low, high = range_of_effect(effect.weights(), effect.figure) if effect.linear else (-math.inf, math.inf)
            if not overlap(region, Region(within=(low, high))):
                told = (
                    f"no interval of {name!r} can lie {region.in_words()}: {effect.in_words()} lies within {low:g} and"
                )
                mistakes.add(f"{told} {high:g}", key, name)


def _check_files(experiment: Experiment, mistakes: Mistakes) -> None:
    """DataError for files of items that are not there."""
    for name, arm in experiment.arms.items():
        for at, each in _sets(arm):
            if each.items and not (experiment.folder / each.items).is_file():
                mistakes.add(f"{each.items}: there is no such file", "arms", name, *at)
    mistakes.raise_all()


def _check_arms(written: Document, arms: Mapping[str, Arm], mistakes: Mistakes) -> None:
    """Check what concerns several arms."""
    if len(arms) < 2:
        mistakes.add("an experiment compares two arms or more", "arms")
    seen: dict[str, str] = {}
    for name, arm in arms.items():
        if (before := seen.setdefault(repr(arm), name)) != name:
            mistakes.add(f"changes nothing: it is the same configuration as {before!r}", "arms", name)
    for name, arm in arms.items():
        if arm.merge is not None:
            _check_merge(name, arm.merge, arms, mistakes)
        _check_teachers(name, arms, mistakes)
    for unit in ("examples", "tokens"):
        sizes = {name: getattr(arm.budget, unit) for name, arm in arms.items() if arm.train}
        if sizes and max(sizes.values()) > (1 + _ALIKE) * min(sizes.values()) and written.variable != "budget":
            most, least = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
            mistakes.add(
                f"has a budget of {sizes[most]:,} {unit} where {least!r} has {sizes[least]:,}: make them equal, or"
                " write 'variable: budget'", "arms", most,
            )  # fmt: skip
    for name, effect in written.effects.items():
        for arm_name in effect.arms:
            arm = arms[arm_name]
            if effect.held not in arm.held:
                told = f"arm {arm_name!r} grades no set {effect.held!r}: {hint(effect.held, arm.held)}"
                mistakes.add(told, "effects", name, "held")


def _check_merge(name: str, merge: MergedArms, arms: Mapping[str, Arm], mistakes: Mistakes) -> None:
    taught = [other for other, arm in arms.items() if arm.train]
    for other in {*merge.of}.difference(taught):
        mistakes.add(f"no arm that is trained is called {other!r}: {hint(other, taught)}", "arms", name, "merge")
    if len(set(merge.of)) < 2:
        mistakes.add("name two arms or more to merge", "arms", name, "merge", "of")
    bases = {str(arms[other].train.get("model", "")) for other in merge.of if other in taught}
    if len(bases) > 1 or (merge.method == "ties" and "" in bases):
        mistakes.add("the arms must be trained from one 'model'", "arms", name, "merge")


def _check_teachers(name: str, arms: Mapping[str, Arm], mistakes: Mistakes) -> None:
    trained = [other for other, arm in arms.items() if arm.train]
    for source, each in arms[name].data.items():
        at = ("arms", name, "data", source)
        if each.taught_by and each.taught_by not in trained:
            told = f"no arm that is trained is called {each.taught_by!r}: {hint(each.taught_by, trained)}"
            mistakes.add(told, *at, "taught_by")
        if each.keep != "all" and not each.taught_by:
            mistakes.add(
                "says which verdicts are taught, and nobody gives any: name an arm in 'taught_by'", *at, "keep"
            )
    before, todo = set[str](), [name]
    while todo:
        taught = {each.taught_by for each in arms[todo.pop()].data.values()} & set(trained) - before
        before |= taught
        todo += taught
    if name in before:
        mistakes.add("is taught by itself, directly or through others: 'taught_by' cannot go round", "arms", name)
