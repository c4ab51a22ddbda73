"""The pages of the viewer: the list of runs, a run, an item with its verdicts, two runs side by side."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
from markupsafe import Markup

from dikast.core.errors import DataError, UserError
from dikast.core.html.page_templates import asset, asset_hash
from dikast.core.runs.as_judged import is_as_judged
from dikast.core.runs.judge_lock import read_lock
from dikast.core.runs.lines import open_line
from dikast.core.runs.rubrics import readable_rubrics
from dikast.core.runs.run_files import VERDICTS
from dikast.surface.report.contents import MOST_PICTURES, ExactPrompts, JudgedItems, Thumbs
from dikast.surface.report.page import ROOM, page_environment
from dikast.surface.report.queue import Entry, add_texts, entry_of, no_prompt, place_of
from dikast.surface.report.subject import prompt_of
from dikast.surface.viewer import item_notes
from dikast.surface.viewer.lineage import found_above, lineage
from dikast.surface.viewer.run_changes import SHOWS, changes, compared, count_compared, crossed, scales_apart, totals
from dikast.surface.viewer.run_folders import LIVE_SECONDS, STATES, UNREAD, in_one_order, state_now
from dikast.surface.viewer.run_index import BEHIND, Listed, RunIndex

PAGE = 100  # rows of a page
_MOST_WORDS = 100  # of a search: SQLite takes conditions of at most 1,000 parts
_ROOM = "dikast.surface.viewer"
_CURE = "put the file that was judged back, or into the folder of the run"
_SORTS = {"newest": "written desc", "name": "path", "judge": "judge", "most rows": "planned desc",
          "most failures": "failed * 1.0 / max(answered, 1) desc",
          "least like gold": "differing * 1.0 / max(compared, 1) desc"}  # fmt: skip
_ROW_SORTS = {"as asked": "place", "largest gap": "gap is null, gap desc, place", "item": "item, place"}
_ROW_SHOWS = {"all": "1", "not as gold": "gap > 0", "no verdict": "status != 'ok'",
              "as gold": "gap = 0"}  # fmt: skip
Query = Mapping[str, str]


class NotHere(UserError):
    """There is no such page."""


@dataclass(frozen=True, slots=True)
class At:
    """Where in a list a page is."""

    number: int
    last: int
    address: str
    given: tuple[tuple[str, str], ...]

    def to(self, number: int) -> str:
        """The address of another page of the list."""
        kept = [(name, value) for name, value in self.given if name != "page"]
        return f"{self.address}?{urlencode([*kept, ('page', number)])}"


def policy() -> str:
    """The content security policy: the pages' own style and script, pictures in the page, forms to this server."""
    return (
        "default-src 'none'; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors"
        f" 'none'; style-src '{asset_hash(_style())}'; style-src-attr 'unsafe-inline'; script-src '"
        f"{asset_hash(_script())}'"
    )


class ViewerPages:
    """Renders pages from an index; every page may be asked for from any thread."""

    def __init__(self, index: RunIndex) -> None:
        self.index, self.root = index, index.root
        self._template = _template()

    def runs(self, query: Query) -> str:
        """The list of runs, filtered and in order."""
        self.index.look()
        given = {name: query.get(name, "") for name in ("q", "state", "kind", "judge", "data")}
        given["sort"] = query.get("sort", "") if query.get("sort") in _SORTS else "newest"
        where, values = _filters(given, "search", ("kind", "judge", "data"))
        now = time.time()
        if given["state"]:
            where.append(
                "case when state='unfinished' and abs(? - written) < ? then 'being written' else state end = ?"
            )
            values += [now, LIVE_SECONDS, given["state"]]
        condition = " and ".join(where)
        count = self.index.count("run", condition, values)
        at = _at(query, count, "/", tuple(given.items()))
        found = self.index.runs(condition, values, _SORTS[given["sort"]], (at.number - 1) * PAGE, PAGE)
        found = [each._replace(state=state_now(each.state, each.written, now)) for each in found]
        behind, unread = self.index.count("run", BEHIND, ()), self.index.count("run", "state=?", (UNREAD,))
        told = self.index.select("select kind, judge, data from run", ())
        return self._page(
            "list", "Runs", given=given, runs=found, count=count, total=len(told), at=at, behind=behind,
            unread=unread, live=behind or unread or any(each.state == "being written" for each in found),
            states=STATES, sorts=_SORTS,
            kinds=_most(each[0] for each in told), judges=_most(each[1] for each in told),
            datas=_most(each[2] for each in told),
        )  # fmt: skip

    def run(self, query: Query) -> str:
        """One run: its facts, its progress, and its rows."""
        run = self._run(query.get("of", ""))
        given = {name: query.get(name, "") for name in ("q", "status", "criterion", "said")}
        given["show"] = query.get("show", "") if query.get("show") in _ROW_SHOWS else "all"
        given["sort"] = query.get("sort", "") if query.get("sort") in _ROW_SORTS else "as asked"
        where, values = _filters(given, "lower(item)", ("status", "criterion", "said"))
        where.append(_ROW_SHOWS[given["show"]])
        condition = " and ".join(where)
        count = self.index.count("row", f"run=? and {condition}", (run.id, *values))
        at = _at(query, count, "/run", (("of", run.path), *given.items()))
        rows = self.index.rows(run.id, condition, values, _ROW_SORTS[given["sort"]], (at.number - 1) * PAGE, PAGE)
        folder = self.root / run.path
        panel, lock = run.kind == "panel", read_lock(folder) or {}
        same = "path != ? and kind != 'panel' and data = ? and kind = ?"
        others = self.index.runs(same, (run.path, run.data, run.kind), most=200)
        return self._page(
            "run", run.path, run=run, one_order=in_one_order(folder), given=given, rows=rows, count=count, at=at,
            prompt=prompt_of(lock.get("format")), steps=[] if panel else lineage(folder, run, lock),
            noted=Counter(note.item for note in item_notes.notes_in(folder)[0]),
            statuses=self.index.distinct(run.id, "status"), criteria=self.index.distinct(run.id, "criterion"),
            saids=self.index.distinct(run.id, "said"), shows=_ROW_SHOWS, sorts=_ROW_SORTS,
            others=[each.path for each in others],
            judges=self.index.runs("path glob ?", (f"{_literal(run.path)}/*",), "path") if panel else [],
        )  # fmt: skip

    def item(self, query: Query) -> str:
        """One question with its texts and pictures, what was said, in a second run too, and the notes on it."""
        run = self._run(query.get("run", ""))
        anchor = query.get("at", "")
        entry, told, hashes = self._entry(run, anchor)
        other, why = None, list[str]()
        beside = query.get("beside", "")
        if beside:
            second = self._run(beside)
            try:
                other, _, differ = self._entry(second, anchor, pictures=0)
                pairs = zip(("model", "prompt", "rubric", "item"), hashes, differ, strict=True)
                why = [name for name, one, two in pairs if one != two]
            except NotHere:
                told = f"{told}\n{beside} does not have this question.".strip()
        before, after = self.index.neighbours(run.id, anchor)
        found = self.index.select(
            "select path from row join run on run.id=row.run where anchor=? and run!=? order by written desc limit 20",
            (anchor, run.id),
        )
        notes, lost = item_notes.notes_in(self.root / run.path)
        return self._page(
            "item", entry.item, [(run.path, link("/run", of=run.path))], run=run, entry=entry, told=told, other=other,
            beside_path=beside if other else "", why=why, before=before, after=after, lost=lost,
            others=[path for (path,) in found if path != beside],
            notes=[each for each in notes if each.item == entry.item], longest=item_notes.LONGEST,
        )  # fmt: skip

    def compare(self, query: Query, runs: Sequence[str]) -> str:
        """Two runs: what differs between them, and every question that both have."""
        named = [each for each in runs if each]
        if len(named) != 2 or named[0] == named[1]:
            raise UserError(f"Choose two runs to compare: {len(set(named))} were chosen.")
        one, two = (self._run(each) for each in named)
        for each in (one, two):
            if each.kind == "panel":
                raise UserError(f"{each.path} is a panel, without verdicts of its own: compare the runs of its judges.")
        given = {"q": query.get("q", ""), "show": query.get("show", "changed")}
        if given["show"] not in SHOWS:
            given["show"] = "changed"
        count = count_compared(self.index, one, two, given["show"], given["q"])
        at = _at(query, count, "/compare", (("run", one.path), ("run", two.path), *given.items()))
        return self._page(
            "compare", "Two runs", one=one, two=two, given=given, shows=SHOWS, count=count, at=at,
            sums=totals(self.index, one, two), changed=changes(self.root, one, two),
            cells=crossed(self.index, one, two), scales=scales_apart(self.index, one, two),
            rows=compared(self.index, one, two, given["show"], given["q"], (at.number - 1) * PAGE, PAGE),
            alone=[each.path for each in (one, two) if in_one_order(self.root / each.path)],
        )  # fmt: skip

    def problem(self, told: str) -> str:
        """A page that says what is wrong."""
        return self._page("problem", "Not here", told=told)

    def item_of(self, path: str, anchor: str) -> tuple[Path, str]:
        """The folder of a run and the item of one of its rows. NotHere where there is none."""
        run = self._run(path)
        found = self.index.kept(run.id, anchor)
        if found is None:
            raise NotHere("There is no such question in this run.")
        return self.root / run.path, str(found[0]["item"])

    def _run(self, path: str) -> Listed:
        self.index.look()
        self.index.look_at(path)
        if self.index.run(path) is None:
            raise NotHere(f"There is no run {path!r} in {self.root} (any more).")
        self.index.read(path, wait=False)
        run = self.index.run(path)
        assert run is not None
        return run._replace(state=state_now(run.state, run.written, time.time()))

    def _entry(self, run: Listed, anchor: str, pictures: int = MOST_PICTURES) -> tuple[Entry, str, tuple[Any, ...]]:
        """A row read in full; what is missing from it; the fingerprints of judge, prompt, rubric and item.

        `pictures` are the most bytes of its pictures.
        """
        found = self.index.kept(run.id, anchor)
        if found is None:
            raise NotHere("There is no such question in this run (yet).")
        kept, offsets = found
        folder = self.root / run.path
        verdicts = [_verdict_at(folder, offset) for offset in offsets]
        lock = read_lock(folder) or {}
        moved = found_above(folder, str(lock.get("items") or ""))
        contents = JudgedItems.of(folder, lock, str(moved or ""), cure=_CURE).contents([str(kept["item"])])
        item = contents.items.get(str(kept["item"]))
        prompt = no_prompt if item is None else partial(ExactPrompts(lock).of, item)
        entry = entry_of(kept, verdicts, readable_rubrics(folder), prompt, redact=False)
        if item is not None and not is_as_judged(item, verdicts):
            contents.changed.add(item.id)
        elif item is not None:
            add_texts(entry, item, place_of(kept)[3], Thumbs(pictures, lock))
        hashes = verdicts[0].get("hashes") or {}
        return entry, contents.told, tuple(hashes.get(name) for name in ("judge", "format", "rubric", "item"))

    def _page(self, kind: str, title: str, trail: Sequence[tuple[str, str]] = (), **values: Any) -> str:
        return self._template.render(
            kind=kind, title=title, trail=trail, root=str(self.root), folder=self.root.resolve().name,
            version=version("dikast"),
            style=Markup(_style()), script=Markup(_script()), link=link, when=_when, share=_share, **values,
        )  # fmt: skip


def link(address: str, **values: Any) -> str:
    """An address with a query; empty values are left out."""
    return f"{address}?{urlencode({name: value for name, value in values.items() if value}, doseq=True)}"


def _filters(given: Query, text: str, columns: Sequence[str]) -> tuple[list[str], list[Any]]:
    """Conditions and their values: each word of `q` stands in the expression `text`, each column is as given."""
    words = list(dict.fromkeys(given["q"].casefold().split()))
    if len(words) > _MOST_WORDS:
        raise UserError(f"A search takes at most {_MOST_WORDS} different words: {len(words):,} were given.")
    chosen = [column for column in columns if given[column]]
    where = ["1", *(f"instr({text}, ?)" for _ in words), *(f"{column}=?" for column in chosen)]
    return where, [*words, *(given[column] for column in chosen)]


def _verdict_at(folder: Path, offset: int) -> dict[str, Any]:
    """The verdict that begins at a byte. NotHere where the file is not as it was when it was read."""
    path = folder / VERDICTS
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return open_line(file.readline(), path=str(path), line=0)[0]
    except (OSError, DataError):
        raise NotHere("The run was written again: load the page again in a moment.") from None


def _at(query: Query, count: int, address: str, given: tuple[tuple[str, str], ...]) -> At:
    asked = query.get("page", "1")
    last = max(1, -(-count // PAGE))
    number = int(asked) if asked.isdecimal() and len(asked) < 8 else 1
    return At(min(max(number, 1), last), last, address, tuple((name, value) for name, value in given if value))


def _most(values: Any) -> list[str]:
    """The values that are there, most frequent first, at most 100."""
    return [value for value, _ in Counter(value for value in values if value).most_common(100)]


def _literal(path: str) -> str:
    return "".join(f"[{each}]" if each in "*?[" else each for each in path)


def _when(at: float) -> str:
    """A time in UTC, to the minute; "" where there is none."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC" if at else ""
    except (OverflowError, ValueError, OSError):  # no time at all, as a note of somebody else may say
        return ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else ""


def _style() -> str:
    return asset(ROOM, "page.css") + asset(_ROOM, "viewer.css")


def _script() -> str:
    return asset(_ROOM, "viewer.js")


@lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    return page_environment().from_string(asset(_ROOM, "viewer.html.j2"))
