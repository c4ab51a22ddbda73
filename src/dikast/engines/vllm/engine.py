"""The engine of models that vLLM runs in this process."""

import functools
import importlib.metadata
import itertools
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from dikast.core.errors import DikastError, EngineError, UserError, require
from dikast.engines.base import Closing, Completion, Request
from dikast.engines.http.server_settings import extra_fields
from dikast.engines.local.source import locate

if TYPE_CHECKING:
    from dikast.engines.vllm.work import Job, Order

_READING, _SEEING = 1024, 128  # requests under way; vLLM holds the pixels of all of them
_RESERVED = ("model", "tokenizer", "dtype", "max_model_len", "gpu_memory_utilization", "tensor_parallel_size")


class VllmEngine(Closing):
    """A model in vLLM, in process: `vllm:ORG/NAME[@REV]`, or `vllm:FOLDER`.

    dtype, context (the most tokens, prompt and reply together), gpu_memory (the share of it to use) and gpus (tensor
    parallel) are vLLM's; `engine` is a JSON object, or a file with one, of any other of its engine arguments, such as
    `{"quantization":"fp8"}`. `window` requests (1024, for models that see 128) are given to it at once, sorted by their
    tokens, so that requests with common prefixes follow one another and hit its prefix cache; `usage.tokens_cached`
    counts the cached tokens.

    Prompts, untrusted text and reading are those of `LocalEngine`; a clip is its frames. Errors of single requests have
    the kinds `context_length`, `no_vision`, `bad_media`, `chat_template`, `tokenizer`, and `model` (what vLLM raised).
    The seconds of a request count from when vLLM got it, so they contain its wait for others.
    """

    free: ClassVar[bool] = True  # of money

    def __init__(
        self,
        source: str,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        context: int | None = None,
        gpu_memory: float = 0.9,
        gpus: int = 1,
        window: int | None = None,
        engine: str = "",
    ) -> None:
        if window is not None and window < 1:
            raise UserError(f"vllm:{source}: window must be at least 1, got {window}")
        arguments = _arguments(source, engine)
        os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")  # standard output is for results
        self._vllm: Any = require("vllm", "vllm")
        self._source = locate(str(source), revision)
        if self._source.adapter is not None:
            raise UserError(f"vllm:{source}: this is an adapter; save it merged into its model, and give that folder")
        require("transformers", "vllm")
        from dikast.engines.local.loading import sees_images, settings_of
        from dikast.engines.local.processor import load_processor
        from dikast.engines.local.trusted import model_config

        self.name = f"vllm:{source}"
        folder = str(self._source.folder)
        config = model_config(folder)
        sees = sees_images(config, self._source)
        self.window = window or (_SEEING if sees else _READING)
        self._processor = load_processor(self._source, config, sees=sees, as_video=False)
        try:
            model = self._vllm.LLM(
                model=folder,
                dtype=dtype,
                max_model_len=context,
                gpu_memory_utilization=gpu_memory,
                tensor_parallel_size=gpus,
                **{
                    "enable_prefix_caching": True,
                    "scheduling_policy": "priority",
                    "seed": 0,
                    "trust_remote_code": False,
                    **arguments,
                },
            )
        except Exception as error:  # vLLM, pydantic and torch each raise their own kinds
            raise UserError(f"vllm:{source}: this model cannot be started: {error}") from error
        self._model = model
        self._core = model.llm_engine
        self._context = int(self._core.model_config.max_model_len)
        self._identity = {
            "engine": "vllm",
            **self._source.identity(),
            **settings_of(config, self._processor),
            "dtype": str(self._core.model_config.dtype).removeprefix("torch."),
            "context": self._context,
            "arguments": arguments,
        }
        self._numbers = itertools.count()
        self._flying: dict[str, tuple[Job, tuple[int, ...] | None]] = {}

    def __repr__(self) -> str:
        return f"VllmEngine({self.name!r})"

    def identity(self) -> Mapping[str, Any]:
        """Model and revision or a hash of the weight files, tokenizer, template, dtype, context, arguments."""
        return self._identity

    def versions(self) -> Mapping[str, str]:
        """Versions of vLLM (by whatever name it is installed), torch and transformers."""
        found = {"vllm": str(self._vllm.__version__)}
        for package in ("torch", "transformers"):
            found[package] = importlib.metadata.version(package)
        return found

    def close(self) -> None:
        """End vLLM's processes and free its memory."""
        self._core.engine_core.shutdown()

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """Answers in order of arrival; requests are taken in sorted batches of half a window or more."""
        source = iter(requests)
        done: deque[Completion] = deque()
        mine: set[Job] = set()
        ended = False

        def deliver(job: "Job", completion: Completion) -> None:
            mine.discard(job)
            done.append(completion)

        try:
            while True:
                if not ended and len(mine) <= self.window // 2:
                    taken = list(itertools.islice(source, self.window - len(mine)))
                    ended = not taken
                    self._start(taken, mine, done, deliver)
                if done:
                    yield done.popleft()
                elif mine:
                    self._step()
                elif ended:
                    return
        finally:
            self._abandon(mine)

    def _start(self, requests: list[Request], mine: "set[Job]", done: deque[Completion], deliver: Any) -> None:
        """Prepare requests and submit them in the order of their tokens; those that cannot be asked are done."""
        from dikast.engines.vllm.work import Job

        jobs: list[Job] = []
        for request in requests:
            try:
                jobs.append(Job.of(request, self._processor, self._context))
            except Exception as error:  # an unexpected error of one request must not end the stream of all others
                done.append(Completion(request.key, finish="error", error=_engine_error(error)))
        jobs.sort(key=lambda job: job.ids)
        for job in jobs:
            mine.add(job)
            job.began = time.monotonic()
            job.deliver = functools.partial(deliver, job)
            self._hand_over(job, job.first)

    def _hand_over(self, job: "Job", make: Any) -> bool:
        """Give vLLM the orders that `make` makes; False if there are none. What it refuses ends the job."""
        try:
            orders = make()
            for beginning, order in orders:
                number = str(next(self._numbers))
                self._core.add_request(number, order.prompt, self._sampling(order), priority=order.priority)
                self._flying[number] = (job, beginning)
        except Exception as error:
            self._drop(job)
            job.deliver(Completion(job.request.key, finish="error", error=_engine_error(error)))
            return True
        return bool(orders)

    def _sampling(self, order: "Order") -> Any:
        wanted = dict(order.sampling)
        if structured := wanted.pop("structured", None):
            wanted["structured_outputs"] = self._vllm.sampling_params.StructuredOutputsParams(**structured)
        return self._vllm.SamplingParams(**wanted)

    def _step(self) -> None:
        """Run one step of vLLM, and take what it finished, also for other streams."""
        for output in self._core.step():
            if not output.finished or output.request_id not in self._flying:
                continue
            job, beginning = self._flying.pop(output.request_id)
            try:
                if beginning is None:
                    if self._hand_over(job, functools.partial(job.written, output)):
                        continue
                else:
                    job.take(beginning, output)
                    if job.waiting:
                        continue
                completion = job.completion()
            except Exception as error:
                self._drop(job)
                completion = Completion(job.request.key, finish="error", error=_engine_error(error))
            job.deliver(completion)

    def _drop(self, job: "Job") -> None:
        """Cancel the requests of a job that are in progress."""
        numbers = [number for number, (each, _) in self._flying.items() if each is job]
        for number in numbers:
            del self._flying[number]
        if numbers:
            self._core.abort_request(numbers)

    def _abandon(self, jobs: "set[Job]") -> None:
        numbers = [number for number, (job, _) in self._flying.items() if job in jobs]
        for number in numbers:
            del self._flying[number]
        if numbers:
            self._core.abort_request(numbers)


def _arguments(source: str, text: str) -> dict[str, Any]:
    """The object that `engine` spells; UserError for what has an option of its own."""
    value = extra_fields(text, "engine")
    if twice := [name for name in value if name in _RESERVED]:
        raise UserError(f"vllm:{source}: {', '.join(twice)} in engine=...: there is an option for that")
    return value


def _engine_error(error: Exception) -> EngineError:
    if isinstance(error, EngineError):
        return error
    kind = "missing_extra" if isinstance(error, DikastError) else "model"
    first = next(iter(str(error).strip().splitlines()), "")
    return EngineError(f"{type(error).__name__}: {first}", kind=kind)
