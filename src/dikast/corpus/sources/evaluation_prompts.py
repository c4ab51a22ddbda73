"""The pool of evaluation prompts: seven families and `relative`, formats with criteria, in `prompts/critic-*.yaml`."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from dikast.core.canonical import fingerprint
from dikast.core.rubric import Rubric, load_rubric
from dikast.core.text import parse_located
from dikast.prompts.format import Format, format_from
from dikast.prompts.target import Reply

FAMILIES = (
    "open-chat", "detailed-description", "visual-reasoning", "knowledge-ocr", "hallucination", "arena", "wild-chat",
)  # fmt: skip
RELATIVE = "relative"  # drawn where it is named: the answer is scored beside its reference
FILES = tuple(f"critic-{family}" for family in FAMILIES)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation prompt: the family's `form` with one criterion, `rubric`."""

    family: str
    name: str
    form: Format
    rubric: Rubric

    @property
    def pair(self) -> bool:
        """Whether two answers are compared."""
        return self.form.kind == "pairwise"

    @property
    def relative(self) -> bool:
        """Whether the reference is scored beside the answer."""
        return self.form.dialect == "second-score"

    def reply(self, reasons: str, label: str, reference: str = "") -> Reply:
        """The reply in the prompt's own words; `reference`: the reference's label, where that is scored too."""
        if self.pair:
            return Reply(f"{reasons}\n[[".lstrip(), label, "]]")
        if self.relative:
            return Reply(f"{reference} ", label, f"\n{reasons}".rstrip())
        return Reply(f"{reasons}\n{self.form.marker} ".lstrip(), label)

    @property
    def hash(self) -> str:
        """Fingerprint of the prompt that is asked: its format and its criterion."""
        return fingerprint([self.form.hash, self.rubric.hash])


@cache
def evaluations(family: str) -> tuple[Evaluation, ...]:
    """The evaluation prompts of a family."""
    path = f"critic-{family}.yaml"
    text = resources.files("dikast.corpus").joinpath("prompts", path).read_text("utf-8")
    value = parse_located(text, path).value
    form, found = format_from({**value, "name": family}, path=path), []
    for each in value["criteria"]:
        rubric = load_rubric(each)
        assert isinstance(rubric, Rubric)
        found.append(Evaluation(family, each["name"], form, replace(rubric, name=f"{family}-{each['name']}")))
    return tuple(found)


def pool(families: Iterable[str] = ()) -> tuple[Evaluation, ...]:
    """Every evaluation prompt of these families, of the seven if none is named."""
    return tuple(each for family in (tuple(families) or FAMILIES) for each in evaluations(family))
