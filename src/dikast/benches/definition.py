"""The definition of a bench: one small YAML file, checked strictly."""

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from dikast.benches.bench_terms import (
    CONVERSATION_PAIR,
    FROM_FIELDS,
    FROM_MEMORY,
    GROUPS,
    NOT_LISTED,
    OF_PAIRS,
    RENDERED_PAIR,
    STATES,
    VIDEO,
    BenchSource,
    Kind,
    OfficialMetric,
    State,
)
from dikast.core.canonical import fingerprint
from dikast.core.checking import MOST_COUNT, MOST_NUMBER, Mistakes, option, read_settings
from dikast.core.errors import UserError
from dikast.core.item import ITEM_KEYS
from dikast.core.rubric import load_rubric
from dikast.core.scale import Scale
from dikast.core.text import Located, hint, parse_located, read_located
from dikast.corpus.schemas import SCHEMAS
from dikast.prompts.dialects import DIALECTS

READERS = (*SCHEMAS, RENDERED_PAIR, CONVERSATION_PAIR)
MOST_LINES = 40
_NAME = re.compile(r"[A-Za-z0-9][\w.\-]{0,79}", re.ASCII)
_REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
_DIGITS = 64  # of a SHA-256
_BESIDE = "/./"  # between the folder of a bench's file and the name of a rubric beside it
_LONGEST_NAME = 255  # bytes of a file's name, on any file system in use


@dataclass(frozen=True, kw_only=True)
class GoldMap:
    """Where a row's gold is: its `column`, the meaning of its values (`values`), their `scale`.

    Of several raters (several columns, or a list in one) `rule` makes one value; a majority is more than half of those
    who spoke, as in the audit, and without one there is no gold. `default` is the gold of every row,
    where the rows say it by their columns alone (`chosen`). With `count` the column says how many of the responses are
    right, which come first; with `order` it names them from best to worst by letters (A is the first response).
    """

    column: tuple[str, ...]
    values: Mapping[str, str | int | float] = field(default_factory=dict)
    scale: Scale | None = None
    rule: Literal["mean", "majority", "first"] = "first"
    default: str = ""
    count: bool = False
    order: bool = False


@dataclass(frozen=True, kw_only=True)
class BenchRubrics:
    """Rubrics that stand in a JSON file of the source, and the `column` of the rows that names those of each row.

    The file is a list of objects, whose keys `name`, `criterion` and `levels` (label -> description) are named here.
    """

    file: str
    sha256: str
    column: str
    name: str = "name"
    criterion: str = "criterion"
    levels: str = "levels"


@dataclass(frozen=True, kw_only=True)
class NativePrompts:
    """The authors' prompts where the rows hold none: where they are `published`, and how replies to them are read.

    `scale` is that of verdicts, and of the reference judge's scores; `dialect` is the form of the replies.
    """

    published: str
    scale: Scale
    dialect: str = "bracketed"


@dataclass(frozen=True, kw_only=True)
class BenchProtocol:
    """How the bench is asked: the orders of a pair, and how often.

    `samples` of each question, at `temperature` and `top_p`, are the authors': `--protocol authors` asks so. `equal`
    is their rule for equal scores of responses that are graded alone (`judging.pair_orders.EQUAL_RULES`). How a missing
    verdict counts is `failures` of the official metric; `missing` is what earlier versions of the file said of that,
    and counts only in its hash.
    """

    orders: Literal["both", "one"] = "both"
    samples: int = option(1, least=1, most=MOST_COUNT)
    temperature: float = option(0.0, least=0.0, most=MOST_NUMBER)
    top_p: float = option(1.0, least=0.0, most=1.0)
    equal: Literal["tie", "expected", "resample"] = "tie"
    missing: Literal["drop", "wrong", "tie"] = "drop"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A benchmark of judges, as its file describes it. `from_memory` names facts that were not verified.

    `checked` names the sources (repository or Hub page, and commit) of facts about rows that were not read.

    Rows must hold the columns of all `fields`; those of the fields in `optional` may be absent or null in a row.
    With `variants` each row is asked once for each, with the fields that the variant has of its own; the item is named
    ID/VARIANT. `rubrics` are those of each row, in a file of the source; its criteria are the group "@criterion".

    `baseline` is the model whose responses are in the rows, where those that are brought are compared with them.
    `native` says where the authors' prompts are published if the rows hold none, and how replies to them are read.
    `rendered` is the column of the authors' prompt, `slots` and `edges` how a format is learnt from it
    (`prompts.learn`). `gold_by` is the author of gold, if that was a model. `earlier` are
    the hashes of versions of this file that asked the same questions.
    """

    name: str
    title: str
    about: str
    state: State
    kind: Kind
    media: Literal["none", "image", "video", "image and video"] = "none"
    source: BenchSource
    reader: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    variants: Mapping[str, Any] = field(default_factory=dict)
    rubrics: BenchRubrics | None = None
    rendered: str = ""
    native: NativePrompts | None = None
    slots: Mapping[str, str] = field(default_factory=dict)
    edges: Mapping[str, str] = field(default_factory=dict)
    gold: GoldMap | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    rubric: str = "helpfulness"
    responses: Literal["in the rows", "to be brought"] = "in the rows"
    baseline: str = ""
    rows: int = option(0, least=0, most=MOST_COUNT)
    protocol: BenchProtocol = field(default_factory=BenchProtocol)
    official: OfficialMetric
    licence: str
    forbids: str = ""
    gold_by: str = ""
    citation: str
    earlier: tuple[str, ...] = ()
    proof: str = ""
    from_memory: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """Fingerprint of everything that determines the questions and the scoring."""
        return self.hashes[0]

    @property
    def hashes(self) -> tuple[str, ...]:
        """`hash`, then what runs of earlier versions may hold in its place: with `mean score` as the only metric."""
        told = dataclasses.asdict(self) | {"gold": str(self.gold)}
        told["source"].pop("folder")  # where the files are; the same ones may lie elsewhere
        told["rubric"] = self.rubric.rpartition(_BESIDE)[2]
        new = [name for name in ("optional", "variants", "rubrics") if not told[name]]  # not in runs of old
        words = ["about", "title", "state", "proof", "from_memory", "checked", "citation", "licence", "forbids"]
        for name in (*words, "native", "baseline", "earlier", *new):
            told.pop(name)
        official = {name: value for name, value in told["official"].items() if value or name != "conformity"}
        for name in ("overall", "printed", "lost_alike", "majority", "strong"):  # other figures of the same verdicts
            official.pop(name)
        if self.protocol.equal == "tie":
            told["protocol"].pop("equal")
        metrics = [self.official.metric, *[("mean score",)] * ("mean score" in self.official.metric)]
        found = tuple(fingerprint({**told, "official": {**official, "metric": each}}) for each in metrics)
        return (*found, *self.earlier)

    @property
    def standing(self) -> str:
        """How far the bench was checked, in words; of columns that are from memory it does not say "published"."""
        if self.state != "schema only":
            return STATES[self.state]
        return FROM_MEMORY if "columns" in self.from_memory else FROM_FIELDS

    @property
    def licence_told(self) -> str:
        """The licence, and what it forbids."""
        return self.licence + (f"; it forbids {self.forbids}" if self.forbids else "")

    @property
    def pairs(self) -> bool:
        """Whether verdicts are choices between two responses."""
        return self.kind in ("pairs", "graded pairs")


def bench_from(document: Located) -> Bench:
    """The bench that a document describes; DataError lists all mistakes, with near matches of unknown names."""
    mistakes = Mistakes(document)
    found = read_settings(Bench, mistakes)
    if found is not None:
        for message, *at in _mistakes(found):
            mistakes.add(message, *at)
    mistakes.raise_all()
    assert found is not None
    return found


Mistake = tuple[str, *tuple[object, ...]]  # what is wrong, and the keys that lead to it


def _mistakes(bench: Bench) -> Iterator[Mistake]:
    """Checks that involve several keys."""
    if not _NAME.fullmatch(bench.name):
        yield "a folder gets this name: at most 80 letters, digits, '.', '-', '_', a letter or digit first", "name"
    yield from _of_fields(bench)
    yield from _of_source(bench)
    yield from _of_official(bench)
    yield from _of_state(bench)
    if bench.protocol.samples > 1 and not bench.protocol.temperature:
        yield "several samples are all the same at temperature 0: say which the authors draw at", "protocol"
    try:
        load_rubric(bench.rubric, root="")  # a file names it: no pipe
    except UserError as error:
        yield str(error), "rubric"


def _of_fields(bench: Bench) -> Iterator[Mistake]:
    fields = (*ITEM_KEYS, "response_0", "response_1", VIDEO)
    for variant, own in bench.variants.items():
        if not isinstance(own, Mapping) or not own:
            yield "a variant has the fields that differ in it", "variants", variant
            return
    for name, value in [*bench.fields.items(), *(each for own in bench.variants.values() for each in own.items())]:
        listed = value if isinstance(value, list) else [value]
        if name not in fields:
            yield f"unknown field of an item: {hint(name, fields)}", "fields", name
        if not listed or not all(isinstance(each, str) for each in listed):
            yield "a field is the path of a column (image:PATH of a picture), or a list of paths", "fields", name
    mapped = {**bench.fields, **{name: "" for each in bench.variants.values() for name in each}}
    for name in bench.optional:
        if name not in mapped:
            yield f"names a field of 'fields' that rows may lack: {hint(name, mapped)}", "optional"
    if bench.reader and bench.reader not in READERS:
        yield f"there is no reader {bench.reader!r}: {hint(bench.reader, READERS)}", "reader"
    if bench.reader in (RENDERED_PAIR, CONVERSATION_PAIR) and not {"response_0", "response_1"} <= {*bench.fields}:
        yield f"{bench.reader!r} reads two columns: name them as response_0 and response_1", "fields"
    if bench.native is not None and bench.native.dialect not in DIALECTS:
        yield f"there is no dialect of that name: {hint(bench.native.dialect, DIALECTS)}", "native", "dialect"
    if not bench.reader and not bench.fields:
        yield ("name the columns of the rows under 'fields', or a reader",)


def is_repository(name: str) -> bool:
    """Whether a name has the form ORG/NAME, or NAME."""
    return _REPOSITORY.fullmatch(name) is not None


def _of_source(bench: Bench) -> Iterator[Mistake]:
    source = bench.source
    if sum(map(bool, (source.hub, source.github, source.folder))) != 1:
        yield "a source is one of 'hub' (ORG/NAME), 'github' (ORG/NAME) and 'folder' (a path from here)", "source"
    elif not source.folder and not is_repository(source.hub or source.github):
        yield "the name of a repository is ORG/NAME, without an address around it", "source"
    if not source.files:
        yield "name at least one file, with its SHA-256 or '' where it is not known", "source", "files"
    if source.github and not source.revision:
        yield "a repository needs the commit as 'revision'", "source"
    if source.folder and source.revision:
        yield "a folder has no revision: the SHA-256 of its files says which they are", "source", "revision"
    for path, digest in source.files.items():
        if digest and (len(digest) != _DIGITS or set(digest) - set("0123456789abcdef")):
            yield "not a SHA-256 (64 digits of 0-9 and a-f)", "source", "files", path
        if digest and "*" in path:
            yield "a path with '*' is several files, which one SHA-256 cannot be of", "source", "files", path
        if ".." in path.split("/") or path.startswith("/"):
            yield "a file's path is that inside its source", "source", "files", path
        if any(len(part.encode("utf-8", "surrogatepass")) > _LONGEST_NAME for part in path.split("/")):
            yield f"no file's name has more than {_LONGEST_NAME} bytes", "source", "files", path


def _of_official(bench: Bench) -> Iterator[Mistake]:
    official = bench.official
    if not official.metric:
        yield "name at least one figure of the authors", "official", "metric"
    if wrong := [each for each in official.metric if (each in OF_PAIRS) != bench.pairs]:
        yield f"{wrong[0]!r} is not a metric of {bench.kind}", "official", "metric"
    for metric, kind in (("best of", "best of"), ("order distance", "order")):
        if metric in official.metric and bench.kind != kind:
            yield f"{metric!r} is the metric of the kind {kind!r}", "official", "metric"
    if "bias deviation and conformity" in official.metric and set(bench.variants) != {"unbiased", "biased"}:
        yield "'bias deviation and conformity' compares the variants 'unbiased' and 'biased'", "official", "metric"
    if official.failures == "zero" and (bench.kind != "scores" or "mean score" not in official.metric):
        yield "a missing verdict scores 0 ('zero') in a 'mean score' of the kind 'scores' alone", "official", "failures"
    both_graded = bench.native is not None and bench.native.dialect == "second-score"
    if "relative score" in official.metric and not both_graded:
        yield "'relative score' needs replies that grade the reference too: native: {dialect: second-score}", "official"
    if official.over == "verdicts" and set(official.metric) != {"accuracy"}:
        yield "verdicts are weighted equally in 'accuracy' alone", "official", "over"
    if {"bradley-terry score", "reward"} & {*official.metric} and not bench.baseline:
        yield "name the model whose responses are in the rows under 'baseline'", "official", "metric"
    if official.strong != 1 and not (bench.baseline and math.isfinite(official.strong) and official.strong > 0):
        yield "'strong' is a number above 0: the games of a strong verdict against the 'baseline'", "official", "strong"
    if official.conformity and not official.group:
        yield "'conformity' names values of 'group'", "official"
    if official.ties_apart and not (bench.kind == "best of" and official.group):
        yield "'ties_apart' is a value of 'group', in a bench of the kind 'best of'", "official"
    yield from _of_groups(bench)


def _of_groups(bench: Bench) -> Iterator[Mistake]:
    official = bench.official
    for name, column in bench.groups.items():
        if column.startswith("@") and column not in GROUPS:
            yield f"no column: {hint(column, GROUPS)}", "groups", name
    if (
        "all of a group" in official.metric or official.over in ("groups", "sections")
    ) and official.group not in bench.groups:
        told = hint(official.group, bench.groups) if bench.groups else "the bench has no 'groups'"
        yield f"'group' names one of the groups: {told}", "official"
    if official.printed and (official.group not in bench.groups or official.over not in ("rows", "groups")):
        yield "'printed' names values of 'group', one of the groups, over rows or groups", "official", "printed"
    if official.overall and official.over not in ("groups", "sections"):
        yield "'overall' stands beside a mean of groups or sections: here all rows count alike already", "official"
    if official.over == "sections" and not official.sections:
        yield "name the sections and the groups of each under 'sections'", "official"
    inside = [name for names in official.sections.values() if isinstance(names, list | tuple) for name in names]
    for name, weight in official.weights.items():
        if name not in inside:
            yield f"no section has this group: {hint(name, inside)}", "official", "weights", name
        if not (math.isfinite(weight) and weight > 0):
            yield "a weight is a number above 0: how often each row of the group counts", "official", "weights", name


def _of_state(bench: Bench) -> Iterator[Mistake]:
    seen = all(bench.source.files.values())
    if bench.state == "verified" and not bench.proof:
        yield "a verified bench says under 'proof' what was reproduced", "state"
    if bench.state == "rows read" and not seen:
        yield "'rows read' needs the SHA-256 of every file", "state"
    if bench.state == "verified" and not seen and not bench.from_memory:
        yield "name under 'from_memory' what of the rows was not read", "source", "files"
    if bench.state == "schema only" and bench.rows:
        yield "'rows' is the count of rows that were read, and these were not: leave it out", "rows"


def load_bench(name: str | Path) -> Bench:
    """A listed bench by its name, or one in a file (`.yaml`). UserError with the near match."""
    text = str(name)
    if text.endswith((".yaml", ".yml")):
        found = bench_from(_with_rubric_beside(read_located(text), Path(text).parent))
        folder = found.source.folder
        return replace(found, source=replace(found.source, folder=str(Path(text).parent / folder))) if folder else found
    if text in NOT_LISTED:
        raise UserError(f"there is no bench {text!r}: {NOT_LISTED[text]}; describe it in a file of your own")
    if text not in names():
        raise UserError(f"there is no bench {text!r}: {hint(text, names())}; a file of your own ends in .yaml")
    return _listed(text)


def _with_rubric_beside(document: Located, home: Path) -> Located:
    """The document with the place of a rubric that lies beside it, before the name that it wrote."""
    value = document.value
    name = value.get("rubric") if isinstance(value, dict) else None
    if not isinstance(name, str) or not name.endswith((".yaml", ".yml")) or not (home / name).is_file():
        return document
    return replace(document, value={**value, "rubric": f"{home.resolve()}{_BESIDE}{name}"})


@cache
def names() -> tuple[str, ...]:
    """The names of the listed benches."""
    found = (each.name for each in resources.files("dikast.benches").joinpath("catalogue").iterdir())
    return tuple(sorted(name.removesuffix(".yaml") for name in found if name.endswith(".yaml")))


@cache
def _listed(name: str) -> Bench:
    path = f"{name}.yaml"
    text = resources.files("dikast.benches").joinpath("catalogue", path).read_text("utf-8")
    return bench_from(parse_located(text, path))


def check_bench(path: Path) -> Bench:
    """The bench in a file; UserError where it is longer than a bench may be."""
    bench, lines = load_bench(path), path.read_text("utf-8").count("\n")
    if lines > MOST_LINES:
        raise UserError(f"{path}: has {lines} lines; a bench has at most {MOST_LINES}")
    return bench
