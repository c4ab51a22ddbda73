"""`python -m benchmarks.rubrics`: a nano judge taught with 1,000 rubrics against one taught with 12 coarse ones.

As in the ablation of Prometheus (Kim et al. 2024), at equal tokens. Both learn from what `dikast corpus build` makes of
the recipe `feedback` with the text world as teacher, notes about people alone; they differ in the rubrics.

- `fine`: 1,000 rubrics. Each has points of its own for a mistake about a fact and about an age, or none for one of
  them, thresholds of its own between the five levels, and its own wording.
- `coarse`: 12 rubrics that fit any answer and single out nothing: every mistake costs a point, three ladders of
  thresholds in four wordings each.

Both start from one reader, as published judges start from models that can read: it was taught to check every claim
against the notes, and has seen no rubric, no points and no label.

Judged are fresh answers to fresh notes, under rubrics that neither has seen: `rubrics` (of the kind of `fine`, in its
phrases), `combinations` (points that no rubric of either puts together), `wordings` (as `rubrics`, in phrases that were
held out, which a model that read nothing else can hardly know); and, to see that each has learnt to read, `coarse`.
A run that was stopped goes on where it was, step by step; what is finished is not done again.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.against_gold.measures import measure
from dikast.audit.statistics.claim_agreement import ClaimVerdict, claims_of, feedback_scores
from dikast.audit.statistics.intervals import Resampling, clusters_of, mean_estimate
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records import read_items, write_items
from dikast.core.rubric import Rubric
from dikast.core.verdict import Status
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.recipes.feedback import FeedbackOptions
from dikast.corpus.teachers.world_teacher import WorldTeacher
from dikast.engines.base import Sampling
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.training.config import Augment, Config, Data
from dikast.training.models.scratch import Shape, new_judge
from dikast.training.sft import sft
from dikast.worlds.sample import Sample
from dikast.worlds.sampling.response import Response, Sentence
from dikast.worlds.scoring.penalty import Spec
from dikast.worlds.scoring.rubric_grammar import rubric_of

SHAPE = Shape(width=128, layers=3, heads=4, inner=384, seeing_layers=1, vocabulary=640, context=1024)
SEEN = ((1, 0), (2, 0), (3, 0), (0, 1), (0, 2), (0, 3), (1, 2), (2, 1), (1, 3), (3, 1))  # points for facts, for ages
UNSEEN = ((2, 3), (3, 2))
SHOWN, WORDED = (7, 3, 3, 2), (10, 4, 4, 3)  # openings, costs, levels, names: the first ones are shown in training
WORDINGS = ((0, 0, 0, 0), (1, 1, 1, 1), (3, 2, 2, 0), (5, 0, 1, 1))
LADDERS = ((0, 1, 2, 3), (1, 2, 3, 4), (0, 1, 2, 4))  # the most points lost of each level but the worst
RUBRICS, EACH = 1000, 1  # instructions a rubric, of five responses each
READ, READ_EPOCHS = 340, 3.0  # instructions of each of 12 rubrics, of five responses each, that the reader learns from
WORDS = 300  # rubrics whose words its tokenizer knows
TRIED = 48  # rubrics of a set of judging, one instruction each
JUDGES, SETS = ("fine", "coarse"), ("rubrics", "combinations", "wordings", "coarse")
FIGURES = ("pearson", "exact", "verdict_f1", "fault_f1", "failed")
HOW = Resampling(1000, 0.95, 0)


def fine(n: int, seed: int, points: Sequence[tuple[int, int]], *, held_out: bool = False) -> list[Spec]:
    """`n` rubrics, no two alike, with these points for facts and ages, in wordings that training shows or in others."""
    rng = random.Random(f"{seed} {points} {held_out}")
    found: dict[str, Spec] = {}
    while len(found) < n:
        pair = rng.choice(points)
        most = 5 if 0 in pair else 3  # mistakes of a kind
        reachable = sorted({a * pair[0] + b * pair[1] for a, b in product(range(most + 1), repeat=2)})
        cuts = tuple(sorted(rng.sample(reachable[:-1], 4)))
        low, high = (SHOWN, WORDED) if held_out else ((0, 0, 0, 0), SHOWN)
        spec = _spec(pair, cuts, [rng.randrange(a, b) for a, b in zip(low, high, strict=True)])
        found.setdefault(rubric_of(spec).hash, spec)
    return list(found.values())


def coarse() -> list[Spec]:
    """The twelve."""
    return [_spec((1, 1), cuts, wording) for cuts in LADDERS for wording in WORDINGS]


def _spec(points: tuple[int, int], cuts: tuple[int, ...], wording: Sequence[int]) -> Spec:
    weights = tuple((name, n) for name, n in zip(("fact", "number"), points, strict=True) if n)
    opening, costs, bands, names = wording
    return Spec(weights, False, cuts, "1-5", False, (opening, costs, bands, names))


def plain(sample: Sample) -> Sample | None:
    """Asked for without questions and answered in the words of the notes, so that little has to be read; no lists."""
    if sample.graph.given:
        return None

    def said(response: Response) -> Response:
        told = (Sentence(sample.domain.say(claim, 0), "claim", claim) for claim in response.claims)
        return Response(tuple(told), voice=0)

    return replace(sample, instruction="Say what the notes tell.", responses=tuple(map(said, sample.responses)))


def read(item: Item) -> dict[str, str]:
    """A row of talk: every claim of the answer with its evidence and finding, and nothing of what it costs."""
    lines = [line.partition(",")[0] for line in item.gold["feedback"].split("\n") if not line.startswith("Lost:")]
    asked = f"Check every claim.\n# Task\n{text_of(item.instruction[0].content)}\n# Response\n"
    return {"id": item.id, "instruction": asked + text_of(item.responses[0]), "target": "\n".join(lines)}


class Experiment:
    """One seed: its data, its two judges, its figures; and the reader that all seeds share."""

    def __init__(self, out: Path, seed: int, epochs: float, rate: float) -> None:
        self.reader = out / "reader"
        self.out, self.seed, self.epochs, self.rate = out / f"seed-{seed}", seed, epochs, rate

    def run(self) -> dict[str, Any]:
        """Everything, or what an earlier run left."""
        path = self.out / "figures.json"
        if not path.exists():
            self.taught_to_read()
            self.data()
            trained = {name: self.train(name) for name in JUDGES}
            graded = {name: {of: self.graded(name, of) for of in SETS} for name in JUDGES}
            path.write_text(json.dumps({"seed": self.seed, "trained": trained, "graded": graded}, indent=1), "utf-8")
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return found

    def taught_to_read(self) -> None:
        """Train the reader, if it is not there."""
        if (self.reader / "out" / "model").exists():
            return
        first = Experiment(self.reader.parent, 0, READ_EPOCHS, self.rate)
        first.out = self.reader
        items = first.built("notes", coarse(), READ, seed=5000)
        rows = (json.dumps(read(item)) + "\n" for item in items)
        (self.reader / "notes.jsonl").write_text("".join(rows), "utf-8")
        specs = [*fine(WORDS, 7000, SEEN), *coarse()]
        write_items(self.reader / "words.jsonl", first.built("words", specs, 1, seed=7000))
        notes = Data(talk=("notes.jsonl",))
        words = replace(first.config("init", "words"), init="init", model="")
        new_judge(replace(words, data=(notes, *words.data)), self.reader / "init", SHAPE, most=3000)
        self.train_on(replace(words, data=(notes,), out="out"), "reader")

    def data(self) -> None:
        """Training sets of equal tokens, and the sets of judging."""
        if (self.out / "tokens.json").exists():
            return
        specs = fine(RUBRICS + TRIED, self.seed, SEEN)
        sets = {"fine": (specs[:RUBRICS], EACH), "coarse": (coarse(), math.ceil(RUBRICS * EACH / 12))}
        taught = {name: self.built(f"taught-{name}", *each, seed=self.seed) for name, each in sets.items()}
        tried = {
            "rubrics": (specs[RUBRICS:], 1),
            "combinations": (fine(TRIED, self.seed, UNSEEN), 1),
            "wordings": (fine(TRIED, self.seed, SEEN, held_out=True), 1),
            "coarse": (coarse(), TRIED // 12),
        }
        for number, (name, each) in enumerate(tried.items()):
            items = self.built(f"tried-{name}", *each, seed=self.seed + 1000 + 100 * number)
            write_items(self.out / f"tried-{name}.jsonl", items)
        for name, items in taught.items():
            write_items(self.out / f"{name}.jsonl", items)
        spent = {name: self.tokens(items) for name, items in taught.items()}
        least = min(map(sum, spent.values()))
        for name, items in taught.items():
            kept = int(np.searchsorted(np.cumsum(spent[name]), least, side="right"))
            write_items(self.out / f"{name}.jsonl", items[:kept])
            spent[name] = spent[name][:kept]
        told = {name: {"rows": len(each), "tokens": sum(each)} for name, each in spent.items()}
        (self.out / "tokens.json").write_text(json.dumps(told), "utf-8")

    def built(self, name: str, specs: Sequence[Spec], each: int, *, seed: int) -> list[Item]:
        """The rows of `each` instructions for each rubric, in an order by seed. Reference answers are left out."""
        options = FeedbackOptions(rubrics=len(specs), instructions=each, rounds=1, a_call=1, regrade=False)
        recipe = Recipe("feedback", "world:text", seed=seed, options=options)
        teacher = WorldTeacher("text", seed=seed, per_rubric=each, specs=specs, split="all", fit=plain)
        made = build(recipe, self.out / name, teacher=teacher)
        assert not made.waits, made
        items = [replace(item, reference=None) for item in read_items(str(self.out / name / "items.jsonl"))]
        random.Random(seed).shuffle(items)
        return items

    def config(self, out: str, *data: str) -> Config:
        """How a judge is trained on the sets of these names."""
        return Config(
            out=out, root=str(self.out), model=str((self.reader / "out" / "model").resolve()), seed=self.seed,
            augment=Augment(swap="none"),
            data=tuple(Data(items=(f"{name}.jsonl",), formats=("scout",)) for name in data),
            epochs=self.epochs, batch_size=32, max_tokens_per_micro_batch=4096, optimizer="muon",
            learning_rate=self.rate, warmup=50, min_lr_ratio=0.01, betas=(0.9, 0.98), weight_decay=0.01,
            label_loss_weight=2, precision="bf16", compile=True, save_every=100, log_every=20, keep=1,
        )  # fmt: skip

    def tokens(self, items: Sequence[Item]) -> list[int]:
        """Of each row: prompt and reply, but for headings, which are the same in every row."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.reader / "init" / "tokenizer.json"))
        return [len(each.ids) for each in tokenizer.encode_batch([_spelt(item) for item in items])]

    def train(self, name: str) -> dict[str, Any]:
        """Train the judge of this name."""
        done = self.train_on(self.config(name, name), name)
        told = json.loads((self.out / "tokens.json").read_text("utf-8"))[name]
        lines = (self.out / name / "train.jsonl").read_text("utf-8").splitlines()
        last = json.loads(lines[-1])
        return {
            "rows": told["rows"], "tokens": told["tokens"] * self.epochs, "steps": done["steps"],
            "loss": last["loss"], "seconds": last["seconds"],
        }  # fmt: skip

    def train_on(self, config: Config, name: str) -> dict[str, Any]:
        """Train to the end, telling how it goes."""
        done = sft(config, watch=lambda line: print(json.dumps({"judge": name, **line}), flush=True))
        assert done["complete"], done
        return done

    def graded(self, name: str, of: str) -> dict[str, dict[str, Any]]:
        """What the judge `name` makes of a set."""
        engine = open_engine(str(self.out / name / "model"), batch_size=60, window=300)
        judge = Judge(engine, format="scout", sampling=Sampling(max_tokens=400))
        items = list(read_items(str(self.out / f"tried-{of}.jsonl")))
        found = figures(items, {v.question.item: v for v in judge.grade_many(items)})
        print(json.dumps({"judge": name, "set": of, **{k: f"{v:.3f}" for k, v in found.items()}}), flush=True)
        return {key: each.to_dict() for key, each in found.items()}


def _spelt(item: Item) -> str:
    rubric, said = item.rubric, (item.instruction[0].content, item.responses[0])
    assert isinstance(rubric, Rubric)
    levels = [f"{label}: {text}" for label, text in rubric.levels]
    label = rubric.scale.label(item.gold["score"])
    return "\n".join([rubric.criterion, *levels, *map(text_of, said), item.gold["feedback"], f"Verdict: {label}"])


def figures(items: Sequence[Item], verdicts: Mapping[str, Any]) -> dict[str, Estimate]:
    """Scores against gold, over the answers that got one, and findings against gold.

    Intervals by rubric: its answers speak of the same notes.
    """
    pairs = [(verdicts[item.id], item.gold) for item in items]
    cluster = np.unique([item.id.split("-")[0] for item in items], return_inverse=True)[1]
    ok = np.array([v.status is Status.OK for v, _ in pairs])
    scores = np.array([(v.score, gold["score"]) for v, gold in pairs], float)[ok]
    own = clusters_of(cluster[ok])
    said = [_claims({"text": c.text, "verdict": c.verdict} for c in v.claims) for v, _ in pairs]
    judged = feedback_scores(said, [_claims(gold["claims"]) for _, gold in pairs], HOW, cluster)
    return {
        **measure(scores[:, 0], scores[:, 1], ["pearson"], HOW, own, dropped=int((~ok).sum())),
        "exact": mean_estimate((scores[:, 0] == scores[:, 1]).astype(float), 0.95, own),
        "verdict_f1": judged.verdict_f1,
        "fault_f1": judged.fault_f1,
        "failed": mean_estimate((~ok).astype(float), 0.95, cluster),
    }


def _claims(claims: Iterator[dict[str, str]] | list[dict[str, str]]) -> list[ClaimVerdict]:
    told = [{"text": c["text"], "verdict": {"unsupported": "unclear"}.get(c["verdict"], c["verdict"])} for c in claims]
    return claims_of(told) or []


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Markdown: of each set and figure the means with Student's interval over seeds, every run, and the difference."""
    seeds = ", ".join(str(run["seed"]) for run in runs)
    lines = [
        f"| judged on | figure | fine | coarse | fine less coarse | seeds {seeds}: fine | coarse |",
        "|---|---|---|---|---|---|---|",
    ]
    for of, figure in product(SETS, FIGURES):
        each = [[run["graded"][name][of][figure]["value"] for run in runs] for name in JUDGES]
        values = np.array([[math.nan if v is None else v for v in one] for one in each])
        told = [f"{mean_estimate(row, 0.95):.3f}" for row in (*values, values[0] - values[1])]
        single = [", ".join("undefined" if v is None else f"{v:.3f}" for v in one) for one in each]
        lines.append(f"| `{of}` | {figure} | {' | '.join((*told, *single))} |")
    lines += [
        "",
        "| judge | seed | rows | tokens | steps | loss, nats a token | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, run in product(JUDGES, runs):
        t = run["trained"][name]
        spent = f"{t['rows']:,} | {t['tokens']:,.0f} | {t['steps']:,} | {t['loss']:.3f} | {t['seconds']:,.0f}"
        lines.append(f"| {name} | {run['seed']} | {spent} |")
    return "\n".join(lines)


def main() -> None:
    """Run the seeds one after the other, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rubrics", description=__doc__)
    parser.add_argument("--seed", type=int, action="append", help="0, 1 and 2 without it")
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--out", type=Path, default=Path("build/rubrics"))
    given = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    seeds = given.seed or [0, 1, 2]
    print(table([Experiment(given.out, seed, given.epochs, given.rate).run() for seed in seeds]))


if __name__ == "__main__":
    main()
