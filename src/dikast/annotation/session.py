"""A folder of labels: created once, resumed later, and refused if questions or settings have changed since."""

import os
import re
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from dikast.annotation.active_order import priorities_of
from dikast.annotation.assignment import assign
from dikast.annotation.label_store import SKIPPED, LabelStore, hashed
from dikast.annotation.labelling_questions import WORTH, ToLabel, is_answer, verdicts_on
from dikast.annotation.labels_file import TRAIL, write_labels
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError, database_at
from dikast.core.output_folder import one_writer, replacing
from dikast.core.records import read_records
from dikast.core.runs.as_judged import content_hash
from dikast.core.runs.run_files import refuse_special
from dikast.core.text import counted

LINKS = "links.json"
_SHOWN, _KNOWN, _DIGITS = "shown", "known", 8
_LATEST = 253402300800.0  # seconds from 1970 to the year 10000


@dataclass(frozen=True, slots=True)
class Shares:
    """How questions are assigned: `overlap` raters each (0: all), the share of `repeats`, practice questions.

    `names`: of the raters, as many as there are; () for 1, 2, ...
    """

    raters: int = 1
    overlap: int = 0
    repeats: float = 0.0
    training: int = 0
    seed: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """An open folder: its database, its questions by key, and the secret tokens of the links (`owner` and raters)."""

    folder: Path
    store: LabelStore
    questions: Mapping[str, ToLabel]
    words: Mapping[str, str]

    @property
    def owner(self) -> str:
        """The secret token of the owner's link."""
        return self.words["owner"]

    def links(self, address: str) -> dict[str, str]:
        """Each rater's link, and the owner's under the name `owner`."""
        found = {name: f"{address}/r/{word}" for name, word in self.words.items() if name != "owner"}
        return {**found, "owner": f"{address}/o/{self.owner}"}

    def write(self) -> int:
        """Write `labels.csv`, `labelled.jsonl` and `trail.csv`; returns the number of labels."""
        return write_labels(self.folder, self.store, self.questions)


@contextmanager
def opened(
    folder: Path, questions: list[ToLabel], shares: Shares, spread: Mapping[str, float] | None = None
) -> Iterator[Session]:
    """Create or resume a folder of labels and lock it; the files are written at the end.

    `spread`, a judge's uncertainty by key, gives new labels an active order.
    Raises UserError if the questions or settings differ from those that labelling began with, and if the database is
    gone: a new one would replace the files of the old labels.
    """
    names = shares.names or _numbered(shares.raters)
    shown, known = _shown(questions), "".join(_of_known(each.known) for each in questions)
    meta = {
        "questions": fingerprint([each.key for each in questions]),
        "raters": str(shares.raters), "rater": ", ".join(names),
        "overlap": str(shares.overlap or shares.raters), "repeats": f"{shares.repeats:g}",
        "training": str(shares.training), "seed": str(shares.seed),
    } | ({} if spread is None else {"order": "active"})  # fmt: skip
    with one_writer(folder, "labelling"):
        refuse_special(folder)
        store = LabelStore(folder)
        try:
            if not store.begun:
                if (folder / TRAIL).exists() or store.lost:  # a database wrote it
                    shows = TRAIL if (folder / TRAIL).exists() else store.log.name
                    raise UserError(
                        f"{store.path}: the labels are gone, though {shows} shows that there were some: restore a copy"
                        " of the folder, or name another one with --out"
                    )
                words = _words(folder, names)
                order = {} if spread is None else priorities_of([each.key for each in questions], spread, shares.seed)
                tasks = assign(
                    questions, shares.raters, overlap=shares.overlap or shares.raters, repeats=shares.repeats,
                    training=shares.training, seed=shares.seed, priorities=order,
                )  # fmt: skip
                store.begin(
                    {**meta, _SHOWN: shown, _KNOWN: known},
                    [(name, word) for name, word in words.items() if name != "owner"],
                    tasks,
                    order,
                )
            by_key = {each.key: each for each in questions}
            try:
                with database_at(store.path):
                    was = _settings(store)
                    for name, now, what in ((_SHOWN, shown, _TEXTS), (_KNOWN, known, _GOLD)):
                        _unchanged(questions, was.pop(name, now), now, what)  # earlier versions kept none
                    _same(folder, was, meta)
                    wrong = _impossible(store, by_key)
            except sqlite3.DatabaseError as error:
                wrong = str(error)
            if wrong:
                raise UserError(f"{store.path}: the labels are damaged ({wrong}): restore a copy of the folder")
            _not_emptied(store, folder / TRAIL)
            session = Session(folder, store, by_key, _kept(folder, store))
            try:
                yield session
            finally:
                session.write()
        finally:
            store.close()


def _numbered(raters: int) -> tuple[str, ...]:
    """The names of raters who were given none."""
    return tuple(str(n) for n in range(1, raters + 1))


def _settings(store: LabelStore) -> dict[str, str]:
    """What labelling began with. Earlier versions kept names, where they were given, in the place of the number."""
    meta, n = store.meta, len(store.raters)
    if "rater" in meta:
        return meta
    given = meta.get("raters", "")
    return {**meta, "raters": str(n), "rater": ", ".join(_numbered(n)) if given == str(n) else given}


def _shown(questions: Sequence[ToLabel]) -> str:
    """What raters see of each question, media by their bytes, as fingerprints of `_DIGITS` digits in a row."""
    found: dict[tuple[str, tuple[int, ...]], str] = {}
    for each in questions:
        place = (each.item.id, each.responses)
        if place not in found:
            found[place] = content_hash(each.item, each.responses, reads_gold=False)[0][:_DIGITS]
    return "".join(found[each.item.id, each.responses] for each in questions)


_TEXTS, _GOLD = "other texts, pictures or clips", "another known label (gold)"


def _of_known(label: str) -> str:
    """A known label as a fingerprint: the labels of checks are read by nobody who has the database alone."""
    return fingerprint([label])[:_DIGITS]


def _unchanged(questions: Sequence[ToLabel], was: str, now: str, what: str) -> None:
    """UserError that names the first item of which something has changed since labelling began: its texts or media, or
    a label that was known then. One that becomes known later changes nothing that a rater has seen.
    """
    if len(was) != len(now):  # other questions, which is told as such
        return
    places = range(0, len(now), _DIGITS)
    changed = [
        questions[at // _DIGITS].item
        for at in places
        if was[at : at + _DIGITS] not in (now[at : at + _DIGITS], _of_known(""))
    ]
    if changed:
        more = f", and {counted(left, 'more question')}" if (left := len(changed) - 1) else ""
        raise UserError(
            f"{changed[0].origin}: item {changed[0].id!r} has {what} than when labelling began{more}: put back what was"
            " there, or name a new --out"
        )


def _same(folder: Path, was: Mapping[str, str], now: Mapping[str, str]) -> None:
    for name in [*now, *(each for each in was if each not in now)]:
        if was.get(name) != now.get(name):
            what = "items or rubric" if name == "questions" else f"--{name} (it was {was.get(name, 'random')})"
            raise UserError(f"{folder}: labelling began with other {what}: use the same, or name a new --out")


def _impossible(store: LabelStore, questions: Mapping[str, ToLabel]) -> str:
    """What in a database no labelling writes; "" where there is nothing. SQLite checks the form of pages alone."""
    if (found := store.check()) != "ok":
        return found
    for each in store.labels():
        question = questions.get(each.question)
        if question is None:
            return f"a question that is not asked: {each.question!r:.60}"
        if each.value != SKIPPED and not is_answer(question, each.value):
            return f"a label that the question does not have: {each.value!r:.60}"
    for at, _, _, key, *texts, _ in store.trail():
        if key not in questions or not all(isinstance(text, str) for text in texts):
            return f"an event of no question, or without a text: {key!r:.60}"
        if not isinstance(at, float) or not 0 <= at < _LATEST:
            return f"an event at no time: {at!r:.60}"
    return ""


def _not_emptied(store: LabelStore, trail: Path) -> None:
    """UserError if the database holds no event although the trail shows some: files would be replaced by empty ones.

    A few less are what a copy has that was made while the trail was written.
    """
    if not trail.is_file() or store.trail():
        return
    try:
        written = sum(1 for _ in read_records(str(trail)))
    except DataError:  # without an event, or no table any more: it says nothing, and is written anew
        return
    raise UserError(
        f"{store.path}: {trail.name} holds {counted(written, 'event')} and the database none; labels are in "
        f"{store.log.name}, which belongs to it: copy the whole folder again, or move {trail.name} away to begin "
        "without them"
    )


def named(names: Sequence[str]) -> tuple[str, ...]:
    """The names of raters, each of which is a column `human_NAME`; UserError for what cannot be one."""
    for name in names:
        if not re.fullmatch(r"[^\W_][\w.-]{0,39}", name) or name == "owner":
            raise UserError(f"--rater {name!r:.60}: write up to 40 letters, digits, '.', '-' or '_', and not 'owner'")
    if len({name.casefold() for name in names}) < len(names):
        raise UserError(f"--rater {', '.join(names)}: each rater has a name of their own")
    return tuple(names)


def _words(folder: Path, raters: Sequence[str]) -> dict[str, str]:
    """New secret tokens, written first, to a file that only its owner can read."""
    words = {name: secrets.token_urlsafe(18) for name in ["owner", *raters]}
    with replacing(str(folder / LINKS)) as part:
        os.chmod(part, 0o600)  # while it is empty
        Path(part).write_bytes(orjson.dumps(words))
    return words


def _kept(folder: Path, store: LabelStore) -> dict[str, str]:
    try:
        words = orjson.loads((folder / LINKS).read_bytes())
    except (OSError, ValueError):
        words = None
    given = isinstance(words, dict) and all(isinstance(each, str) for each in words.values()) and "owner" in words
    if not given or {hashed(word) for name, word in words.items() if name != "owner"} != set(store.raters):
        raise UserError(
            f"{folder / LINKS}: the tokens of the raters' links are missing or belong to other labels; restore a copy"
        )
    return {str(name): word for name, word in words.items()}


def judged_by(run: Path, questions: list[ToLabel]) -> dict[str, float]:
    """What a run's verdicts say of the labels of the questions, from 0 to 1, by key: of a pair the share that its first
    response earns (orders that disagree: .5), else the score of the response, also for its claims and marks.

    UserError if it judged none of them.
    """
    found = {}
    for question, row in verdicts_on(run, questions):
        paired = question.kind == "pairwise"
        found[question.key] = (
            WORTH.get(row["choice"], 0.5) if paired else question.rubric.scale.goodness(float(row["score"]))
        )
    if not found:
        what = "choice between these pairs" if questions[0].paired else "score of these items"
        raise UserError(f"--run {run}: it holds no {what} by this rubric")
    return found
