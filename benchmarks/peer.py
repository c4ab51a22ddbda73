"""One client of the comparison, in an environment of its own: `PYTHON -P benchmarks/peer.py NAME`.

`benchmarks.peers` starts one such process for each client and lets them run in turns against one server. So this file
imports nothing but the standard library and the client that it is about. Each line on standard input says what to send
(`url`, `model`, `prompt`, `text` to expect, `n` requests, `in_flight` of them at once); for each one line comes back
with the CPU seconds and the wall seconds it took.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from importlib.metadata import version
from typing import Any

Work = dict[str, Any]


def body(work: Work, i: int) -> dict[str, Any]:
    """The request, as keywords."""
    return {
        "model": work["model"], "max_tokens": 1024, "temperature": 0.0,
        "messages": [{"role": "user", "content": f"{i} {work['prompt']}"}],
    }  # fmt: skip


async def workers(work: Work, ask: Callable[[dict[str, Any]], Awaitable[Any]]) -> None:
    """`in_flight` workers that share `n` requests."""
    left: Iterator[int] = iter(range(work["n"]))

    async def worker() -> None:
        for i in left:
            answer = await ask(body(work, i))
            assert answer.choices[0].message.content == work["text"]

    await asyncio.gather(*(worker() for _ in range(work["in_flight"])))


def run_openai(work: Work) -> None:
    """The openai SDK with its aiohttp transport."""
    import openai

    async def run() -> None:
        async with openai.AsyncOpenAI(
            base_url=work["url"], api_key="none", http_client=openai.DefaultAioHttpClient()
        ) as sdk:
            await workers(work, lambda fields: sdk.chat.completions.create(**fields))

    asyncio.run(run())


def run_litellm(work: Work) -> None:
    """The `acompletion` of litellm, which uses an aiohttp transport of its own."""
    import litellm

    async def ask(fields: dict[str, Any]) -> Any:
        fields["model"] = f"openai/{fields['model']}"
        return await litellm.acompletion(**fields, api_base=work["url"], api_key="none")

    asyncio.run(workers(work, ask))


def run_prometheus(work: Work) -> None:
    """The `absolute_grade` of prometheus-eval over litellm, its limit of 100 requests a minute lifted."""
    from prometheus_eval import PrometheusEval
    from prometheus_eval.litellm import AsyncLiteLLM

    os.environ["OPENAI_API_KEY"] = "none"
    model = AsyncLiteLLM(
        f"openai/{work['model']}", batch_size=work["in_flight"], requests_per_minute=10**9, api_base=work["url"]
    )
    n = work["n"]
    with contextlib.redirect_stdout(sys.stderr):
        _, scores = PrometheusEval(model=model).absolute_grade(
            instructions=["Report."] * n,
            responses=[f"{i} {work['prompt']}" for i in range(n)],
            rubric="Is it right? 1 to 5.",
            reference_answers=[None] * n,
            params={},
        )
    assert scores == [4] * n, "not every reply was parsed"


def run_raw(work: Work) -> None:
    """Raw aiohttp and orjson; in Dikast's own environment."""
    from benchmarks.client import raw_aiohttp

    raw_aiohttp(work["url"], work["n"], work["in_flight"])


def run_stream(work: Work) -> None:
    """Dikast's `engine.stream`."""
    from benchmarks.client import our_stream

    our_stream(work["url"], work["n"], work["in_flight"])


def run_grade(work: Work) -> None:
    """The whole of Dikast's `grade`."""
    from benchmarks.client import our_grade

    our_grade(work["url"], work["n"], work["in_flight"])


CLIENTS: dict[str, tuple[str, Callable[[Work], None]]] = {
    "raw": ("aiohttp", run_raw),
    "stream": ("dikast", run_stream),
    "grade": ("dikast", run_grade),
    "openai": ("openai", run_openai),
    "litellm": ("litellm", run_litellm),
    "prometheus": ("prometheus-eval", run_prometheus),
}
"""By name: the distribution that is measured, and what sends the requests."""


def main() -> None:
    distribution, run = CLIENTS[sys.argv[1]]
    out = os.fdopen(os.dup(1), "w", buffering=1)  # what the clients print must not come between
    os.dup2(2, 1)
    for line in sys.stdin:
        work = json.loads(line)
        cpu, wall = time.process_time(), time.perf_counter()
        run(work)
        took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
        out.write(json.dumps({**took, "version": version(distribution)}) + "\n")


if __name__ == "__main__":
    main()
