"""`python -m benchmarks.align`, by `make align`: does a judge improve a model on prompts whose gold is exact?

The policy has the size of `scout` and shares neither its weights nor its seeds: it is drawn anew, learns to see
(`train look`) and then to answer (`train sft`) from responses of `world make`, half of whose claims are wrong. Arms
differ in the judge alone; the rule for pairs, the prompts and the settings are the same. The rate is chosen by the gold
arm on prompts of its own (`--tune`). Everything that is finished is kept under `--out`, and the same command goes on.
"""

import argparse
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dikast.alignment.align import align
from dikast.alignment.align_options import AlignOptions, Schedule
from dikast.alignment.round_report import HELD, Measured, read_measured
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.ppi import mean_of_labels
from dikast.core.item import Item, item_to
from dikast.core.part import text_of
from dikast.core.records import read_items, write_records
from dikast.training.config import load_config
from dikast.training.models.scratch import SIZES, new_judge
from dikast.training.sft import sft
from dikast.training.vision_alignment import look
from dikast.worlds.replies import reply_gold
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons
from dikast.worlds.write import write_world

ARMS: dict[str, tuple[str, Schedule]] = {
    "gold": ("mock:oracle,r=1", "pointwise"),
    "scout": ("scout", "pointwise"),
    "scout-pairs": ("scout", "full"),
    "length": ("mock:prefers-long,r=0,per_doubling=2,length_at=80", "pointwise"),
    "random": ("mock:random", "pointwise"),
}
RATES = (3e-5, 1e-4, 3e-4)
_SEEDS = {"talk": 9104, "responses": 9201, "prompts": 9301, "held": 9401, "tuning": 9501, "tuning-held": 9601}
_STEPS = {"optimizer": "muon", "learning_rate": 0.003, "schedule": "cosine", "min_lr_ratio": 0.05,
          "betas": [0.9, 0.98], "weight_decay": 0.01, "frozen": ["post_layernorm"]}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """How much of everything. `shape` are settings of the world."""

    talk: int = 20_000
    look_steps: int = 500
    responses: int = 10_000
    sft_steps: int = 1500
    prompts: int = 160
    held: int = 250
    rounds: int = 3
    samples: int = 5
    epochs: float = 2.0
    max_tokens: int = 120
    shape: tuple[tuple[str, Any], ...] = ()


SMALL = Budget(talk=4000, look_steps=300, responses=4000, sft_steps=400, prompts=96, held=96, rounds=2)
TINY = Budget(
    talk=8, look_steps=2, responses=16, sft_steps=2, prompts=8, held=6, rounds=1, samples=2, epochs=1.0, max_tokens=8,
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Make what is missing, run the arms, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/align"))
    parser.add_argument("--arms", default="gold,scout,length,random", help=f"of {', '.join(ARMS)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", choices=("full", "small", "tiny"), default="full")
    parser.add_argument("--rate", type=float, default=0.0, help="0: the one that --tune chose, else 1e-4")
    parser.add_argument("--tune", action="store_true", help="choose the rate by the gold arm, on prompts of its own")
    parser.add_argument("--table", type=Path, help="the Markdown file to write the tables to")
    given = parser.parse_args(arguments)
    budget = {"full": Budget(), "small": SMALL, "tiny": TINY}[given.budget]
    out = given.out / given.budget
    if given.tune:
        print(f"rate {tuned(out, budget):g}")
    rate = given.rate or chosen_rate(out)
    arms = given.arms.split(",")
    for seed in range(given.seeds):
        policy = policy_of(out, budget, seed)
        for arm in arms:
            run(out, budget, policy, arm, seed, rate)
    table = tables(out, arms, given.seeds, rate, given.budget)
    print(table)
    if given.table:
        given.table.write_text(table, "utf-8")


def world(out: Path, name: str, n: int, budget: Budget) -> Path:
    """At most `n` items of scenes under rubrics of colour, shape, size and completeness, from a seed of its own."""
    folder = out / "data" / name
    settings = Settings(
        domain="scenes", seed=_SEEDS[name], edits=False, aspects=("colour", "shape", "size", "completeness"),
        scales=("1-5",), **dict(budget.shape),
    )  # fmt: skip
    write_world(settings, n, folder)
    path = folder / "readable.jsonl"
    if not path.is_file():  # rubrics that list single claims have no gold of replies
        items = read_items(str(folder / "items-00000.jsonl"))
        write_records(path, (item_to(item) for item in items if reply_gold("", item.meta) is not None))
    return path


def policy_of(out: Path, budget: Budget, seed: int) -> Path:
    """The model that every arm of a seed begins with."""
    folder = out / f"policy-{seed}"
    if (folder / "sft/model/config.json").is_file():
        return folder / "sft" / "model"
    talk = out / "data" / "talk"
    write_lessons(Settings(domain="scenes", seed=_SEEDS["talk"]), budget.talk, talk, only_talk=True)
    said = out / "data" / "answers.jsonl"
    if not said.is_file():
        items = read_items(str(world(out, "responses", budget.responses, budget)))
        write_records(said, (_answer(item, said.parent / "responses") for item in items))
    rows = [str(path.resolve()) for path in sorted(talk.glob("talk-*.jsonl"))]
    start = {"seed": 100 + seed, "data": [{"talk": rows}], "device": "cpu", **_STEPS}
    folder.mkdir(parents=True, exist_ok=True)
    first = load_config({**start, "init": str(folder / "init"), "out": str(folder / "look"),
                         "steps": budget.look_steps, "batch_size": min(64, budget.talk), "warmup": 0.1})  # fmt: skip
    if not (folder / "init").is_dir():
        both = [{"talk": rows}, {"talk": [str(said.resolve())]}]
        new_judge(
            load_config({**start, "init": ".", "out": "x", "data": both}), folder / "init", SIZES["nano"], most=1500
        )
    if not (folder / "look/model/config.json").is_file():
        look(first)
    config = {**start, "model": str((folder / "look/model").resolve()), "out": str(folder / "sft"),
              "data": [{"talk": [str(said.resolve())]}], "steps": budget.sft_steps, "warmup": 0.05,
              "batch_size": min(32, budget.responses), "max_tokens_per_micro_batch": 8192,
              "save_every": 100}  # fmt: skip
    sft(load_config(config))
    return folder / "sft" / "model"


def _answer(item: Item, root: Path) -> dict[str, Any]:
    """A row of `talk`: what is asked, and one response, right or wrong."""
    told = item_to(item)
    picture = item.images[0]
    words = text_of(item.instruction[0].content)
    path = str((Path(picture.root or root) / picture.source).resolve())
    return {"id": told["id"], "instruction": words, "image": path, "target": text_of(item.responses[0])}


def run(
    out: Path, budget: Budget, policy: Path, arm: str, seed: int, rate: float, *, tuning: bool = False
) -> dict[str, Any]:
    """One arm with one seed: an ordinary alignment."""
    judge, schedule = ARMS[arm]
    folder = out / (f"tune-{rate:g}" if tuning else f"{arm}-{seed}")
    folder.parent.mkdir(parents=True, exist_ok=True)
    training = out / f"training-{rate:g}.yaml"
    settings = {"learning_rate": rate, "epochs": budget.epochs, "batch_size": 16, "device": "cpu", "warmup": 0.1}
    training.write_text(yaml.safe_dump(settings), "utf-8")
    names = ("tuning", "tuning-held") if tuning else ("prompts", "held")
    sizes = (budget.prompts, budget.held)
    files = [world(out, name, n, budget) for name, n in zip(names, sizes, strict=True)]
    options = AlignOptions(
        policy=str(policy), judge=judge, prompts=files[0], held_out=files[1], out=folder, rounds=budget.rounds,
        samples=budget.samples, schedule=schedule, max_tokens=budget.max_tokens, seed=seed, training=training,
    )  # fmt: skip
    return align(options, tell=lambda line: print(f"{folder.name} {line}", flush=True))


def tuned(out: Path, budget: Budget) -> float:
    """The rate with which the gold arm ends best after one round, on prompts that nothing else uses."""
    policy, short = policy_of(out, budget, 0), dataclasses.replace(budget, rounds=1)
    ends = {}
    for rate in RATES:
        done = run(out, short, policy, "gold", 0, rate, tuning=True)["rounds"][-1]
        gold = done["held_out"].get("gold", {}).get("value")
        ends[rate] = -1.0 if gold is None or done.get("stopped") else gold
    best = max(ends, key=lambda rate: ends[rate])
    (out / "rate.json").write_text(json.dumps({"rate": best, "ends": {f"{k:g}": v for k, v in ends.items()}}), "utf-8")
    return best


def chosen_rate(out: Path) -> float:
    """What `tuned` chose, else 1e-4."""
    path = out / "rate.json"
    return float(json.loads(path.read_text("utf-8"))["rate"]) if path.is_file() else 1e-4


def states(out: Path, arm: str, seed: int) -> list[Measured]:
    """What was measured in each state of an arm, the start first; a round that stopped it is there too."""
    folder = out / f"{arm}-{seed}"
    paths = [folder / "start" / HELD, *sorted(folder.glob(f"round-*/{HELD}"))]
    return [read_measured(path) for path in paths if (path / "measures.jsonl").is_file()]


def good_model(out: Path, arm: str, seed: int) -> int:
    """The round whose model an arm ended with, 0 the start."""
    model = Path(json.loads((out / f"{arm}-{seed}" / "report.json").read_text("utf-8"))["model"])
    return int(model.parent.name.rpartition("-")[2]) if model.parent.name.startswith("round-") else 0


def tables(out: Path, arms: Sequence[str], seeds: int, rate: float, budget: str) -> str:
    """Figures by arm and state, and how much of the gap that gold closes each arm closes."""
    lines = [
        f"Budget `{budget}`, rate {rate:g}, {seeds} seed(s); means and intervals over held-out prompts of all seeds.",
        "",
        "| arm | state | gold | reward | words | KL | n |",
        "|---|---|---|---|---|---|---|",
    ]
    ends: dict[str, list[float]] = {}
    for arm in arms:
        known = [states(out, arm, seed) for seed in range(seeds)]
        for number in range(max(map(len, known))):
            there = [each[number] for each in known if len(each) > number]
            cells = [_cell([value for each in there for value in each.columns[name]])
                     for name in ("gold", "reward", "words", "kl")]  # fmt: skip
            name = "start" if number == 0 else f"round {number}"
            lines.append(f"| {arm} | {name} | {' | '.join(cells)} | {sum(len(each.ids) for each in there)} |")
        ends[arm] = [gain for seed in range(seeds) for gain in _gains(out, arm, seed)]
    lines += ["", "| arm | gold gained by the model that it ended with, paired | share of what the gold arm gained |",
              "|---|---|---|"]  # fmt: skip
    gold = mean_of_labels(ends["gold"]).value if "gold" in ends else float("nan")
    for arm in arms:
        gained = mean_of_labels(ends[arm])
        share = f"{gained.value / gold:.2f}" if gold and gold == gold else "undefined"
        lines.append(f"| {arm} | {_told(gained)} | {share} |")
    return "\n".join(lines) + "\n"


def _gains(out: Path, arm: str, seed: int) -> list[float]:
    found = states(out, arm, seed)
    start, end = found[0], found[good_model(out, arm, seed)]
    before = dict(zip(start.ids, start.columns["gold"], strict=True))
    pairs = zip(end.ids, end.columns["gold"], strict=True)
    return [value - then for key, value in pairs if value is not None and (then := before.get(key)) is not None]


def _cell(values: Sequence[float | None]) -> str:
    return _told(mean_of_labels([value for value in values if value is not None]))


def _told(estimate: Estimate) -> str:
    return f"{estimate:.3f}"


if __name__ == "__main__":
    main()
