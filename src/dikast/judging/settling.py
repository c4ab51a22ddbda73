"""Ask an engine every question and turn its answers into verdicts.

The first try asks in the format's own way, with a request for the label probabilities at the verdict marker. A reply
without a verdict is followed up in other ways than the first, at most once each: the model is made to continue after
the marker (`continue`), then to choose among the labels there (`constrain`). A reply that ran into the token limit,
refuses, or names a label off the scale is not followed up. Every reply is kept.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from dikast.core.distribution import NoDistribution, likeliest
from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.media import check_image, image_sha256, sample_video
from dikast.core.media.video import DEFAULT_FRAMES
from dikast.core.message import Message, Span
from dikast.core.part import Content, Image, Turn, Video, text_of
from dikast.core.rubric import Rubric
from dikast.core.secrets import without_secrets
from dikast.core.verdict import Attempt, Marker, ShownClip, Status, Usage, Verdict
from dikast.engines.asking import Settled, ask_all
from dikast.engines.base import Completion, Engine, Readout, Request, Sampling
from dikast.judging.label_scores import Distribution
from dikast.judging.task import Task
from dikast.prompts.format import Format

How = Literal["ask", "continue", "constrain"]
Read = Literal["auto", "only", "never"]
_NEXT: dict[How, How | None] = {"ask": "continue", "continue": "constrain", "constrain": None}
_LABEL_TOKENS = 16  # room for a label after the marker


@dataclass(frozen=True, slots=True)
class AskSettings:
    """The settings of how questions are asked and answers accepted.

    `read` "only" reads the labels' probabilities right after the prompt and generates no text; "never" parses text even
    where the engine could show probabilities. `frames` is how many are sampled from a video that names no number.
    `min_mass` is the probability that must fall on the labels for a read verdict to count; below it the verdict is
    `off_scale`. `recover` allows follow-ups.
    """

    sampling: Sampling = field(default_factory=Sampling)
    read: Read = "auto"
    min_mass: float = 0.5
    recover: bool = True
    frames: int = DEFAULT_FRAMES


@dataclass(slots=True)
class _Open:
    task: Task
    request: Request
    how: How = "ask"
    attempts: list[Attempt] = field(default_factory=list)


def answer(tasks: Iterator[Task], engine: Engine, format: Format, settings: AskSettings) -> Iterator[Verdict]:
    """A verdict for every task, in order of arrival; pulls tasks only as the engine asks for requests."""

    def questions() -> Iterator[_Open | Settled[Verdict]]:
        for task in tasks:
            try:
                yield _Open(task, first_request(task, format, settings))
            except DataError as error:
                yield Settled(_none(task, Status.BAD_ITEM, without_secrets(str(error))))  # addresses of images

    def unanswered(opened: _Open) -> Verdict:
        told = "unanswered: the engine ended without a completion"
        return _none(opened.task, Status.ENGINE_ERROR, told, opened, Completion(opened.request.key, finish="error"))

    return ask_all(engine, questions(), lambda opened, done: _settle(opened, done, format, settings), unanswered)


def never_sent(verdict: Verdict) -> bool:
    """Whether nothing of the question was sent, since the engine had given up on its server."""
    return verdict.status is Status.ENGINE_ERROR and not verdict.attempts


def first_request(task: Task, format: Format, settings: AskSettings) -> Request:
    """The first request about a task. DataError when the item cannot be asked about."""
    try:
        images = [check_image(image) for image in task.images]
        item = with_frames(task.item, task.question.responses, settings.frames)
    except DataError as error:
        raise DataError(str(error), path=task.item.origin) from error
    messages = format.ask(item, task.rubric, task.question.responses)
    if item is not task.item:  # frames of video files are images too
        images = [image_sha256(image) for message in messages for image in message.images]
    labels = format.labels(task.rubric)
    readout = None
    if settings.read != "never" and format.marker:
        generate = format.feedback and settings.read == "auto"
        readout = Readout(tuple(labels.values()), format.marker, generate, format.lead, format.kind == "absolute")
    return Request(
        key=task.key,
        messages=messages,
        sampling=_sampling(settings.sampling, task.question.sample),
        readout=readout,
        schema=format.schema(task.rubric),
        about=_about(task, format, labels, images),
    )


@lru_cache(maxsize=64)
def _sampling(sampling: Sampling, sample: int) -> Sampling:
    """The settings for one of several samples of a question: each has a seed of its own."""
    return replace(sampling, seed=sampling.seed + sample)


def _media(message: Message) -> Iterator[Image | Video]:
    return (part for part in message.parts if not isinstance(part, Span))


def with_frames(item: Item, responses: tuple[int, ...], n: int) -> Item:
    """The item with frames sampled from every video file that is shown; DataError where one cannot be read."""
    if not item.videos:
        return item

    def sampled(content: Content) -> Content:
        return tuple(sample_video(part, n) if isinstance(part, Video) else part for part in content)

    return replace(
        item,
        instruction=tuple(Turn(turn.role, sampled(turn.content)) for turn in item.instruction),
        context=None if item.context is None else sampled(item.context),
        reference=None if item.reference is None else sampled(item.reference),
        responses=tuple(sampled(each) if i in responses else each for i, each in enumerate(item.responses)),
    )


def _clips(opened: _Open | None) -> tuple[ShownClip, ...]:
    """The frames of video files that the request shows."""
    parts = [part for message in opened.request.messages for part in _media(message)] if opened else []
    return tuple(
        ShownClip(tuple(frame.frame for frame in part.frames if frame.frame is not None), part.seconds)
        for part in parts
        if isinstance(part, Video) and part.source
    )


def _about(task: Task, format: Format, labels: Mapping[str, str], images: list[str]) -> dict[str, Any]:
    """Data on a request for mocks and replays, images by their hashes; never shown to a model."""
    question, scale = task.question, task.rubric.scale
    return {
        "kind": format.kind,
        "item": question.item,
        "criterion": question.criterion,
        "rubric": task.hashes.rubric,
        "responses": list(question.responses),
        "sample": question.sample,
        "labels": labels,
        "values": dict(zip(scale.labels, scale.values, strict=True)) if format.kind == "absolute" else {},
        "lower_is_better": scale.lower_is_better,
        "marker": format.marker,
        "texts": [text_of(task.item.responses[i]) for i in question.responses if i < len(task.item.responses)],
        **({} if task.item.reference is None else {"reference": text_of(task.item.reference)}),
        "images": images,
        "gold": task.item.gold,
    }


def _attempt(how: How, completion: Completion, status: Status, reason: str) -> Attempt:
    return Attempt(
        how,
        completion.text,
        status,
        reason,
        completion.finish,
        completion.refusal,
        completion.label_logprobs,
        completion.marker,
        completion.usage,
        completion.unread,
    )


def settle_again(record: Verdict, rubric: Rubric, format: Format, settings: AskSettings) -> Verdict:
    """Derive a verdict again from its recorded attempts, perhaps with another format's parser; no model is asked."""
    if not record.attempts or record.status in (Status.ENGINE_ERROR, Status.BAD_ITEM):
        return record
    assert record.hashes is not None
    task = Task(record.key, Item(record.question.item), rubric, record.question, record.hashes, ())
    opened = _Open(task, Request(record.key, ()))
    verdict = None
    for i, attempt in enumerate(record.attempts):
        last = i == len(record.attempts) - 1
        completion = Completion(
            opened.request.key,
            attempt.raw,
            attempt.finish or "stop",
            attempt.label_logprobs,
            attempt.marker,
            attempt.refusal,
            unread=attempt.unread,
        )
        verdict = _settle(opened, completion, format, replace(settings, recover=settings.recover and not last))
        if verdict is not None:
            break
    assert verdict is not None
    return replace(verdict, attempts=record.attempts, usage=record.usage, clips=record.clips, server=record.server)


def _settle(opened: _Open, completion: Completion, format: Format, settings: AskSettings) -> Verdict | None:
    """The verdict that a completion gives, or None after setting up the next try in `opened`."""
    task, prefill = opened.task, opened.request.prefill
    if completion.error is not None:
        reason = f"{completion.error.kind}: {completion.error}"
        return _none(task, Status.ENGINE_ERROR, reason, opened, completion if completion.error.sent else None)
    unused = ""
    try:
        found = _read(opened, completion, format, settings)
    except NoDistribution as flaw:
        completion, found = replace(completion, label_logprobs=None, marker=None, unread=str(flaw)), None
    except _NoVerdictInText as flaw:
        found, unused = None, str(flaw)
    if found is None:
        parsed = format.parse(
            prefill + completion.text, task.rubric, finish=completion.finish, refusal=completion.refusal
        )
        marker: Marker | None = None if parsed.label is None else "own" if opened.how == "ask" else "forced"
        unused = unused or completion.unread
        unread = f"the labels' probabilities were not used: {unused}" if unused else ""
        odd = completion.finish not in ("stop", "length") and parsed.status is Status.OK
        ended = f"the reply ended for a reason that is not known ({completion.finish})" if odd else ""
        reason = "; ".join(part for part in (parsed.reason, unread, ended) if part)
        found = _Found(
            parsed.status, parsed.label, parsed.feedback, reason, parsed.claims, marker, conflict=parsed.conflict
        )
    status: Status = found.status
    attempt = _attempt(opened.how, completion, status, found.reason)
    if status is Status.UNPARSED and settings.recover and (request := _follow_up(opened, completion, format)):
        opened.attempts.append(attempt)
        opened.request = request
        return None
    return _verdict(opened, found, attempt, task, completion.server)


@dataclass(frozen=True, slots=True)
class _Found:
    status: Status
    label: str | None
    feedback: str
    reason: str
    claims: tuple[Any, ...]
    marker: Marker | None
    distribution: Distribution | None = None
    conflict: bool = False


class _NoVerdictInText(Exception):
    """The text after the marker states no verdict, so the probabilities there are not those of a verdict."""


def _read(opened: _Open, completion: Completion, format: Format, settings: AskSettings) -> _Found | None:
    """The verdict in the label probabilities; None when there are none, so that the text must be parsed.

    None, too, if the scored labels are those of another format, as in a replay with a new one. NoDistribution for
    numbers that cannot be probabilities, _NoVerdictInText if the text shows that there is no verdict.
    """
    read = completion.label_logprobs
    if read is None or completion.finish != "stop" or completion.refusal:
        return None
    spelt = format.labels(opened.task.rubric)
    if read and not read.keys() & set(spelt.values()):
        return None
    distribution = Distribution.of({label: read[text] for label, text in spelt.items() if text in read})
    if distribution is None or distribution.mass < settings.min_mass:
        mass = distribution.mass if distribution else 0.0
        why = f"only {mass:.3f} of the probability fell on the labels (at least {settings.min_mass:g} is asked for)"
        return _Found(Status.OFF_SCALE, None, completion.text, why, (), completion.marker, distribution)
    mode = distribution.choice if len(opened.task.question.responses) == 2 else distribution.mode
    reply = (opened.request.prefill + completion.text).rstrip()
    if completion.marker == "forced" and not reply.endswith(format.marker):
        reply = f"{reply}{format.lead}{format.marker}".lstrip()
    stopped = reply.endswith(format.marker)
    if stopped:  # the engine stopped before the label
        reply += spelt.get(mode, "")  # "" for a tie that the rubric has no label for
    parsed = format.parse(reply, opened.task.rubric)
    if (
        not stopped
        and len(opened.task.question.responses) == 1
        and parsed.label in likeliest(distribution.probabilities)
    ):
        mode = parsed.label  # of equally likely labels the one that the text states
    if parsed.label is None and not stopped and completion.marker == "own" and format.marker in reply:
        raise _NoVerdictInText("the text after the marker states no verdict")
    feedback = completion.text.strip() if parsed.label is None else parsed.feedback
    fits = parsed.label is None or parsed.label == mode
    if not (fits or stopped) and completion.marker == "own" and reply.count(format.marker) > 1:
        raise _NoVerdictInText("they were read at another marker than the one where the text states its verdict")
    reason = "" if fits else _misfit(spelt, distribution, str(parsed.label), mode)
    conflict = parsed.conflict and parsed.label == mode
    return _Found(Status.OK, mode, feedback, reason, parsed.claims, completion.marker, distribution, conflict)


def _misfit(spelt: Mapping[str, str], distribution: Distribution, said: str, mode: str) -> str:
    """A note if the text states another label than the likeliest one, as a sampled text may."""
    p = distribution.probabilities
    text, likely = (f"{spelt.get(each, each).strip()!r} (probability {p.get(each, 0):.3f})" for each in (said, mode))
    return f"the text says {text}, but the likeliest label is {likely}"


def _follow_up(opened: _Open, completion: Completion, format: Format) -> Request | None:
    """The next request after a reply without a verdict, or None when every way has been tried."""
    how = _NEXT[opened.how]
    if how is None or not format.marker:
        return None
    first, labels = opened.request, format.labels(opened.task.rubric)
    so_far = (first.prefill + completion.text) if opened.how == "ask" else first.prefill
    prefill = so_far if opened.how != "ask" else f"{so_far.rstrip()}{format.lead}{format.marker}".lstrip()
    opened.how = how
    return replace(
        first,
        key=f"{opened.task.key}/{how}",
        prefill=prefill,
        readout=replace(first.readout, generate=False) if first.readout else None,
        schema=None,
        choices=tuple(labels.values()) if how == "constrain" else (),
        sampling=replace(first.sampling, max_tokens=_LABEL_TOKENS, temperature=0.0),
    )


def _verdict(opened: _Open, found: _Found, attempt: Attempt, task: Task, server: str) -> Verdict:
    """Make the record; pair labels are converted from slots to responses."""
    attempts = (*opened.attempts, attempt)
    distribution = found.distribution
    label, probabilities = found.label, distribution.probabilities if distribution else None
    score = expected = None
    if len(task.question.responses) == 2:
        slots = _slots(task.question.responses)
        label = slots[label] if label is not None else None
        probabilities = {slots[slot]: p for slot, p in probabilities.items()} if probabilities else None
    elif found.status is Status.OK:
        scale = task.rubric.scale
        score = scale.value(str(label))
        expected = distribution.expected(scale) if distribution else None
    return Verdict(
        key=task.key,
        question=task.question,
        status=found.status,
        label=label,
        score=score,
        reason=found.reason,
        feedback=found.feedback,
        raw=attempt.raw,
        distribution=probabilities if found.status is Status.OK else None,
        mass=distribution.mass if distribution else None,
        marker=found.marker,
        expected=expected,
        claims=found.claims,
        attempts=attempts,
        usage=sum((each.usage for each in attempts), Usage()),
        hashes=task.hashes,
        clips=_clips(opened),
        conflict=found.conflict,
        server=server,
    )


def _slots(responses: tuple[int, ...]) -> dict[str, str]:
    """Which response is in which slot; a is the response with the smaller index."""
    a_first = responses[0] < responses[1]
    return {"first": "a" if a_first else "b", "second": "b" if a_first else "a", "tie": "tie"}


def _none(
    task: Task, status: Status, reason: str, opened: _Open | None = None, completion: Completion | None = None
) -> Verdict:
    attempts: tuple[Attempt, ...] = tuple(opened.attempts) if opened else ()
    if opened is not None and completion is not None:
        attempts += (_attempt(opened.how, completion, status, reason),)
    usage = sum((each.usage for each in attempts), Usage())
    raw = attempts[-1].raw if attempts else ""
    return Verdict(
        task.key,
        task.question,
        status,
        reason=reason,
        raw=raw,
        attempts=attempts,
        usage=usage,
        hashes=task.hashes,
        clips=_clips(opened),
        server=completion.server if completion is not None else "",
    )
