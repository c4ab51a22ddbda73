"""Progress on stderr: a live line on a terminal, a plain line every 30 seconds elsewhere."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from dikast.core.text import printable
from dikast.judging.judge_file import Progress

if TYPE_CHECKING:
    from dikast.corpus.pipeline.stage import StageReport

_PLAIN_EVERY = 30.0
_LIVE_EVERY = 0.1
_REASONS = 3  # that a line names


class ProgressLine:
    """Call it with each `Progress`; use as a context manager so that the last state is printed."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.live = sys.stderr.isatty() and not quiet
        self.quiet = quiet
        self._last: Progress | None = None
        self._shown = time.monotonic()
        self._started_at: int | None = None

    def __enter__(self) -> "ProgressLine":
        return self

    def __call__(self, progress: Progress) -> None:
        """Note how far the run is; prints only when it is time to."""
        self._last = progress
        if self._started_at is None:
            self._started_at = progress.done - 1
        now = time.monotonic()
        if not self.quiet and now - self._shown >= (_LIVE_EVERY if self.live else _PLAIN_EVERY):
            self._shown = now
            self._print(progress, end="" if self.live else "\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._last is not None and not self.quiet:
            self._print(self._last, end="\n")

    def _print(self, progress: Progress, *, end: str) -> None:
        asked = progress.done - (self._started_at or 0)
        rate = asked / progress.seconds if progress.seconds > 0 else 0.0
        left = (progress.total - progress.done) / rate if rate > 0 else float("inf")
        failures = f", {progress.failed} without a verdict" if progress.failed else ""
        line = f"{progress.done:,} of {progress.total:,} verdicts, {rate:.3g}/s{failures}, {_clock(left)} left"
        print(f"\r\x1b[K{line}" if self.live else line, end=end, file=sys.stderr, flush=True)  # noqa: T201


class StageLine:
    """The same for the stages of a build; the number of tasks is known only as they are made."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.live = sys.stderr.isatty() and not quiet
        self.quiet, self._shown = quiet, time.monotonic()

    def __enter__(self) -> "StageLine":
        return self

    def __call__(self, report: "StageReport") -> None:
        """Note how far a stage is; prints only when it is time to."""
        now = time.monotonic()
        if self.quiet or now - self._shown < (_LIVE_EVERY if self.live else _PLAIN_EVERY):
            return
        self._shown = now
        line = printable(stage_line(report))
        print(f"\r\x1b[K{line}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)  # noqa: T201

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)  # noqa: T201


def stage_line(report: "StageReport") -> str:
    """One line: what was accepted, its share, rejects by reason, what is left, records, tokens, money."""
    answered = report.accepted + report.rejects
    parts = [f"{report.accepted:,} accepted" + (f" ({report.accepted / answered:.0%})" if answered else "")]
    if report.rejects:
        parts.append(", ".join(f"{n:,} {reason}" for reason, n in report.rejected.most_common(_REASONS)))
    parts += [f"{n:,} {reason}" for reason, n in report.left.most_common(_REASONS)]
    parts.append(f"{report.records:,} records, {report.tokens_in + report.tokens_out:,} tokens")
    if report.money is not None:
        parts.append(f"{report.money:.4g} money")
    return f"{report.name}: {'; '.join(parts)}"


def _clock(seconds: float) -> str:
    if seconds == float("inf"):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
