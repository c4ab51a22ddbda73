"""Responses graded claim by claim: each claim is an item of its own, and the answers are joined to a score."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dikast.core.errors import UserError
from dikast.core.item import Item
from dikast.core.part import Text
from dikast.core.rubric import Rubric
from dikast.worlds.scoring.penalty import level_of

CLAIM_OF = "claim_of"  # in the metadata of a claim: the item whose response made it
_LEVELS = {"fail": "more than 0 lost", "pass": "nothing lost"}  # as a world says it


def claims_apart(item: Item) -> Iterator[Item]:
    """The gold claims of the response, each as a response that passes if it loses nothing under the same criterion.

    UserError where they cannot be joined: no gold claims, or mistakes that cost different amounts.
    """
    gold, spec = (value if isinstance(value, Mapping) else {} for value in (item.gold, item.meta.get("spec")))
    costs = {1} if spec.get("entries") else {*spec.get("weights", {}).values()}
    if not gold.get("claims") or len(costs) != 1 or spec.get("terms") or not isinstance(item.rubric, Rubric):
        raise UserError(
            f"claim_wise: item {item.id!r} needs gold claims, and a rubric by which every mistake costs the same: draw"
            " it from a world of version 3 with one aspect and form: 0"
        )
    rubric = Rubric(item.rubric.name, item.rubric.criterion, "pass/fail", _LEVELS)
    cuts = " ".join(map(str, spec["cuts"]))  # a run keeps metadata of words and numbers alone
    joined = {"cost": costs.pop(), "cuts": cuts, "right": item.rubric.scale.goodness(gold["score"])}
    for number, claim in enumerate(gold["claims"]):
        label = "fail" if claim["cost"] else "pass"
        yield replace(
            item,
            id=f"{item.id}.{number}",
            responses=((Text(claim["text"]),),),
            rubric=rubric,
            gold={"score": float(label == "pass"), "label": label},
            meta={CLAIM_OF: item.id, **joined},
        )


def joined_score(claims: Iterable[tuple[float, Mapping[str, Any]]]) -> tuple[float, float]:
    """The score and the gold of a response, as shares of its scale, from the scores (0 or 1) of its claims with their
    metadata: every claim that fails costs what the rubric says, and the sum is put on the scale. NaN if one has none.
    """
    told = list(claims)
    scores, about = np.array([score for score, _ in told]), told[0][1]
    if np.isnan(scores).any():
        return float("nan"), float(about["right"])
    cuts = list(map(int, str(about["cuts"]).split()))
    lost = int(about["cost"]) * int((scores < 1).sum())
    return 1 - level_of(lost, cuts) / len(cuts), float(about["right"])
