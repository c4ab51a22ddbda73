"""What a request's `about["gold"]` says of the responses shown."""

from collections.abc import Mapping
from typing import Any

from dikast.core.errors import EngineError
from dikast.engines.base import Request


def gold_score(request: Request, *, by_rubric: bool = True) -> float:
    """The gold value of the response shown, in the units of the rubric's scale.

    Gold is a number, a label of the scale, a list with one of them per response of the item, or a dict that holds any
    of these by criterion (averaged over the criteria without `by_rubric`) or under `scores` or `score`. EngineError
    `no_gold` where there is none.
    """
    about = request.about
    found = [_one(each, about["responses"][0], about) for each in _found(about, by_rubric, ("scores", "score"))]
    if not found or any(each is None for each in found):
        raise _no_gold(request, "a number, one number per response, or a number per criterion")
    return sum(each for each in found if each is not None) / len(found)


def gold_edge(request: Request, *, by_rubric: bool = True) -> float:
    """How many levels of gold the response shown first is better than the second; 1 where only the winner is known.

    Gold is a list with one number per response of the item, "a" / "b" / "tie" (the item's first or second response
    wins), or a dict that holds these by criterion or under `scores` or `preference`. On a scale where lower is better
    the smaller number wins, except without `by_rubric`. EngineError `no_gold` where there is none.
    """
    about = request.about
    edges = [_edge(each, about, by_rubric) for each in _found(about, by_rubric, ("scores", "preference"))]
    if not edges or any(each is None for each in edges):
        raise _no_gold(request, "one number per response, or 'a', 'b' or 'tie'")
    return sum(each for each in edges if each is not None) / len(edges)


def _found(about: Mapping[str, Any], by_rubric: bool, stated: tuple[str, ...]) -> list[Any]:
    """Gold of the criterion asked about, else the value under one of `stated`, else of all criteria if blind.

    A list under `by_rubric` is the gold of the same response under several rubrics, its own among them: what counts for
    the blind.
    """
    gold = about.get("gold")
    if not isinstance(gold, Mapping):
        return [gold]
    if not by_rubric and gold.get("by_rubric"):
        return list(gold["by_rubric"])
    if by_rubric and about.get("criterion") in gold:
        return [gold[about["criterion"]]]
    for key in stated:
        if gold.get(key) is not None:
            return [gold[key]]
    return [] if by_rubric else list(gold.values())


def _one(gold: Any, response: int, about: Mapping[str, Any]) -> float | None:
    if isinstance(gold, list | tuple):
        gold = gold[response] if response < len(gold) else None
    if isinstance(gold, str):
        value: float | None = about.get("values", {}).get(gold)
        return value
    return float(gold) if isinstance(gold, int | float) and gold == gold else None


def _edge(gold: Any, about: Mapping[str, Any], by_rubric: bool) -> float | None:
    first, second = about["responses"]
    if isinstance(gold, str):
        if gold == "tie":
            return 0.0
        wins = {"a": 0, "b": 1}.get(gold)
        return None if wins not in (first, second) or {first, second} != {0, 1} else 1.0 if wins == first else -1.0
    if not isinstance(gold, list | tuple):
        return None
    values = _one(gold, first, about), _one(gold, second, about)
    if values[0] is None or values[1] is None:
        return None
    return (values[0] - values[1]) * (-1 if by_rubric and about.get("lower_is_better") else 1)


def _no_gold(request: Request, due: str) -> EngineError:
    item, gold = request.about.get("item", request.key), request.about.get("gold")
    return EngineError(
        f"item {item!r}: this mock judge needs gold ({due}), got {gold!r}; add it, or set the option r=0",
        kind="no_gold",
    )
