"""A server of the first decision contract, held to the openai SDK's own types: what does not fit them is refused."""

import json
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson
from openai.types.decision import Decision
from openai.types.decision_create_params import DecisionCreateParams
from pydantic import TypeAdapter, ValidationError

MODEL = "decider"
Shares = Callable[[str, list[str]], Sequence[float]]
_REQUEST: TypeAdapter[Any] = TypeAdapter(DecisionCreateParams)


def text_of(body: dict[str, Any]) -> str:
    """The text of all messages."""
    return "".join(part.get("text", "") for message in body["input"] for part in message["content"])


def checked(body: dict[str, Any]) -> dict[str, Any]:
    """The body as the SDK's types read it; ValueError if they do not know it, or not all of it."""
    found = _whole(_REQUEST.validate_python(body))
    if found != body:
        unknown = [key for key in body if body[key] != found.get(key)]
        raise ValueError(f"the contract does not know all of {', '.join(unknown)}")
    return found  # type: ignore[no-any-return]


def _whole(value: Any) -> Any:
    """With everything that is validated only as it is looked at."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, str | int | float | bool | None):
        return value
    if hasattr(value, "model_dump"):
        return value.model_dump(exclude_unset=True)
    return [_whole(each) for each in value]


class DecisionServer:
    """Use as a context manager. `shares` gives the probabilities of a question's answers, in the order offered.

    `spoil` may change the reply before it is sent. `asked` are the bodies of all requests that were answered.
    """

    def __init__(self, shares: Shares, *, spoil: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self.shares, self.spoil = shares, spoil
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = orjson.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.keys.add(self.headers.get("Authorization", ""))
                status, value = server.reply(self.path, body)
                raw = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def spec(self) -> str:
        """What `--judge` takes."""
        return f"decision:{self.base}/decisions#{MODEL}"

    def __enter__(self) -> "DecisionServer":
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def reply(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path != "/v1/decisions":
            return 404, {"error": {"message": f"nothing at {path}"}}
        try:
            checked(body)
        except (ValidationError, ValueError) as error:
            return 422, {"error": {"message": str(error)}}
        self.asked.append(body)
        answers = [self._answer(text_of(body), question) for question in body["questions"]]
        usage = {
            "input_tokens": 90, "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 60},
            "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 91,
        }  # fmt: skip
        value = {"answers": answers, "model": body["model"], "usage": usage}
        if self.spoil is not None:
            return 200, self.spoil(value)
        return 200, Decision.model_validate(value, strict=True).model_dump()

    def _answer(self, text: str, question: dict[str, Any]) -> dict[str, Any]:
        named = {"name": question.get("name"), "type": question["type"]}
        if question["type"] == "predicate":
            return {**named, "probability": self.shares(text, ["true", "false"])[0]}
        if question["type"] == "choice":
            values = [choice["value"] for choice in question["choices"]]
            shares = dict(zip(values, self.shares(text, values), strict=True))
            best = max(values, key=shares.__getitem__)
            ranked = [
                {"value": value, "probability": shares[value]} for value in sorted(values, key=shares.__getitem__)
            ]
            return {**named, "choice": best, "confidence": shares[best], "probabilities": ranked}
        labels = [level["label"] for level in question["levels"]]
        shares = dict(zip(labels, self.shares(text, labels), strict=True))
        told = [{"label": label, "probability": shares[label], "value": i} for i, label in enumerate(labels, 1)]
        score = sum(each["value"] * each["probability"] for each in told)
        return {**named, "score": score, "confidence": max(shares.values()), "probabilities": told[::-1]}
