"""One stage of a recipe: asks a teacher, reads replies into records, with bounded retries, counts and a stop rule."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from dikast.core.canonical import fingerprint
from dikast.core.errors import RunError, UserError
from dikast.core.media import image_sha256
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.core.text import parse_located
from dikast.corpus.pipeline.journal import ERROR, Journal
from dikast.corpus.quality.languages import wrong_language
from dikast.engines.asking import ask_all
from dikast.engines.base import Completion, Engine, Request, Sampling
from dikast.prompts.render import Slots, render

_LEAST = 20  # answers before the share of rejected replies can stop a stage
OTHERWISE = "graded otherwise the second time"  # of a reply that can be used: its response is written again
SHOWN = 3  # rejected replies that an error quotes
_HEADING = "==[ {} ]=="
_MOST_OBJECTS = 200


class Rejected(Exception):
    """A reply that cannot be used. `reason` is the short text it is counted under; `told` is said to the teacher."""

    def __init__(self, reason: str, told: str = "") -> None:
        self.reason, self.told = reason, told or reason
        super().__init__(self.told)


@dataclass(frozen=True, slots=True)
class Task:
    """One question of a stage. `at` is its place in the recipe's order; `read` turns the reply into records.

    `read` raises Rejected. `final`: asking again would not help (a filter rejects it, not a mistake of form).
    """

    at: tuple[int, ...]
    messages: tuple[Message, ...]
    read: Callable[[str], list[dict[str, Any]]]
    schema: Mapping[str, Any] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    final: bool = False
    shown: Any = None


@dataclass(slots=True)
class StageReport:
    """The counts of a stage, earlier runs included. `left` counts tasks without an answer (errors, a spent budget)."""

    name: str
    tasks: int = 0
    accepted: int = 0
    records: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float | None = None
    servers: Counter[str] = field(default_factory=Counter)  # finished tasks by who answered, where there are several
    examples: list[str] = field(default_factory=list)
    unasked: int = 0  # answers to questions that are no longer asked

    def note(self, record: Mapping[str, Any]) -> None:
        """Count one line of the journal."""
        usage = record.get("usage") or {}
        self.attempts += int(record.get("attempts", 0))
        self.tokens_in += int(usage.get("in", 0))
        self.tokens_out += int(usage.get("out", 0))
        if server := record.get("server"):
            self.servers[server] += 1
        if usage.get("cost") is not None:
            self.money = (self.money or 0.0) + float(usage["cost"])
        if record["status"] == "ok":
            self.accepted += 1
            self.records += len(record["made"])
        elif record["status"] == "rejected":
            self.rejected[record["reason"]] += 1
            if len(self.examples) < SHOWN:
                self.examples.append(f"{record['reason']}: {str(record.get('raw', ''))[:200]!r}")
        else:
            self.left[record["reason"]] += 1

    def leave_out(self, record: Mapping[str, Any]) -> None:
        """Count an answer that was noted as one to a question that is no longer asked; what it cost stays counted."""
        self.unasked += 1
        if record["status"] == "ok":
            self.accepted -= 1
            self.records -= len(record["made"])
        else:
            self.rejected[record["reason"]] -= 1
            self.rejected += Counter()  # drops the zeros

    @property
    def rejects(self) -> int:
        """The number of rejected tasks."""
        return sum(self.rejected.values())

    def to_dict(self) -> dict[str, Any]:
        """As JSON; `yield` is the share of answered tasks that were accepted, null before any was."""
        answered = self.accepted + self.rejects
        return {
            "stage": self.name, "tasks": self.tasks, "accepted": self.accepted, "records": self.records,
            "yield": self.accepted / answered if answered else None, "rejected": dict(self.rejected),
            "left": dict(self.left), "attempts": self.attempts, "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out, "money": self.money,
            **({"unasked": self.unasked} if self.unasked else {}),
            **({"servers": dict(sorted(self.servers.items()))} if self.servers else {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asking:
    """How a stage asks: engine, sampling, tries for a readable reply, and the share of rejected replies to stop at."""

    engine: Engine
    sampling: Sampling
    tries: int = 3
    most_rejects: float = 0.5


def run_stage(
    name: str, tasks: Iterable[Task], path: Path, asking: Asking, progress: Callable[[StageReport], None] | None = None
) -> StageReport:
    """Ask the tasks that the journal at `path` does not hold, writing each finished task at once.

    RunError, with examples, if more than the share `asking.most_rejects` of at least 20 answers was rejected.
    """
    report = StageReport(name)
    with Journal(path) as journal:
        _recall(path, report)
        questions = _fresh(name, tasks, journal, report, asking)
        for record in ask_all(asking.engine, questions, partial(_settle, asking), _unanswered):
            journal.append(record)
            report.note(record)
            _check_rejects(report, asking)
            if progress is not None:
                progress(report)
        journal.check_in_place()
    return report


def _recall(path: Path, report: StageReport) -> None:
    """Count what earlier runs answered; their errors are asked again and so are not counted."""
    from dikast.corpus.pipeline.journal import finished

    for record in finished(path):
        if record["status"] != ERROR:
            report.note(record)


@dataclass(slots=True)
class _Asked:
    """A task in flight: the key of its line, its request, the number of tries, their cost, and who answered last."""

    task: Task
    key: str
    request: Request
    tries: int = 1
    spent: Counter[str] = field(default_factory=Counter)
    server: str = ""

    def record(self, **found: Any) -> dict[str, Any]:
        """Its line in the journal."""
        usage: dict[str, Any] = {"in": self.spent["in"], "out": self.spent["out"]}
        if "nano" in self.spent:
            usage["cost"] = self.spent["nano"] / 1e9
        who = {"server": self.server} if self.server else {}
        return {"key": self.key, "at": list(self.task.at), "attempts": self.tries, "usage": usage, **who, **found}


def _fresh(name: str, tasks: Iterable[Task], journal: Journal, report: StageReport, asking: Asking) -> Iterator[_Asked]:
    identity, sampling = dict(asking.engine.identity()), asking.sampling
    how = [sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed]
    for task in tasks:
        report.tasks += 1
        text = [[m.role, [p.text if isinstance(p, Span) else _seen(p) for p in m.parts]] for m in task.messages]
        key = fingerprint([name, task.at, text, identity, how])
        if not journal.has(key):
            request = Request(f"{key}:1", task.messages, sampling, schema=task.schema, about=task.about)
            yield _Asked(task, key, request)
    for record in journal.leave_unasked():
        report.leave_out(record)


def _seen(part: Image | Video) -> str:
    """An image or video by its content, so that its folder may be moved."""
    return image_sha256(part) if isinstance(part, Image) else fingerprint(repr(part))


def _settle(asking: Asking, asked: _Asked, done: Completion) -> dict[str, Any] | None:
    """The line that finishes a task, or None if another try has been set up."""
    task, spent, asked.server = asked.task, asked.spent, done.server
    spent["in"] += done.usage.tokens_in
    spent["out"] += done.usage.tokens_out
    if done.usage.cost is not None:
        spent["nano"] += round(done.usage.cost * 1e9)
    if done.error is not None:
        return asked.record(status=ERROR, reason=done.error.kind, raw=str(done.error))
    try:
        if done.refusal:
            raise Rejected("refused", done.refusal)
        if done.finish == "length":
            raise Rejected("cut off at the token limit", "the reply was too long and was cut off")
        if done.finish != "stop":
            raise Rejected("ended for a reason that is not known", f"the reply ended for another reason: {done.finish}")
        return asked.record(status="ok", made=task.read(done.text))
    except Rejected as error:
        if asked.tries < asking.tries and not task.final:
            asked.tries += 1
            asked.request = _again(asked, done.text, error, asking)
            return None
        return asked.record(status="rejected", reason=error.reason, raw=(done.text or done.refusal)[:2000])


def _unanswered(asked: _Asked) -> dict[str, Any]:
    return asked.record(status=ERROR, reason="unanswered", raw="the engine ended without a completion")


def _check_rejects(report: StageReport, asking: Asking) -> None:
    answered = report.accepted + report.rejects
    if answered >= _LEAST and report.rejects > asking.most_rejects * answered:
        shown = "\n".join(f"  {example}" for example in report.examples)
        raise RunError(
            f"stage {report.name!r} stopped: {report.rejects} of {answered} replies were rejected (stop_after_rejects:"
            f" {asking.most_rejects:g}). What was answered is kept. Examples:\n{shown}"
        )


def _again(asked: _Asked, text: str, error: Rejected, asking: Asking) -> Request:
    """The request for another try, with the reply and what was wrong with it."""
    task = asked.task
    how = "with the JSON object alone" if task.schema else "whole, in the form asked for above"
    told = f"That reply cannot be used: {error.told}. Answer again, {how}."
    messages = (*task.messages, Message("assistant", (Span(text),)), Message("user", (Span(told, trusted=True),)))
    about = {**task.about, "attempt": asked.tries}
    return Request(f"{asked.key}:{asked.tries}", messages, asking.sampling, schema=task.schema, about=about)


# -- prompts and replies ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt of a recipe, from a file, with the fingerprint of its text."""

    name: str
    user: str
    hash: str

    def ask(self, **names: Any) -> tuple[Message, ...]:
        """One user message. Text is inserted as untrusted, pictures as media parts, numbers as text of the template."""
        slots = Slots((_HEADING.split("{}")[0].strip(),), _HEADING)
        filled = {key: _slotted(slots, value) for key, value in names.items()}
        return (Message("user", render(self.user, slots, filled, f"prompt {self.name!r}")),)


def _slotted(slots: Slots, value: Any) -> Any:
    if isinstance(value, str):
        return slots.text(value) if value else ""
    if isinstance(value, Image):
        return slots.of((value,))
    if isinstance(value, tuple):
        return slots.content(value)
    if isinstance(value, list):
        return [_slotted(slots, each) for each in value]
    if isinstance(value, dict):
        return {key: _slotted(slots, each) for key, each in value.items()}
    return value


@cache
def prompt(name: str) -> Prompt:
    """The prompt in `prompts/NAME.yaml`; of a file with several prompts only the fingerprint."""
    text = resources.files("dikast.corpus").joinpath("prompts", f"{name}.yaml").read_text("utf-8")
    value = parse_located(text, f"{name}.yaml").value
    rest = {key: each for key, each in value.items() if key not in ("about", "user")}
    user = value.get("user", "")
    return Prompt(name, user, fingerprint([user, rest] if rest else user))


def object_in(text: str) -> dict[str, Any]:
    """The last top-level JSON object in a reply; Rejected if there is none."""
    decoder, found, at, tried = json.JSONDecoder(strict=False), None, text.find("{"), 0
    while at >= 0 and tried < _MOST_OBJECTS:
        tried += 1
        try:
            value, end = decoder.raw_decode(text, at)
            found = value
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)
    if not isinstance(found, dict):
        raise Rejected("no JSON object", "there is no JSON object in it")
    return found


def text_in(value: Mapping[str, Any], key: str) -> str:
    """The text under `key`; Rejected if it is missing or empty."""
    found = value.get(key)
    if not isinstance(found, str) or not found.strip():
        raise Rejected(f"no {key}", f"'{key}' must be text that is not empty")
    return found.strip()


def in_language(language: str, **texts: str) -> None:
    """Rejected for a text in another language than `language`, as far as `quality.languages` can identify it."""
    for name, text in texts.items():
        if found := wrong_language(text, language):
            raise Rejected("another language", f"the {name} is in {found}; write it in {language}")


def list_in(value: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The list of objects under `key`; Rejected if it is anything else."""
    found = value.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(each, dict) for each in found):
        raise Rejected(f"no {key}", f"'{key}' must be a list of objects")
    return found


def check_sampling(temperature: float, max_tokens: int, seed: int) -> Sampling:
    """The sampling parameters of a recipe; UserError for values out of range."""
    try:
        return Sampling(temperature=temperature, max_tokens=max_tokens, seed=seed)
    except UserError as error:
        raise UserError(f"recipe: {error}") from None
