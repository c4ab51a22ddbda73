"""The engine of models that run on this machine."""

import importlib.metadata
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dikast.core.errors import DikastError, EngineError, UserError, require
from dikast.core.verdict import Usage
from dikast.engines.base import Closing, Completion, Readout, Request
from dikast.engines.local.source import locate

if TYPE_CHECKING:
    from dikast.engines.local.generating import Ask, GeneratedReply
    from dikast.engines.local.loading import Loaded
    from dikast.engines.local.prompt import Prompt

_log = logging.getLogger(__name__)
_WINDOW = 64


@dataclass(slots=True)
class _Job:
    """A request in progress: its prompt, then its reply."""

    request: Request
    prompt: "Prompt"
    ask: "Ask | None" = field(default=None)
    reply: "GeneratedReply | None" = field(default=None)


class LocalEngine(Closing):
    """A transformers model as an engine: `hf:ORG/NAME[@REV]`, or a folder with its files, or with a LoRA adapter's.

    device: `auto` (CUDA, else MPS, else CPU) or a torch device. dtype: `auto` (as saved; float32 on a CPU) or a torch
    dtype's name. Requests are taken `window` (64, or `batch_size` if that is more) at a time, and replies are written
    for `batch_size` of them at a time, by default 64 that share or 8 that do not.
    share: common prefixes of the prompts in a window are computed once; otherwise prompts are sorted by length and
    padded. memory: GB that keys and values may take if prefixes are shared; the window is then computed in parts that
    fit. base: the base model of an adapter, if it is not where the adapter says; the adapter is merged into it. clips:
    a clip is given to the model as `video` if the model supports video, or as its `frames`, one image each, as for
    every other model. The checkpoint's own sampling defaults are not applied: `Request.sampling` alone decides.

    Errors of single requests have these kinds: `context_length`, `no_vision`, `bad_media`, `chat_template`, `schema`,
    `tokenizer`, `missing_extra`, `out_of_memory` (after halving the batch down to one), and `model` (anything else that
    the model raised). The time of a batch is divided among its requests.
    """

    free: ClassVar[bool] = True  # of money

    def __init__(
        self,
        source: str,
        *,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int | None = None,
        window: int | None = None,
        clips: Literal["video", "frames"] = "video",
        base: str | None = None,
        share: bool = True,
        memory: float | None = None,
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise UserError(f"{source}: option 'batch_size': expected a whole number of at least 1, got {batch_size}")
        least = batch_size or 1
        window = max(_WINDOW, least) if window is None else window
        if window < least:
            raise UserError(f"{source}: option 'window': expected at least {least} (batch_size), got {window}")
        require("torch", "hf")
        require("transformers", "hf")
        from dikast.engines.local.constraint import Grammars
        from dikast.engines.local.loading import load

        self.name = source
        self.batch_size, self.window = batch_size, window
        self._source = locate(str(source), revision, base=base)
        self._adapted = bool(self._source.adapter)
        self._loaded = load(self._source, device=device, dtype=dtype, as_video=clips == "video")
        vocabulary = int(self._loaded.model.get_output_embeddings().weight.shape[0])
        self._grammars = Grammars(self._loaded.tokens, vocabulary, self._loaded.ends)
        from dikast.engines.local.execution import execution_of  # after `load`, which says why transformers is broken

        self._execution = execution_of(self._loaded, batch_size, share=share, memory=memory)
        self._identity: dict[str, Any] | None = None

    @classmethod
    def of(cls, loaded: "Loaded", *, name: str, batch_size: int | None = None, window: int = _WINDOW) -> "LocalEngine":
        """An engine on a model that is in memory, such as one in training; `name` says which, and is its identity."""
        from dikast.engines.local.constraint import Grammars
        from dikast.engines.local.execution import execution_of
        from dikast.engines.local.loading import fixed_settings

        engine = cls.__new__(cls)
        engine.name, engine.batch_size, engine.window = name, batch_size, max(window, batch_size or 1)
        engine._loaded, engine._adapted = loaded, False
        vocabulary = int(loaded.model.get_output_embeddings().weight.shape[0])
        engine._grammars = Grammars(loaded.tokens, vocabulary, loaded.ends)
        engine._execution = execution_of(loaded, batch_size)
        engine._identity = {"engine": "local", "weights": name, **fixed_settings(loaded)}
        return engine

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers, each with its request's key; never raises for a single request."""
        if not hasattr(self, "_loaded"):
            raise UserError(f"{self.name}: this engine is closed; open it again")
        from dikast.engines.local.seeing.shown import in_turn

        waiting = iter(requests)
        while window := list(islice(waiting, self.window)):
            jobs: list[_Job] = []
            for request in in_turn(window, self._loaded.processor):
                try:
                    jobs.append(self._job(request))
                except EngineError as error:
                    yield Completion(request.key, finish="error", error=error)
            for batch in self._execution.batches([(job.prompt, job.ask) for job in jobs]):
                yield from self._run([jobs[i] for i in batch])

    @property
    def notes(self) -> dict[str, int]:
        """Warnings for readers of the verdicts, with the number of requests that they concern."""
        return dict(self._execution.notes) if hasattr(self, "_execution") else {}

    @property
    def work(self) -> dict[str, int]:
        """Tokens and pictures requested and computed so far, if common prefixes are computed once."""
        return dict(self._execution.counts) if hasattr(self, "_execution") else {}

    def stop_sharing(self) -> None:
        """From now on compute each request by itself, as `share=no` does."""
        from dikast.engines.local.execution import execution_of

        self._execution = execution_of(self._loaded, self.batch_size, share=False)
        self._identity = None

    def identity(self) -> Mapping[str, Any]:
        """Model and revision or a hash of the weight files, tokenizer, template, dtype; see `Engine.identity`."""
        if self._identity is None:
            from dikast.engines.local.loading import fixed_settings

            fixed = fixed_settings(self._loaded)
            # in float32 sharing changes no more than the last digits of an answer, in half precision it may change more
            shares = {"share": "yes"} if self._execution.shares and fixed["dtype"] != "float32" else {}
            self._identity = {"engine": "local", **self._source.identity(), **fixed, **shares}
        return self._identity

    def close(self) -> None:
        """Release the model and the memory that CUDA caches for it."""
        if hasattr(self, "_loaded"):
            self.identity()  # still reported for a closed engine
            del self._loaded, self._grammars, self._execution
            import torch

            torch.cuda.empty_cache()

    def versions(self) -> Mapping[str, str]:
        """Versions of torch, transformers and tokenizers, of llguidance where it is installed, of peft where used."""
        found = {}
        packages = ["torch", "transformers", "tokenizers", "llguidance", *(["peft"] if self._adapted else [])]
        for package in packages:
            try:
                found[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                continue
        return found

    def _job(self, request: Request) -> _Job:
        from dikast.engines.local.generating import Ask
        from dikast.engines.local.prompt import encode, room_for_reply

        try:
            prompt = encode(request.messages, self._loaded.processor, prefill=request.prefill)
            room = room_for_reply(request, prompt, self._loaded.tokens, self._loaded.context)
            job = _Job(request, prompt)
            if request.readout is None or request.readout.generate:
                most = max(1, min(request.sampling.max_tokens, room))
                job.ask = Ask(request, prompt, most, self._grammars.constraint(request))
            return job
        except EngineError:
            raise
        except DikastError as error:  # a missing extra
            raise EngineError(str(error), kind="missing_extra") from error
        except Exception as error:
            raise EngineError(f"{type(error).__name__}: {error}", kind="model") from error

    def _run(self, batch: Sequence[_Job]) -> Iterator[Completion]:
        """Run one batch; if memory does not suffice or the model raises, its halves, down to single requests."""
        import torch

        started = time.perf_counter()
        try:
            done = self._answer(batch)
        except Exception as error:
            out_of_memory = isinstance(error, torch.OutOfMemoryError)
            if out_of_memory and torch.cuda.is_available():
                torch.cuda.empty_cache()
            if len(batch) == 1:
                kind = "out_of_memory" if out_of_memory else "model"
                reason = error if isinstance(error, EngineError) else EngineError(_said(error, batch[0]), kind=kind)
                yield Completion(batch[0].request.key, finish="error", error=reason)
                return
            _log.info("a batch of %d did not run (%s), trying its halves", len(batch), type(error).__name__)
            middle = self._execution.middle([job.prompt for job in batch])
            failed = [batch[:middle], batch[middle:]]
        else:
            seconds = (time.perf_counter() - started) / len(batch)
            yield from (make(seconds) for make in done)
            return
        for half in failed:  # outside the handler, whose traceback would keep the tensors alive
            yield from self._run([self._fresh(job) for job in half])

    def _fresh(self, job: _Job) -> _Job:
        """The job as before a run: a constraint remembers what it has seen, so it is created again."""
        return self._job(job.request) if job.ask is not None and job.ask.constraint is not None else job

    def _answer(self, batch: Sequence[_Job]) -> list[Callable[[float], Completion]]:
        from dikast.engines.local.label_scoring import Read, label_logprobs, place

        running = self._execution.begin()
        asks = [job.ask for job in batch if job.ask is not None]
        replies = running.generate(asks) if asks else [None] * len(batch)
        reads: dict[int, Read] = {}
        for i, (job, reply) in enumerate(zip(batch, replies, strict=True)):
            readout = job.request.readout
            if readout is None or (reply is not None and reply.finish == "length"):
                continue
            written = reply.ids if reply is not None else ()
            text = up_to_marker(job.request, readout, reply)
            reads[i] = place(job.prompt, written, text, readout.labels, self._loaded.tokens)
        numbers = list(reads)
        found = label_logprobs([reads[i] for i in numbers], lambda rows: running.logits(rows, numbers)) if reads else []
        logprobs = dict(zip(reads, found, strict=True))
        return [
            _completion(job, reply, logprobs.get(i)) for i, (job, reply) in enumerate(zip(batch, replies, strict=True))
        ]


def up_to_marker(request: Request, readout: Readout, reply: "GeneratedReply | None") -> str:
    """The text after the prompt and its prefill, to the end of the marker."""
    text = reply.text if reply is not None else ""
    if reply is not None and reply.wrote_marker:
        return text
    if not text and request.prefill.endswith(readout.marker):
        return ""
    so_far = request.prefill + text
    joined = not so_far or so_far[-1].isspace() or readout.marker[:1].isspace()
    return text + ("" if joined else readout.lead) + readout.marker


def _completion(
    job: _Job, reply: "GeneratedReply | None", logprobs: list[float] | None
) -> Callable[[float], Completion]:
    labels = job.request.readout.labels if job.request.readout is not None else ()
    read = dict(zip(labels, logprobs, strict=True)) if logprobs is not None else None

    def make(seconds: float) -> Completion:
        return Completion(
            job.request.key,
            text=reply.text if reply is not None else "",
            finish=reply.finish if reply is not None else "stop",
            label_logprobs=read,
            marker=None if read is None else "own" if reply is not None and reply.wrote_marker else "forced",
            usage=Usage(
                tokens_in=len(job.prompt.ids), tokens_out=reply.tokens_out if reply is not None else 0, seconds=seconds
            ),
        )

    return make


def _said(error: Exception, job: _Job) -> str:
    first = next(iter(str(error).strip().splitlines()), "")
    return f"the model failed on a prompt of {len(job.prompt.ids)} tokens: {type(error).__name__}: {first}"
