"""Preference pairs from a run: two responses to one prompt, the preferred one first.

Items with the same prompt are joined, whether the responses are in one item or in several. Prompts and pairs that are
left out are counted by reason.
"""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import mean_estimate
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.item import Item, item_to
from dikast.core.media import inside_root, resolved
from dikast.core.part import STORES, Content, Image, is_empty, text_of
from dikast.core.records import Arrangement, scan_items
from dikast.core.records.sources import is_address, is_data
from dikast.core.runs.as_judged import is_as_judged
from dikast.core.runs.current_verdicts import current_records
from dikast.core.runs.judge_lock import damaged_lock, names_version, read_lock
from dikast.core.runs.rubrics import load_rubrics
from dikast.core.runs.run import Run
from dikast.core.runs.run_files import LOCK, PREFERENCES, RANKINGS, TOTALS
from dikast.core.runs.schema import PreferenceLine, RankingLine, TotalLine, derived_lines
from dikast.core.text import counted
from dikast.core.verdict import Status

Take = Literal["best-and-worst", "all"]
_WITHIN = 0.1  # matched pairs differ in the size of their difference in words by at most this share, or by _WORDS
_WORDS = 2
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Pair:
    """Two responses to one prompt, the preferred one first, as an item whose gold says so.

    `margin` is the strength of the preference, 0 to 1: the difference in goodness, or |2p - 1| for a probability p of
    the preference. `words` is the length of the preferred response minus that of the other, in words.
    """

    item: Item
    margin: float
    words: int


@dataclass(slots=True)
class Pairs:
    """The pairs of a run. `dropped` counts prompts (and with `take` all, pairs) that were left out, by reason."""

    pairs: list[Pair]
    prompts: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    unmatched: int = 0
    one_order: bool = False  # each pair was asked in one order, so the judge's position bias affects the pairs

    @property
    def words_longer(self) -> Estimate:
        """By how many words the preferred response is longer, the mean over pairs with its interval over prompts."""
        numbers: dict[Any, int] = {}
        prompts = [numbers.setdefault(each.item.instruction, len(numbers)) for each in self.pairs]
        return mean_estimate([each.words for each in self.pairs], 0.95, np.array(prompts, np.int64))

    @property
    def why_none(self) -> str:
        """Why there is no pair, where there is none."""
        reasons = [f"{n:,} left out ({reason})" for reason, n in self.dropped.most_common()]
        if self.unmatched:
            found = counted(self.unmatched, "pair")
            reasons.append(f"{found} left out by --match-length, as none has a counterpart with the other one longer")
        return "; ".join(reasons) or "it has no items"

    def summary(self) -> dict[str, Any]:
        """As JSON: counts, and how the preferred responses differ in length."""
        longer, shorter = (sum(sign * each.words > 0 for each in self.pairs) for sign in (1, -1))
        mean = self.words_longer.to_dict()
        return {
            "prompts": self.prompts,
            "pairs": len(self.pairs),
            "dropped": dict(self.dropped),
            **({"unmatched_length": self.unmatched} if self.unmatched else {}),
            **({"one_order": True} if self.one_order else {}),
            "chosen_longer": longer,
            "chosen_shorter": shorter,
            "mean_words_longer": mean["value"],
            "mean_words_longer_interval": [mean["low"], mean["high"]],
        }


@dataclass(slots=True)
class _Prompt:
    """One prompt with its distinct responses; `better[i, j]` is by how much response i is preferred to j."""

    item: Item
    responses: list[Content] = field(default_factory=list)
    numbers: dict[tuple[str, int], int] = field(default_factory=dict)  # by item and index
    worth: dict[int, float] = field(default_factory=dict)
    better: dict[tuple[int, int], float] = field(default_factory=dict)
    disagree: set[tuple[int, int]] = field(default_factory=set)
    missing: int = 0
    empty: set[int] = field(default_factory=set)  # responses that nobody can judge, which count for nothing


def pairs_of(
    run: Run | str | Path,
    *,
    items: str | Path = "",
    criterion: str = "",
    margin: float = 0.0,
    take: Take = "best-and-worst",
    match_length: bool = False,
) -> Pairs:
    """The pairs of a finished run of grades or comparisons.

    `take` best-and-worst gives one pair per prompt, all gives every two responses. Empty responses count for nothing:
    no judge sees them. A prompt is left out if a missing verdict could change the choice, if its best and worst are
    equal or less than `margin` apart, or if the two orders of the pair disagree. Comparisons of more than two responses
    are ordered by wins minus losses, those of a ranking by their rewards, which are corrected for the judge's position
    bias: most pairs of a ranking are asked in one order. `match_length` keeps equally many pairs with the longer and
    with the shorter response preferred, with similar differences in words. UserError for a run of a panel, for several
    criteria without a named one or a known total, and for missing items.
    """
    run = run if isinstance(run, Run) else Run(run)
    if run.kind == "panel":
        raise UserError(f"{run.folder} is of a panel: name the folder of one of its judges")
    if not 0 <= margin <= 1:
        raise UserError(f"a margin lies between 0 and 1, got {margin}")
    prompts, by_id, dropped = _prompts(run, str(items))
    graded = run.kind == "absolute"
    ranked = (run.folder / RANKINGS).exists()
    (_grades if graded else _rankings if ranked else _comparisons)(run, by_id, criterion)
    alone = not ranked and bool((run.summary.get("preferences") or {}).get("one_order"))
    found = Pairs([], prompts=len(prompts), dropped=dropped, one_order=alone)
    for prompt in prompts:
        found.pairs.extend(_chosen(prompt, margin, take, found.dropped, graded=graded))
    if match_length:
        kept = matched(found.pairs)
        found.unmatched, found.pairs = len(found.pairs) - len(kept), kept
    return found


def _prompts(run: Run, named: str) -> tuple[list[_Prompt], dict[str, _Prompt], Counter[str]]:
    """The prompts of the items in their order, and by item id; how many items were left out, by reason."""
    lock = read_lock(run.folder)
    if (damaged := damaged_lock(run.folder)) is not None:
        raise damaged
    if lock is None and not named:
        raise UserError(f"{run.folder}: has no {LOCK}, which says where the items are: name them with --items FILE")
    lock = lock or {}
    told = str(lock.get("items", ""))
    kept = run.folder / Path(told).name
    known = () if not told or is_address(told) else (told, str(kept))
    path = named or next((each for each in known if is_data(each)), "")
    if not path or not Path(path).exists():
        raise UserError(f"{run.folder}: the items are no longer at {path or told or '-'}: name them with --items FILE")
    asked: dict[str, list[dict[str, Any]]] = {}
    for record in current_records(run.folder):
        asked.setdefault(record["question"]["item"], []).append(
            {name: record.get(name) for name in ("question", "hashes")}
        )
    dropped: Counter[str] = Counter()
    by_print: dict[str, _Prompt] = {}
    by_id: dict[str, _Prompt] = {}
    for item in scan_items(path, lock.get("columns") or {}, Arrangement(names_version(run.folder))):
        if isinstance(item, DataError):
            continue
        if not all(map(_may_be_named, item.images)):
            dropped["items with pictures outside the media root"] += 1
            continue
        if not is_as_judged(item, asked.get(item.id, ())):
            dropped["items that changed since they were judged"] += 1
            continue
        shown = item_to(replace(item, responses=(), gold=None, meta={}, id="x", reference=None, rubric=None))
        prompt = by_print.setdefault(fingerprint(shown), _Prompt(item))
        by_id[item.id] = prompt
        for place, response in enumerate(item.responses):
            same = next((n for n, each in enumerate(prompt.responses) if each == response), None)
            if same is None:
                same = len(prompt.responses)
                prompt.responses.append(response)
                if is_empty(response):
                    prompt.empty.add(same)
            prompt.numbers[item.id, place] = same
    return list(by_print.values()), by_id, dropped


def _may_be_named(image: Image) -> bool:
    """Whether a trainer may be told to open the image: under a media root only what lies in it, and the web."""
    if image.source.startswith(("data:", "http://", "https://")):
        return True
    return inside_root("/" if image.source.startswith(STORES) else resolved(image))  # a store is in no folder


def _grades(run: Run, by_id: Mapping[str, _Prompt], criterion: str) -> None:
    """Fill in the value of each response: its total, or its goodness by one criterion."""
    if not criterion and (run.folder / TOTALS).exists():
        for record, _ in derived_lines(run.folder, TOTALS, TotalLine):
            _put(by_id, record["item"], record["response"], record["total"])
        return
    rubrics = load_rubrics(run.folder)
    name = _criterion([rubric.name for rubric in rubrics.values()], criterion, run)
    for verdict in run.combined:
        if verdict.question.criterion != name:
            continue
        value = None
        if verdict.status is Status.OK and verdict.hashes is not None:
            scale = rubrics[verdict.hashes.rubric].scale
            number = verdict.score if verdict.expected is None else verdict.expected
            value = None if number is None else scale.goodness(number)
        _put(by_id, verdict.question.item, verdict.question.responses[0], value)


def _put(by_id: Mapping[str, _Prompt], item: str, response: int, value: float | None) -> None:
    prompt = by_id.get(item)
    number = None if prompt is None else prompt.numbers.get((item, response))
    if prompt is None or number is None or number in prompt.empty:
        return
    if value is None:
        prompt.missing += 1
    else:
        prompt.worth[number] = value


def _criterion(names: Sequence[str], given: str, run: Run) -> str:
    known = sorted(set(names))
    if given and given not in known:
        raise UserError(f"{run.folder} has no criterion {given!r}: it has {', '.join(known)}")
    if not given and len(known) > 1:
        raise UserError(f"{run.folder} has several criteria ({', '.join(known)}): name one with --criterion")
    return given or (known[0] if known else "")


def _comparisons(run: Run, by_id: Mapping[str, _Prompt], criterion: str) -> None:
    """Fill in which responses are preferred to which, by how much, and each one's wins minus losses."""
    name = _criterion([rubric.name for rubric in load_rubrics(run.folder).values()], criterion, run)
    for each in run.preferences:
        prompt = by_id.get(each.item) if each.criterion == name else None
        if prompt is None or (numbers := _numbers(prompt, each.item, each.pair)) is None:
            continue
        a, b = numbers
        if {a, b} & prompt.empty:
            continue
        if each.choice is None:
            prompt.missing += 1
            continue
        if each.consistent is False:
            prompt.disagree |= {(a, b), (b, a)}
        edge = {"a": 1.0, "b": -1.0, "tie": 0.0}[each.choice]
        if each.logit_a is not None:
            edge = math.tanh(each.logit_a / 2)  # 2p - 1 of the preference
        prompt.better[a, b], prompt.better[b, a] = edge, -edge
        prompt.worth[a] = prompt.worth.get(a, 0.0) + edge
        prompt.worth[b] = prompt.worth.get(b, 0.0) - edge


def _numbers(prompt: _Prompt, item: str, pair: tuple[int, int]) -> tuple[int, int] | None:
    """The two responses of an item's pair as the prompt numbers them; None where it lacks one, or they are the same."""
    a, b = (prompt.numbers.get((item, place)) for place in pair)
    return None if a is None or b is None or a == b else (a, b)


def _rankings(run: Run, by_id: Mapping[str, _Prompt], criterion: str) -> None:
    """As `_comparisons`, by the place of each response in the ranking of its item; equal places are equal.

    Pairs whose two orders disagree are known from the comparisons, where both were asked.
    """
    _criterion([rubric.name for rubric in load_rubrics(run.folder).values()], criterion, run)
    if (run.folder / PREFERENCES).exists():
        for record, _ in derived_lines(run.folder, PREFERENCES, PreferenceLine):
            if record.get("consistent") is False:
                prompt = by_id.get(record["item"])
                if prompt is not None and (numbers := _numbers(prompt, record["item"], record["pair"])) is not None:
                    prompt.disagree |= {numbers, numbers[::-1]}
    for line, _ in derived_lines(run.folder, RANKINGS, RankingLine):
        if (prompt := by_id.get(line["item"])) is None:
            continue
        prompt.missing += line["missing"]
        placed = [
            (number, rank, i)
            for i, rank in enumerate(line["ranks"])
            if rank is not None and (number := prompt.numbers.get((line["item"], i))) is not None
        ]
        by_grades = all(reward is None for reward in line["rewards"])  # a duel
        values = line["grades"] if by_grades else line["rewards"]
        for (a, above, i), (b, below, j) in combinations(placed, 2):
            if a == b:
                continue
            first, second = values[i], values[j]
            apart = 0.0 if above == below or first is None or second is None else abs(first - second)
            if not by_grades:
                apart /= 2 * (len(line["ranks"]) - len(line["left_out"]))  # rewards are 2k times strengths
                apart = math.tanh(apart / 2) if line["values"] == "logit" else min(apart, 1.0)
            edge = math.copysign(max(apart, 2 * _EQUAL), below - above) if above != below else 0.0
            prompt.better[a, b], prompt.better[b, a] = edge, -edge
        for number, rank, _ in placed:
            prompt.worth.setdefault(number, float(-rank))


def _chosen(prompt: _Prompt, margin: float, take: Take, dropped: Counter[str], *, graded: bool) -> Iterator[Pair]:
    """The pairs of one prompt; prompts and pairs that are left out are counted."""
    known = sorted(prompt.worth)
    judged = len(prompt.responses) - len(prompt.empty)
    if judged < 2:
        dropped["fewer than two different responses that are not empty"] += 1
        return
    if take == "best-and-worst" and (prompt.missing or len(known) < judged):
        dropped["a verdict is missing"] += 1
        return
    if graded and len(known) < judged:
        dropped["a verdict is missing"] += math.comb(judged, 2) - math.comb(len(known), 2)
    for a, b in _candidates(prompt, known, take):
        edge = prompt.worth[a] - prompt.worth[b] if graded else prompt.better.get((a, b))
        if edge is None:
            dropped["a verdict is missing"] += 1
        elif (a, b) in prompt.disagree:
            dropped["the two orders disagree"] += 1
        elif abs(edge) < _EQUAL:
            dropped["equal"] += 1
        elif not graded and take == "best-and-worst" and edge < 0:
            dropped["the worst won against the best"] += 1
        elif abs(edge) < margin:
            dropped["less than the margin apart"] += 1
        else:
            yield _pair(prompt, *((a, b) if edge > 0 else (b, a)), abs(edge), alone=take == "best-and-worst")


def _candidates(prompt: _Prompt, known: Sequence[int], take: Take) -> Iterable[tuple[int, int]]:
    if take == "all":
        return combinations(known, 2)
    best = max(known, key=lambda n: (prompt.worth[n], -n))
    worst = min(known, key=lambda n: (prompt.worth[n], n))
    return [(best, worst)] if best != worst else [(known[0], known[1])]


def _pair(prompt: _Prompt, better: int, worse: int, margin: float, *, alone: bool) -> Pair:
    chosen, rejected = prompt.responses[better], prompt.responses[worse]
    name = prompt.item.id if alone else f"{prompt.item.id}#{better}-{worse}"
    item = replace(
        prompt.item, id=name, responses=(chosen, rejected), gold={"preference": "a"}, meta={}, rubric=None, origin=""
    )
    return Pair(item, margin, _words(chosen) - _words(rejected))


def _words(content: Content) -> int:
    return len(text_of(content).split())


def matched(pairs: Sequence[Pair]) -> list[Pair]:
    """Equally many pairs with a longer and with a shorter preferred response, of similar differences, in order.

    Each longer one is matched with a shorter one whose difference is as large, then with the nearest ones, by at most a
    tenth or two words. What remains between them adds up to about nothing: matches that lean to the side that all
    together lean to are undone, the furthest first. Pairs of equal length stay.
    """
    longer, shorter = (defaultdict[int, deque[int]](deque) for _ in range(2))
    for place, pair in enumerate(pairs):
        if pair.words:
            (longer if pair.words > 0 else shorter)[abs(pair.words)].append(place)
    found = list[tuple[int, int, int]]()  # by how much the longer one's difference is larger, and both places
    left = 0
    for apart in range(int(_furthest(max(longer, default=0))) + 1):
        for size in sorted(longer):
            for other in dict.fromkeys((size + apart, size - apart) if left > 0 else (size - apart, size + apart)):
                while apart <= _furthest(max(size, other)) and longer[size] and shorter.get(other):
                    found.append((size - other, longer[size].popleft(), shorter[other].popleft()))
                    left += size - other
    side = 1 if left > 0 else -1
    kept = {place for place, pair in enumerate(pairs) if not pair.words}
    for lean, *both in sorted(found, key=lambda each: (-side * each[0], each[1:])):
        if 0 < side * lean < 2 * side * left:  # without it all together lean less
            left -= lean
        else:
            kept.update(both)
    return [pairs[place] for place in sorted(kept)]


def _furthest(words: int) -> float:
    """By how much matched differences of so many words may differ."""
    return max(_WORDS, _WITHIN * words)
