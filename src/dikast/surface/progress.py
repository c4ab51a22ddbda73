"""Progress on stderr: a live line on a terminal from the first second, a plain line now and then elsewhere. In a
Jupyter notebook: a line below the cell.
"""

import importlib
import shutil
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from dikast.core.text import printable
from dikast.judging.watching import Progress, Watcher

if TYPE_CHECKING:
    from dikast.corpus.pipeline.stage import StageReport

_PLAIN_EVERY = 30.0
_PLAIN_FIRST = 2.0
_PLAIN_WAITING = 5.0  # between two lines that say what is waited for
_LIVE_EVERY = 0.1
_NOTEBOOK_FIRST = 1.0  # seconds after which a notebook shows a line: shorter calls leave its outputs as they are
_BEAT = 0.2  # seconds between two looks at what goes on while no verdict comes
_REASONS = 3  # that a line names
_REASON, _NARROW = 20, 70  # characters of what is waited for where not all fits, half below this width


class ProgressLine:
    """Call it with each `Progress`; as a context manager it also tells of what happens between them, and of the end."""

    def __init__(self, *, quiet: bool = False) -> None:
        self.live = sys.stderr.isatty() and not quiet
        self.quiet = quiet
        self._last: Progress | None = None
        self._heard = self._began = time.monotonic()
        self._shown = float("-inf")
        self._waited = ""
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._beat: threading.Thread | None = None

    def __enter__(self) -> "ProgressLine":
        if not self.quiet:
            self._began = time.monotonic()
            self._beat = threading.Thread(target=self._watch, name="dikast-progress", daemon=True)
            self._beat.start()
        return self

    def __call__(self, progress: Progress) -> None:
        """Note how far the run is; prints only when it is time to."""
        self._last, self._heard = progress, time.monotonic()
        if self.live and self._heard - self._shown >= _LIVE_EVERY:
            self._print(progress, end="")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._beat is not None:
            self._beat.join()
        if self._last is not None and not self.quiet:
            self._print(self._last, end="\n")

    def _watch(self) -> None:
        while not self._over.wait(_BEAT):
            progress = self._last
            if progress is None:
                continue
            now = time.monotonic()
            if self.live:
                self._print(progress, end="")
                continue
            waiting = progress.pulse().waiting
            news = waiting != self._waited and now - max(self._shown, self._began) >= _PLAIN_WAITING
            first = self._shown < self._began and now - self._began >= _PLAIN_FIRST
            if first or news or now - max(self._shown, self._began) >= _PLAIN_EVERY:
                self._waited = waiting
                self._print(progress, end="\n")

    def _print(self, progress: Progress, *, end: str) -> None:
        with self._lock:
            self._shown = now = time.monotonic()
            wide = shutil.get_terminal_size().columns - 1 if self.live and not end else None
            line = line_of(progress, progress.seconds + (0.0 if self._over.is_set() else now - self._heard), wide)
            self._write(line, end)

    def _write(self, line: str, end: str) -> None:
        print(f"\r\x1b[K{line}" if self.live else line, end=end, file=sys.stderr, flush=True)  # noqa: T201


class NotebookLine(ProgressLine):
    """The same as one output of a notebook's cell, which is replaced while the run goes on."""

    def __init__(self, display: Callable[..., Any]) -> None:
        super().__init__()
        self.live, self._display, self._output = True, display, None

    def _write(self, line: str, end: str) -> None:
        shown = {"text/plain": line}
        if self._output is not None:
            self._output.update(shown, raw=True)
        elif time.monotonic() - self._began >= _NOTEBOOK_FIRST:
            self._output = self._display(shown, raw=True, display_id=True)


def telling(watch: Watcher | None) -> AbstractContextManager[Watcher | None]:
    """The caller's own watcher; where there is none, a line in a Jupyter notebook, and nothing elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if watch is None and ipython is not None else None
    if getattr(shell, "kernel", None) is None:
        return nullcontext(watch)
    return NotebookLine(importlib.import_module("IPython.display").display)


class _Part(NamedTuple):
    """A part of the line. Where the line is too long, parts are shortened or left out, the largest `rank` first."""

    rank: int
    text: str
    short: str = ""


def line_of(progress: Progress, seconds: float, wide: int | None = None) -> str:
    """One line: answered and asked (with those of earlier calls), failed, what is waited for, the budget left, money
    spent and expected, time left, rate, tokens. At most `wide` characters, where it is given: what matters least is
    left out.
    """
    answered, pulse = progress.done - progress.before, progress.pulse()
    rate = answered / seconds if seconds > 0 else 0.0
    left = (progress.total - progress.done) / rate if rate > 0 else float("inf")
    count = f"{progress.done:,} of {progress.total:,}"
    parts = [_Part(0, f"{count} verdicts", count)]
    if pulse.asked > answered:
        parts.append(_Part(6, f"{pulse.asked + progress.before:,} asked"))
    if progress.failed:
        parts.append(_Part(3, f"{progress.failed:,} failed"))
    if waiting := printable(pulse.waiting):  # a server's words
        what, mark, attempt = waiting.rpartition("; ")
        room = _REASON if wide is None or wide > _NARROW else _REASON // 2
        reason = what if len(what) <= room else f"{what[: room - 1].rstrip()}…"
        parts.append(_Part(1, waiting, f"{reason}{mark}{attempt}"))
    if pulse.left:
        parts.append(_Part(2, pulse.left))
    if progress.cost is not None:
        more = progress.expected if progress.done < progress.total else None
        spent = f"cost {progress.cost:.4g}"
        parts.append(
            _Part(4, spent, "") if more is None else _Part(4, f"{spent} of about {more:.3g}", f"{spent} of ~{more:.3g}")
        )
    elif progress.unpriced:
        parts.append(_Part(4, "cost unknown (--price IN,OUT)", "cost unknown"))
    if answered:
        parts += [_Part(5, f"{_clock(left)} left"), _Part(7, f"{rate:.3g}/s")]
    if progress.tokens:
        parts.append(_Part(8, f"{progress.tokens:,} tokens"))
    return _fitted(parts, wide)


def _fitted(parts: list[_Part], wide: int | None) -> str:
    """The parts in one line: all in full, then all in short, then without those that matter least."""
    line = ", ".join(part.text for part in parts)
    if wide is None or len(line) <= wide:
        return line
    kept = list(parts)
    while len(line := ", ".join(part.short or part.text for part in kept)) > wide and len(kept) > 1:
        kept.remove(max(kept))
    return line if len(line) <= wide else f"{line[: wide - 1]}…"


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
