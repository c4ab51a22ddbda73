"""`python -m benchmarks.gpu`: how fast and how exact judging, training and alignment are on one GPU.

Random weights in the published 7B shapes, in bfloat16, drawn on the device; with `--small` tiny models of the same
classes, on any device. Every part is bounded in time and independent: one that fails or runs out of time leaves its
traceback in the report, and the next goes on. Seconds are of wall clock, after a warm-up, with the device idle at both
ends. `--json FILE` is written after every figure.

matmul: what the device reaches in products of matrices. exact: float32 and bfloat16, shared against each by itself.
engine: a round robin of K=5 about one picture of 7,290 features, score only and with feedback. scout: the bundled
judge. training: full and LoRA, packed, with save and resume. align: one round by its steps. plan: what `dikast train
plan` counts for the same training, which needs no device.

    python -m benchmarks.gpu --parts engine,training --json gpu.json
"""

import argparse
import json
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image as Pictures

from benchmarks import prefix
from benchmarks.gpu_models import FAMILIES, PEAK, model_folder, random_model
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.batch import TokenRow, last_logits
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.loading import Loaded

SECONDS = {
    "matmul": 20.0, "exact": 90.0, "engine": 120.0, "scout": 60.0, "training": 180.0, "align": 90.0, "plan": 120.0,
}  # fmt: skip
K = 5
LABELS = ("1", "2")
WORDS = "The response is good It follows the instruction and cites a source but one claim is wrong"


class OutOfTime(BaseException):
    """A part has used its seconds. No `Exception`, which the engine would answer with half a batch."""


@dataclass
class Report:
    """What came out, part by part; written after every figure."""

    file: Path | None
    found: dict[str, Any] = field(default_factory=dict)

    def tell(self, part: str, **figures: Any) -> None:
        """Add figures to a part."""
        self.found.setdefault(part, {}).update(figures)
        print(part, json.dumps(figures, default=str), flush=True)
        if self.file is not None:
            self.file.write_text(json.dumps(self.found, indent=1, default=str), "utf-8")


@dataclass(frozen=True)
class Asked:
    """The options of a run."""

    device: torch.device
    small: bool
    shapes: tuple[str, ...]
    rounds: int
    streamed: int
    feedback: int
    together: tuple[int, ...]
    steps: int
    report: Report
    deadline: float = 0.0

    @property
    def left(self) -> float:
        """Seconds that the part may still take."""
        return self.deadline - time.monotonic()


def idle(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def seconds(run: Callable[[], Any], device: torch.device) -> float:
    """Seconds of wall clock."""
    idle(device)
    since = time.monotonic()
    run()
    idle(device)
    return time.monotonic() - since


def empty(device: torch.device) -> None:
    """Give back what earlier parts held, and count memory anew."""
    import gc

    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def most_bytes(device: torch.device) -> int:
    """The most bytes of tensors since `empty`."""
    return torch.cuda.max_memory_allocated() if device.type == "cuda" else 0


def memory_of(device: torch.device) -> float:
    """Bytes of the device's memory; without one, of an H200."""
    return float(torch.cuda.get_device_properties(device).total_memory) if device.type == "cuda" else 150e9


def noise(edge: int, seed: int) -> Image:
    """A picture of random pixels."""
    pixels = np.random.default_rng(seed).integers(0, 255, (edge, edge, 3), np.uint8)
    return Image.of(Pictures.fromarray(pixels))


def words(n: int, seed: int) -> str:
    """Random words."""
    return " ".join(np.random.default_rng(seed).choice(WORDS.split(), n))


def matmul(asked: Asked) -> None:
    """The rate of products of square matrices in bfloat16."""
    size = 256 if asked.small else 8192
    made = [torch.randn(size, size, device=asked.device, dtype=torch.bfloat16) for _ in range(2)]

    def products() -> None:
        for _ in range(10):
            torch.mm(*made)

    products()
    rate = 20 * size**3 / seconds(products, asked.device)
    asked.report.tell("matmul", size=size, tflops=rate / 1e12, of_peak=rate / PEAK)


def exact(asked: Asked) -> None:
    """Labels and replies, shared against each by itself, in float32; differences of bfloat16; gradients when packed."""
    from benchmarks.gpu_training import gradients

    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import tiny_models

    with tempfile.TemporaryDirectory() as at:
        model = str(prefix.build(Path(at) / "wide"))
        for family in ("llama 34M", *tiny_models.FAMILIES):
            folder, reads = model, prefix.requests(20 if asked.small else 600, K)
            if family != "llama 34M":
                folder = str(tiny_models.build(family, Path(at) / family))
                shown = (noise(112, 0),) if family in tiny_models.IMAGE_FAMILIES else ()
                reads = round_robin(shown, 30, 10, 0)
            reads = reads[:4] if asked.small else reads
            shared, alone = (opened(folder, "float32", share, asked) for share in (True, False))
            one, other = labels(shared, reads), labels(alone, reads)
            figures = {"float32_labels": float(np.abs(one - other).max())}
            figures["float32_argmax_differs"] = int((one.argmax(1) != other.argmax(1)).sum())
            most = 4 if asked.small else 64
            for name, sampling in (("greedy", Sampling(max_tokens=most)), ("drawn", Sampling(0.7, 0.9, most, 1))):
                said = [texts(engine, [replace(r, readout=None, sampling=sampling) for r in reads])
                        for engine in (shared, alone)]  # fmt: skip
                figures[f"{name}_replies_differ"] = sum(a != b for a, b in zip(*said, strict=True))
            figures["replies"] = len(reads)
            far = [np.abs(labels(opened(folder, "bfloat16", share, asked), reads) - other) for share in (True, False)]
            figures |= {"bfloat16_shared": float(far[0].mean()), "bfloat16_alone": float(far[1].mean())}
            asked.report.tell("exact", **{family: figures})
        asked.report.tell("exact", gradients=gradients(Path(at), model, asked.device, 2 if asked.small else 5))


def opened(folder: str, dtype: str, share: bool, asked: Asked) -> LocalEngine:
    """A model's engine on the device; in bfloat16 each request by itself where nothing is shared."""
    rows = 1 if dtype == "bfloat16" and not share else None
    return LocalEngine(folder, device=str(asked.device), dtype=dtype, share=share, batch_size=rows)


def answers(engine: LocalEngine, requests: Sequence[Request]) -> list[Completion]:
    """Completions in the order of the requests; RuntimeError for one that has none."""
    found = {done.key: done for done in engine.stream(requests)}
    for done in found.values():
        if done.error is not None:
            raise RuntimeError(f"{done.key}: {done.error}")
    return [found[request.key] for request in requests]


def labels(engine: LocalEngine, requests: Sequence[Request]) -> np.ndarray[Any, Any]:
    """Log-probabilities of labels, (requests, labels)."""
    return np.array([list((done.label_logprobs or {}).values()) for done in answers(engine, requests)])


def texts(engine: LocalEngine, requests: Sequence[Request]) -> list[str]:
    """Replies."""
    return [done.text for done in answers(engine, requests)]


def round_robin(shown: Sequence[Image], task: int, response: int, seed: int, feedback: int = 0) -> list[Request]:
    """All ordered pairs of K responses to pictures, of so many words; labels alone, or so many tokens of feedback."""
    said = [words(response, 100 * seed + i) for i in range(K)]
    asks = words(task, 100 * seed + 99)
    read = None if feedback else Readout(LABELS, "\n[RESULT] ", generate=False)
    return [
        Request(
            f"{seed}-{i}-{j}",
            (Message("user", (*shown, Span(f"{asks}\nFirst: {said[i]}\nSecond: {said[j]}\nWhich?"))),),
            readout=read, sampling=Sampling(max_tokens=max(1, feedback)),
        )
        for i in range(K) for j in range(K) if i != j
    ]  # fmt: skip


def engine(asked: Asked) -> None:
    """Judgments a second of the published shapes."""
    for shape in asked.shapes:
        with tempfile.TemporaryDirectory() as at:
            empty(asked.device)
            folder = model_folder(shape, Path(at), small=asked.small)
            loaded = random_model(folder, asked.device)
            idle(asked.device)
            _judged(asked, shape, loaded)
            del loaded


def _judged(asked: Asked, shape: str, loaded: Loaded) -> None:
    """Score only, and with feedback; pictures are new in every round, and their preparation counts."""
    edge, count = (1152, 1) if shape == "onevision" else (336, 13)
    if asked.small:
        edge, count = 56, count
    task, response = (20, 8) if asked.small else (150, 45)

    def made(seed: int, feedback: int = 0) -> list[Request]:
        return round_robin([noise(edge, 1000 * seed + n) for n in range(count)], task, response, seed, feedback)

    local = LocalEngine.of(loaded, name="random")
    first = made(0)
    answers(local, first)
    before = dict(local.work)
    cold, warm, alone, computing = [], [], [], []
    for n in range(1, asked.rounds + 1):
        requests = made(n)
        cold.append(seconds(partial(answers, local, requests), asked.device))
        prompts = [local._job(request).prompt for request in requests]
        warm.append(seconds(partial(answers, local, requests), asked.device))
        rows = [TokenRow(prompt, prompt.ids) for prompt in prompts[:: max(1, len(prompts) // 4)]]
        last_logits(rows[:1], loaded, 1)
        each = seconds(partial(_pair_by_pair, loaded, rows), asked.device) / len(rows)
        alone.append(each * len(requests))
        computing.append(sum(len(prompt.ids) for prompt in prompts))
    work = {name: value - before[name] for name, value in local.work.items() if name != "peak_bytes"}
    pairs, visual = len(first), sum(map(len, local._job(first[0]).prompt.seen.images))
    asked.report.tell(
        f"engine {shape}",
        parameters=sum(p.numel() for p in loaded.model.parameters()), visual_tokens=visual,
        tokens_a_pair=computing[-1] / pairs, tokens_asked=work["tokens_asked"], tokens_computed=work["tokens_computed"],
        score_only_a_second=pairs / median(cold), known_picture_a_second=pairs / median(warm),
        logits_pair_by_pair_seconds=median(alone), round_robin_seconds=median(cold),
        times_pair_by_pair=median(alone) / median(cold), times_pair_by_pair_known=median(alone) / median(warm),
        bound=work["tokens_asked"] / max(1, work["tokens_computed"]), peak_gb=most_bytes(asked.device) / 1e9,
    )  # fmt: skip
    for name, window in (("", 64), ("_in_one_window", asked.streamed * pairs)):
        with ThreadPoolExecutor() as pool:  # pictures of noise take longer to save than to judge
            rounds = list(pool.map(made, range(1000 + window, 1000 + window + asked.streamed)))
        once = [request for each in rounds for request in each]
        wide = LocalEngine.of(loaded, name="random", window=window)
        many = seconds(partial(answers, wide, once), asked.device)
        asked.report.tell(f"engine {shape}", **{f"{asked.streamed}_round_robins{name}_a_second": len(once) / many})
    difference = np.abs(labels(local, first[:4]) - _alone(loaded, first[:4])).max()
    asked.report.tell(f"engine {shape}", bfloat16_difference=float(difference))
    endless = replace(loaded, ends=())  # random weights would end some replies early
    for together in asked.together:
        size = together * pairs
        writer = LocalEngine.of(endless, name="random", batch_size=size, window=size)

        def asks(tokens: int, seed: int, together: int = together) -> list[Request]:
            with ThreadPoolExecutor() as pool:  # encoding pictures of noise takes longer than judging them
                rounds = pool.map(lambda n: made(seed + n, tokens), range(together))
                return [request for each in rounds for request in each]

        few = max(2, asked.feedback // 20)
        short, longer = asks(few, 100), asks(2 * few, 100)
        texts(writer, longer)
        times = [seconds(partial(answers, writer, each), asked.device) for each in (short, longer)]
        step = max(0.0, times[1] - times[0]) / few
        expected = times[1] + step * (asked.feedback - 2 * few)
        figures: dict[str, Any] = {"rows": size, "seconds_a_token": step, "peak_gb": most_bytes(asked.device) / 1e9}
        if expected < asked.left:
            written = asks(asked.feedback, 300)
            spent = seconds(partial(answers, writer, written), asked.device)
            figures |= {"feedback_tokens": asked.feedback, "a_second": size / spent, "seconds": spent}
        else:
            figures |= {"expected_a_second": size / expected, "why": "no time for the whole"}
        asked.report.tell(f"engine {shape}", **{f"feedback of {together} round robins": figures})


def _pair_by_pair(loaded: Loaded, rows: Sequence[TokenRow]) -> None:
    for row in rows:
        last_logits([row], loaded, 1)


def _alone(loaded: Loaded, requests: Sequence[Request]) -> np.ndarray[Any, Any]:
    """Log-probabilities of labels by the engine without sharing."""
    apart = LocalEngine.of(loaded, name="random", batch_size=1)
    apart.stop_sharing()
    return labels(apart, requests)


def scout(asked: Asked) -> None:
    """The bundled judge: tournaments of five responses, compared with feedback; and graded."""
    from benchmarks.sharing import tournaments
    from dikast.judging.judge import Judge

    n = 2 if asked.small else 20
    with tempfile.TemporaryDirectory() as at:
        items = tournaments(at, n + 1)
        judge = Judge(f"scout,device={asked.device}")
        list(judge.compare_many(items[:1]))
        compared: list[Any] = []
        spent = seconds(lambda: compared.extend(judge.compare_many(items[1:])), asked.device)
        asked.report.tell("scout", comparisons=20 * n, comparisons_a_second=20 * n / spent)
        graded: list[Any] = []
        spent = seconds(lambda: graded.extend(judge.grade_many(items[1:])), asked.device)
        asked.report.tell("scout", grades=len(graded), grades_a_second=len(graded) / spent)


def training(asked: Asked) -> None:
    """See `benchmarks.gpu_training`."""
    from benchmarks import gpu_training

    gpu_training.training(asked)


def align(asked: Asked) -> None:
    """See `benchmarks.gpu_training`."""
    from benchmarks import gpu_training

    gpu_training.align(asked)


def plan(asked: Asked) -> None:
    """See `benchmarks.gpu_training`."""
    from benchmarks import gpu_training

    gpu_training.planned(asked)


@contextmanager
def bounded(most: float) -> Iterator[None]:
    """Raise OutOfTime in here after so many seconds."""

    def stop(*_: object) -> None:
        raise OutOfTime(f"after {most:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print; the exit code is 1 where a part failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--parts", default=",".join(SECONDS), help="by commas; PART=SECONDS bounds its time")
    parser.add_argument("--small", action="store_true", help="tiny models of the same classes, on any device")
    parser.add_argument("--shapes", default="onevision,llava", help=f"of {', '.join(FAMILIES)}")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rounds", type=int, default=3, help="of score only")
    parser.add_argument("--streamed", type=int, default=3, help="round robins of score only in one stream")
    parser.add_argument("--feedback", type=int, default=200, help="tokens of a reply")
    parser.add_argument("--together", default="3,8", help="round robins that write at a time")
    parser.add_argument("--steps", type=int, default=20, help="of LoRA; full training takes a quarter of them")
    parser.add_argument("--json", type=Path, help="where the report goes")
    given = parser.parse_args(argv)
    device = torch.device(given.device)
    names = {each.partition("=")[0] for each in given.parts.split(",")}
    if device.type == "cpu" and not given.small and names != {"plan"}:
        raise SystemExit("the 7B shapes need a CUDA device: there is none (--small runs tiny models here)")
    report = Report(given.json)
    about = {"torch": torch.__version__, "device": str(device), "small": given.small}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        about |= {"device": properties.name, "memory_gb": properties.total_memory / 1e9}
    report.tell("about", **about)
    asked = Asked(
        device, given.small, tuple(given.shapes.split(",")), given.rounds, given.streamed, given.feedback,
        tuple(int(n) for n in given.together.split(",") if n), given.steps, report,
    )  # fmt: skip
    failed = False
    for name in given.parts.split(","):
        part, _, limit = name.partition("=")
        most = float(limit) if limit else SECONDS[part]
        since = time.monotonic()
        try:
            with bounded(most):
                globals()[part](replace(asked, deadline=since + most))
        except (Exception, OutOfTime):
            failed = True
            report.tell(f"failed {part}", traceback=traceback.format_exc())
        report.tell("seconds", **{part: time.monotonic() - since})
        empty(device)
    raise SystemExit(failed)


if __name__ == "__main__":
    main()
