"""Readers of the teacher's replies: rubrics, instructions with references, responses with feedback."""

from collections.abc import Callable, Iterable
from typing import Any

from dikast.core.verdict import Status
from dikast.corpus.observations import words_of
from dikast.corpus.pipeline.recipe import Recipe
from dikast.corpus.pipeline.stage import Rejected, in_language, list_in, object_in, text_in
from dikast.corpus.sources.request_plan import language_of
from dikast.corpus.sources.seed_rubrics import SCALE, lint
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.parse import parse_reply
from dikast.prompts.parsed import Target

Record = dict[str, Any]
_TEXT = {"type": "string"}
_MOST_SHARED = 0.8  # of a response's word trigrams, above which it copies the reference
_LEAST_WORDS = 8


def list_schema(key: str, names: tuple[str, ...]) -> Record:
    """The JSON schema of an object whose `key` is a list of objects with the text fields `names`."""
    one = {"type": "object", "properties": dict.fromkeys(names, _TEXT), "required": list(names)}
    return {"type": "object", "properties": {key: {"type": "array", "items": one}}, "required": [key]}


_LEVELS = {"type": "object", "properties": dict.fromkeys(SCALE.labels, _TEXT), "required": list(SCALE.labels)}
_RUBRIC = {"type": "object", "properties": {"criterion": _TEXT, "levels": _LEVELS}, "required": ["criterion", "levels"]}
RUBRICS = {"type": "object", "properties": {"rubrics": {"type": "array", "items": _RUBRIC}}, "required": ["rubrics"]}
RESPONSE = {
    "type": "object", "properties": {"response": _TEXT, "feedback": _TEXT}, "required": ["response", "feedback"],
}  # fmt: skip


def rubric_reader(count: int, lineage: Record, *, world: bool) -> Any:
    """A reader of up to `count` rubrics; rubrics with problems are left out, and a reply with no others is rejected."""

    def read(text: str) -> list[Record]:
        made, wrong = [], []
        for each in list_in(object_in(text), "rubrics")[:count]:
            criterion, levels = text_in(each, "criterion"), each.get("levels")
            told = {str(key): str(value).strip() for key, value in levels.items()} if isinstance(levels, dict) else {}
            problems = lint(criterion, told)
            if world:  # its levels are bands of points lost, all worded alike
                problems = [problem for problem in problems if problem.startswith("no description")]
            if problems:
                wrong += problems
                continue
            families = lineage["families"] or [criterion[:60]]
            made.append(
                {
                    "criterion": criterion,
                    "levels": told,
                    "lineage": {**lineage, "world": each.get("world")},
                    "families": families,
                }
            )
        if not made:
            raise Rejected("rubrics that cannot be graded by", "; ".join(wrong[:4]))
        return made

    return read


def instruction_reader(number: int, rubric: Record, plan: list[dict[str, str]], first: int = 0) -> Any:
    """A reader of instructions with their reference answers, at most one for each entry of the plan.

    `first` is the place of the first of them among the rubric's instructions.
    """

    def read(text: str) -> list[Record]:
        found = list_in(object_in(text), "instructions")
        return [
            {"rubric": rubric, "number": number, "at": first + i, "instruction": text_in(each, "instruction"),
             "reference": text_in(each, "reference"), **({"meta": {"plan": planned}} if planned else {})}
            for i, (each, planned) in enumerate(zip(found, plan, strict=False))
        ]  # fmt: skip

    return read


def with_meta(read: Callable[[str], list[Record]], meta: Record, **fields: Any) -> Callable[[str], list[Record]]:
    """A reader whose records have these entries of `meta` and these fields as well."""
    if not meta and not fields:
        return read
    return lambda text: [{**each, **fields, "meta": {**each.get("meta", {}), **meta}} for each in read(text)]


def response_reader(recipe: Recipe, record: Record, score: str) -> Any:
    """A reader of a response with its feedback; rejects refusals, feedback that names a score, and wrong lengths."""

    def read(text: str) -> list[Record]:
        value = object_in(text)
        response, feedback = text_in(value, "response"), text_in(value, "feedback")
        in_language(language_of(recipe, record), response=response, feedback=feedback)
        if parse_reply("verdict", response, SCALE).status is Status.REFUSED:
            raise Rejected("the response refuses", "the response refuses to answer")
        if not recipe.world and copies(response, str(record.get("reference", ""))):
            raise Rejected("copies the reference", "the response repeats the reference answer; write one of its own")
        said = DIALECTS["critic"].read(feedback, Target(SCALE)).stated
        if said is not None:
            raise Rejected("the feedback names a score", f"the feedback names a score ({said.said!r})")
        n = len(words_of(response))
        if not recipe.world and abs(n - recipe.options.words) > recipe.tolerance * recipe.options.words:
            raise Rejected("length", f"the response has {n} words where about {recipe.options.words} were asked for")
        made = {**record, "score": int(score), "response": response, "feedback": feedback}
        return [{**made, "claims": value["claims"]} if isinstance(value.get("claims"), list) else made]

    return read


def copies(response: str, reference: str) -> bool:
    """Whether a response repeats the reference: most of its word trigrams stand there."""
    said, known = words_of(response), words_of(reference)
    if len(said) < _LEAST_WORDS:
        return False
    shared = set(zip(known, known[1:], known[2:], strict=False))
    trigrams = list(zip(said, said[1:], said[2:], strict=False))
    return sum(each in shared for each in trigrams) > _MOST_SHARED * len(trigrams)


def levels_of(rubric: Record) -> list[Record]:
    """The levels of a rubric for a prompt, lowest first."""
    return [{"label": label, "text": rubric["levels"][label]} for label in SCALE.labels]


def shown_rubrics(recipe: Recipe, rubrics: Iterable[Record]) -> list[Record]:
    """Rubrics as examples in a prompt, with all levels; a world, which reads no prompt, is shown the criteria alone."""
    return [{"criterion": each["criterion"], "levels": [] if recipe.world else levels_of(each)} for each in rubrics]
