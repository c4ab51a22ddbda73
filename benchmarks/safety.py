"""What the checksums of run folders and the search for the key in replies cost: `python -m benchmarks.client safety`.

Runs of `grade` with and without them take turns in one process, so that both meet the same machine. The difference is
smaller than what another program on the machine does to a run, so it is measured in two more ways: `share_within_runs`
is the processor time that one and the same run spends in them, less that of what replaces them, over all of its other
processor time; and each of the three pieces is timed alone: taking the key out of a reply, sealing a line of
`verdicts.jsonl`, and checking it when it is read.
"""

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from statistics import median
from typing import Any

import orjson

from benchmarks.client import KEY_ENV, TEXT, our_grade, served, tell

Call = Callable[..., Any]


@contextmanager
def unguarded(make: Callable[[Call, Call], Call] = lambda real, bare: bare) -> Iterator[None]:
    """Grading without checksums and without a search for the key: each is replaced by what does nothing, or by what
    `make` makes of the function and its replacement.
    """
    from unittest.mock import patch

    from dikast.core.runs import current_verdicts, run_files
    from dikast.engines.http import retrying
    from dikast.judging import ledger

    bare: list[tuple[Any, str, Call]] = [
        (ledger, "seal", lambda verdict: orjson.dumps(verdict.record()) + b"\n"),
        (current_verdicts, "open_line", lambda raw, **_: (orjson.loads(raw), "verified")),
        (run_files, "checksum", lambda path: ""),
        (run_files, "record", lambda folder, sums: None),
        (retrying, "clean", lambda done, scrub: done),
    ]
    with ExitStack() as stack:
        for module, name, instead in bare:
            stack.enter_context(patch.object(module, name, make(getattr(module, name), instead)))
        yield


def within(url: str, n: int) -> float:
    """The processor time of checksums and the search for the key in one run, as a share of all its other."""
    spent, extra = 0.0, 0.0

    def timed(real: Call, bare: Call) -> Call:
        turns = itertools.cycle(((real, bare), (bare, real)))  # the first of two finds its data out of the caches

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal spent, extra
            order, found, took = next(turns), {}, {}
            for each in order:
                began = time.thread_time()
                found[each] = each(*args, **kwargs)
                took[each] = time.thread_time() - began
            spent, extra = spent + took[real] - took[bare], extra + took[bare]
            return found[real]

        return call

    with unguarded(timed):
        began = time.process_time()
        our_grade(url, n, 128)
        return spent / (time.process_time() - began - spent - extra)


def compare(pairs: int, n: int = 1000) -> None:
    """What checksums and the search for the key add to a request of `grade`: runs with and without, in turns."""
    os.environ[KEY_ENV] = "sk-proj-abcdefghijklmnop0123456789ABCDEFGHIJ"
    found: dict[bool, list[float]] = {True: [], False: []}
    with served() as url:
        our_grade(url, 500, 128)
        for pair in range(pairs):
            for guarded in (True, False) if pair % 2 else (False, True):
                with nullcontext() if guarded else unguarded():
                    began = time.process_time()
                    our_grade(url, n, 128)
                    found[guarded].append((time.process_time() - began) / n * 1e6)
        shares = sorted(within(url, n) for _ in range(max(3, pairs // 4)))
    ratios = sorted(mine / other for mine, other in zip(found[True], found[False], strict=True))
    mine, other = median(found[True]), median(found[False])
    tell(
        what="safety", pairs=pairs, n=n, with_us=mine, without_us=other, share=mine / other - 1,
        median_of_ratios=median(ratios) - 1, least=ratios[0] - 1, largest=ratios[-1] - 1,
        share_within_runs=median(shares), least_within=shares[0], largest_within=shares[-1], **pieces(other),
    )  # fmt: skip


def pieces(request_us: float) -> dict[str, float]:
    """The same, each measured by itself: microseconds a request, and all of them as a share of `request_us`."""
    from dikast.core.runs.lines import open_line, seal
    from dikast.core.secrets import Scrubber
    from dikast.core.verdict import Question, Status, Verdict
    from dikast.engines.base import Completion
    from dikast.engines.http.retrying import clean

    scrub, answered = Scrubber([os.environ[KEY_ENV]]), Completion("key", TEXT)
    verdict = Verdict("k" * 32, Question("item", "helpfulness"), Status.OK, label="4", score=4.0, raw=TEXT)
    line, bare = seal(verdict), orjson.dumps(verdict.record())
    scrubbing = each_us(lambda: clean(answered, scrub))
    sealing = more_us(lambda: seal(verdict), lambda: orjson.dumps(verdict.record()) + b"\n")
    opening = more_us(lambda: open_line(line, path="", line=1), lambda: orjson.loads(bare))
    total = scrubbing + sealing + opening
    return {"scrub_us": scrubbing, "seal_us": sealing, "open_us": opening, "share_of_pieces": total / request_us}


def more_us(action: Callable[[], object], without: Callable[[], object], repeat: int = 25) -> float:
    """What one call of `action` takes more than one of `without`: the median over turns, each of both in a row."""
    return median(each_us(action, 2000, 1) - each_us(without, 2000, 1) for _ in range(repeat))


def each_us(action: Callable[[], object], n: int = 5000, repeat: int = 9) -> float:
    """CPU of one call in microseconds: the median of `repeat` times `n` calls."""
    found = []
    for _ in range(repeat):
        began = time.process_time()
        for _ in range(n):
            action()
        found.append((time.process_time() - began) / n * 1e6)
    return median(found)
