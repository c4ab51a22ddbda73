"""What a page holds in full: as many rows as fit, whatever their texts and pictures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dikast.surface.report.collecting.run_page import RunPage
from dikast.surface.report.queue import Entry

MOST_BYTES = 10_000_000  # of a page
FAILED, SAMPLED = 4, 8  # rows without a verdict have a fourth of the room if they need it, the sample an eighth


@dataclass(frozen=True, slots=True)
class HeldRows:
    """The rows of a run that its page shows, as HTML, and those that do not fit on it."""

    gaps: Sequence[Markup]
    failed: Sequence[Markup]
    sample: Sequence[Markup]
    left: Sequence[Entry]

    @property
    def n(self) -> int:
        """How many rows are shown."""
        return len(self.gaps) + len(self.failed) + len(self.sample)

    @property
    def size(self) -> int:
        """Bytes of the rows that are shown."""
        return sum(map(size_of, (*self.gaps, *self.failed, *self.sample)))

    def told(self, page: RunPage, *, has_gold: bool) -> str:
        """How many rows are shown, chosen how, of how many."""
        chosen_by = "with the largest gaps" if has_gold else "that are the least certain" if page.gaps else "in order"
        parts = [
            f"{len(self.gaps):,} {chosen_by}",
            *([f"{len(self.failed):,} without a verdict"] if self.failed else []),
            *([f"{len(self.sample):,} drawn at random from the others (seed {page.seed})"] if self.sample else []),
        ]
        chosen = f": {', '.join(parts)}" if len(parts) > 1 else ""
        told = f"{self.n:,} of {page.rows:,} rows are here{chosen}"
        if self.left:
            told += f"; {len(self.left):,} more would not fit into the {MOST_BYTES / 1e6:g} MB of a page"
        return told


def held(page: RunPage, row: Callable[[Entry], Markup], room: int) -> HeldRows:
    """The rows of a page that fit into `room` bytes: of the largest gaps, of those without a verdict and of the sample
    the first ones each. `row` renders one.
    """
    groups = [
        [each for each in page.entries if each.status == "ok"],
        [each for each in page.entries if each.status != "ok"],
        page.sample,
    ]
    drawn = [[row(each) for each in group] for group in groups]
    needed = [sum(map(size_of, each)) for each in drawn]
    reserved = [0, min(needed[1], room // FAILED), min(needed[2], room // SAMPLED)]
    shown: list[list[Markup]] = []
    for number, each in enumerate(drawn):
        fits = _first(each, room - sum(reserved[number + 1 :]))
        room -= sum(map(size_of, fits))
        shown.append(fits)
    left = [entry for group, fits in zip(groups, shown, strict=True) for entry in group[len(fits) :]]
    gaps, failed, sample = shown
    return HeldRows(gaps, failed, sample, left)


def first_of(run: int, number: int = 1) -> str:
    """The name of a page of rows beside a report: the number of its run, and its own among the pages of that run."""
    return f"{run}-{number}.html"


def size_of(text: str) -> int:
    """Bytes in UTF-8."""
    return len(text.encode())


def _first(rows: Sequence[Markup], room: int) -> list[Markup]:
    """The longest beginning of the rows that fits."""
    fits = []
    for each in rows:
        room -= size_of(each)
        if room < 0:
            break
        fits.append(each)
    return fits
