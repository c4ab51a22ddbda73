"""A wrapper that computes the cost of answers."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from dikast.core.errors import UserError
from dikast.engines.base import Completion, Engine, Request
from dikast.engines.http.prices import Price
from dikast.engines.wrapper import Wrapper, found_in


class Priced(Wrapper):
    """Works out the cost of each answer from its tokens; the price takes precedence over one that `engine` knows
    itself.
    """

    def __init__(self, engine: Engine, price: Price) -> None:
        super().__init__(engine)
        self.price, self.price_unknown = price, False

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers of the engine, with their cost where they count tokens."""
        for done in self.engine.stream(requests):
            usage = done.usage
            if usage.tokens_in or usage.tokens_out:
                cost = self.price.cost(usage.tokens_in, usage.tokens_cached, usage.tokens_out)
                done = replace(done, usage=replace(usage, cost=cost))
            yield done


def price_from(text: str) -> Price:
    """`IN,OUT`, money per million tokens read and written, as in `.15,.6`; UserError for anything else."""
    try:
        tokens_in, tokens_out = (float(each) for each in text.split(","))
        if not (0 <= tokens_in < float("inf") and 0 <= tokens_out < float("inf")):
            raise ValueError("not a price")
    except ValueError:
        raise UserError(
            f"--price {text!r}: write IN,OUT, money per million tokens read and written, as in .15,.6"
        ) from None
    return Price(tokens_in, tokens_in, tokens_out)


def price_of_engine(engine: object) -> Price | None:
    """The price of an engine, or of one that it wraps; None if no price is known."""
    price = found_in(engine, "price", None)
    return price if isinstance(price, Price) else None
