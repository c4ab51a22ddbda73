"""`python -m benchmarks.blindness`: what is left for a judge that skips one of its inputs.

Boosted trees are trained on everything else that made the item. The response-blind probe reads the whole state of the
generator except the response: the scene, the instruction, with or without the rubric. What it predicts leaks through
what is shown. The rubric-blind probe reads what is wrong with the response, and not what the rubric weighs: a floor for
judges that follow rubrics. From version 4 on four items share a response and its picture, so standard errors are those
of as many items as there are responses.
"""

import argparse
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dikast.worlds.domains.protocol import DRAWN
from dikast.worlds.domains.registry import DOMAINS
from dikast.worlds.domains.text_only import DAYS
from dikast.worlds.domains.vocabulary import COLOURS, CORNERS, SHAPES, SIZES, TEXTURES
from dikast.worlds.make import make
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.held_out import HELD_OUT_DOMAIN
from dikast.worlds.sampling.response import count_words
from dikast.worlds.scoring.aspects import ASPECTS
from dikast.worlds.settings import Settings

_LETTERS = "ABCDEFGH"
_KINDS = ("move", "appear", "recolour")
_WORDS = (*SHAPES, *COLOURS, *SIZES, *TEXTURES, *CORNERS, "left", "above", "how many", "larger", "which", "what")
_WORD = re.compile(r"[a-z]+")


class Blind(NamedTuple):
    """How well one probe does on `n` held-out items: Pearson's correlation with goodness and its standard error."""

    name: str
    n: int
    r: float
    error: float


@dataclass(slots=True)
class States:
    """Named features of many items: what is shown, the rubric, and what is wrong with the response."""

    good: list[float] = field(default_factory=list)
    shown: list[dict[str, float]] = field(default_factory=list)
    rubric: list[dict[str, float]] = field(default_factory=list)
    faults: list[dict[str, float]] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        """Take in a sample with one response."""
        graded = sample.graded[0]
        self.good.append(1 - graded.level / (len(sample.spec.the_scale.labels) - 1))
        self.shown.append({**shown_features(sample), **_asked(sample)})
        self.rubric.append(_rubric(sample))
        self.faults.append(_faults(sample))


def collected(settings: Settings, n: int, *, needs: Sequence[str] = ("image",)) -> States:
    """The features of the first `n` samples whose rubric needs what `needs` says."""
    states = States()
    for sample in make(settings, 10**12):
        if sample.needs in needs:
            states.add(sample)
            if len(states.good) == n:
                break
    return states


def blind_probes(train: States, test: States) -> tuple[Blind, ...]:
    """The probes that do not read the response (without and with the rubric), and the one that ignores the rubric."""
    return (
        _boosted("response-blind", train, test, ("shown",)),
        _boosted("response-blind, rubric read", train, test, ("shown", "rubric")),
        _boosted("rubric-blind", train, test, ("faults",)),
    )


def _boosted(name: str, train: States, test: States, parts: Sequence[str]) -> Blind:
    """Gradient boosting (Friedman 2001) on histograms; what it learns from `train` is tried on `test`."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    columns = sorted({key for part in parts for row in getattr(train, part) for key in row})
    x, held = (_matrix(states, parts, columns) for states in (train, test))
    model = HistGradientBoostingRegressor(max_iter=150, learning_rate=0.06, max_leaf_nodes=15, random_state=0)
    guess = model.fit(x, train.good).predict(held)
    n = len(test.good)
    r = float(np.corrcoef(guess, test.good)[0, 1]) if np.std(guess) > 0 else math.nan
    return Blind(name, n, r, 1 / math.sqrt(n - 1))


def _matrix(states: States, parts: Sequence[str], columns: Sequence[str]) -> NDArray[np.float32]:
    at = {name: i for i, name in enumerate(columns)}
    found = np.full((len(states.good), len(columns)), np.nan, dtype=np.float32)
    for part in parts:
        for i, row in enumerate(getattr(states, part)):
            for key, value in row.items():
                if key in at:
                    found[i, at[key]] = value
    return found


def strongest(states: States, *, rubric: bool = False, top: int = 12) -> list[tuple[str, float, int]]:
    """The single features of what is shown that correlate most with goodness, to name the cause of a leak.

    `rubric`: also each feature under the rubrics alone that weigh one aspect (from 200 items on), which finds causes
    that matter under some rubrics only. The last number counts the items.
    """
    columns = sorted({key for row in states.shown for key in row})
    x, y = np.nan_to_num(_matrix(states, ("shown",), columns), nan=-1.0), np.array(states.good)
    found = [(name, _pearson(x[:, i], y), len(y)) for i, name in enumerate(columns)]
    if rubric:
        for weight in sorted({key for row in states.rubric for key in row if key.startswith(("weight ", "term "))}):
            rows = np.array([row.get(weight, 0) > 0 for row in states.rubric])
            if (n := int(rows.sum())) >= 200:
                found += [(f"{name} | {weight}", _pearson(x[rows, i], y[rows]), n) for i, name in enumerate(columns)]
    return sorted(found, key=lambda each: -abs(each[1]))[:top]


def _pearson(x: NDArray[Any], y: NDArray[Any]) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if x.std() > 0 and y.std() > 0 else 0.0


# -- what is shown -----------------------------------------------------------------------------------------------------


def shown_features(sample: Sample) -> dict[str, float]:
    """The whole state of what is shown, by name; absent things have no entry."""
    scene: Any = sample.domain.to_json(sample.graph)
    if "before" in scene:
        return _edited(scene)
    if "events" in scene:
        return _clip(scene)
    if "things" in scene:
        return _scene(scene)
    if "values" in scene:
        return _chart(scene)
    return _document(scene) if "plates" in scene else _notes(scene)


def _scene(scene: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    things = scene["things"]
    found: dict[str, float] = {"things": len(things), "covers": len(scene["covers"]), "bars": len(scene["bars"])}
    found |= {name: scene[name] for name in ("clutter", "noise", "grid")} | {"overlay": float(bool(scene["overlay"]))}
    shapes = Counter(thing["shape"] for thing in things)
    found["repeated shapes"] = sum(n > 1 for n in shapes.values())
    found["most alike"] = max(shapes.values(), default=0)
    found["shapes"] = len(shapes)
    counts = sorted(shapes.values(), reverse=True)
    found |= {f"alike {i}": n for i, n in enumerate(counts[:4])}
    hues = Counter(thing["colour"] for thing in things)
    found["colours"], found["most of a colour"] = len(hues), max(hues.values(), default=0)
    for what in ("shape", "colour", "size", "texture"):
        found |= {f"n {value}": n for value, n in Counter(thing[what] for thing in things).items()}
    found["sizes"] = len({thing["size"] for thing in things})
    for thing in things:
        if shapes[thing["shape"]] == 1:
            found |= {
                f"{thing['shape']} colour": COLOURS.index(thing["colour"]),
                f"{thing['shape']} size": SIZES.index(thing["size"]),
                f"{thing['shape']} texture": TEXTURES.index(thing["texture"]),
                f"{thing['shape']} col": thing["col"],
                f"{thing['shape']} row": thing["row"],
            }
    last = scene["grid"] - 1
    corners = [(last * (i % 2), last * (i // 2)) for i in range(4)]
    inside = {(thing["col"], thing["row"]) for thing in things}
    covered = {tuple(cell) for cell in scene["covers"]}
    found["covered corners"] = sum(cell in covered for cell in corners)
    found["filled corners"] = sum(cell in inside for cell in corners)
    found["filled edges"] = sum(col in (0, last) or row in (0, last) for col, row in inside)
    found["in rows"] = len({row for _, row in inside})
    found["in columns"] = len({col for col, _ in inside})
    return {prefix + name: float(value) for name, value in found.items()}


def _edited(scene: Mapping[str, Any]) -> dict[str, float]:
    found = _scene(scene["before"], "before ") | _scene(scene["after"], "after ")
    before, after = ({t["shape"]: t for t in scene[side]["things"]} for side in ("before", "after"))
    changed: Counter[str] = Counter()
    for shape in SHAPES:
        one, other = before.get(shape), after.get(shape)
        if one and other:
            what = [name for name in ("colour", "size", "texture") if one[name] != other[name]]
            what += ["place"] if (one["col"], one["row"]) != (other["col"], other["row"]) else []
            changed.update(what)
            changed["things"] += bool(what)
            changed["twice"] += len(what) > 1
        elif one or other:
            changed["gone" if one else "new"] += 1
            changed["things"] += 1
    stayed = len(set(before) & set(after)) + changed["gone"] + changed["new"] - changed["things"]
    found |= {f"changed {name}": float(n) for name, n in changed.items()} | {"unchanged": float(stayed)}
    found["changes"] = float(sum(changed[name] for name in ("colour", "size", "texture", "place", "gone", "new")))
    return found


def _clip(scene: Mapping[str, Any]) -> dict[str, float]:
    events, things = scene["events"], scene["things"]
    found: dict[str, float] = {"frames": scene["frames"], "events": len(events), "things": len(things)}
    kinds = Counter(event["kind"] for event in events)
    found |= {f"n {kind}": kinds[kind] for kind in _KINDS} | {"still": len(things) - len(events)}
    when = Counter(event["frame"] for event in events)
    found["at once"] = sum(n > 1 for n in when.values())
    found["first"], found["last"] = min(when, default=0), max(when, default=0)
    gaps = sorted(when)
    found["closest"] = min((b - a for a, b in pairwise(gaps)), default=0)
    colours = {thing["shape"]: thing["colour"] for thing in things}
    for event in events:
        found |= {f"{event['shape']} frame": event["frame"], f"{event['shape']} does": _KINDS.index(event["kind"])}
        if event["kind"] == "recolour":
            found["hue step"] = abs(COLOURS.index(event["to"]) - COLOURS.index(colours[event["shape"]]))
        if event["kind"] == "move":
            found[f"to {event['to']}"] = found.get(f"to {event['to']}", 0.0) + 1
            found["by"] = event["by"]
    found |= {f"n {value}": n for value, n in Counter(thing["colour"] for thing in things).items()}
    return {name: float(value) for name, value in found.items()}


def _chart(scene: Mapping[str, Any]) -> dict[str, float]:
    values = scene["values"]
    order = sorted(values.values())
    found: dict[str, float] = {f"value {letter}": values[letter] for letter in _LETTERS if letter in values}
    found |= {f"low {i}": n for i, n in enumerate(order[:3])} | {f"high {i}": n for i, n in enumerate(order[:-4:-1])}
    found |= {"letters": len(values), "mean": float(np.mean(order)), "spread": float(np.std(order))}
    found |= {"lead": order[-1] - order[-2], "lag": order[1] - order[0], "alike": len(order) - len(set(order))}
    found |= {f"look {name}": float(scene["look"] == name) for name in ("bar", "line", "pie")}
    found |= {"legend": float(bool(scene["legend"])), "noise": scene["noise"], "hidden": len(scene.get("hidden", ()))}
    found |= {"top letter": _LETTERS.index(max(values, key=values.get)), "top of all": float(order[-1] == 100)}
    found["bottom letter"] = _LETTERS.index(min(values, key=values.get))
    return {name: float(value) for name, value in found.items()}


def _document(scene: Mapping[str, Any]) -> dict[str, float]:
    plates = scene["plates"]
    found: dict[str, float] = {"plates": len(plates), "table": float(bool(scene["table"])), "noise": scene["noise"]}
    found["numbers"] = sum(text.isdigit() for _, text in plates)
    found |= {f"plate {hue}": float(text) if text.isdigit() else -1.0 for hue, text in plates}
    found |= {f"cell {i}{j}": n for i, row in enumerate(scene["table"]) for j, n in enumerate(row)}
    return {name: float(value) for name, value in found.items()}


def _notes(scene: Mapping[str, Any]) -> dict[str, float]:
    people, numbers, listed = scene["people"], scene["numbers"], scene["edited"]
    found: dict[str, float] = {"people": len(people), "numbers": len(numbers), "list": len(listed)}
    found["facts"] = sum(len(told) for told in people.values())
    for key in sorted({key for told in people.values() for key in told}):
        found[f"n {key}"] = sum(key in told for told in people.values())
    ages = [told["age"] for told in people.values() if "age" in told]
    found |= {"oldest": max(ages, default=-1), "youngest": min(ages, default=-1)}
    found |= {f"number {name}": n for name, n in numbers.items()}
    found |= {f"at {word}": i for i, word in enumerate(listed)}
    days = scene.get("days", {})
    found |= {"days": len(days)} | {f"day of {event}": DAYS.index(day) for event, day in days.items()}
    found["greatest"], found["least"] = max(numbers.values(), default=-1), min(numbers.values(), default=-1)
    return {name: float(value) for name, value in found.items()}


# -- the instruction, the rubric, what is wrong ------------------------------------------------------------------------


def _asked(sample: Sample) -> dict[str, float]:
    """Words of the instruction that name things or properties; where pictures are judged it is the same for all."""
    text = sample.instruction.lower()
    found = {f"asked {word}": float(text.count(word)) for word in _WORDS if word in text}
    return {**found, "asked": float(text.count("?")), "asked words": float(len(_WORD.findall(text)))}


def _rubric(sample: Sample) -> dict[str, float]:
    spec = sample.spec
    found = {f"weight {name}": float(weight) for name, weight in spec.weights}
    found |= {f"cut {i}": float(cut) for i, cut in enumerate(spec.cuts)}
    for term in spec.terms:
        for name in (f"term {term.kind or 'any'}", f"word {term.word}", f"rule {term.rule}", "terms"):
            found[name] = found.get(name, 0.0) + term.weight
    found |= {"graded": float(spec.graded), "levels": float(len(spec.cuts) + 1), "listed": float(len(spec.entries))}
    return {**found, "weighed": float(len(spec.weights)), "lower": float(spec.lower_is_better)}


def _faults(sample: Sample) -> dict[str, float]:
    """What is wrong with the response whatever a rubric weighs: shares, severities, kinds of fault, length."""
    graded, response = sample.graded[0], sample.responses[0]
    off = [finding.metric for finding in graded.findings]
    far = [metric >= ASPECTS[claim.aspect].far for claim, metric in zip(response.claims, off, strict=True) if metric]
    wrong = sum(metric > 0 for metric in off)
    found = {
        "wrong": wrong, "share": wrong / max(1, len(off)), "far": sum(far), "severity": sum(map(_bounded, off)),
        "gone": sum(finding.gone for finding in graded.findings), "claims": len(off),
        "words": count_words(response.text), "sentences": len(response.sentences),
        **{f"counted {name}": n for name, n in graded.counts.items()},
    }  # fmt: skip
    return {name: float(value) for name, value in found.items()}


def _bounded(metric: int) -> int:
    return min(metric, 5)


def main() -> None:
    """Print a table: each probe by domain and split, learnt from other seeds of the training split."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.blindness", description=__doc__)
    parser.add_argument("--n", type=int, default=4000, help="items to learn from, and as many to try")
    parser.add_argument("--domains", default=",".join(name for name in DOMAINS if name not in DRAWN))
    parser.add_argument("--splits", default="fresh", help="of what is tried; the held-out domain has its own alone")
    parser.add_argument("--version", type=int, default=4)
    given = parser.parse_args()
    print("| domain | split | n | responses | standard error | response-blind | rubric read | rubric-blind |")
    print("|---|---|---|---|---|---|---|---|")
    for domain in given.domains.split(","):
        held = domain == HELD_OUT_DOMAIN
        train = collected(Settings(domain, "domain" if held else "train", 1, version=given.version), given.n)
        for split in ("domain",) if held else given.splits.split(","):
            settings = Settings(domain, split, 2, version=given.version)
            found = blind_probes(train, collected(settings, given.n))
            responses = given.n // (settings.rubrics if given.version >= 4 else 1)
            told = " | ".join(f"{each.r:+.3f}" for each in found)
            error = 1 / math.sqrt(responses - 1)
            print(f"| {domain} | {split} | {given.n:,} | {responses:,} | {error:.3f} | {told} |", flush=True)


if __name__ == "__main__":
    main()
