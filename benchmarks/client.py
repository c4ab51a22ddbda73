"""What asking a server costs the client: CPU per request beside raw aiohttp and beside others, throughput, rate limits.

    python -m benchmarks.client             every measurement, a few minutes
    python -m benchmarks.client cpu image   only some: cpu, image, grade, safety, throughput, limit, peers

The server runs in a process of its own and answers a fixed reply after a fixed time, so all differences are the
client's. CPU is `time.process_time` of the client over all its threads, divided by the requests; every ratio is taken
between runs of this one process, the best of `--repeat` each. One JSON object a line on stdout.

`safety` grades in turns with and without the checksums of run folders and the search for the key in replies, and tells
what they add to the CPU of a request: medians, and the least and largest ratio of neighbouring runs. `peers` compares
with the openai SDK, litellm and prometheus-eval; `benchmarks.peers` says how.
"""

import argparse
import asyncio
import base64
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

TEXT = (
    "It answers what was asked, and says where each figure comes from. " * 3 + "\nVerdict: 4\n[RESULT] 4"
)  # as several judges say it
PROMPT = "The response states a figure and then another one. " * 60  # 3 KB
MODEL = "judge"
KEY_ENV = "DIKAST_BENCHMARK_KEY"


class Cost(NamedTuple):
    """Client CPU in microseconds a request, and requests a second by the clock."""

    cpu_us: float
    per_second: float


def reply() -> bytes:
    body = orjson.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": MODEL,
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"},
            ],
            "usage": {"prompt_tokens": 700, "completion_tokens": 40, "prompt_tokens_details": {"cached_tokens": 0}},
        }
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    return head + body


class Serving(asyncio.Protocol):
    """HTTP/1.1 as far as these clients speak it: a fixed reply after `latency`, 429 above `rate` a second."""

    latency = 0.05
    rate = 0.0
    tokens = 0.0
    filled = 0.0
    ok = reply()
    rejection = b"HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self.transport = transport
        self.buffer = bytearray()
        self.loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.buffer[:end]).lower()
            at = head.index(b"content-length:") + 15
            need = end + 4 + int(head[at : head.find(b"\r\n", at) if b"\r\n" in head[at:] else len(head)])
            if len(self.buffer) < need:
                return
            del self.buffer[:need]
            if self.admitted():
                self.loop.call_later(self.latency, self.send, self.ok)
            else:
                self.send(self.rejection)

    def admitted(self) -> bool:
        """Whether the rate allows one more."""
        kind = type(self)
        if not kind.rate:
            return True
        now = time.monotonic()
        kind.tokens = min(10.0, kind.tokens + (now - kind.filled) * kind.rate)
        kind.filled = now
        if kind.tokens < 1:
            return False
        kind.tokens -= 1
        return True

    def send(self, data: bytes) -> None:
        """Reply, if the client is still there."""
        if isinstance(self.transport, asyncio.Transport) and not self.transport.is_closing():
            self.transport.write(data)


async def serve(latency: float, rate: float) -> None:
    Serving.latency, Serving.rate = latency, rate
    server = await asyncio.get_running_loop().create_server(Serving, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def served(*, latency: float = 0.05, rate: float = 0.0) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.client", "--serve", str(latency), str(rate)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def raw_aiohttp(url: str, n: int, in_flight: int, image: Path | None = None) -> None:
    """The same exchange with aiohttp and orjson and nothing else."""
    import aiohttp

    data_url = f"data:image/png;base64,{base64.b64encode(image.read_bytes()).decode()}" if image else ""

    async def run() -> None:
        left = iter(range(n))

        async def worker(session: aiohttp.ClientSession) -> None:
            for i in left:
                content: Any = f"{i} {PROMPT}"
                if data_url:
                    content = [
                        {"type": "text", "text": content},
                        {"type": "image_url", "image_url": {"url": data_url}},
                    ]
                body = {
                    "model": MODEL,
                    "max_tokens": 1024,
                    "temperature": 0.0,
                    "messages": [{"role": "user", "content": content}],
                }
                headers = {"Content-Type": "application/json"}
                async with session.post(f"{url}/chat/completions", data=orjson.dumps(body), headers=headers) as answer:
                    value = orjson.loads(await answer.read())
                assert value["choices"][0]["message"]["content"] == TEXT

        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            await asyncio.gather(*(worker(session) for _ in range(in_flight)))

    asyncio.run(run())


def our_stream(url: str, n: int, in_flight: int, image: Path | None = None) -> None:
    from dikast.core.message import Message, Span
    from dikast.core.part import Image
    from dikast.engines.base import Request
    from dikast.engines.spec import open_engine

    engine = open_engine(f"{url}#{MODEL},concurrency={in_flight}")
    media = (Image(str(image)),) if image else ()

    def requests() -> Iterator[Request]:
        for i in range(n):
            yield Request(f"key-{i}", (Message("user", (Span(f"{i} {PROMPT}"), *media)),))

    good = sum(completion.text == TEXT for completion in engine.stream(requests()))
    assert good == n, f"{n - good} of {n} were not answered"
    engine.close()


def our_grade(url: str, n: int, in_flight: int, image: Path | None = None) -> None:
    from dikast.judging.judge import Judge
    from dikast.judging.judge_file import grade_file
    from dikast.judging.run_plan import Source

    with tempfile.TemporaryDirectory() as folder:
        items = Path(folder) / "items.jsonl"
        rows = ({"id": str(i), "instruction": "Report.", "response": f"{i} {PROMPT}"} for i in range(n))
        items.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        key = f",key_env={KEY_ENV}" if KEY_ENV in os.environ else ""
        judge = Judge(f"{url}#{MODEL},concurrency={in_flight}{key}", "helpfulness", read="never")
        summary = grade_file(judge, Source(str(items)), Path(folder) / "run")
        assert summary["status"] == {"ok": n}, summary["status"]
        judge.engine.close()  # type: ignore[attr-defined]


Client = Callable[..., None]


def cost(client: Client, url: str, n: int, in_flight: int, repeat: int, image: Path | None = None) -> Cost:
    client(url, min(n, 4 * in_flight), in_flight, image)  # imports, connections, caches
    found = []
    for _ in range(repeat):
        cpu, wall = time.process_time(), time.perf_counter()
        client(url, n, in_flight, image)
        found.append(Cost((time.process_time() - cpu) / n * 1e6, n / (time.perf_counter() - wall)))
    return Cost(min(each.cpu_us for each in found), max(each.per_second for each in found))


def tell(**values: Any) -> None:
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in values.items()}
    print(orjson.dumps(rounded).decode(), flush=True)


def beside_raw(name: str, client: Client, n: int, in_flight: int, repeat: int, image: Path | None = None) -> None:
    latency = 0.05 if in_flight <= 128 else 0.25  # long enough that so many really are in flight
    with served(latency=latency) as url:
        raw = cost(raw_aiohttp, url, n, in_flight, repeat, image)
        ours = cost(client, url, n, in_flight, repeat, image)
    tell(
        what=name, in_flight=in_flight, latency=latency, n=n, raw_us=raw.cpu_us, ours_us=ours.cpu_us,
        ratio=ours.cpu_us / raw.cpu_us, raw_per_second=raw.per_second, ours_per_second=ours.per_second,
    )  # fmt: skip


def picture(folder: str) -> Path:
    """A PNG of about 200 KB."""
    import PIL.Image

    path = Path(folder) / "noise.png"
    PIL.Image.frombytes("RGB", (256, 256), os.urandom(256 * 256 * 3)).save(path)
    return path


def throughput(in_flight: int, latency: float, seconds: float) -> None:
    """Requests a second after the limit was found, as a share of in_flight / latency, and of what raw aiohttp gets."""
    from dikast.core.message import Message, Span
    from dikast.engines.base import Request
    from dikast.engines.spec import open_engine

    with served(latency=latency) as url:
        raw = cost(raw_aiohttp, url, int(seconds / 3 * min(in_flight / latency, 2000)), in_flight, 1)
        engine = open_engine(f"{url}#{MODEL},concurrency={in_flight}")
        arrived: list[float] = []
        began, cpu = time.perf_counter(), time.process_time()

        def requests() -> Iterator[Request]:
            i = 0
            while time.perf_counter() - began < seconds:
                i += 1
                yield Request(f"key-{i}", (Message("user", (Span(f"{i} {PROMPT}"),)),))

        for completion in engine.stream(requests()):
            assert completion.error is None
            arrived.append(time.perf_counter() - began)
        half = [at for at in arrived if seconds / 2 < at <= seconds]
        rate = len(half) / (seconds / 2)
        tell(
            what="throughput", in_flight=in_flight, latency=latency, per_second=rate, possible=in_flight / latency,
            share=rate / (in_flight / latency), raw_per_second=raw.per_second, raw_us=raw.cpu_us,
            ours_us=(time.process_time() - cpu) / len(arrived) * 1e6,
            limit_found=engine.in_flight,  # type: ignore[attr-defined]
        )  # fmt: skip
        engine.close()


def rate_limit(rate: float, latency: float, seconds: float = 30.0) -> None:
    """Answers a second from a server that turns away what is above `rate`, in the seconds 10-20 and 20-30."""
    from dikast.core.message import Message, Span
    from dikast.engines.base import Request
    from dikast.engines.spec import open_engine

    with served(latency=latency, rate=rate) as url:
        engine = open_engine(f"{url}#{MODEL}")
        arrived: list[float] = []
        began = time.perf_counter()

        def requests() -> Iterator[Request]:
            i = 0
            while time.perf_counter() - began < seconds:
                i += 1
                yield Request(f"key-{i}", (Message("user", (Span(f"{i} {PROMPT}"),)),))

        failed = 0
        for completion in engine.stream(requests()):
            failed += completion.error is not None
            arrived.append(time.perf_counter() - began)
        shares = [sum(low < at <= low + 10 for at in arrived) / 10 / rate for low in (0, 10, 20)]
        tell(
            what="rate limit", rate=rate, latency=latency, share_0_10=shares[0], share_10_20=shares[1],
            share_20_30=shares[2], failed=failed, limit_found=engine.in_flight,  # type: ignore[attr-defined]
        )  # fmt: skip
        engine.close()


def main() -> None:
    from benchmarks import peers, safety  # which need this module's server

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="*", default=["cpu", "image", "grade", "safety", "throughput", "limit", "peers"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=40, help="runs with and without, for `safety`")
    peers.add_options(parser)
    parser.add_argument("--serve", nargs=2, type=float, metavar=("LATENCY", "RATE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(*given.serve))
        return
    if "cpu" in given.which:
        for in_flight in (128, 512):
            beside_raw("stream", our_stream, 5000, in_flight, given.repeat)
    if "image" in given.which:
        with tempfile.TemporaryDirectory() as folder:
            beside_raw("stream, 200 KB image", our_stream, 2000, 64, given.repeat, picture(folder))
    if "grade" in given.which:
        for in_flight in (128, 512):
            beside_raw("grade", our_grade, 3000, in_flight, given.repeat)
    if "safety" in given.which:
        safety.compare(given.pairs)
    if "throughput" in given.which:
        for in_flight, latency in ((128, 0.05), (256, 0.05), (512, 0.05), (512, 0.5), (2000, 2.0)):
            throughput(in_flight, latency, 15.0)
    if "limit" in given.which:
        for rate, latency in ((200.0, 0.05), (100.0, 1.0)):
            rate_limit(rate, latency)
    if "peers" in given.which:
        peers.compare(given)


if __name__ == "__main__":
    main()
