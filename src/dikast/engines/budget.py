"""A wrapper that stops asking when the budget is spent."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dikast.core.errors import EngineError, UserError
from dikast.core.message import Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Engine, Request
from dikast.engines.wrapper import Wrapper, found_in

_CHARACTERS = 3  # characters per token, until the model has counted some
_IMAGE_TOKENS = 1500


@dataclass(slots=True)
class Spent:
    """What has been used: requests, tokens in and out together, money."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0


class Budget(Wrapper):
    """Lets requests through to `engine` until `calls`, `tokens` (in and out) or `money` are spent; None sets no bound.

    A request is sent only if the budget covers it together with everything in flight, each estimated at the most
    expensive answer so far. Before the first answer, tokens are estimated from the request's length, its token limit
    and what the engine allows for reasoning, and with a budget of money only one request is sent. What the budget does
    not cover fails with the kind `budget` and is not sent, so that running the same command again asks it. Tries that
    failed count as their request's one call, and what a server charges for them is not known here. A model that does
    not count tokens, or costs, ends a budget of them after its first answer.
    """

    def __init__(
        self, engine: Engine, *, calls: int | None = None, tokens: int | None = None, money: float | None = None
    ) -> None:
        if any(bound is not None and not bound >= 0 for bound in (calls, tokens, money)):
            raise UserError(f"a budget is not negative, got calls={calls}, tokens={tokens}, money={money}")
        super().__init__(engine)
        self._calls, self._tokens, self._money = calls, tokens, money
        self.spent = Spent()
        self._dearest = Spent()
        self._answered = 0
        self._in_flight = 0
        self._reserved = 0  # tokens, for what is in flight
        self._uncounted = ""  # what an answer was without, although a bound is on it

    @property
    def left(self) -> str:
        """What is left, in words: `960 calls and 0.42 money left`."""
        spent = self.spent
        bounds = (
            (self._calls, spent.calls, "calls", ",.0f"),
            (self._tokens, spent.tokens, "tokens", ",.0f"),
            (self._money, spent.money, "money", ".4g"),
        )
        found = [f"{max(0, most - used):{spelt}} {name}" for most, used, name, spelt in bounds if most is not None]
        return f"{' and '.join(found)} left" if found else ""

    def around(self, engine: Engine) -> "Budget":
        """The same budget around another engine; both spend from it."""
        other = Budget(engine, calls=self._calls, tokens=self._tokens, money=self._money)
        other.spent = self.spent
        return other

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers of the engine; what the budget does not cover fails with `budget`."""
        source = iter(requests)
        held: Request | None = None
        sent: dict[str, int] = {}  # tokens reserved, by key

        def feed() -> Iterator[Request]:
            nonlocal held
            while True:
                request = held if held is not None else next(source, None)
                held = None
                if request is None:
                    return
                tokens = self._estimate(request)
                if self._short(tokens):
                    held = request
                    return
                sent[request.key] = tokens
                self._in_flight += 1
                self._reserved += tokens
                self.spent.calls += 1
                yield request

        try:
            while True:
                before = self.spent.calls
                for completion in self.engine.stream(feed()):
                    self._note(completion, sent.pop(completion.key, None))
                    yield completion
                if held is None:
                    return
                if self.spent.calls == before:  # nothing else is in flight, and it still does not fit
                    break
        finally:
            self._in_flight -= len(sent)
            self._reserved -= sum(sent.values())
        while held is not None:
            short = self._short(self._estimate(held))
            told = f"the budget does not cover this request: {short}; raise it and run again to continue"
            yield Completion(held.key, finish="error", error=EngineError(told, kind="budget"))
            held = next(source, None)

    def _short(self, tokens: int) -> str:
        """What the budget lacks for one more request, in words; "" if it covers it."""
        spent = self.spent
        if self._calls is not None and spent.calls >= self._calls:
            return f"{spent.calls:,} of {self._calls:,} calls were made"
        if self._uncounted and (self._tokens is not None or self._money is not None):
            return f"the server does not count {self._uncounted}, so the amount spent is unknown"
        if self._tokens is not None and spent.tokens + self._reserved + tokens > self._tokens:
            return f"{spent.tokens:,} of {self._tokens:,} tokens were used and the next answer may take {tokens:,}"
        if self._money is not None:
            if not self._answered:
                return "no answer has arrived yet" if self._in_flight or self._money == 0 else ""
            most = self._dearest.money
            if spent.money + (self._in_flight + 1) * most > self._money:
                return f"{spent.money:.6g} of {self._money:.6g} were spent and the next answer may cost {most:.6g}"
        return ""

    def _estimate(self, request: Request) -> int:
        if self._answered:
            return self._dearest.tokens
        tokens = request.sampling.max_tokens + int(found_in(self.engine, "thinking", 0))
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, Span):
                    tokens += len(part.text) // _CHARACTERS
                else:
                    tokens += _IMAGE_TOKENS * (1 if isinstance(part, Image) else len(part.frames))
        return tokens

    def _note(self, completion: Completion, reserved: int | None) -> None:
        if reserved is not None:
            self._in_flight -= 1
            self._reserved -= reserved
        usage = completion.usage
        tokens = usage.tokens_in + usage.tokens_out
        if completion.error is not None:  # a reply that cannot be used may have been paid for
            self.spent.tokens += tokens
            self.spent.money += usage.cost or 0.0
            return
        if not tokens:
            self._uncounted = "tokens"
        elif self._money is not None and usage.cost is None:
            self._uncounted = self._uncounted or "costs (calls=N or tokens=N bound it, or a price is given)"
        self.spent.tokens += tokens
        self.spent.money += usage.cost or 0.0
        self._dearest.tokens = max(self._dearest.tokens, tokens)
        self._dearest.money = max(self._dearest.money, usage.cost or 0.0)
        self._answered += 1
