"""What a perfect judge would write, in every format, and what cannot be written."""

from typing import Any

import pytest

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.rubric import Rubric
from dikast.core.scale import Scale
from dikast.core.verdict import Claim
from dikast.prompts.format import Format, builtin_formats, format_from, load_format
from dikast.prompts.gold import Gold, gold_of

CLAIMS = [
    {"text": "There are two cats.", "verdict": "wrong", "correction": "three are seen"},
    {"text": "A dog  sleeps.", "verdict": "right"},
    {"text": "It is Tuesday.", "verdict": "unsupported", "correction": "no calendar"},
]
FEEDBACK = "It miscounts: the verdict of two is short by one.\nThe dog is right. Score: low."
SCALES = ("1-5", "0-10", "0-100", "A-E", "pass/fail", "0-1/0.1", "-2-2")
BOXED = {"kind": "absolute", "dialect": "boxed", "user": "{{ response }}\n"}
BRIDGE = {"kind": "absolute", "dialect": "bridge", "marker": "[RESULT]", "user": "{{ response }}\n"}


def formats(kind: str) -> list[Any]:
    ours = [load_format(name) for name in builtin_formats()]
    made = [format_from({**spec, "name": spec["dialect"]}, path="t.yaml") for spec in (BOXED, BRIDGE)]
    return [pytest.param(form, id=form.name) for form in (*ours, *made) if form.kind == kind]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("form", formats("absolute"))
def test_an_absolute_target_reads_back_as_its_gold(form: Format, scale: str) -> None:
    rubric = Rubric("r", "c", Scale.parse(scale))
    for label in (rubric.scale.labels[0], rubric.scale.labels[len(rubric.scale.labels) // 2], rubric.scale.labels[-1]):
        item = Item.of("q", "Two cats.", gold={"label": label, "claims": CLAIMS, "feedback": FEEDBACK})
        gold = gold_of(item, rubric, (0,))
        reply = form.target(gold, rubric)
        parsed = form.parse(reply.text, rubric)
        assert parsed.label == label == reply.label
        if form.dialect == "claims":
            assert parsed.claims == gold.claims
            assert [claim.verdict for claim in gold.claims] == ["wrong", "right", "unclear"]
        elif form.feedback or form.explains:
            bridge = f" So the overall score is {label}." if form.dialect == "bridge" else ""
            assert parsed.feedback == FEEDBACK + bridge
        else:
            assert parsed.feedback == ""
        if form.marker:
            assert reply.text.startswith(reply.before)
            assert reply.before.endswith(f"{form.marker} ")
            assert form.labels(rubric)[label] == f" {reply.label}"  # what is read after the marker


@pytest.mark.parametrize("spans", [[[0, 99]], [[3, 3]], [[-1, 2]], [[0.0, 2]], [3], "0-2", [[0, 1, 2]]])
def test_spans_that_are_no_characters_of_the_response(spans: object) -> None:
    item = Item.of("q", "Two cats.", gold={"score": 2, "spans": spans})
    with pytest.raises(DataError, match="not pairs of characters of its response"):
        gold_of(item, Rubric("r", "c", Scale.parse("1-5")), (0,))


@pytest.mark.parametrize("responses", [(0, 1), (1, 0)])
@pytest.mark.parametrize("said", ["a", "b", "tie"])
@pytest.mark.parametrize("form", formats("pairwise"))
def test_a_pair_s_target_reads_back_in_either_order(form: Format, said: str, responses: tuple[int, int]) -> None:
    rubric = Rubric("r", "c", Scale.parse("1-5"))
    parts = [{"score": 1, "claims": CLAIMS}, {"score": 3, "claims": CLAIMS[:1]}]
    item = Item.of("q", responses=["x", "y"], gold={"preference": said, "responses": parts})
    reply = form.target(gold_of(item, rubric, responses), rubric)
    expected = "tie" if said == "tie" else "first" if (said == "a") == (responses == (0, 1)) else "second"
    parsed = form.parse(reply.text, rubric)
    assert parsed.label == expected
    if form.feedback:  # the claims of the response shown first come first, under its word
        word = dict(form.words)["first"]
        assert parsed.feedback.startswith(f"{word}: There are two cats.")
        assert parsed.feedback.count(f"{word}: ") == (3 if responses == (0, 1) else 1)


@pytest.mark.parametrize(
    ("gold", "responses", "label"),
    [
        (4, (0,), "4"),
        ("4", (0,), "4"),
        ({"score": 4.0}, (0,), "4"),
        ([2, 5], (1,), "5"),
        ({"scores": [2, 5]}, (0,), "2"),
        ({"scores": [2, 5]}, (0, 1), "second"),
        ([5, 2], (1, 0), "second"),
        ({"labels": ["3", "3"]}, (0, 1), "tie"),
        ("b", (1, 0), "first"),
    ],
)
def test_gold_in_all_its_spellings(gold: Any, responses: tuple[int, ...], label: str) -> None:
    one = isinstance(gold, int) or gold == "4" or gold == {"score": 4.0}
    item = Item.of("q", responses=["x"] if one else ["x", "y"], gold=gold)
    assert gold_of(item, Rubric("r", "c", Scale.parse("1-5")), responses).label == label


def test_where_low_is_good_the_lower_score_wins() -> None:
    rubric = Rubric("r", "c", Scale(("1", "2", "3"), (1.0, 2.0, 3.0), lower_is_better=True))
    assert gold_of(Item.of("q", responses=["x", "y"], gold=[1, 3]), rubric, (0, 1)).label == "first"


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (None, "has no gold"),
        (7, "not on the scale 1-5"),
        ({"feedback": "fine"}, "no score in its gold"),
        ({"label": "4", "claims": ["no"]}, "claims in its gold"),
        ({"label": "4", "feedback": 3}, "'feedback' in its gold that is not text"),
    ],
)
def test_gold_that_cannot_be_meant_names_the_item(gold: Any, said: str) -> None:
    item = Item.of("q", "x", gold=gold, id="seven")
    with pytest.raises(DataError, match=said) as caught:
        gold_of(item, Rubric("r", "c", Scale.parse("1-5")), (0,))
    assert "'seven'" in str(caught.value)


def test_what_a_format_cannot_say_is_refused() -> None:
    rubric = Rubric("r", "c", Scale.parse("1-5"))
    with pytest.raises(DataError, match=r"x.jsonl:3: format 'absolute' asks for feedback and the gold has none"):
        load_format("absolute").target(Gold("4"), rubric, where="x.jsonl:3")
    with pytest.raises(DataError, match="'claims' asks for claims and the gold has none"):
        load_format("claims").target(Gold("4", "prose"), rubric)
    with pytest.raises(DataError, match=r"reads back as '2', not as '4'|does not read back"):
        load_format("score-first").target(Gold("4", "See:\nVerdict: 2"), rubric)
    with pytest.raises(DataError, match="findings are right, wrong or unclear"):
        load_format("claims").target(Gold("4", claims=(Claim("It is so.", "perhaps"),)), rubric)
    no_tie = format_from(
        {"name": "n", "kind": "pairwise", "dialect": "verdict", "marker": "Verdict:",
         "user": "{{ first }}\n{{ second }}",
         "words": {"first": "A", "second": "B"}, "feedback": False}, path="n.yaml",
    )  # fmt: skip
    with pytest.raises(DataError, match="has no word for 'tie'"):
        no_tie.target(Gold("tie"), rubric)
    with pytest.raises(DataError, match="does not read back"):
        load_format("absolute").target(Gold("9", "prose"), rubric)
