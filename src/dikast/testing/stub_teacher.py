"""A teacher for tests of `corpus build`: well-formed replies at once, and a second grading that sometimes disagrees."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from dikast.core.canonical import fingerprint
from dikast.core.errors import EngineError
from dikast.engines.base import Completion, Request

_SCORES = range(1, 6)
_SYLLABLES = ("ba", "do", "fe", "gi", "ku", "la", "mo", "ne", "pi", "ru", "sa", "ti", "vo", "we", "xi", "zu")


@dataclass
class StubTeacher:
    """Answers the stages of the recipes `feedback`, `perception` and `bench`; its texts are meaningless words.

    Its second grading confirms a response with probability `agreement`, and is another score otherwise. `words` is the
    length of its responses. Its replies follow from `seed` and the request alone. `calls` counts requests by stage;
    `change` may rewrite a reply, given the request and the reply.
    """

    agreement: float = 1.0
    words: int = 120
    seed: int = 0
    change: Callable[[Request, str], str] | None = None
    name: str = "stub-teacher"
    calls: Counter[str] = field(default_factory=Counter)
    requests: list[Request] = field(default_factory=list)

    def identity(self) -> Mapping[str, Any]:
        """Its settings."""
        return {"engine": self.name, "agreement": self.agreement, "words": self.words, "seed": self.seed}

    def versions(self) -> Mapping[str, str]:
        """None: it changes with Dikast alone."""
        return {}

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Replies in order; a stage that it does not know fails."""
        for request in requests:
            stage = str(request.about.get("stage"))
            self.calls[stage] += 1
            self.requests.append(request)
            answer = getattr(self, f"_{stage}", None)
            if answer is None:
                told = f"the stub teacher has no answer for the stage {stage!r}"
                yield Completion(request.key, finish="error", error=EngineError(told, kind="stage"))
                continue
            text = [message.text for message in request.messages]
            said = answer(request.about, random.Random(fingerprint([self.seed, stage, text])))
            reply = said if isinstance(said, str) else orjson.dumps(said).decode()
            done = Completion(request.key, reply)
            yield replace(done, text=self.change(request, reply)) if self.change else done

    def _rubrics(self, about: Mapping[str, Any], rng: random.Random) -> Any:
        return {"rubrics": [self._rubric(rng) for _ in range(int(about["count"]))]}

    def _refine(self, about: Mapping[str, Any], rng: random.Random) -> Any:
        return {"rubrics": [self._rubric(rng)]}

    def _fit(self, about: Mapping[str, Any], rng: random.Random) -> Any:
        return {"reason": _said(rng, 8), "fits": True}

    def _instructions(self, about: Mapping[str, Any], rng: random.Random) -> Any:
        made = range(int(about["count"]))
        return {"instructions": [{"instruction": _said(rng, 15), "reference": _said(rng, self.words)} for _ in made]}

    def _responses(self, about: Mapping[str, Any], rng: random.Random) -> Any:
        return {"response": f"{_said(rng, self.words - 1)} {about['score']}", "feedback": _said(rng, 20)}

    def _regrade(self, about: Mapping[str, Any], rng: random.Random) -> str:
        due = int(about["response"].split()[-1])
        others = [score for score in _SCORES if score != due]
        return f"{_said(rng, 20)}\nVerdict: {due if rng.random() < self.agreement else rng.choice(others)}"

    @staticmethod
    def _rubric(rng: random.Random) -> dict[str, Any]:
        return {"criterion": f"{_said(rng, 8)}?", "levels": {str(score): _said(rng, 8) for score in _SCORES}}


def _said(rng: random.Random, words: int) -> str:
    return " ".join("".join(rng.choices(_SYLLABLES, k=3)) for _ in range(words))
