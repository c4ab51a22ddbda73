"""Mutated replies of real servers, from the wire to the run folder and back: one bad reply costs one verdict."""

import asyncio
import copy
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dikast.core.rubric import Rubric, load_rubric
from dikast.core.runs.current_verdicts import answered, current_records, current_verdicts
from dikast.core.verdict import Status, Verdict
from dikast.engines.base import Completion, Request
from dikast.engines.decision import DecisionEngine
from dikast.engines.http.engine import HttpEngine
from dikast.engines.http.event_loop import Flow, Later
from dikast.engines.http.providers import PLAIN, PROVIDERS
from dikast.engines.http.server_settings import ServerSettings, address_of
from dikast.engines.http.transport import HttpReply
from dikast.judging.judge import Judge
from dikast.judging.ledger import Ledger
from dikast.judging.settling import settle_again
from dikast.judging.summary import Tally

RUBRIC = {"name": "good", "criterion": "Is it good?", "scale": "1-5"}
LEVELS = [0.02, 0.08, 0.1, 0.7, 0.1]


def chat(text: str, **fields: Any) -> dict[str, Any]:
    """As vLLM 0.32 answers, with the log-probabilities of every token."""
    words = re.findall(r"\s?\w+|\s?\W", text)
    content = [
        {"token": word, "logprob": -0.1, "bytes": list(word.encode()),
         "top_logprobs": [{"token": word, "logprob": -0.1, "bytes": list(word.encode())}]}
        for word in words
    ]  # fmt: skip
    levels = [
        {"token": f" {level}", "logprob": math.log(share), "bytes": list(f" {level}".encode())}
        for level, share in enumerate(LEVELS, 1)
    ]
    content[-1] = {**levels[3], "top_logprobs": levels}
    choice = {
        "index": 0, "message": {"role": "assistant", "content": text, "refusal": None, "tool_calls": []},
        "logprobs": {"content": content}, "finish_reason": "stop", "stop_reason": None,
    }  # fmt: skip
    usage = {"prompt_tokens": 90, "total_tokens": 120, "completion_tokens": 30,
             "prompt_tokens_details": {"cached_tokens": 64}}  # fmt: skip
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1763800000, "model": "judge",
            "choices": [choice], "service_tier": None, "usage": usage, **fields}  # fmt: skip


def score() -> dict[str, Any]:
    ranked = [{"label": str(level), "probability": share, "value": level} for level, share in enumerate(LEVELS, 1)]
    answer = {"name": "verdict", "type": "score", "score": 3.78, "confidence": 0.7, "probabilities": ranked}
    usage = {"input_tokens": 90, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 1, "total_tokens": 91}
    return {"answers": [answer], "model": "judge", "usage": usage}


def levels() -> dict[str, Any]:
    answer = {
        "type": "score", "score": 2.78, "probabilities": {str(i): share for i, share in enumerate(LEVELS)},
        "legend": {str(i): str(i + 1) for i in range(5)},
    }  # fmt: skip
    return {"answers": {"verdict": answer}, "model": "judge", "usage": {"input_tokens": 90, "output_tokens": 1}}


ERRORS: tuple[Any, ...] = (
    {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded", "param": None}},
    {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400},
    {"detail": [{"loc": ["body", "logprobs"], "msg": "extra fields not permitted", "type": "value_error"}]},
    {"error": "overloaded"}, "Internal Server Error", "<html>502</html>",
)  # fmt: skip
STATUSES = (204, 301, 307, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 529, 599, 999)
WAITS = (
    "1", "-5", "nan", "1e999", "1e308", "soon", "Fri, 31 Dec 9999 23:59:59 -0100", "1 Jan 9999 00:00:00 -2359",
    "Sun, 06 Nov 0001 08:49:37 +2300", "Sun, 99 Nov 1994 08:49:37 GMT", "\u0663", "\udcff", "1" * 5000, "",
)  # fmt: skip
DEEP: Any = []
for _ in range(300):
    DEEP = [DEEP]
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 5, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 10**400, -(10**400), 1e308, -1e308, 0.5,
    math.nan, math.inf, -math.inf, "", "5", "\ud800", "a\udfffb\ud83d", "\ud83d\ude00", "\x00\x1f\u2028", "x" * 5000,
    "Verdict: 5", " Verdict: 1", "Fri, 31 Dec 9999 23:59:59 GMT", "NaN", [], {}, [[]], [None], ["Verdict: 5"], {"": ""},
    {"content": 5}, [{"type": "text", "text": None}], [{"type": "text", "text": "Verdict: 2"}], {"error": "x"}, DEEP,
    "error", "length", "content_filter", "stop", "judge", "another", -0.0, 3.0, 12.0, [1, 256, -1], [10**10],
)  # fmt: skip
LOGPROBS = ("token", "logprob", "bytes", "top_logprobs")
BYTES = (
    b"\x00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\\",
    b'"',
    b"{",
    b"]",
    b",",
    b"1e999",
    b"NaN",
    b"\xef\xbb\xbf",
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a value with each of its keys."""
    found: list[tuple[Any, Any]] = []
    left = [value]
    while left:
        each = left.pop()
        for key in list(each) if isinstance(each, dict) else range(len(each)) if isinstance(each, list) else ():
            found.append((each, key))
            left.append(each[key])
    return found


def hostile(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(HOSTILE))


def mutated(value: Any, rng: random.Random) -> bytes:
    """The value with one to four things wrong with it, as bytes."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        found = places(value)
        if not found:
            break
        if rng.random() < 0.6:  # not a log-probability, as most are
            found = [each for each in found if each[1] not in LOGPROBS and len(each[0]) < 20] or found
        inside, key = rng.choice(found)
        how = rng.random()
        if how < 0.15:
            del inside[key]
        elif how < 0.25 and isinstance(inside, dict):
            inside[rng.choice(("error", "refusal", "choices", "content", "usage", "logprob"))] = hostile(rng)
        elif how < 0.35 and isinstance(inside, list):
            inside.insert(0, hostile(rng))
        else:
            inside[key] = hostile(rng)
    try:
        raw = json.dumps(value).encode()
    except (ValueError, RecursionError):
        raw = b"{}"
    for _ in range(rng.choice((0, 0, 0, 1, 2))):
        at = rng.randrange(len(raw) + 1)
        how = rng.random()
        if how < 0.3:
            raw = raw[:at] + rng.choice(BYTES) + raw[at:]
        elif how < 0.6 and raw:
            at = min(at, len(raw) - 1)
            raw = raw[:at] + bytes([raw[at] ^ (1 << rng.randrange(8))]) + raw[at + 1 :]
        elif how < 0.8:
            raw = raw[:at]
        else:
            raw = raw[:at] + raw[at // 2 :]
    return raw


class Wire:
    """Stands where the connection is, and answers with what the draw gives."""

    where = "http://127.0.0.1:1"

    def __init__(self, scrub: Any) -> None:
        self.scrub, self.rng, self.made = scrub, random.Random(), list[Callable[[], Any]]()
        self.sent: list[tuple[int, bytes]] = []

    async def post(self, pieces: list[bytes]) -> HttpReply:
        rng = self.rng
        if rng.random() < 0.15:
            body = rng.choice(ERRORS)
            raw = mutated(json.loads(json.dumps(body)), rng) if rng.random() < 0.8 else str(body).encode()
            reply = HttpReply(
                rng.choice(STATUSES), {"Retry-After": rng.choice(WAITS), "Location": rng.choice(WAITS)}, raw
            )
        else:
            reply = HttpReply(200, {}, mutated(rng.choice(self.made)(), rng))
        self.sent.append((reply.status, reply.raw))
        return reply


def claude(text: str) -> dict[str, Any]:
    usage = {"input_tokens": 9, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3, "output_tokens": 2}
    blocks = [{"type": "thinking", "thinking": "Verdict: 3"}, {"type": "text", "text": text}]
    told = {"stop_reason": "end_turn", "stop_details": None, "usage": usage}
    return {"type": "message", "role": "assistant", "model": "judge", "content": blocks, **told}


def gemini(text: str) -> dict[str, Any]:
    chosen = [{"token": each, "logProbability": -0.1} for each in text]
    tops = [{"candidates": [each, {"token": "5", "logProbability": -2.5}]} for each in chosen]
    candidate = {
        "content": {"role": "model", "parts": [{"text": "Verdict: 3", "thought": True}, {"text": text}]},
        "finishReason": "STOP",
        "logprobsResult": {"chosenCandidates": chosen, "topCandidates": tops},
    }
    usage = {"promptTokenCount": 9, "cachedContentTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 1}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "judge"}


class Fuzzed:
    """The engine over that wire: waiting for another try takes no time."""

    def __init__(self, engine: HttpEngine | DecisionEngine) -> None:
        self.engine, self.name = engine, engine.name
        self.desk = engine.engine._desk if isinstance(engine, DecisionEngine) else engine._desk
        self.transport = Wire(self.desk.transport.scrub)
        self.desk.transport = self.transport  # type: ignore[assignment]
        self.loop = asyncio.new_event_loop()

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            job = self.desk.job(request, Flow())
            assert not isinstance(job, Completion)
            outcome: Completion | Later = Later(0.0)
            while isinstance(outcome, Later):
                outcome = self.loop.run_until_complete(self.desk.work(job))
            yield outcome

    def identity(self) -> Mapping[str, Any]:
        return self.engine.identity()

    def versions(self) -> Mapping[str, str]:
        return {}


TEXTS = (
    "It answers what was asked.\nVerdict: 4", "<think>Verdict: 2?</think>Fine, on the whole.\nVerdict: 4",
    "Verdict: 1\nNo: Verdict: 4", "It answers what was asked.", "", "4",
)  # fmt: skip


def engines() -> dict[str, tuple[Fuzzed, dict[str, Any]]]:
    settings = ServerSettings(retries=2, backoff=0.0)
    chats = [lambda text=text: chat(text or "4") for text in TEXTS]
    found: dict[str, tuple[Fuzzed, dict[str, Any]]] = {}
    for name, url, made, options in (
        ("chat", "http://127.0.0.1:1/v1#judge", chats, {}),
        ("score only", "http://127.0.0.1:1/v1#judge", chats, {"read": "only"}),
        ("decisions", "http://127.0.0.1:1/v1/decisions#judge", [score], {}),
        ("systemone", "http://127.0.0.1:1/v1/systemone#judge", [levels], {}),
        ("anthropic", "http://127.0.0.1:1#judge", [lambda text=text: claude(text) for text in TEXTS], {}),
        ("gemini", "http://127.0.0.1:1#judge", [lambda text=text: gemini(text or "4") for text in TEXTS], {}),
    ):
        address = address_of(url)
        provider = PROVIDERS.get(name, PLAIN)
        decides = name in ("decisions", "systemone")
        engine = DecisionEngine(address, settings) if decides else HttpEngine(address, settings, provider=provider)
        fuzzed = Fuzzed(engine)
        fuzzed.transport.made = made  # type: ignore[assignment]
        found[name] = (fuzzed, options)
    return found


def complaint(verdict: Verdict, sent: list[tuple[int, bytes]]) -> str:
    """What is wrong with a verdict, seen from the replies that it was made from; "" if nothing is."""
    if verdict.status is not Status.OK:
        return "a failure with a score" if verdict.score is not None or verdict.expected is not None else ""
    if sent[-1][0] != 200:
        return f"a score out of an answer {sent[-1][0]}"
    last = verdict.attempts[-1]
    if verdict.distribution is None:
        states = re.findall(r"[1-5]", last.raw)
        return "" if str(verdict.label) in states else "a label that the text does not state"
    shares = verdict.distribution.values()
    if not all(0 <= share <= 1 for share in shares) or abs(math.fsum(shares) - 1) > 1e-9:
        return "no distribution"
    return "" if verdict.mass is not None and 0.5 <= verdict.mass <= 1 else f"a mass of {verdict.mass}"


@pytest.mark.soak(100_000)
def test_no_reply_ends_a_run_blocks_its_folder_or_becomes_a_score(tries: int, tmp_path: Path) -> None:
    judges = {name: (fuzzed, Judge(fuzzed, RUBRIC, **options)) for name, (fuzzed, options) in engines().items()}
    kinds: Counter[str] = Counter()
    names = sorted(judges)
    with Ledger(tmp_path) as ledger:
        for number in range(tries):
            fuzzed, judge = judges[names[number % len(names)]]
            fuzzed.transport.rng, fuzzed.transport.sent = random.Random(number), []
            verdict = judge.grade({"id": str(number), "instruction": "Say something.", "response": "Something."})
            wrong = complaint(verdict, fuzzed.transport.sent)
            assert not wrong, (number, wrong, verdict, fuzzed.transport.sent)
            kind = verdict.reason.split(":")[0] if verdict.status is Status.ENGINE_ERROR else str(verdict.status)
            assert kind != "internal", (number, verdict.reason, fuzzed.transport.sent)
            kinds[kind] += 1
            ledger.append(verdict)
    for fuzzed, _ in judges.values():
        fuzzed.loop.close()
    tally = Tally()
    for record in current_records(tmp_path):
        tally.add(record)
    assert tally.summary()["verdicts"] == tries
    lost = kinds.total() - sum(1 for _ in current_verdicts(tmp_path))
    assert lost == 0
    failed = sum(1 for each in current_verdicts(tmp_path) if each.status is Status.ENGINE_ERROR)
    assert len(answered(tmp_path)) == tries - failed
    if tries >= 400:  # the draw reaches all that it is meant to reach
        assert {"ok", "unparsed", "bad_response", "refused"} <= set(kinds), kinds
        assert kinds["ok"] > tries / 10
    if tries >= 100_000:
        print(tries, dict(kinds))  # noqa: T201  for the docs
    replayed(judges["chat"][1], tmp_path)


def replayed(judge: Judge, folder: Path) -> None:
    """Every verdict is derived again from its record, and is the same."""
    rubric = load_rubric(RUBRIC)
    assert isinstance(rubric, Rubric)
    for verdict in current_verdicts(folder):
        again = settle_again(verdict, rubric, judge.format, judge.settings)
        if verdict.attempts and verdict.attempts[0].how == "ask" and judge.settings.read == "auto":
            assert (again.label, again.status) == (verdict.label, verdict.status), (verdict, again)
