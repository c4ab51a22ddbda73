"""`python -m benchmarks.sharing`: what sharing saves and costs beside `benchmarks.prefix`, on one core.

`scout`: tournaments of five responses to a picture through `compare`, with feedback, against `share=no` by turns; the
verdicts must be equal. `pictures`: labels of a round robin about one picture, against a forward pass for each pair, by
random models of the LLaVA-1.5 and LLaVA-OneVision classes. `labels`: feedback of
scout with the label read behind it, against feedback that goes on to write it. `planning`: requests of mixed
items through `stream`: what finding and cutting the trees takes of the CPU time, and how much the memory grows.
`noise`: log-probabilities in bfloat16 against those in float32, shared and each pair alone. CPU seconds, ratios in one
process.
"""

import argparse
import functools
import resource
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.figures import Figure, table
from benchmarks.prefix import LABELS, VOCABULARY, build, requests, spent
from dikast.core.item import Item
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.core.records.items import read_items
from dikast.engines.base import Completion, Readout, Request
from dikast.engines.local.batch import TokenRow, last_logits
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.sharing.tree_forward import LEAST, keyed_ids
from dikast.engines.local.sharing.trie import Tree, walk
from dikast.judging.judge import Judge
from dikast.worlds.make import Maker
from dikast.worlds.settings import Settings
from dikast.worlds.write import write_samples


def tournaments(folder: str, n: int) -> list[Item]:
    """Items of five responses to one picture."""
    maker = Maker(Settings(domain="scenes", split="fresh", seed=921, responses=5))
    file = write_samples([maker.sample(i) for i in range(n)], folder, {"bench": 1}).files[0]
    return list(read_items(str(file)))


def scout(n: int) -> list[Figure]:
    """CPU of comparisons with feedback: shared over `share=no`."""
    spent_by: dict[str, float] = {"yes": 0.0, "no": 0.0}
    said: dict[str, list[Any]] = {"yes": [], "no": []}
    judges = {share: Judge(f"scout,share={share}") for share in spent_by}
    with tempfile.TemporaryDirectory() as folder:
        items = tournaments(folder, n)
        for judge in judges.values():
            list(judge.compare_many(items[:1]))
        for start in range(0, n, 10):
            for share, judge in judges.items():
                since = time.process_time()
                found = list(judge.compare_many(items[start : start + 10]))
                spent_by[share] += time.process_time() - since
                said[share] += sorted((each.item, each.pair, str(each.outcome)) for each in found)
    differ = sum(one != other for one, other in zip(*said.values(), strict=True))
    return [
        Figure(f"scout, {n} tournaments: shared over share=no", spent_by["yes"] / spent_by["no"], "", 0.8,
               f"{spent_by['yes']:.1f} s, {spent_by['no']:.1f} s of CPU"),
        Figure("verdicts that differ", differ, "", 1, f"of {len(said['yes'])}"),
    ]  # fmt: skip


def pictures(rounds: int) -> list[Figure]:
    """CPU of labels of a round robin about one picture: shared over each pair by itself."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from PIL import Image as Pictures

    import tiny_models

    pixels = np.random.default_rng(0).integers(0, 255, (112, 112, 3), np.uint8)
    shown, task = Image.of(Pictures.fromarray(pixels)), "The response follows the instruction and cites a source. " * 40
    few = ["good", "It cites a source", "It helps, but one claim is wrong", "It is clear", "The answer is short"]
    asked = [
        Request(
            f"{i}-{j}", (Message("user", (shown, Span(f"{task}First: {few[i]}\nSecond: {few[j]}\nWhich?"))),),
            readout=Readout(("1", "2"), "\n[RESULT] ", generate=False),
        )
        for i in range(5) for j in range(5) if i != j
    ]  # fmt: skip
    lines = []
    for family in ("llava", "llava_onevision"):
        with tempfile.TemporaryDirectory() as folder:
            shape = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 6, "num_attention_heads": 4}
            built = tiny_models.build(family, folder, num_key_value_heads=4, initializer_range=0.02, **shape)
            local = LocalEngine(str(built), device="cpu")
        shared, alone = [], []
        _stream(local, asked)
        work = dict(local.work)
        for _ in range(rounds):
            shared.append(spent(functools.partial(_stream, local, asked)))
            alone.append(spent(functools.partial(_pair_by_pair, local, asked)))
        least = work["tokens_asked"] / work["tokens_computed"]
        told = f"{work['pictures_shown']} shown, {work['pictures_encoded']} encoded; {least:.2f} times fewer tokens"
        ratio = median(shared) / median(alone)
        lines.append(Figure(f"{family}, K=5, labels: shared over pair by pair", ratio, "", 1 / 8, told))
    return lines


def _stream(engine: LocalEngine, asked: Sequence[Request]) -> None:
    assert all(done.error is None for done in engine.stream(asked))


def _pair_by_pair(engine: LocalEngine, asked: Sequence[Request]) -> None:
    for request in asked:
        prompt = engine._job(request).prompt
        last_logits([TokenRow(prompt, prompt.ids)], engine._loaded, 1)


def labels(rounds: int) -> list[Figure]:
    """CPU of comparisons whose label is read behind the feedback over those that go on to write it."""
    judge = Judge("scout")
    engine: Any = judge.engine
    read, stream = list[Request](), engine.stream

    def noted(given: Iterable[Request]) -> Iterator[Completion]:
        read.extend(given)
        return stream(read)  # type: ignore[no-any-return]

    with_label, without, computed = list[float](), list[float](), list[int]()
    with tempfile.TemporaryDirectory() as folder:
        items = tournaments(folder, 2)
        with patch.object(engine, "stream", noted):
            list(judge.compare_many(items))
        alone = [replace(each, readout=None) for each in read]
        for _ in range(rounds):
            for asked, spent_on in ((read, with_label), (alone, without)):
                before = engine.work["tokens_computed"]
                spent_on.append(spent(functools.partial(_stream, engine, asked)))
                computed.append(engine.work["tokens_computed"] - before)
    told = f"{computed[0] - computed[1]} more tokens in {len(read)} replies"
    return [
        Figure(
            "a label read behind a reply, added to writing it", median(with_label) / median(without) - 1, "", 0.05, told
        )
    ]


def mixed(n: int) -> Iterator[Request]:
    """Requests of items of 1 to 8 questions that share 10 to 40 tokens, each with 5 to 25 of its own."""
    rng = np.random.default_rng(22)

    def text(low: int, high: int) -> str:
        return " ".join(f"w{k}" for k in rng.integers(3, VOCABULARY, rng.integers(low, high)))

    made = 0
    while made < n:
        task = text(10, 40)
        for _ in range(rng.integers(1, 9)):
            words = Span(f"{task} {text(5, 25)}")
            yield Request(f"{made}", (Message("user", (words,)),), readout=Readout(LABELS, " Score: ", generate=False))
            made += 1


def planning(n: int, model: str) -> list[Figure]:
    """The share of planning in the CPU time of a stream, and the memory that it takes."""
    engine = LocalEngine(model, device="cpu")
    execution: Any = engine._execution
    planned, answered, early = 0.0, 0, 0
    since = time.process_time()
    for done in engine.stream(mixed(n)):
        answered += done.error is None
        if answered == n // 5:
            early = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    whole = time.process_time() - since
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - early) / 1024
    asked = list(mixed(n))
    for start in range(0, n, engine.window):
        prompts = [engine._job(request).prompt for request in asked[start : start + engine.window]]

        def plan(prompts: list[Any] = prompts) -> None:
            for batch in execution.batches([(prompt, None) for prompt in prompts]):
                rows = [keyed_ids(prompts[i], prompts[i].ids, engine._loaded) for i in batch]
                walk(Tree(rows, least=LEAST), 1024)

        planned += spent(plan)
    return [
        Figure(f"planning of {answered:,} requests, of the CPU", planned / whole, "", 0.05, f"{whole:.0f} s in all"),
        Figure("memory added after the first fifth", grown, "MB", 50),
    ]


def noise(model: str) -> list[Figure]:
    """Differences of log-probabilities in bfloat16 from float32: shared over each by itself."""
    asked = requests(200, 5)

    def labels(**options: Any) -> np.ndarray[Any, Any]:
        engine = LocalEngine(model, device="cpu", **options)
        found: dict[str, Completion] = {done.key: done for done in engine.stream(asked)}
        told = [found[request.key].label_logprobs or {} for request in asked]
        return np.array([[each[label] for label in LABELS] for each in told])

    exact = labels(share=False)
    far = [np.abs(labels(dtype="bfloat16", share=share, batch_size=1) - exact) for share in (True, False)]
    means, most = [each.mean() for each in far], [each.max() for each in far]
    return [
        Figure("bfloat16, mean difference: shared over alone", means[0] / means[1], "", 1.1,
               f"{means[0]:.4f}, {means[1]:.4f} nats; the largest {most[0]:.3f}, {most[1]:.3f}"),
    ]  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; the exit code is 1 where a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharing", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["scout", "pictures", "labels", "planning", "noise"])
    parser.add_argument("--tournaments", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5, help="of pictures and labels")
    parser.add_argument("--requests", type=int, default=10_000)
    given = parser.parse_args(argv)
    torch.set_num_threads(1)
    lines: list[Figure] = []
    with tempfile.TemporaryDirectory() as folder:
        model = str(build(Path(folder)))
        for part in given.parts:
            if part == "scout":
                lines += scout(given.tournaments)
            elif part == "pictures":
                lines += pictures(given.rounds)
            elif part == "labels":
                lines += labels(given.rounds)
            else:
                lines += planning(given.requests, model) if part == "planning" else noise(model)
            print(lines[-1], flush=True)
    print(table(lines))
    raise SystemExit(not all(line.met for line in lines))


if __name__ == "__main__":
    main()
