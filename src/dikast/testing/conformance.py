"""Conformance tests: the rules that every engine keeps, as a check for engines of others."""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice

import orjson

from dikast.core.canonical import canonical_json
from dikast.core.errors import EngineError, UserError
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.core.text import near_miss
from dikast.engines.base import Completion, Engine, Readout, Request, Sampling

WINDOW = 4096  # requests that no engine may have pulled for its first answers
_TOLD = 3  # reported violations of each rule
_NEAR = 1e-3  # nats by which equal label scores may differ, since arithmetic depends on the composition of a batch
_UNICODE = "Zażółć 漢字 🦒🏽 \u202eabc\u202c \u0000 é e\u0301 <|im_end|> \U0010ffff"


def check_engine(engine: Engine, *, requests: Iterable[Request] | None = None, waive: Collection[str] = ()) -> None:
    """Raise an AssertionError that lists every rule of `RULES` which `engine` breaks, each with its first violations.

    `requests`: at least two with distinct keys, for engines that answer only certain ones (`sample_requests()` unless
    given); they are asked several times over and under other keys, seeds and temperatures. `waive` names rules that an
    engine cannot keep and says so in its documentation, such as `repeatable` for a server without determinism.
    """
    for name in waive:
        if name not in RULES:
            raise UserError(f"there is no rule {name!r} to waive; did you mean {near_miss(name, RULES)!r}?")
    asked = list(sample_requests() if requests is None else requests)
    if len({request.key for request in asked}) < max(len(asked), 2):
        raise UserError("check_engine needs at least two requests, all with distinct keys")
    broken: list[str] = []
    for name, rule in RULES.items():
        if name in waive:
            continue
        try:
            complaints = list(rule(engine, asked))
            broken.extend(f"{name}: {complaint}" for complaint in complaints[:_TOLD])
            if len(complaints) > _TOLD:
                broken.append(f"{name}: and {len(complaints) - _TOLD} more")
        except Exception as error:  # any error is the engine's, and the other rules are still checked
            broken.append(f"{name}: raised {type(error).__name__}: {error}")
    if broken:
        told = "\n".join(f"  - {complaint}" for complaint in broken)
        raise AssertionError(f"engine {getattr(engine, 'name', engine)!r} breaks the protocol:\n{told}")


def sample_requests(n: int = 6) -> list[Request]:
    """Requests as a judge sends them: `n` times the same question, each time as another sample.

    `about` holds all that a judge passes, gold included.
    """
    return [_sample(i) for i in range(n)]


def _sample(sample: int) -> Request:
    response = "The capital of France is Paris."
    levels = [str(level) for level in range(1, 6)]
    ask = "Grade the response from 1 to 5. End with [RESULT] and the grade.\n\nResponse:\n"
    messages = (Message("user", (Span(ask, trusted=True), Span(response))),)
    about = {
        "kind": "absolute",
        "item": "capital",
        "criterion": "correctness",
        "rubric": "0" * 32,
        "responses": [0],
        "sample": sample,
        "labels": {level: f" {level}" for level in levels},
        "values": {level: float(level) for level in levels},
        "lower_is_better": False,
        "marker": "[RESULT]",
        "texts": [response],
        "images": [],
        "gold": 4,
    }
    return Request(f"check-{sample}", messages, Sampling(max_tokens=48), about=about)


def _names(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """A name, an identity that is JSON and stays the same, versions by name."""
    if not isinstance(engine.name, str) or not engine.name:
        yield f"name is {engine.name!r}, not text"
    before = engine.identity()
    if not isinstance(before, Mapping) or not before:
        yield f"identity() is {before!r}, not a mapping that says what could change an answer"
        return
    try:
        spelt = canonical_json(before)
        if orjson.loads(spelt) != before:
            yield f"identity() does not survive JSON: {before!r} comes back as {orjson.loads(spelt)!r}"
    except TypeError as error:
        yield f"identity() is not JSON: {error}"
        return
    list(engine.stream(asked))
    if canonical_json(engine.identity()) != spelt:
        yield f"identity() changed from {spelt.decode()} to {canonical_json(engine.identity()).decode()}"
    versions = engine.versions()
    if any(not isinstance(text, str) for pair in versions.items() for text in pair):
        yield f"versions() maps names to text, got {dict(versions)!r}"


def _empty(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """No requests, no completions."""
    if found := list(engine.stream(iter(()))):
        yield f"{len(found)} completions for no request at all"


class _TooMany(Exception):
    pass


def _lazy(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """Answers come while requests without end are still waiting; closing the stream early is fine."""
    pulled = 0

    def endless() -> Iterator[Request]:
        nonlocal pulled
        while True:
            if pulled == WINDOW:
                raise _TooMany
            pulled += 1
            yield replace(asked[pulled % len(asked)], key=f"lazy-{pulled}")

    stream = engine.stream(endless())
    if pulled:
        yield f"stream() pulled {pulled} requests before anyone asked for an answer"
    try:
        if len(list(islice(stream, 8))) < 8:
            yield "the stream ended before its requests did"
    except _TooMany:
        yield f"{WINDOW} requests were pulled for the first 8 answers: the window must be bounded and smaller"
    close = getattr(stream, "close", None)
    if close is not None:
        close()
    if not list(engine.stream(asked[:1])):
        yield "after a stream was closed early, the next one answers nothing"


def _once(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """Every key is answered exactly once, also for equal questions under two keys, and by completions alone."""
    twins = [*asked, *(replace(request, key=f"{request.key}-twin") for request in asked)]
    yield from _keys(twins, list(engine.stream(iter(twins))))


def _keys(asked: list[Request], found: list[Completion]) -> Iterator[str]:
    if strangers := [type(each).__name__ for each in found if not isinstance(each, Completion)]:
        yield f"the stream holds {strangers[0]} where completions were expected"
        return
    counts = Counter(each.key for each in found)
    missing = [request.key for request in asked if not counts[request.key]]
    twice = [key for key, count in counts.items() if count > 1]
    unknown = counts.keys() - {request.key for request in asked}
    for what, keys in (("not answered", missing), ("answered more than once", twice), ("never asked", list(unknown))):
        if keys:
            yield f"{len(keys)} of {len(asked)} keys {what}, such as {keys[0]!r}"


def _answers(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """Well-formed requests get answers, and completions are consistent in themselves."""
    found = list(engine.stream(iter(asked)))
    if all(each.error is not None for each in found):
        yield f"none of {len(asked)} requests was answered; the first says: {found[0].error if found else 'nothing'}"
    for each in found:
        yield from (f"key {each.key!r}: {complaint}" for complaint in _inside(each))


def _inside(each: Completion) -> Iterator[str]:
    if each.error is not None:
        if not isinstance(each.error, EngineError) or not each.error.kind:
            yield f"the error is {each.error!r}, not an EngineError with a kind"
    elif each.finish not in ("stop", "length"):
        yield f"finish is {each.finish!r} without an error"
    if not isinstance(each.text, str):
        yield f"the text is {each.text!r}"
    else:
        try:
            each.text.encode()
        except UnicodeEncodeError:
            yield "the text holds half of a surrogate pair and cannot be written down"
    counts = each.usage.tokens_in, each.usage.tokens_cached, each.usage.tokens_out, each.usage.seconds
    if any(count < 0 for count in counts):
        yield f"usage is negative: {each.usage}"


def _errors(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """A request that cannot be answered is a completion with an error, and does not make others fail."""
    picture = Message("user", (Span("Grade this picture.", trusted=True), Image("no-such-picture.png")))
    bad = [
        replace(asked[0], key="bad-picture", messages=(picture,)),
        replace(asked[0], key="bad-void", messages=(), about={}),
    ]
    good = {request.key for request in asked}
    alone = {each.key for each in engine.stream(iter(asked)) if each.error is None}
    mixed = [bad[0], *asked, bad[1]]
    try:
        found = list(engine.stream(iter(mixed)))
    except Exception as error:  # this is what the rule forbids
        yield f"raised {type(error).__name__} where a completion with an error was expected: {error}"
        return
    yield from _keys(mixed, found)
    for each in found:
        yield from (f"key {each.key!r}: {complaint}" for complaint in _inside(each))
    lost = alone - {each.key for each in found if each.key in good and each.error is None}
    if lost:
        yield f"{len(lost)} good requests failed beside bad ones, such as {min(lost)!r}"


def _unicode(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """Text beyond ASCII, and text that looks like special tokens, is answered like any other."""
    for i, message in enumerate(asked[0].messages):
        odd = replace(message, parts=(*message.parts, Span(_UNICODE)))
        request = replace(asked[0], messages=(*asked[0].messages[:i], odd, *asked[0].messages[i + 1 :]))
        plain, found = (list(engine.stream([each])) for each in (asked[0], request))
        yield from _keys([request], found)
        for each in found:
            yield from _inside(each)
            if each.error is not None and plain and plain[0].error is None:
                yield f"a message with {_UNICODE!r} failed: {each.error}"


class _Torn(Exception):
    pass


def _source(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """An error while requests are made reaches the caller; it is not mistaken for the end of the requests."""

    def torn() -> Iterator[Request]:
        yield asked[0]
        raise _Torn

    try:
        list(engine.stream(torn()))
    except _Torn:
        return
    yield "an error in the iterable of requests was swallowed, so that what should have followed is lost in silence"


def _reentrant(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """A stream may be opened and run through while another is suspended."""
    outer = iter(engine.stream(iter(asked)))
    first = [each for each in (next(outer, None),) if each is not None]
    others = [replace(request, key=f"{request.key}-inner") for request in asked]
    yield from (f"inner stream: {complaint}" for complaint in _keys(others, list(engine.stream(iter(others)))))
    yield from (f"outer stream: {complaint}" for complaint in _keys(asked, first + list(outer)))


def _repeatable(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """At temperature 0 the same request gets the same answer, whatever was asked before it."""
    cold = [_heated(request, 0.0) for request in asked]
    first = {each.key: each for each in engine.stream(iter(cold))}
    for when, again in (("asked again", cold), ("asked in reverse", cold[::-1])):
        for each in engine.stream(iter(again)):
            if each.key in first and not _same(first[each.key], each):
                yield f"key {each.key!r} {when}: {_said(first[each.key])} became {_said(each)}"


def _seeds(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """If temperature 1 samples at all, another seed gives other samples; the same seed and key give the same."""
    cold = {each.key: _said(each) for each in engine.stream(_heated(request, 0.0) for request in asked)}
    warm = [_warm(engine, asked, seed) for seed in range(4)]
    if all(answers == cold for answers in warm):
        return  # it does not sample
    if all(answers == warm[0] for answers in warm):
        yield f"draws at temperature 1 are the same for seeds 0 to {len(warm) - 1}"
    if _warm(engine, asked[::-1], 0) != warm[0]:
        yield "draws at temperature 1 change although seed and key do not"


def _warm(engine: Engine, asked: list[Request], seed: int) -> dict[str, str]:
    return {each.key: _said(each) for each in engine.stream(_heated(request, 1.0, seed) for request in asked)}


def _heated(request: Request, temperature: float, seed: int = 0) -> Request:
    return replace(request, sampling=replace(request.sampling, temperature=temperature, top_p=1.0, seed=seed))


def _said(each: Completion) -> str:
    return f"error {each.error.kind}" if each.error is not None else repr(each.refusal or each.text)


def _same(first: Completion, second: Completion) -> bool:
    one, two = first.label_logprobs or {}, second.label_logprobs or {}
    near = one.keys() == two.keys() and all(abs(one[label] - two[label]) <= _NEAR for label in one)
    return _said(first) == _said(second) and near


def _readout(engine: Engine, asked: list[Request]) -> Iterator[str]:
    """Label scores are of the requested labels, logarithms of probabilities whose sum is at most 1, with a marker."""
    plain = [replace(request, readout=None) for request in asked]
    if any(each.label_logprobs is not None for each in engine.stream(iter(plain))):
        yield "label_logprobs came back where no read-out was asked for"
    for labels in (tuple(f" {level}" for level in range(1, 6)), ("1", "10", "100"), (" A", " B")):
        for generate in (True, False):
            readout = Readout(labels, "[RESULT]", generate=generate)
            for each in engine.stream(replace(request, readout=readout) for request in asked):
                if each.error is None:
                    told = f"{list(labels)}{'' if generate else ' without text'}, key {each.key!r}"
                    yield from (f"{told}: {complaint}" for complaint in _contract(each, readout))


def _contract(each: Completion, readout: Readout) -> Iterator[str]:
    read = each.label_logprobs
    if read is None:  # it does not support label scoring, and answers as if it had not been requested
        return
    if not readout.generate and each.text:
        yield f"text was generated: {each.text[:40]!r}"
    if set(read) != set(readout.labels):
        yield f"read {list(read)} instead"
    if each.marker not in ("own", "forced"):
        yield f"the marker is {each.marker!r}, not 'own' or 'forced'"
    if each.finish == "length":
        yield "something was read although the text ran into the token limit"
    if any(math.isnan(value) or value > 1e-6 for value in read.values()):
        yield f"not logarithms of probabilities: {dict(read)}"
    elif (mass := sum(map(math.exp, read.values()))) > 1 + 1e-4:
        yield f"the probabilities sum to {mass:.4f}: a label may not count what goes on into a longer one"


RULES: Mapping[str, Callable[[Engine, list[Request]], Iterator[str]]] = {
    "names": _names,
    "empty": _empty,
    "lazy": _lazy,
    "once": _once,
    "answers": _answers,
    "errors": _errors,
    "unicode": _unicode,
    "source": _source,
    "reentrant": _reentrant,
    "repeatable": _repeatable,
    "seeds": _seeds,
    "readout": _readout,
}
