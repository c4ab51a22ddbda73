"""What the checksums of run folders and the search for the key in replies cost: `python -m benchmarks.client safety`.

Runs of `grade` with and without them take turns in one process, so that both meet the same machine. Since the
difference is smaller than what another program on the machine does to a run, each of the three pieces is also measured
by itself: taking the key out of a reply, sealing a line of `verdicts.jsonl`, and checking it when it is read.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from statistics import median

import orjson

from benchmarks.client import KEY_ENV, TEXT, our_grade, served, tell


@contextmanager
def unguarded() -> Iterator[None]:
    """Grading without checksums and without a search for the key: each is replaced by what does nothing."""
    from unittest.mock import patch

    from dikast.core.runs import current_verdicts, run_files
    from dikast.engines.http import retrying
    from dikast.judging import ledger

    with (
        patch.object(ledger, "seal", lambda verdict: orjson.dumps(verdict.record()) + b"\n"),
        patch.object(current_verdicts, "open_line", lambda raw, **_: (orjson.loads(raw), "verified")),
        patch.object(run_files, "checksum", lambda path: ""),
        patch.object(run_files, "record", lambda folder, sums: None),
        patch.object(retrying, "clean", lambda done, scrub: done),
    ):
        yield


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
    ratios = sorted(mine / other for mine, other in zip(found[True], found[False], strict=True))
    mine, other = median(found[True]), median(found[False])
    tell(
        what="safety", pairs=pairs, n=n, with_us=mine, without_us=other, share=mine / other - 1,
        median_of_ratios=median(ratios) - 1, least=ratios[0] - 1, largest=ratios[-1] - 1, **pieces(other),
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
