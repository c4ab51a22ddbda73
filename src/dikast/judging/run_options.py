"""The options of judging: one definition for flags, for `--config` and for keywords from Python.

Each class is a group of options that several verbs share; `core.checking.Option` says what a field means, its bounds
and how it is spelt as a flag.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dikast.core.checking import option
from dikast.core.errors import UserError

if TYPE_CHECKING:
    from dikast.engines.base import Engine
    from dikast.engines.http.prices import Price


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """How the question is put."""

    format: str | None = option(
        None,
        help="A built-in format (`dikast format list`) or a YAML file; released judges have their own.",
        complete="formats",
    )


@dataclass(frozen=True, kw_only=True)
class RubricOptions:
    """The rubric to judge by."""

    rubric: str | None = option(
        None,
        help='A criterion in words ("Is the answer polite?"), a YAML or JSON file, or a built-in rubric '
        "(`dikast rubric list`); items may have their own.",
        complete="rubrics",
    )


@dataclass(frozen=True, kw_only=True)
class RunnerOptions:
    """The machines that judge."""

    runner: str | None = option(
        None, metavar="RAY", help="Judge on a Ray cluster: ray://HOST:PORT, or ray for this machine."
    )
    workers: str | None = option(
        None, metavar="MIN:MAX", help="Workers of --runner, a GPU each for local models, else a CPU; default 1:8."
    )


@dataclass(frozen=True, kw_only=True)
class RunOptions(FormatOptions, RubricOptions, RunnerOptions):
    """The items, the judges and the rubric of `grade` and `compare`."""

    items: tuple[str, ...] = option(
        argument=True,
        help="CSV, TSV, JSONL, JSON or Parquet (also .gz), a folder of images or files, hf://datasets/ORG/NAME, "
        "a URL, or - for standard input. Several files are the answers of several systems, named after their files.",
    )
    judge: tuple[str, ...] = option(
        help="The judge: openai:MODEL, anthropic:MODEL, gemini:MODEL, ollama:MODEL and other providers, "
        "http://HOST:PORT/v1#MODEL, hf:ORG/NAME, vllm:ORG/NAME, scout (the bundled judge), a folder, mock:NAME, "
        "replay:FILE. Repeat for a panel.",
        complete="judges",
    )
    out: Path | None = option(None, help="The run folder; running again resumes.")
    scale: str | None = option(None, help="Replaces the rubric's scale: 1-10, A-E, pass/fail, poor<fair<good.")
    equate: str | None = option(
        None, metavar="SCALE", help="The scale of gold if it differs from the rubric's; recorded for the audit."
    )
    map: tuple[str, ...] = option(
        (), help="FIELD=COLUMN: read an item's field from a column of another name; FIELD= from none."
    )
    without: tuple[str, ...] = option(
        (),
        metavar="PART",
        help="Leave rubric, reference or media out of every question, to see what it is worth. Repeatable.",
    )
    config_name: str | None = option(None, help="Configuration of a data set on the Hub.")
    split: str | None = option(None, help="Split of a data set on the Hub, or of a DatasetDict in Python.")
    limit: int | None = option(None, least=1, help="Use only the first N items (of each file).")


@dataclass(frozen=True, kw_only=True)
class EndOptions:
    """The steps after a run of `grade` or `compare`."""

    max_failures: str = option("0", help="How many verdicts may be missing (a count or a share, 5%) before exit 3.")
    report: Path | None = option(
        None, metavar="FILE", help="Write a report of the run too: .html, .md, .json or .xml (JUnit)."
    )


@dataclass(frozen=True, kw_only=True)
class ProbedFormatOptions(FormatOptions, RunnerOptions):
    """How the questions of `probe` and `prove` are put."""

    compare_format: str | None = option(None, help="The format for pairs.", complete="formats")


@dataclass(frozen=True, kw_only=True)
class ProbedJudgeOptions(ProbedFormatOptions):
    """The judge that `probe` and `prove` test, and the output folder."""

    judge: str = option(help="The judge to test, as for `dikast grade`.", complete="judges")
    out: Path = option(help="The folder for the items, the runs and what was found.")


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """How pairs are compared."""

    one_order: bool = option(False, help="Ask each pair in the given order only: half the cost, position bias unknown.")
    from_absolute: bool = option(False, help="Grade both responses and compare the scores.")
    equal: str = option("tie", help="With --from-absolute, the rule for equal scores: tie, expected, resample.")


@dataclass(frozen=True, kw_only=True)
class DrawOptions:
    """How often a question is asked, and how text is drawn."""

    samples: int = option(1, "-n", "--samples", least=1, help="Ask each question N times (needs a temperature).")
    temperature: float = option(0.0, least=0.0, help="Sampling temperature; 0 is greedy.")
    top_p: float = option(1.0, least=0.0, most=1.0, help="Nucleus sampling: cumulative probability to sample from.")
    frames: int = option(8, least=1, most=1024, help="Frames to sample from a video if its item gives no number.")


@dataclass(frozen=True, kw_only=True)
class ReplyOptions:
    """How long a reply may be, and how its verdict is read."""

    max_tokens: int = option(1024, least=1, help="Maximum tokens of a reply.")
    seed: int = option(0, help="Random seed.")
    read: Literal["auto", "only", "never"] = option(
        "auto", help="Label scoring: auto (where possible), only (no text is generated), never (parse the text)."
    )
    min_mass: float = option(0.5, least=0.0, most=1.0, help="Least total probability of the labels for label scoring.")


@dataclass(frozen=True, kw_only=True)
class MediaOptions:
    """The media that items may name."""

    media_root: Path | None = option(None, help="Allow only images and videos inside this folder (links resolved).")
    allow_private_urls: bool = option(False, help="Also fetch media from private, loopback and link-local addresses.")

    @contextmanager
    def held(self) -> Iterator[None]:
        """The rules hold until the block ends."""
        from dikast.core.media import media_rules

        with media_rules(root=self.media_root, private_urls=self.allow_private_urls or None):
            yield


@dataclass(frozen=True, kw_only=True)
class SpendOptions:
    """Limits of cost."""

    dry_run: bool = option(False, help="Check everything and print what would be asked, without asking.")
    budget: str | None = option(None, help="Budget of each judge, such as calls=1000,money=5 (also tokens=N).")
    price: str | None = option(
        None, metavar="IN,OUT", help="Money per million tokens read and written, over any price that is known."
    )

    @property
    def charged(self) -> "Price | None":
        """The price that was given; UserError when it cannot be read."""
        from dikast.engines.priced import price_from

        return price_from(self.price) if self.price else None

    def around(self, engine: "Engine") -> "Engine":
        """The engine at the price that was given and within the budget; UserError for money without a price, and for
        money where none is spent.
        """
        from dikast.engines.budget import Budget
        from dikast.engines.priced import Priced
        from dikast.engines.wrapper import found_in

        if self.charged is not None:
            engine = Priced(engine, self.charged)
        bounds = self.bounds
        if "money" in bounds and found_in(engine, "price_unknown", False):
            raise UserError(
                f"--budget money=... needs the price of {engine.name}, which is unknown: add --price IN,OUT, money per"
                " million tokens read and written"
            )
        if "money" in bounds and self.charged is None and found_in(engine, "free", False):
            raise UserError(
                f"--budget money=... bounds nothing: {engine.name} runs on a machine of yours and costs nothing; bound"
                " it with calls=N or tokens=N, or add --price IN,OUT, money per million tokens read and written; beside"
                " a judge that costs money, write the bound into that one (--judge openai:MODEL,money=5)"
            )
        return Budget(engine, **bounds) if bounds else engine

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds of a `Budget`; UserError when they cannot be read."""
        found: dict[str, Any] = {}
        for each in self.budget.split(",") if self.budget else ():
            name, _, number = each.strip().partition("=")
            try:
                value = float(number)
            except ValueError:
                value = -1.0
            if name not in ("calls", "tokens", "money") or not 0 <= value < float("inf"):
                bare = each.strip().lstrip("$€£")
                meant = f" (money={bare} for an amount)" if bare.replace(".", "", 1).isdigit() else ""
                told = f"write calls=N, tokens=N or money=N{meant}, with commas between"
                raise UserError(f"--budget {self.budget!r}: {told}")
            found[name] = value if name == "money" else int(value)
        return found


@dataclass(frozen=True, kw_only=True)
class JudgingOptions:
    """The options that `grade`, `compare` and `rank` share, in groups."""

    ask: RunOptions
    draws: DrawOptions
    replies: ReplyOptions
    media: MediaOptions
    spend: SpendOptions


def allowed_failures(text: str) -> Callable[[int], float]:
    """From `--max-failures`, a count or a share (`5%`): how many of n verdicts may be missing."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UserError(f"--max-failures {text!r}: write a count (10) or a share (5%)")
    return (lambda n: n * value / 100) if text.endswith("%") else (lambda n: value)
