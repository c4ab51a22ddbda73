"""Replies for a batch of prompts, by the model's own `generate`; every row draws and stops by its own request."""

import bisect
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

from dikast.core.thinking import answer_begins
from dikast.engines.base import Request, Sampling
from dikast.engines.local.batch import TokenRow, collate
from dikast.engines.local.constraint import Constraint
from dikast.engines.local.growable_cache import growable_cache
from dikast.engines.local.loading import Loaded
from dikast.engines.local.prompt import Prompt
from dikast.engines.local.tokens import Tokens

_SPARE_TOKENS = 8  # a marker is searched in as many last tokens as it has characters, plus this many


@dataclass(frozen=True, slots=True)
class Ask:
    """One row of a batch: a request, its prompt, and what its reply must follow."""

    request: Request
    prompt: Prompt
    most: int  # tokens of the reply
    constraint: Constraint | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class GeneratedReply:
    """A reply: `text` and the `ids` it was decoded from, without the token that ended it.

    With `wrote_marker`, `text` stops where the marker of the label scoring ends, though the last token may hold more.
    """

    ids: list[int]
    text: str
    finish: Literal["stop", "length"]
    tokens_out: int
    wrote_marker: bool = False


def generate(asks: Sequence[Ask], loaded: Loaded) -> list[GeneratedReply]:
    """One reply for each ask, in order."""
    batch = collate([TokenRow(ask.prompt, ask.prompt.ids) for ask in asks], loaded)
    width = batch["input_ids"].shape[1]
    stop = _StopEach(asks, loaded, width)
    config = GenerationConfig(
        do_sample=False,  # greedy over scores in which `Picks` has left a single token for requests that sample
        max_new_tokens=max(ask.most for ask in asks),
        eos_token_id=list(loaded.ends) or None,
        pad_token_id=loaded.processor.padding,
    )
    with torch.inference_mode():
        made = loaded.model.generate(
            **batch,
            past_key_values=growable_cache(loaded.model),
            generation_config=config,
            logits_processor=LogitsProcessorList([_PickEach(asks, loaded, width)]),
            stopping_criteria=StoppingCriteriaList([stop]),
        )
    return [
        reply_of(ask, row, loaded.ends, loaded.tokens) for ask, row in zip(asks, made[:, width:].tolist(), strict=True)
    ]


def draws(sampling: Sampling, key: str) -> np.random.Generator:
    """The random numbers of one request: they depend on the seed and the request's key, not on its neighbours."""
    seed = hashlib.blake2b(f"{sampling.seed}\0{key}".encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(seed, "big"))


def choose(logits: torch.Tensor, temperature: float, top_p: float, uniform: float) -> int:
    """The token that the uniform number in [0, 1) selects, in vocabulary order, from the tempered nucleus.

    logits: (vocabulary,). The nucleus is the fewest most probable tokens whose probabilities reach `top_p` together
    (Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration"). Vocabulary order, not the order of
    probability, keeps a rounding difference between batches from reordering near ties.
    """
    logits = logits.cpu() if logits.device.type == "mps" else logits  # it has no float64
    probabilities = (logits.double() / temperature).softmax(-1)
    if top_p < 1:
        # all tokens of at most this probability have less than 1 - top_p together: only the others need an order
        some = (~(probabilities <= (1 - top_p) / len(probabilities) * (1 - 1e-6))).nonzero()[:, 0]
        ranked, order = probabilities[some].sort(descending=True, stable=True)
        inside = ranked.cumsum(-1) - ranked < top_p
        inside[0] = True  # top_p 0 selects the most probable token
        kept = some[order[inside]]
        probabilities = torch.zeros_like(probabilities).index_copy_(0, kept, probabilities[kept])
    steps = probabilities.cumsum(-1)
    chosen = int(torch.searchsorted(steps, steps[-1] * uniform, right=True))
    return min(chosen, int(probabilities.nonzero()[-1]))


class Picks:
    """Scores without forbidden tokens, within constraints, and with only the drawn token in rows that sample."""

    def __init__(self, asks: Sequence[Ask], loaded: Loaded) -> None:
        self._asks = asks
        self._forbidden = torch.tensor(loaded.forbidden, dtype=torch.long, device=loaded.device)
        self._draws = [draws(ask.request.sampling, ask.request.key) for ask in asks]

    def forbid(self, scores: torch.Tensor) -> None:
        """Exclude tokens that are never generated, in place: (rows, vocabulary)."""
        scores[:, self._forbidden] = -torch.inf

    def changes(self, i: int) -> bool:
        """Whether `pick` does anything to row i."""
        ask = self._asks[i]
        return ask.constraint is not None or ask.request.sampling.temperature > 0

    def pick(self, i: int, last: int | None, scores: torch.Tensor) -> None:
        """Row i, (vocabulary), in place; `last` is the token that its reply was continued with."""
        ask = self._asks[i]
        if ask.constraint is not None:
            if last is not None:
                ask.constraint.take(last)
            allowed = ask.constraint.allowed().to(scores.device)
            scores[: len(allowed)].masked_fill_(~allowed[: len(scores)], -torch.inf)
        sampling = ask.request.sampling
        if sampling.temperature > 0:
            token = choose(scores, sampling.temperature, sampling.top_p, self._draws[i].random())
            scores[:] = -torch.inf
            scores[token] = 0


class Stops:
    """Which rows end at their own token limit, or because they have written the marker for label scoring."""

    def __init__(self, asks: Sequence[Ask], loaded: Loaded) -> None:
        self._asks = asks
        self._loaded = loaded

    def ended(self, i: int, written: list[int]) -> bool:
        """Whether row i ends with the last of the tokens that it has written."""
        ask = self._asks[i]
        return len(written) >= ask.most or self._marked(ask, written)

    def _marked(self, ask: Ask, written: list[int]) -> bool:
        readout = ask.request.readout
        if readout is None:
            return False
        tokens, window = self._loaded.tokens, written[-len(readout.marker) - _SPARE_TOKENS :]
        start = ask.request.prefill if len(window) == len(written) else ""
        joined = "".join(map(tokens.text_of, window))  # remembered texts: decoding at each step is a tenth of the work
        if _first_marker(start, joined, readout.marker) is None and "\ufffd" not in joined:
            return False
        return marker_end(ask, tokens.decode(written, after=ask.prompt.ids)) is not None


class _PickEach(LogitsProcessor):
    """`Picks` as `generate` calls it."""

    def __init__(self, asks: Sequence[Ask], loaded: Loaded, width: int) -> None:
        self._picks, self._width = Picks(asks, loaded), width
        self._ended = [False] * len(asks)
        self._ends = set(loaded.ends)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        self._picks.forbid(scores)
        for i, row in enumerate(scores):
            last = int(input_ids[i, -1]) if input_ids.shape[1] > self._width else None
            self._ended[i] |= last in self._ends
            if not self._ended[i]:
                self._picks.pick(i, last, row)
        return scores


class _StopEach(StoppingCriteria):
    """`Stops` as `generate` calls it."""

    def __init__(self, asks: Sequence[Ask], loaded: Loaded, width: int) -> None:
        self._stops, self._width = Stops(asks, loaded), width

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **kwargs: object) -> torch.BoolTensor:
        ended = [self._stops.ended(i, row) for i, row in enumerate(input_ids[:, self._width :].tolist())]
        return torch.tensor(ended, dtype=torch.bool, device=input_ids.device)  # type: ignore[return-value]


def marker_end(ask: Ask, text: str) -> int | None:
    """The end of the marker that the model wrote in the reply `text`; None without one.

    A marker written while the model was thinking is a draft and does not count.
    """
    readout, prefill = ask.request.readout, ask.request.prefill
    if readout is None:
        return None
    so_far = ask.prompt.thinking or prefill
    begin = max(0, answer_begins(so_far + text) - len(so_far))
    end = _first_marker("" if begin else prefill, text[begin:], readout.marker)
    return None if end is None else begin + end


def _first_marker(prefill: str, text: str, marker: str) -> int | None:
    lead = prefill[max(0, len(prefill) - len(marker) + 1) :]
    at = (lead + text).find(marker) if marker else -1
    return at + len(marker) - len(lead) if at >= 0 else None


def reply_of(ask: Ask, row: list[int], ends: Sequence[int], tokens: Tokens) -> GeneratedReply:
    """Cut a row of ids (perhaps padded behind its end) to what the model wrote."""
    row = row[: ask.most]
    end = next((i for i, token in enumerate(row) if token in ends), None)
    ids = row if end is None else row[:end]
    decode = tokens.decode
    text = decode(ids, after=ask.prompt.ids)
    if marker_end(ask, text) is not None:

        def cut(n: int) -> int | None:
            return marker_end(ask, decode(ids[:n], after=ask.prompt.ids))

        n = len(ids)
        if cut(n - 1) is not None:  # the reply went on behind its marker
            n = bisect.bisect_left(range(n), True, key=lambda n: cut(n) is not None)
        return GeneratedReply(ids[:n], decode(ids[:n], after=ask.prompt.ids)[: cut(n)], "stop", n, wrote_marker=True)
    if end is None:
        return GeneratedReply(ids, text, "length", len(ids))
    return GeneratedReply(ids, text, "stop", end + 1)
