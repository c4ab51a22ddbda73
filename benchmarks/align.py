"""`python -m benchmarks.align`, by `make align`: does a judge improve a model on prompts whose gold is exact?

The policy has the size of `scout` and shares neither its weights nor its seeds: it is drawn anew, learns to see
(`train look`, then `train sft` on what stands in each cell, then on true claims) and then to answer from responses of
`world make`, half of whose claims are wrong, as a model that sees more than it cares to say right. Arms differ in the
judge alone; the rule for pairs, the prompts and the settings are the same. The rate is chosen by the gold arm on
prompts of its own (`--tune`). Everything that is finished is kept under `--out`, and the same command goes on.
"""

import argparse
import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks import align_best_of
from benchmarks.align_claims import claims_table, stages_table
from benchmarks.align_figures import (
    Arm,
    best_of_table,
    ends_table,
    gains_table,
    pairs_table,
    seconds_table,
    states_table,
)
from dikast.alignment.align import align
from dikast.alignment.align_options import AlignOptions, Schedule
from dikast.alignment.policy_samples import Draw
from dikast.core.item import Item, item_to
from dikast.core.part import text_of
from dikast.core.records import read_items, write_records
from dikast.engines.base import Engine, Sampling
from dikast.training.config import load_config
from dikast.training.models.scratch import SIZES, new_judge
from dikast.training.sft import sft
from dikast.training.vision_alignment import look
from dikast.worlds.replies import reply_gold
from dikast.worlds.settings import Settings
from dikast.worlds.teach import write_lessons
from dikast.worlds.write import write_world

PAGE = Path(__file__).parents[1] / "docs" / "measurements" / "alignment.md"
BEGIN, END = "<!-- figures: python -m benchmarks.align --budget {} --write -->", "<!-- end of figures -->"

ARMS: dict[str, tuple[str, Schedule]] = {
    "gold": ("mock:oracle,r=1", "pointwise"),
    "scout": ("scout", "pointwise"),
    "scout-pairs": ("scout", "full"),
    "length": ("mock:prefers-long,r=0,per_doubling=2,length_at=80", "pointwise"),
    "random": ("mock:random", "pointwise"),
}
RATES = (5e-5, 1e-4, 2e-4)
MOST_KL = 10.0
STAGES, SAID = ("see", "sft"), "said/samples.jsonl"
_SEEDS = {"talk": 9104, "responses": 9201, "prompts": 9301, "held": 9401, "tuning": 9501, "tuning-held": 9601}
_STEPS = {"optimizer": "muon", "learning_rate": 0.003, "schedule": "cosine", "min_lr_ratio": 0.05,
          "betas": [0.9, 0.98], "weight_decay": 0.01, "frozen": ["post_layernorm"]}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """How much of everything. `shape` are settings of the world."""

    talk: int = 45_000
    look_steps: int = 500
    talk_steps: int = 800
    responses: int = 10_000
    see_steps: int = 600
    sft_steps: int = 140
    prompts: int = 165
    held: int = 260
    rounds: int = 3
    samples: int = 5
    epochs: float = 2.0
    max_tokens: int = 120
    best_of: int = 48
    said: int = 100
    shape: tuple[tuple[str, Any], ...] = ()


# Starts that hardly see: most of their claims are wrong, many of things that are not there.
UNSEEING = Budget(talk=20_000, talk_steps=0, see_steps=0, sft_steps=600, prompts=160, held=160)
GLIMPSE = Budget(talk=20_000, talk_steps=0, see_steps=260, prompts=120, held=120)
SMALL = Budget(talk=4000, look_steps=300, talk_steps=300, see_steps=260, responses=4000, prompts=96, held=96, rounds=2)
TINY = Budget(
    talk=12, look_steps=2, talk_steps=2, responses=16, see_steps=2, sft_steps=2, prompts=8, held=6, rounds=1,
    samples=2, epochs=1.0, max_tokens=8, best_of=3, said=4,
)  # fmt: skip

BUDGETS = {"full": Budget(), "unseeing": UNSEEING, "glimpse": GLIMPSE, "small": SMALL, "tiny": TINY}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make what is missing, run the arms, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/align"))
    parser.add_argument("--arms", default="gold,scout,length,random", help=f"of {', '.join(ARMS)}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", choices=tuple(BUDGETS), default="full")
    parser.add_argument("--rate", type=float, default=0.0, help="0: the one that --tune chose, else 1e-4")
    parser.add_argument("--tune", action="store_true", help="choose the rate by the gold arm, on prompts of its own")
    parser.add_argument("--tables", action="store_true", help="run nothing: only the tables of what is finished")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/measurements/alignment.md")
    given = parser.parse_args(arguments)
    budget = BUDGETS[given.budget]
    out = given.out / given.budget
    if given.tune and not given.tables:
        tuned(out, budget)
    rate = given.rate or chosen_rate(out)
    for seed in range(0 if given.tables else given.seeds):
        policy = policy_of(out, budget, seed)
        said(out, budget, seed)
        for arm in given.arms.split(","):
            run(out, budget, policy, arm, seed, rate)
        held = world(out, "held", budget.held, budget)
        align_best_of.drawn(policy, held, budget.best_of, budget.max_tokens, seed, out / f"best-of-{seed}")
    table = "\n".join(tables(out, rate, given.budget))
    print(table)
    if given.write:
        write(table, BEGIN.format(given.budget))


def write(table: str, begin: str) -> None:
    """Put the tables into the page, between the line `begin` and the next `END`."""
    before, found, rest = PAGE.read_text("utf-8").partition(begin)
    if not found:
        raise SystemExit(f"{PAGE} has no line {begin!r} to write the tables after")
    PAGE.write_text(f"{before}{begin}\n{table}\n{END}{rest.partition(END)[2]}", "utf-8")


def world(out: Path, name: str, n: int, budget: Budget) -> Path:
    """At most `n` items of scenes under rubrics of colour, shape, size and completeness, from a seed of its own."""
    folder = out / "data" / name
    if (folder / "readable.jsonl").is_file():
        return folder / "readable.jsonl"
    settings = Settings(
        domain="scenes", seed=_SEEDS[name], edits=False, aspects=("colour", "shape", "size", "completeness"),
        scales=("1-5",), **dict(budget.shape),
    )  # fmt: skip
    write_world(settings, n, folder)
    items = read_items(str(folder / "items-00000.jsonl"))
    path = folder / "readable.jsonl"  # rubrics that list single claims have no gold of replies
    write_records(path, (item_to(item) for item in items if reply_gold("", item.meta) is not None))
    return path


def policy_of(out: Path, budget: Budget, seed: int) -> Path:
    """The model that every arm of a seed begins with."""
    folder = out / f"policy-{seed}"
    if (folder / "sft/model/config.json").is_file():
        return folder / "sft" / "model"
    talk, answers = out / "data" / "talk", out / "data" / "answers.jsonl"
    if not answers.is_file():
        write_lessons(Settings(domain="scenes", seed=_SEEDS["talk"]), budget.talk, talk, instead="talk")
        items = read_items(str(world(out, "responses", budget.responses, budget)))
        write_records(answers, (_answer(item, answers.parent / "responses") for item in items))
    true = out / "data" / "true.jsonl"
    if not true.is_file():
        items = read_items(str(world(out, "responses", budget.responses, budget)))
        write_records(
            true, (row for item in items if (row := _answer(item, true.parent / "responses", right=True))["target"])
        )
    rows = [str(path.resolve()) for path in sorted(talk.glob("talk-*.jsonl"))]
    start = {"seed": 100 + seed, "data": [{"talk": rows}], "device": "cpu", **_STEPS}
    folder.mkdir(parents=True, exist_ok=True)
    first = load_config({**start, "init": str(folder / "init"), "out": str(folder / "look"),
                         "steps": budget.look_steps, "batch_size": min(64, budget.talk), "warmup": 0.1})  # fmt: skip
    if not (folder / "init").is_dir():
        both = [{"talk": rows}, {"talk": [str(answers.resolve())]}]
        new_judge(
            load_config({**start, "init": ".", "out": "x", "data": both}), folder / "init", SIZES["nano"], most=1500
        )
    if not (folder / "look/model/config.json").is_file():
        look(first)
    most = min(budget.talk // 3, budget.responses)
    seen = [{"talk": rows, "limit": most}, {"talk": [str(true.resolve())], "limit": most}]
    long = budget.talk_steps >= 100  # compiling pays
    fast = {"precision": "bf16", "compile": long, "batch_size": min(64, budget.talk)}
    usual = {"batch_size": min(32, budget.responses)}
    before = folder / "look/model"
    for name, steps, data, settings in (
        ("talk", budget.talk_steps, [{"talk": rows}], fast),
        ("see", budget.see_steps, seen, usual),
        ("sft", budget.sft_steps, [{"talk": [str(answers.resolve())]}], usual),
    ):
        if steps and not (folder / name / "model/config.json").is_file():
            sft(load_config({**start, "model": str(before.resolve()), "out": str(folder / name), "data": data,
                             "steps": steps, "warmup": 0.05, "max_tokens_per_micro_batch": 8192, "save_every": 100,
                             **settings}))  # fmt: skip
        before = folder / name / "model" if steps else before
    return folder / "sft" / "model"


def said(out: Path, budget: Budget, seed: int) -> None:
    """Replies of the policy after each stage that teaches it to answer, to prompts that no arm learns from."""
    items = list(read_items(str(world(out, "tuning", budget.prompts, budget))))[: budget.said]
    for stage in STAGES:
        folder = out / f"policy-{seed}" / stage
        if (folder / "model/config.json").is_file():
            draw = Draw("said", 1, Sampling(0.7, 0.9, budget.max_tokens, seed))
            align_best_of.replies(folder / "model", items, draw, folder / SAID)


def _answer(item: Item, root: Path, *, right: bool = False) -> dict[str, Any]:
    """A row of `talk`: what is asked, and one response, right or wrong; or only those of its claims that are right."""
    told = item_to(item)
    picture = item.images[0]
    words = text_of(item.instruction[0].content)
    path = str((Path(picture.root or root) / picture.source).resolve())
    target = text_of(item.responses[0])
    if right:
        claims = told["gold"]["claims"]
        target = " ".join(claim["text"] for claim in claims if claim["verdict"] == "right")
    return {"id": told["id"], "instruction": words, "image": path, "target": target}


def run(
    out: Path, budget: Budget, policy: Path, arm: str, seed: int, rate: float, *, tuning: bool = False
) -> dict[str, Any]:
    """One arm with one seed: an ordinary alignment."""
    judge, schedule = ARMS[arm]
    folder = out / (f"tune-{rate:g}" if tuning else f"rate-{rate:g}/{arm}-{seed}")
    names = ("tuning", "tuning-held") if tuning else ("prompts", "held")
    files = [world(out, name, n, budget) for name, n in zip(names, (budget.prompts, budget.held), strict=True)]
    options = AlignOptions(
        policy=str(policy), judge=judge, prompts=files[0], held_out=files[1], out=folder, rounds=budget.rounds,
        samples=budget.samples, schedule=schedule, max_tokens=budget.max_tokens, seed=seed, most_kl=MOST_KL,
        training=out / f"training-{rate:g}.yaml",
    )  # fmt: skip
    return aligned(options, training_of(budget, rate))


def training_of(budget: Budget, rate: float) -> dict[str, Any]:
    """The settings of every arm's training."""
    return {"learning_rate": rate, "epochs": budget.epochs, "batch_size": 16, "device": "cpu", "warmup": 0.1}


def aligned(options: AlignOptions, training: Mapping[str, Any], judge: Engine | None = None) -> dict[str, Any]:
    """The report of an alignment, which is run if it is not finished; `options.training` is where settings go."""
    if (options.out / "report.json").is_file():
        done: dict[str, Any] = json.loads((options.out / "report.json").read_text("utf-8"))
        return done
    assert options.training is not None
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.training.write_text(yaml.safe_dump(dict(training)), "utf-8")
    return align(options, judge=judge, tell=lambda line: print(f"{options.out.name} {line}", flush=True))


def tuned(out: Path, budget: Budget) -> float:
    """The rate with which the gold arm ends best after one round, on prompts that nothing else uses.

    A rate that moves the policy so far in one round that all rounds together would pass the limit of KL is left out.
    """
    file = out / "rate.json"
    if file.is_file():
        return chosen_rate(out)
    policy, short = policy_of(out, budget, 0), dataclasses.replace(budget, rounds=1)
    ends = {}
    for rate in RATES:
        held = run(out, short, policy, "gold", 0, rate, tuning=True)["rounds"][-1]["held_out"]
        ends[rate] = {name: held[name]["value"] if name in held else None for name in ("gold", "kl")}
    near = {rate: end for rate, end in ends.items() if end["kl"] is not None and end["kl"] * budget.rounds <= MOST_KL}
    best = max(near or ends, key=lambda rate: ends[rate]["gold"] or 0.0)
    file.write_text(json.dumps({"rate": best, "ends": {f"{rate:g}": end for rate, end in ends.items()}}), "utf-8")
    return best


def chosen_rate(out: Path) -> float:
    """What `tuned` chose, else 1e-4."""
    path = out / "rate.json"
    return float(json.loads(path.read_text("utf-8"))["rate"]) if path.is_file() else 1e-4


def finished(out: Path, rate: float) -> Iterator[Arm]:
    """The arms with the seeds that are finished, from the first one on."""
    for name in ARMS:
        folders = [out / f"rate-{rate:g}" / f"{name}-{seed}" for seed in range(100)]
        count = next(i for i, folder in enumerate(folders) if not (folder / "report.json").is_file())
        if count:
            yield Arm(name, folders[:count])


def tables(out: Path, rate: float, budget: str) -> list[str]:
    """All figures of what is finished, as lines of Markdown."""
    arms = list(finished(out, rate))
    chosen = out / "rate.json"
    told = (
        f"; chosen among {_ends(chosen)} (gold and KL after one round on prompts of its own)"
        if chosen.is_file()
        else ""
    )
    held = sorted({len(each[0].ids) for arm in arms for each in arm.states})
    prompts = sorted({each["prompts"] for arm in arms for report in arm.reports for each in report["rounds"][1:]})
    sizes = [" or ".join(map(str, each)) for each in (prompts, held)]
    lines = [f"Budget `{budget}`: {sizes[0]} prompts a round, {sizes[1]} held out; rate {rate:g}{told}."]
    for title, rows in (
        ("What the policy says after each stage that teaches it to answer", _stages(out)),
        ("What each arm gained", gains_table(arms)),
        ("Every state", states_table(arms)),
        ("What rounds were taught from", pairs_table(arms)),
        ("How each run ended", ends_table(arms)),
        ("CPU seconds of a run", seconds_table(arms)),
        ("What `scout` makes of claims of the start", _claims(out, arms)),
    ):
        lines += ["", f"**{title}**", "", *rows] if rows else []
    folders = [each for seed in range(100) if (each := out / f"best-of-{seed}" / "random" / "summary.json").is_file()]
    if folders:
        curves = align_best_of.curves([each.parents[1] for each in folders])
        n = len(curves["gold"](1).values)
        lines += ["", f"**Gold of the best of N replies of the start, by what chooses** ({len(folders)} seed(s), {n} "
                  "prompts in all, 16 replies each)", "", *best_of_table(curves, align_best_of.SIZES)]  # fmt: skip
    return lines


def _claims(out: Path, arms: Sequence[Arm]) -> list[str]:
    folders = [folder / "round-1" for arm in arms if arm.name == "scout" for folder in arm.folders]
    return claims_table(folders, prompts_of(out, "prompts")) if folders else []


def _stages(out: Path) -> list[str]:
    stages = {stage: files for stage in STAGES if (files := sorted(out.glob(f"policy-*/{stage}/{SAID}")))}
    return stages_table(stages, prompts_of(out, "tuning")) if stages else []


def prompts_of(out: Path, name: str) -> dict[str, Item]:
    """The prompts of a `world` by id, with the scenes that they show."""
    return {item.id: item for item in read_items(str(out / "data" / name / "readable.jsonl"))}


def _ends(file: Path) -> str:
    ends = json.loads(file.read_text("utf-8"))["ends"]
    return ", ".join(f"{rate} ({end['gold']:.3f}, {end['kl']:.1f})" for rate, end in ends.items())


if __name__ == "__main__":
    main()
