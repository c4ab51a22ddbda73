"""The prompt that a built record was made with: a template of pairs, or an evaluation prompt of the pool."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.corpus.sources.evaluation_prompts import FAMILIES, RELATIVE, Evaluation, pool
from dikast.corpus.sources.pair_templates import Template, templates
from dikast.prompts.format import Format
from dikast.prompts.gold import Gold
from dikast.prompts.target import Reply

_TURNED = {"A>>B": "B>>A", "A>B": "B>A", "A=B": "A=B", "B>A": "A>B", "B>>A": "A>>B"}
_BY_SLOT = {"first": "A>B", "second": "B>A", "tie": "A=B"}


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A record's own prompt: how it is asked, and the reply that is taught."""

    source: Template | Evaluation

    @property
    def form(self) -> Format:
        """The format that asks."""
        return self.source.form

    @property
    def scores_reference(self) -> bool:
        """Whether the reply has a score of the reference, which is then part of what is asked."""
        return isinstance(self.source, Evaluation) and self.source.relative

    def target(
        self, item: Item, gold: Gold, rubric: Rubric, responses: tuple[int, ...], *, prose: bool = True
    ) -> Reply:
        """The reply that says `gold`, without its prose if `prose` is false. DataError if it does not read back."""
        reasons, where = gold.feedback if prose else "", f"{item.origin or item.id}: item {item.id!r}"
        if isinstance(self.source, Template):
            reply = self.source.taught(reasons, gold.label)
        elif self.source.pair:
            label = item.gold.get("label") if isinstance(item.gold, Mapping) else None
            if label in _TURNED and responses[0] > responses[1]:
                label = _TURNED[label]
            reply = self.source.reply(reasons, label or _BY_SLOT[gold.label])
        else:
            reply = self.source.reply(reasons, gold.label, str(item.meta["prompt"].get("reference", "")))
        if prose and not reasons:
            raise DataError(f"{where} has no feedback, which its own prompt asks for", path=item.origin, field="gold")
        read = self.form.parse(reply.text, rubric)
        if read.label != gold.label:
            said = f"reads back as {read.label!r}" if read.label else f"does not read back ({read.reason})"
            raise DataError(
                f"{where}: its feedback and its gold make a reply that {said}, not as {gold.label!r}: mend 'feedback',"
                " which states another verdict, or leave the record out",
                path=item.origin,
                field="gold",
            )
        return reply


def own_prompt(item: Item) -> OwnPrompt | None:
    """The prompt that `meta.template` or `meta.prompt` names; None if the record was made without one.

    DataError if this version of Dikast has no such prompt, or has it with another text.
    """
    for key in ("template", "prompt"):
        told = item.meta.get(key)
        if not isinstance(told, Mapping) or not {"name", "hash"} <= told.keys():
            continue
        found = _known().get((key, str(told.get("family", "")), str(told["name"])))
        if found is None or told["hash"] not in (found.hash if isinstance(found, Evaluation) else found.form.hash,):
            raise DataError(
                f"item {item.id!r} was built with the {key} {told['name']!r} of another version of Dikast: build the"
                " corpus again, or name the formats to train with (formats: [absolute, pairwise])",
                path=item.origin,
                field=f"meta.{key}",
            )
        return OwnPrompt(found)
    return None


@cache
def _known() -> dict[tuple[str, str, str], Template | Evaluation]:
    known: dict[tuple[str, str, str], Template | Evaluation] = {
        ("template", "", each.name): each for each in templates()
    }
    return known | {("prompt", each.family, each.name): each for each in pool((*FAMILIES, RELATIVE))}
