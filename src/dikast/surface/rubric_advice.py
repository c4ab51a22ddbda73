"""Rubrics that people write: a commented file to start from, and warnings about what makes judging unreliable."""

from dikast.core.rubric import Rubric, Sheet
from dikast.core.scale import Scale

_MANY = 20  # labels of a scale that hardly any judge tells apart
_LONG = 600  # characters of a criterion


def template(name: str, criterion: str, scale: Scale) -> str:
    """A rubric file with comments, its levels to be filled in; it can be loaded as it is."""
    low, high = scale.labels[0], scale.labels[-1]
    asked = criterion or "Is the answer polite?"
    return f"""# A rubric: one question that a judge answers with a label of the scale.
name: {_quoted(name)}

# The question. One thing only; write a second rubric for a second thing.
criterion: {_quoted(asked)}

# 1-5, 1-10, 0-100, A-E (best first), pass/fail (better first), or {{labels: [poor, good], values: [0, 1]}}
scale: {_quoted(str(scale))}

# What labels mean, from the lowest value to the highest; any of them. Take the # away and say what can be seen.
levels:
#  {low}: What the worst answer looks like.
#  {high}: What the best answer looks like.

# lower_is_better: true   # for a scale of harm
# weight: 1               # in a sheet: a file with a list `criteria:` of rubrics like this one
"""


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def advice(rubric: Rubric | Sheet) -> list[str]:
    """What makes a rubric hard to judge by, each with a remedy; empty if nothing was found."""
    told: list[str] = []
    rubrics = rubric.rubrics if isinstance(rubric, Sheet) else (rubric,)
    for one in rubrics:
        place = f"{one.name}: " if len(rubrics) > 1 else ""
        described = len(one.levels)
        if not described:
            told.append(f"{place}no level is described: say at least what the lowest and the highest label mean")
        elif described < len(one.scale.labels) <= 10:
            missing = [label for label in one.scale.labels if label not in dict(one.levels)]
            told.append(f"{place}levels without a description: {', '.join(missing)}")
        if len(one.scale.labels) > _MANY:
            told.append(f"{place}{len(one.scale.labels)} labels: judges use few of them; 1-5 or 1-10 tells as much")
        texts = [text.casefold() for _, text in one.levels]
        if len(set(texts)) < len(texts):
            told.append(f"{place}two levels have the same description: say what is different")
        if len(one.criterion) > _LONG:
            told.append(f"{place}the criterion has {len(one.criterion):,} characters: put what labels mean into levels")
        if one.criterion.count("?") > 1:
            told.append(f"{place}the criterion asks {one.criterion.count('?')} questions: make a rubric of each")
    return told
