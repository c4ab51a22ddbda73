"""The verb `dikast annotate`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dikast.core.checking import like, option
from dikast.core.errors import UserError
from dikast.judging.run_options import MediaOptions, RunOptions
from dikast.surface.terminal import echo, echo_json
from dikast.surface.verbs import JsonOptions, verb

if TYPE_CHECKING:
    from dikast.annotation.labelling_questions import Kind

_KINDS: dict[str, "Kind"] = {
    "grades": "absolute", "pairs": "pairwise", "claims": "claims", "spans": "spans", "boxes": "boxes",
    "feedback": "feedback",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AnnotateOptions:
    """The items to label, the raters, the assignment, and the server's address."""

    items: str = option(argument=True, help="The items: a file, a folder.")
    out: Path = option(help="The folder of the labels; running again resumes.", metavar="FOLDER")
    rubric: str | None = like(RunOptions, "rubric")
    pairs: bool = option(False, help="Ask which of two responses is better, instead of grading each.")
    ask: Literal["grades", "pairs", "claims", "spans", "boxes", "feedback"] = option(
        "grades",
        help="What to ask: a grade, the better of two responses (as --pairs), whether each claim is right, wrong words,"
        " boxes on pictures, the better of two feedbacks (--feedback).",
    )
    feedback: tuple[Path, ...] = option((), help="The two runs whose feedback is compared.", metavar="RUN")
    raters: int = option(1, least=1, most=1000, help="Number of raters; each gets a personal link.")
    rater: tuple[str, ...] = option(
        (), help="The name of a rater, once for each, in place of --raters.", metavar="NAME"
    )
    overlap: int = option(0, least=0, help="Number of raters for each question; 0: all.")
    repeats: float = option(0.0, least=0, most=0.5, help="Share of a rater's questions that are repeated.")
    training: int = option(0, least=0, help="Number of practice questions with a known label at the start.")
    run: Path | None = option(None, help="A judge's run on the same items, to narrow the intervals (PPI++).")
    order: Literal["random", "active"] = option(
        "random",
        help="Which questions come first: random, or with known chances those where the judge of --run is uncertain.",
    )
    aim: float = option(0.03, above=0, most=0.5, help="Half-width of the interval at which to stop.")
    map: tuple[str, ...] = like(RunOptions, "map")
    seed: int = option(0, help="Random seed of orders and sides.")
    host: str = option(
        "127.0.0.1", help="The address to listen on; addresses other than loopback need --tls-cert, --tls-key."
    )
    port: int = option(8090, least=0, most=65535, help="The port; 0 chooses a free one.")
    tls_cert: Path | None = option(None, help="A TLS certificate (PEM), for addresses that other machines can reach.")
    tls_key: Path | None = option(None, help="The key of the certificate (PEM).")
    export: bool = option(
        False, help="Write labels.csv, labelled.jsonl and trail.csv from the existing labels, and exit."
    )


@verb
def annotate(asked: AnnotateOptions, media: MediaOptions, shown: JsonOptions) -> None:
    """Have people label items blind, in a browser: grades, choices, claims, marks in texts and on pictures.

    Example: dikast annotate items.jsonl --rubric helpfulness --raters 3 --out labels
    """
    import asyncio
    import socket
    import ssl

    from dikast.annotation.active_order import uncertainty_of
    from dikast.annotation.labelling_questions import read_questions
    from dikast.annotation.labelling_server import LabelServer
    from dikast.annotation.session import Shares, judged_by, named, opened
    from dikast.core.rubric import load_rubric
    from dikast.surface.judge_runs import columns_of

    if (asked.tls_cert is None) != (asked.tls_key is None):
        raise UserError("--tls-cert and --tls-key belong together")
    if asked.host not in ("127.0.0.1", "localhost", "::1") and asked.tls_cert is None:
        raise UserError(
            f"--host {asked.host} can be reached from other machines: give --tls-cert and --tls-key, or listen on"
            " 127.0.0.1 behind a proxy with TLS"
        )
    tls = None
    if asked.tls_cert is not None:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            tls.load_cert_chain(asked.tls_cert, asked.tls_key)
        except OSError as error:
            raise UserError(f"--tls-cert {asked.tls_cert}: {error.strerror or error}") from None
    rubric = load_rubric(asked.rubric or "helpfulness")
    kind = _kind(asked)
    questions = read_questions(asked.items, columns_of(asked.map), rubric, kind, asked.feedback)
    judged = None if asked.run is None else judged_by(asked.run, questions)
    if asked.rater and asked.raters not in (1, len(asked.rater)):
        raise UserError(f"--raters {asked.raters} and {len(asked.rater)} names (--rater): leave out --raters")
    names = named(asked.rater)
    shares = Shares(len(names) or asked.raters, asked.overlap, asked.repeats, asked.training, asked.seed, names)
    spread = uncertainty_of(asked.run, questions) if asked.order == "active" and asked.run is not None else None
    with opened(asked.out, questions, shares, spread) as session:

        def ready(port: int) -> None:
            everywhere = asked.host in ("0.0.0.0", "::")  # an address to listen on, which nobody can open
            host = socket.gethostname() if everywhere else f"[{asked.host}]" if ":" in asked.host else asked.host
            links = session.links(f"{'http' if tls is None else 'https'}://{host}:{port}")
            if shown.json:
                echo_json({"links": links, "questions": len(questions)})
            for name, link in links.items():
                echo(f"{'progress' if name == 'owner' else f'rater {name}'}: {link}", err=True)

        if not asked.export:
            server = LabelServer(
                session.store, session.questions, session.owner, host=asked.host, port=asked.port, aim=asked.aim,
                name=Path(asked.items).name, judged=judged, tls=tls,
            )  # fmt: skip
            asyncio.run(server.run(ready))
        echo(f"{asked.out / 'labels.csv'}: {session.write():,} labels", err=True)


def _kind(asked: AnnotateOptions) -> "Kind":
    """What is asked; UserError where flags do not go together."""
    if asked.pairs and asked.ask not in ("grades", "pairs"):
        raise UserError(f"--pairs and --ask {asked.ask} do not go together")
    wanted = "pairs" if asked.pairs else asked.ask
    if len(asked.feedback) != 2 * (wanted == "feedback"):
        raise UserError("--ask feedback compares what two runs wrote: give --feedback twice, and only then")
    if asked.run is not None and wanted == "feedback":
        raise UserError("--run: a judge's verdicts on responses say nothing of which feedback is better: leave it out")
    if asked.order == "active" and asked.run is None:
        raise UserError("--order active goes by how certain a judge is: give its run on these items with --run")
    return _KINDS[wanted]
