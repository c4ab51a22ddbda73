"""Recognising the columns of a table of verdicts: the judge's and the human raters'.

`docs/audit.md` shows the names. Columns are looked at as well: a column of verdicts holds numbers or a few short words.
"""

import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dikast.audit.plan import AuditPlan, PairLabels
from dikast.audit.tables.columns import MISSING
from dikast.audit.tables.record_rows import Rows
from dikast.core.errors import DataError, UserError
from dikast.core.item import NAMES, plain_name
from dikast.core.records.column_names import SYSTEM, SYSTEMS
from dikast.core.records.reading import NO_RECORDS
from dikast.core.scale import Scale
from dikast.core.text import in_shell, number_in, one_line

JUDGES = (
    "judge_score", "judge_rating", "judge_grade", "judge_label", "judge_verdict", "judge_winner", "judge_choice",
    "judge_preference", "judge", "llm_score", "llm_rating", "llm_label", "llm_judge", "llm_judge_score", "llm_winner",
    "auto_score", "automatic_score", "model_score", "predicted_score", "ai_score",
)  # fmt: skip
PLAIN = ("score", "verdict", "grade", "choice")  # the judge's where no column above is there
PEOPLE = re.compile(r"(human|gold|annotator|rater|expert|people|person|manual|ground_truth)(_.*|\d+)?|.*_human")
PLAIN_PEOPLE = (
    "label",
    "rating",
    "winner",
    "preference",
    "human_preference",
)  # people's where no column above is there
_WORDS = ("pass/fail", "yes/no", "correct/incorrect", "true/false", "good/bad")
_FIRST, _SECOND, _TIE = ("a", "first", "model_a", "answer_a", "response_a"), (
    "b", "second", "model_b", "answer_b", "response_b",
), ("tie", "both", "equal", "same", "neither", "draw")  # fmt: skip
_LABELS = frozenset({*_FIRST, *_SECOND, *_TIE, *(word for each in _WORDS for word in each.split("/"))})
_ENGINES = ("judge", "llm_judge")  # columns that may also name the engine that judged
_ORDERS = ("label_shown", "label_swapped")  # of an export of pairs: the choice in each order
_OF_RECORDS = {"key", "question", "hashes"}  # a run's own records of verdicts have these columns
_FAILURE = -1.0  # as many tables write a score that is missing
_LOOKED_AT = 2000  # rows
_MOST_WORDS, _LONGEST = 30, 40  # different words of a column of verdicts, and characters of one


@dataclass(slots=True)
class _Seen:
    """What the first rows hold in one column."""

    numbers: set[float] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    other: bool = False  # lists, objects, long texts
    values: int = 0

    def add(self, value: Any) -> None:
        if value is None or (isinstance(value, str) and value.strip() in MISSING):
            return
        if isinstance(value, str):
            value = number_in(value.strip())
        self.values += 1
        if isinstance(value, str) and len(value) <= _LONGEST and len(self.words) <= _MOST_WORDS:
            self.words.add(value.casefold())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.numbers.add(float(value))
        else:
            self.other = True

    @property
    def is_verdict(self) -> bool:
        """Numbers, or a few short words."""
        return not self.other and len(self.words) <= _MOST_WORDS and bool(self.words) != bool(self.numbers)

    @property
    def is_likely(self) -> bool:
        """Numbers, or words that repeat or are the labels of verdicts, as short notes and names do not."""
        return self.is_verdict and (not self.words or len(self.words) <= self.values // 2 or self.words <= _LABELS)


def with_columns(plan: AuditPlan) -> tuple[AuditPlan, str]:
    """The plan with the columns and the scale that a file of verdicts shows, and what was recognised, in one line.

    What the plan names stays. UserError where two columns could be the judge's, or none can.
    """
    rows = itertools.islice(Rows(str(plan.file)), _LOOKED_AT)
    seen: dict[str, _Seen] = {}
    differ: dict[str, int] = {}  # the line in which a column of people's first differs from `gold`
    for record, line_number in rows:
        for key in _other_than_gold(record):
            differ.setdefault(key, line_number)
        for key, value in record.items():
            seen.setdefault(key, _Seen()).add(value)
    if not seen:
        raise DataError(NO_RECORDS, path=str(plan.file))
    own = {"label"} if seen.keys() >= _OF_RECORDS else set()  # the judge's, as the score
    usable = [name for name, each in seen.items() if each.is_verdict and name not in own]
    usable = [name for name in usable if not (plain_name(name) in _ENGINES and _is_name(name, usable, seen))]
    exported = _exported(seen)
    of_items: set[str] = set()
    if exported:
        # before the criterion stand the item's own columns; what they say of gold is in `gold`, which may be edited
        of_items = set(itertools.takewhile(lambda name: name != "criterion", seen)) if "gold" in usable else set()
        usable = [name for name in usable if name not in {"judge", "label", *of_items} - {"gold"}]
    gold = plan.gold or _people([name for name in usable if not _names_people(name, usable, seen)], plan)
    score = plan.score or exported or _judge(usable, gold, seen, plan)
    columns = [score, *(each for each in gold if "@" not in each)]
    told = {} if plan.score else {score: "the judge's score"}
    told |= {} if plan.gold else dict.fromkeys(gold, "gold")
    changes: dict[str, Any] = {"score": score, "gold": gold}
    if exported == score and "status" in seen and score not in _ORDERS and not plan.status:
        changes["status"] = "status"
    if exported == score and exported != "score":
        told |= {} if plan.score else {score: "the judge's choice"}
        changes["pairwise"] = True
        if score == _ORDERS[0] and _ORDERS[1] in seen and not plan.swapped:
            changes["swapped"] = _ORDERS[1]
            told[_ORDERS[1]] = "its choice in the other order"
        changes["pair_labels"] = plan.pair_labels or _pair_labels(columns, seen, numbered=True)
    elif (labels := _pair_labels(columns, seen)) is not None and plan.scale is None:
        changes |= {"pairwise": True, "pair_labels": plan.pair_labels or labels}
        names = {plain_name(name): name for name in seen}
        both = next(([names[a], names[b]] for a, b in SYSTEMS if {a, b} <= set(names)), None)
        if both and not (plan.first or plan.second):
            changes |= {"first": both[0], "second": both[1]}
            told |= {both[0]: "first system", both[1]: "second system"}
    elif plan.scale is None and not plan.unscaled and not plan.pairwise:
        changes["scale"] = scale = _scale(columns, seen)
        told |= {} if scale is None else {f"values of {_joined(columns)}": f"the scale {scale} (guessed; else --scale)"}
    if not (plan.pairwise or changes.get("pairwise")):
        changes["players"] = _players(seen)
    line = ", ".join(f"{one_line(name, 60)} -> {what}" for name, what in told.items())
    if exported and not plan.gold and gold == ("gold",):
        for name in (each for each in differ if each in of_items):
            line += f"; {one_line(name, 60)!r} differs from 'gold' (first in line {differ[name]:,}), and gold is used: "
            line += f"--gold {shlex.quote(name)} takes the other"
    return replace(plan, **changes), line


def _other_than_gold(record: Mapping[str, Any]) -> Iterator[str]:
    """The columns of people's in which a row says another number, or another choice, than in `gold`."""
    if (gold := _said(record.get("gold"))) is None:
        return
    for name, value in record.items():
        if name == "gold" or not (PEOPLE.fullmatch(plain_name(name)) or plain_name(name) in PLAIN_PEOPLE):
            continue
        said = _said(value)
        if isinstance(said, type(gold)) and said != gold:
            yield name


def _said(value: Any) -> float | str | None:
    """A cell as a number, or as the choice that it names; None for anything else."""
    value = number_in(value.strip().casefold()) if isinstance(value, str) else value
    if isinstance(value, str):
        return next((each[0] for each in (_FIRST, _SECOND, _TIE) if value in each), None)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _exported(seen: Mapping[str, _Seen]) -> str:
    """The column of verdicts of a table that `dikast export` wrote; "" for another table."""
    if not {"criterion", "status"} <= seen.keys():
        return ""
    if "choice" in seen:
        return _ORDERS[0] if _ORDERS[0] in seen else "choice"
    return "score" if "score" in seen else ""


def _players(seen: Mapping[str, _Seen]) -> tuple[str, ...]:
    """The columns that name the system and the prompt of each row; none without several systems.

    Without a column of prompts, rows of one id answer the same prompt.
    """
    names = {plain_name(name): name for name in reversed(list(seen))}
    system = next((names[name] for name in SYSTEM if name in names), "")
    if not system or len(seen[system].words) < 2:
        return ()
    prompt = next((names[name] for name in (*NAMES["instruction"], *NAMES["id"]) if name in names), "")
    return (system, prompt) if prompt else (system,)


def _judge(usable: Sequence[str], gold: Sequence[str], seen: Mapping[str, _Seen], plan: AuditPlan) -> str:
    for names in (JUDGES, PLAIN):
        found = [name for name in usable if plain_name(name) in names and name not in gold]
        if len(found) > 1:
            named = " and ".join(map(repr, found))
            raise UserError(
                f"{plan.file}: {named} could both be the judge's verdicts; the columns are {_joined(seen)}: name the "
                f"one that is with --score {shlex.quote(found[0])}"
            )
        if found:
            return found[0]
    if {"item", "criterion", "gold"} <= seen.keys() and any(name.startswith("human_") for name in seen):
        raise UserError(
            f"{plan.file}: labels that people gave to `dikast annotate`, without a judge's verdicts: compare a run with"
            f" them, dikast audit RUN --gold-file {in_shell(plan.file)}"
        )
    texts = (name for field, names in NAMES.items() if not field.startswith("gold") for name in names)
    others = {*texts, *SYSTEM, *itertools.chain.from_iterable(SYSTEMS)}
    rest = [name for name in usable if name not in gold and plain_name(name) not in others]
    rest = [name for name in rest if not (PEOPLE.fullmatch(plain_name(name)) and _names_people(name, usable, seen))]
    rest = sorted((name for name in rest if seen[name].is_likely), key=lambda name: not seen[name].numbers)
    if seen.keys() >= _OF_RECORDS:
        raise UserError(
            f"{plan.file}: a run's own records of verdicts without scores, as those of pairs: give the run's folder, "
            "which tells the order of each pair and gold; or say that the labels are meant: --score label"
        )
    if not rest and not gold:
        raise UserError(
            f"{plan.file}: no column holds verdicts (numbers, or few words); the columns are {_joined(seen)}: "
            f"to have these rows judged run dikast grade {in_shell(plan.file)}; or name one: --score COLUMN"
        )
    likely = rest[0] if rest else "COLUMN" if plan.gold else gold[0] if gold else ""
    cure = f"--score {shlex.quote(likely)}"
    cure += ", if it is not people's" if gold and not rest and not plan.gold else ""
    raise UserError(
        f"{plan.file}: no column is recognised as the judge's verdicts; the columns are {_joined(seen)}: name it with "
        f"{cure}" + ("" if gold else ", and people's with --gold COLUMN")
    )


def _people(usable: Sequence[str], plan: AuditPlan) -> tuple[str, ...]:
    if plan.gold_file is not None:
        return ()
    found = [name for name in usable if PEOPLE.fullmatch(plain_name(name)) and name != plan.score]
    if not found:
        found = [name for name in usable if plain_name(name) in PLAIN_PEOPLE and name != plan.score]
    return tuple(found)


def _names_people(name: str, usable: Sequence[str], seen: Mapping[str, _Seen]) -> bool:
    """Whether a column says who rated and not what was said: none of its words is a label, here or elsewhere."""
    words = seen[name].words
    others = (seen[each].words for each in usable if not PEOPLE.fullmatch(plain_name(each)))
    return bool(words) and not words & _LABELS.union(*others)


def _is_name(name: str, usable: Sequence[str], seen: Mapping[str, _Seen]) -> bool:
    """Whether a column says which engine judged and not what it said: it shares no word with labels or others."""
    words = seen[name].words
    others = (seen[each].words for each in usable if each != name)
    return bool(words) and not words & _LABELS.union(*others)


def _pair_labels(columns: Sequence[str], seen: Mapping[str, _Seen], *, numbered: bool = False) -> PairLabels | None:
    """How the columns spell choices; None where they hold none, or no numbers where these are due (`numbered`)."""
    words = {word for name in columns if name in seen for word in seen[name].words}
    numbers = {number for name in columns if name in seen for number in seen[name].numbers}
    systems = {word for name in seen if plain_name(name) in itertools.chain(*SYSTEMS) for word in seen[name].words}
    if (numbered and not numbers) or (numbers and not {1, 2} <= numbers <= {1, 1.5, 2}):
        return None  # 1 alone could be the first, or the second after 0
    sides = {*_FIRST, *_SECOND, *systems}
    if not words or not words <= {*sides, *_TIE} or not (words & sides or numbers):
        return None
    number = ["1", "2", "1.5"] if numbers else []
    return PairLabels(*("|".join([*each, *number[i : i + 1]]) for i, each in enumerate((_FIRST, _SECOND, _TIE))))


def _scale(columns: Sequence[str], seen: Mapping[str, _Seen]) -> Scale | None:
    """The usual scale whose labels the values are; None where they are of none."""
    values = [seen[name] for name in columns if name in seen]
    words = {word for each in values for word in each.words}
    if words:
        fits = (each for each in _WORDS if words <= set(each.split("/")))
        return next(map(Scale.parse, fits), None)
    numbers = {number for each in values for number in each.numbers if number != _FAILURE}
    whole = seen[columns[0]].numbers if columns[0] in seen else set()
    if not numbers or any(not each.is_integer() for each in whole) or min(numbers) < 1 or max(numbers) > 10:
        return None
    return Scale.parse("1-5") if 4 <= max(numbers) <= 5 else Scale.parse("1-10") if max(numbers) > 5 else None


def _joined(names: Iterable[str]) -> str:
    return ", ".join(one_line(name, 60) for name in names)
