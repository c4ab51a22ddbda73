"""Three servers behind one engine beside one: `python -m benchmarks.servers`.

Each server is a process of its own that works on eight requests at a time, `--seconds` each, and remembers the
beginnings of the last 64 items, as a prefix cache would: a request whose beginning is there is a hit. Items have 20
questions each.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import orjson
from aiohttp import web

from benchmarks.figures import Figure, table
from dikast.core.message import Message, Span
from dikast.engines.base import Request
from dikast.engines.spec import open_engine

AT_ONCE, REMEMBERED, EACH = 8, 64, 20


def serve(seconds: float) -> None:
    """One server; prints its port."""
    places, known = asyncio.Semaphore(AT_ONCE), OrderedDict[str, None]()

    async def chat(request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        begin = body["messages"][0]["content"].partition("\n")[0]
        async with places:
            hit = begin in known
            known[begin] = None
            known.move_to_end(begin)
            if len(known) > REMEMBERED:
                known.popitem(last=False)
            await asyncio.sleep(seconds)
        usage = {
            "prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": int(hit)}
        }  # fmt: skip
        choice = {"index": 0, "message": {"role": "assistant", "content": "Verdict: 3"}, "finish_reason": "stop"}
        told = {"id": "1", "object": "chat.completion", "model": "judge", "choices": [choice], "usage": usage}
        return web.Response(body=orjson.dumps(told), content_type="application/json")

    async def run() -> None:
        application = web.Application()
        application.router.add_post("/v1/chat/completions", chat)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(run())


@contextmanager
def served(seconds: float) -> Iterator[str]:
    """A server in a process of its own: its address."""
    command = [sys.executable, "-m", "benchmarks.servers", "--serve", "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


def requests(items: int) -> Iterator[Request]:
    for item in range(items):
        for n in range(EACH):
            message = Message("user", (Span(f"The task of item {item}.\nQuestion {n}?"),))
            yield Request(f"{item}-{n}", (message,), about={"item": str(item)})


def measured(servers: int, items: int, seconds: float) -> tuple[float, float]:
    """Answers a second, and the share of prefix hits."""
    with ExitStack() as stack:
        urls = [stack.enter_context(served(seconds)) for _ in range(servers)]
        engine = stack.enter_context(open_engine(f"{','.join(urls)}#judge,concurrency=32"))
        for _ in engine.stream(requests(10 * servers)):  # the limits find their place
            pass
        began, hits, n = time.perf_counter(), 0, 0
        for done in engine.stream(requests(items)):
            assert done.error is None, done.error
            hits, n = hits + done.usage.tokens_cached, n + 1
        assert n == items * EACH
        return n / (time.perf_counter() - began), hits / n


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.servers", description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--items", type=int, default=50, help="items for one server; three get three times as many")
    parser.add_argument("--seconds", type=float, default=0.2, help="that a request takes")
    given = parser.parse_args()
    if given.serve:
        serve(given.seconds)
        return
    one, kept = measured(1, given.items, given.seconds)
    three, shared = measured(3, 3 * given.items, given.seconds)
    found = [
        Figure("one server", one, "answers/s", note=f"at most {AT_ONCE / given.seconds:g}; prefix hits {kept:.3f}"),
        Figure("three servers", three, "answers/s", note=f"prefix hits {shared:.3f}"),
        Figure("lost of three times one", 1 - three / (3 * one), "", 0.05),
        Figure("prefix hits lost", kept - shared, "", 0.05),
    ]
    print(table(found))
    sys.exit(not all(figure.met for figure in found))


if __name__ == "__main__":
    main()
