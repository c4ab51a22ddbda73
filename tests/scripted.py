"""An engine that says what a test tells it to, and remembers what it was asked."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dikast.engines.base import Completion, Request

Say = Callable[[Request], Completion | str]


@dataclass
class Scripted:
    """Answers with `say(request)` (a text is a reply that stopped), or with the next of a list, in order."""

    say: Say | list[Completion | str]
    name: str = "scripted"
    requests: list[Request] = field(default_factory=list)

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        for request in requests:
            self.requests.append(request)
            said = self.say(request) if callable(self.say) else self.say.pop(0)
            completion = Completion("", said) if isinstance(said, str) else said
            yield replace(completion, key=request.key)

    def identity(self) -> Mapping[str, Any]:
        return {"engine": self.name}

    def versions(self) -> Mapping[str, str]:
        return {}
