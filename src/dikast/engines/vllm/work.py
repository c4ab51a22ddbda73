"""One request in vLLM: first its reply, then the scoring of its labels."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from dikast.core.errors import DataError, EngineError
from dikast.core.media import load_image
from dikast.core.part import Image
from dikast.core.verdict import Usage
from dikast.engines.base import Completion, Request
from dikast.engines.http.body import seed_of
from dikast.engines.local.engine import up_to_marker
from dikast.engines.local.generating import Ask, GeneratedReply, marker_end, reply_of
from dikast.engines.local.label_scoring import Read, less_longer, place
from dikast.engines.local.processor import Processor
from dikast.engines.local.prompt import Prompt, encode, room_for_reply

MOST_IDS = 128  # token ids whose log-probabilities vLLM returns for one request
_NEVER = -100.0  # a bias that keeps a token from being drawn
_SOON, _LATER = 0, 1  # label scoring comes first, since its prefix is still in the cache


class Order(NamedTuple):
    """A request to vLLM: token ids with one placeholder for each image, sampling, and priority (lower is sooner)."""

    prompt: dict[str, Any]
    sampling: dict[str, Any]
    priority: int


@dataclass(slots=True, eq=False)
class Job:
    """A request, its prompt, and the results so far. `ids` are the prompt's as vLLM takes them."""

    request: Request
    prompt: Prompt
    processor: Processor
    ids: list[int]
    most: int  # tokens of the reply; 0 where labels are read at once
    began: float = field(default_factory=time.monotonic)
    deliver: Callable[[Completion], None] = lambda completion: None
    reply: GeneratedReply | None = None
    read: Read | None = None
    waiting: int = 0  # readings under way
    sums: dict[tuple[int, ...], float] = field(default_factory=dict)  # by beginnings of labels, the empty one too
    drafted: list[int] = field(default_factory=list)  # written so far, where a marker in the thinking stopped it
    cached: int | None = None  # tokens of the prompt that the first order found in the cache

    @classmethod
    def of(cls, request: Request, processor: Processor, context: int) -> "Job":
        """Prepare a request for a model of `context` tokens; EngineError says why it cannot be asked."""
        prompt = encode(request.messages, processor, prefill=request.prefill)
        room = room_for_reply(request, prompt, processor.tokens, context)
        generates = request.readout is None or request.readout.generate
        most = max(1, min(request.sampling.max_tokens, room)) if generates else 0
        prompt = replace(prompt, seen=replace(prompt.seen, tensors={}))  # vLLM makes its own from the pictures
        return cls(request, prompt, processor, _collapsed(prompt.ids, prompt, processor), most)

    def first(self) -> list[tuple[tuple[int, ...] | None, Order]]:
        """The orders that begin the work, each with the beginning of labels that it reads (None: it writes a reply)."""
        if not self.most:
            return self._readings()
        return [self._writing()]

    def _writing(self) -> tuple[None, Order]:
        """The order that generates the reply, from where it was stopped."""
        sampling, readout = self.request.sampling, self.request.readout
        wanted: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": self.most - len(self.drafted)}
        if sampling.temperature > 0:
            wanted |= {"top_p": max(sampling.top_p, 1e-6), "seed": seed_of(self.request)}
        if readout is not None and readout.marker:
            wanted["stop"] = [readout.marker]
        if self.processor.vision is not None:
            never = self.processor.tokens.placeholders
            wanted["logit_bias"] = {self.processor.tokens.controls[each]: _NEVER for each in never}
        if self.request.schema is not None:
            wanted["structured"] = {"json": dict(self.request.schema), "disable_any_whitespace": True}
        elif self.request.choices:
            wanted["structured"] = {"choice": list(self.request.choices)}
        return None, Order(self._prompt([*self.ids, *self.drafted]), wanted, _LATER)

    def written(self, output: Any) -> list[tuple[tuple[int, ...] | None, Order]]:
        """Take the reply; the orders that read the labels after it, if any are to be read.

        A reply that stopped at a marker inside its thinking goes on, as that is a draft.
        """
        self._note_cached(output)
        (one,) = output.outputs
        ids = [*self.drafted, *one.token_ids]
        marked = isinstance(one.stop_reason, str)
        ends = ids[-1:] if one.finish_reason == "stop" and not marked else []
        ask = Ask(self.request, self.prompt, max(self.most, len(ids)))
        if marked and len(ids) < self.most:
            text = self.processor.tokens.decode(ids, after=self.prompt.ids)
            if marker_end(ask, text) is None:
                self.drafted = ids
                return [self._writing()]
        self.reply = reply_of(ask, ids, ends, self.processor.tokens)
        if self.request.readout is None or self.reply.finish == "length":
            return []
        return self._readings()

    def take(self, beginning: tuple[int, ...], output: Any) -> None:
        """Take the log-probabilities of the tokens that may follow a beginning of labels."""
        self._note_cached(output)
        (one,) = output.outputs
        assert self.read is not None
        for token, found in one.logprobs[0].items():
            self.sums.setdefault((*beginning, token), found.logprob)
        self.waiting -= 1

    def completion(self) -> Completion:
        """The completion of the request."""
        reply, readout = self.reply, self.request.readout
        read: Mapping[str, float] | None = None
        if self.read is not None and readout is not None:
            sums = {label: sum(self.sums[label[: i + 1]] for i in range(len(label))) for label in set(self.read.labels)}
            read = dict(zip(readout.labels, less_longer(self.read.labels, sums), strict=True))
        own = reply is not None and reply.wrote_marker
        return Completion(
            self.request.key,
            text=reply.text if reply is not None else "",
            finish=reply.finish if reply is not None else "stop",
            label_logprobs=read,
            marker=None if read is None else "own" if own else "forced",
            usage=Usage(
                len(self.prompt.ids),
                min(self.cached or 0, len(self.prompt.ids)),
                reply.tokens_out if reply is not None else 0,
                time.monotonic() - self.began,
            ),
        )

    def _readings(self) -> list[tuple[tuple[int, ...] | None, Order]]:
        readout = self.request.readout
        assert readout is not None
        written = self.reply.ids if self.reply is not None else ()
        text = up_to_marker(self.request, readout, self.reply)
        self.read = place(self.prompt, written, text, readout.labels, self.processor.tokens)
        nexts: dict[tuple[int, ...], set[int]] = {}
        for label in self.read.labels:
            for i, token in enumerate(label):
                nexts.setdefault(label[:i], set()).add(token)
        orders: list[tuple[tuple[int, ...] | None, Order]] = []
        for beginning, tokens in sorted(nexts.items()):
            context = _collapsed([*self.read.context, *beginning], self.prompt, self.processor)
            for few in _chunks(sorted(tokens), MOST_IDS):
                wanted = {"temperature": 0.0, "max_tokens": 1, "logprob_token_ids": few, "detokenize": False}
                orders.append((beginning, Order(self._prompt(context), wanted, _SOON)))
        self.waiting = len(orders)
        return orders

    def _prompt(self, ids: list[int]) -> dict[str, Any]:
        if not self.prompt.seen.images:
            return {"prompt_token_ids": ids}
        return {"prompt_token_ids": ids, "multi_modal_data": {"image": _pictures(self.request)}}

    def _note_cached(self, output: Any) -> None:
        if self.cached is None:
            self.cached = output.num_cached_tokens or 0


def _collapsed(ids: Sequence[int], prompt: Prompt, processor: Processor) -> list[int]:
    """The ids with one placeholder for each image: vLLM puts in the image's own number of them."""
    if processor.vision is None or not prompt.seen.images:
        return list(ids)
    found: list[int] = []
    runs, i = iter(prompt.seen.images), 0
    while i < len(ids):
        found.append(ids[i])
        i += len(next(runs)) if ids[i] == processor.vision.image_token_id else 1
    return found


def _pictures(request: Request) -> list[Any]:
    """The images of a request as vLLM takes them, in order; a clip is its frames."""
    images: list[Image] = []
    for message in request.messages:
        for part in message.parts:
            images.extend((part,) if isinstance(part, Image) else getattr(part, "frames", ()))
    try:
        return [load_image(image).picture for image in images]
    except DataError as error:
        raise EngineError(str(error), kind="bad_media") from error


def _chunks(values: list[int], most: int) -> list[list[int]]:
    return [values[i : i + most] for i in range(0, len(values), most)]
