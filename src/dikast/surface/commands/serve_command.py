"""The verb `dikast serve`."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dikast.core.checking import option
from dikast.core.errors import UserError
from dikast.judging.run_options import DrawOptions, FormatOptions, MediaOptions, ReplyOptions
from dikast.surface.terminal import echo
from dikast.surface.verbs import CONFIG, verb


@dataclass(frozen=True, kw_only=True)
class ServeOptions(FormatOptions):
    """The judge to serve, the server's address and its limits."""

    judge: str = option(help="The judge: hf:ORG/NAME, a folder, mock:NAME, a server.", complete="judges")
    rubric: tuple[str, ...] = option(
        (), help="A rubric that clients may name; the first is the default. Repeat for more.", complete="rubrics"
    )
    compare_format: str | None = option(None, help="The format for pairs.", complete="formats")
    host: str = option("127.0.0.1", help="The address to listen on; addresses other than loopback need --token-env.")
    port: int = option(8080, help="The port; 0 chooses a free one.", least=0, most=65535)
    token_env: str = option("", metavar="NAME", help="The environment variable with the token that clients must send.")
    out: Path | None = option(None, help="A folder that keeps every verdict; known questions are answered from it.")
    gather_ms: float = option(5.0, help="Milliseconds that a question waits for others to form a batch.", least=0)
    queue: int = option(1000, help="Maximum number of queued questions; further requests are refused (429).", least=1)
    max_mb: float = option(32.0, help="Maximum size of a request in MB; larger ones are refused (413).", least=0)
    missing: str = option("raise", help="The answer of /get_reward to a missing verdict: raise (502), or a number.")
    separator: str = option(
        "", help="The text that ends the prompt in /get_reward queries without a separate prompt; once in each query."
    )


@partial(verb, config=CONFIG)
def serve(ask: ServeOptions, draws: DrawOptions, replies: ReplyOptions, media: MediaOptions) -> None:
    """Serve a judge over HTTP: scores, comparisons, rewards, typed decisions.

    Example: dikast serve --judge hf:ORG/MODEL --rubric helpfulness --port 8080
    """
    import asyncio

    from dikast.core.media import media_rules
    from dikast.core.rubric import load_rubric
    from dikast.engines.base import Sampling
    from dikast.engines.http.server_settings import key_from
    from dikast.judging.judge import Judge
    from dikast.rewards.trainers import checked
    from dikast.serving.front_desk import Desk
    from dikast.serving.known import KnownVerdicts
    from dikast.serving.messages import Allowed
    from dikast.serving.server import Door, Server

    token = key_from(ask.token_env, "--token-env ")
    door = Door(ask.host, ask.port, token, most_bytes=int(ask.max_mb * 2**20))
    missing = checked(_missing(ask.missing))
    rubrics = [load_rubric(each) for each in ask.rubric]
    judge = Judge(
        ask.judge,
        rubrics[0] if rubrics else None,
        format=ask.format,
        compare_format=ask.compare_format,
        sampling=Sampling(draws.temperature, draws.top_p, replies.max_tokens, replies.seed),
        samples=draws.samples,
        read=replies.read,
        min_mass=replies.min_mass,
        frames=draws.frames,
    )
    with judge, media_rules(as_given=True):
        known = KnownVerdicts(ask.out) if ask.out is not None else None
        desk = Desk(judge, wait=ask.gather_ms / 1000, most_waiting=ask.queue, known=known)
        allowed = Allowed({each.name: each for each in rubrics}, files=media.media_root is not None)

        async def run() -> None:
            server = Server(desk, allowed, door, missing=missing, separator=ask.separator)
            shown = f"[{ask.host}]" if ":" in ask.host else ask.host
            await server.run(lambda port: echo(f"serving {judge.engine.name} on http://{shown}:{port}", err=True))

        asyncio.run(run())
    echo("stopped; every accepted question has been answered", err=True)


def _missing(text: str) -> Any:
    if text == "raise":
        return text
    try:
        return float(text)
    except ValueError:
        raise UserError(f"--missing {text!r}: write raise, or a number") from None
