"""Tables of replies in the manners that mislead parsers: questions, ties in words, contradictions, several labels.

`replies/prose.tsv` holds comparisons in plain words. `pairs.tsv` and `scores.tsv` hold replies around labels, which are
written here in the shape of each dialect. `manners.tsv` holds replies to each dialect as such: quotations, what others
have said, sarcasm, several labels, punctuation of other languages. An expected label with "!" is a verdict with
`conflict`.
"""

from pathlib import Path

import pytest

from dikast.core.scale import Scale
from dikast.core.verdict import Status
from dikast.prompts.parse import parse_reply
from dikast.prompts.parsed import Parsed

FOLDER = Path(__file__).parent / "replies"
ONE_FIVE, ONE_TEN = Scale.parse("1-5"), Scale.parse("1-10")
SHAPES = {
    "verdict": "Verdict: {}",
    "claims": "Verdict: {}",
    "json": '{{"verdict": "{}"}}',
    "bracketed": "[RESULT] {}",
    "boxed": "\\boxed{{{}}}",
    "mt-bench": "[[{}]]",
}
PAIRS = {**SHAPES, "arena": "[[{}]]", "critic": "The better response: [{}]"}
SCORES = {**SHAPES, "bridge": "So the overall score is {}.", "critic": "Final score: {}"}
WORDS = {"arena": ("A>B", "B>A", "A=B"), "mt-bench": ("A", "B", "C")}


def rows(name: str) -> list[tuple[str, str, dict[str, str]]]:
    """The expected reading, the reply, and by dialect where another reading is expected."""
    found = []
    for line in (FOLDER / f"{name}.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            said, reply, *others = line.split("\t")
            other = dict(each.split("=") for each in others[0].split()) if others else {}
            found.append((said, reply.replace("\\r", "\r").replace("\\n", "\n"), other))
    return found


def told(parsed: Parsed) -> str:
    return (parsed.label or parsed.status.value) + "!" * parsed.conflict


def wrong(dialect: str, cases: list[tuple[str, str]], scale: Scale | None = None) -> list[tuple[str, str, str, str]]:
    found = []
    for said, reply in cases:
        parsed = parse_reply(dialect, reply, scale)
        assert (parsed.reason == "") == (parsed.status is Status.OK), reply
        if told(parsed) != said:
            found.append((said, told(parsed), reply, parsed.reason))
    return found


def shaped(dialect: str, name: str) -> list[tuple[str, str]]:
    shape = PAIRS[dialect] if name == "pairs" else SCORES[dialect]
    if name == "pairs":
        labels = dict(zip("ABT", WORDS.get(dialect, ("A", "B", "tie")), strict=True))
    else:
        labels = {label: label for label in ("1", "2", "3", "4", "5", "9", "4.5")}
    cases = []
    for said, reply, other in rows(name):
        for slot, label in labels.items():
            reply = reply.replace("{" + slot + "}", shape.format(label))
        cases.append((other.get(dialect, said), reply))
    return cases


@pytest.mark.parametrize("dialect", ["prose", "critic"])
def test_comparisons_in_plain_words(dialect: str) -> None:
    cases = [(other.get(dialect, said), reply) for said, reply, other in rows("prose")]
    assert len(set(cases)) >= 200
    assert wrong(dialect, cases) == []


@pytest.mark.parametrize("dialect", sorted(PAIRS))
def test_replies_about_a_pair_around_labels(dialect: str) -> None:
    cases = shaped(dialect, "pairs")
    assert len(set(cases)) >= 200
    assert wrong(dialect, cases) == []


@pytest.mark.parametrize("dialect", sorted(SCORES))
def test_replies_about_one_response_around_labels(dialect: str) -> None:
    cases = shaped(dialect, "scores")
    assert len(set(cases)) >= 200
    assert wrong(dialect, cases, ONE_FIVE) == []


MANNERS = [
    tuple(line.split("\t")[:4])
    for line in (FOLDER / "manners.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize("dialect", sorted({dialect for dialect, *_ in MANNERS}))
def test_replies_in_the_manners_of_each_dialect(dialect: str) -> None:
    rows = [row for row in MANNERS if row[0] == dialect]
    assert len(rows) >= 30
    found = [
        (said, told(parse_reply(dialect, reply.replace("\\n", "\n"), None if on == "pair" else Scale.parse(on))), reply)
        for _, on, said, reply in rows
    ]
    assert [each for each in found if each[0] != each[1]] == []


def test_comparisons_in_the_manners_of_prose_are_read_alike_by_critic() -> None:
    for dialect, _, said, reply in MANNERS:
        if dialect == "prose":
            assert told(parse_reply("critic", reply.replace("\\n", "\n"))) == said, reply


# Verdicts that are denied, doubted, bounded or corrected in passing, and several on one line.
ONE_RESPONSE = [
    ("boxed", "\\boxed{4}. Not \\boxed{2}.", "unparsed"),
    ("boxed", "\\boxed{4} is wrong, it is 2", "unparsed"),
    ("boxed", "\\boxed{4} \\boxed{2}", "unparsed"),
    ("json", '{"verdict": "4"} That was wrong: 2.', "unparsed"),
    ("verdict", "Verdict: 4. But I would rather give 2.", "unparsed"),
    ("verdict", "Verdict: <4", "unparsed"),
    ("verdict", "Verdict: <= 4", "unparsed"),
    ("verdict", "Verdict: >4", "unparsed"),
    ("verdict", "Verdict: ~4", "unparsed"),
    ("verdict", "Verdict: 4+", "unparsed"),
    ("verdict", "Verdict: <4>", "4"),
    ("verdict", "Verdict: ~~4~~", "4"),
    ("verdict", "Verdict: 4 Verdict: 2", "2!"),
    ("verdict", "Verdict: 4, then Verdict: 2", "2!"),
    ("bracketed", "[RESULT] 4 [RESULT] 2", "2!"),
    ("bracketed", "[RESULT] 4, [RESULT] 2", "unparsed"),
    ("bracketed", "At first [RESULT] 2 seemed due, in the end [RESULT] 5", "5!"),
    ("bridge", "So the overall score is 4. [RESULT] 2", "2!"),
    ("bridge", "So the overall score is 4. [RESULT] 4", "4"),
    ("bridge", "So the overall score is 4.\n[RESULT] 2", "2!"),
    ("bridge", "So the overall score is 4 or so. [RESULT] 2", "2!"),
    ("critic", "Final score: 4 Final score: 2", "2!"),
]


@pytest.mark.parametrize(("dialect", "reply", "said"), ONE_RESPONSE)
def test_scores_that_are_denied_bounded_or_said_twice(dialect: str, reply: str, said: str) -> None:
    assert told(parse_reply(dialect, reply, ONE_FIVE)) == said


MISREAD = [  # replies that were misread once
    ("prose", "My final verdict is: [[A=B]]", "tie"),
    ("prose", "Final verdict: A < B.", "second"),
    ("prose", "Verdict: A and B are equal", "tie"),
    ("verdict", "Verdict: A and B are equal", "tie"),
    ("prose", "Which one is better: A or B? Hard to tell.", "unparsed"),
    ("prose", "The correct answer is B. Both assistants get it right.", "unparsed"),
    ("prose", "Evaluation of Assistant B's answer:\nAssistant B's is good. They are relatively the same.", "tie"),
    ("prose", "Final verdict: tie.", "tie"),
    ("prose", "I would consider this a tie.", "tie"),
    ("mt-bench", "[[A]]", "first"),
    ("mt-bench", "Both cite the law. [[C]]", "tie"),
    ("mt-bench", "[[A]] or [[B]]", "unparsed"),
    ("mt-bench", "[[A]]\nAssistant B is better, though.", "unparsed"),
    ("arena", "not [[A>B]]", "unparsed"),
    ("mt-bench", "not [[A]]", "unparsed"),
    ("mt-bench", "[[A]] is wrong", "unparsed"),
    ("mt-bench", "If length counts, [[A]]; if depth counts, [[B]]", "unparsed"),
    ("prose", "[[A]] or [[B]] would both be acceptable.", "unparsed"),
    ("mt-bench", "[[A]] or [[B]] would both be acceptable.", "unparsed"),
    ("arena", "[[A>B]] or [[A>>B]] would do.", "unparsed"),
    ("prose", "Output (a) is better. Or is it?", "unparsed"),
    ("prose", "Output (a) is rarely better.", "unparsed"),
    ("prose", "I was told to say Output (a) is better.", "unparsed"),
    ("prose", "Assistant B is better. But my final choice is Assistant A.", "first!"),
    ("arena", "Draft: [[A>B]]\n\nFinal: [[B>A]]", "second!"),
    ("prose", "Both are equally good. Still, I prefer Assistant A slightly.", "first"),
    ("prose", "B is the better response. However, A keeps to the limit and thus deserves the win.", "first!"),
    ("prose", "A is better than B is what most people would say. I disagree.", "unparsed"),
    ("prose", "A is better by 0 points.", "unparsed"),
    ("prose", "Output (a) is better. Output (b) is better.", "unparsed"),
    ("mt-bench", "[[A]] and then [[B]]", "unparsed"),
    ("mt-bench", "> [[A]]", "unparsed"),
    ("bracketed", "The previous judge wrote '[RESULT] A'", "unparsed"),
    ("arena", "Choose one of [[A>>B]], [[A>B]], [[A=B]], [[B>A]], [[B>>A]].", "unparsed"),
    ("prose", "Both assistants are tied. However, A has the edge.", "unparsed"),
    ("critic", "Both are equally good. Still, B edges it.", "unparsed"),
    ("prose", "Equally good.\nThough B gets the nod.", "unparsed"),
    ("prose", "Both are tied. However, A is longer than B.", "tie"),
    ("prose", "Both are tied. However, A is better.", "first"),
    ("prose", "[[A]] because B is better.", "unparsed"),
    ("critic", "[[A>B]]; B is stronger.", "unparsed"),
    ("mt-bench", "[[A]], though B is better.", "unparsed"),
    ("mt-bench", "[[A]], though B is better in style.", "first"),
    ("arena", "[[A>B]], although B is better.", "unparsed"),
    ("verdict", "Verdict: A\nReason: B is better than A.", "unparsed"),
    ("prose", "[[A]]\nReason: B is better than A.", "unparsed"),
    ("boxed", "\\boxed{A}\nExplanation: B is better than A.", "unparsed"),
    ("boxed", "\\boxed{A}\nExplanation: A is better than B.", "first"),
    ("arena", "My final verdict is: Assistant A is slightly better: [[B>A]]", "unparsed"),
    ("arena", "Assistant B is much better [[A>>B]]", "unparsed"),
    ("arena", "Assistant A is much better [[A>>B]]", "first"),
    ("arena", "My final verdict is that both are equal: [[A>>B]]", "unparsed"),
    ("mt-bench", "Assistant A is better: [[B]]", "unparsed"),
    ("mt-bench", "Assistant B is better: [[B]]", "second"),
    ("mt-bench", "Overall, both are equally good. My final verdict is: [[B]]", "second!"),
    ("verdict", "Overall, Response A is better than Response B.\n\nVerdict: B", "second!"),
    ("verdict", "Response A is better in style.\n\nVerdict: B", "second"),
    ("verdict", "Overall, Response B is better than Response A.\n\nVerdict: B", "second"),
    ("verdict", "Overall, Response A is better.\n\nVerdict: tie", "tie!"),
    ("bracketed", "Therefore, Response A is better than Response B. [RESULT] B", "second!"),
    ("mt-bench", "[[B]]\n\nExplanation: Assistant A gives code that works, so A is the better one.", "unparsed"),
    ("mt-bench", "[[B]] - A is better.", "unparsed"),
    ("mt-bench", "[[B]] - A is worse.", "second"),
    ("verdict", "Verdict: A. It is the weaker one.", "unparsed"),
    ("boxed", "Response A's final answer is \\boxed{B}", "unparsed"),
    ("boxed", "Response A arrives at \\boxed{B}.", "unparsed"),
    ("boxed", "My final answer is \\boxed{B}", "second"),
    ("boxed", "The better response is \\boxed{B}", "second"),
    ("mt-bench", "[[A]]: verbose. [[B]]: concise.", "unparsed"),
    ("prose", "A: 7/10\nB: 9/10\n\nPreferred: A", "unparsed"),
    ("prose", "A: 9/10\nB: 7/10\n\nPreferred: A", "first"),
    ("prose", "Response A: 7/10\nResponse B: 9/10\n\nPreferred: A", "unparsed"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "reply", "said"), MISREAD)
def test_replies_that_were_misread(dialect: str, reply: str, said: str) -> None:
    assert told(parse_reply(dialect, reply)) == said


@pytest.mark.parametrize(
    ("dialect", "reply"), [("verdict", "Verdict: {}"), ("bracketed", "[RESULT] {}"), ("critic", "Final score: {}")]
)
def test_a_score_that_is_corrected_in_passing_is_none(dialect: str, reply: str) -> None:
    assert parse_reply(dialect, reply.format("4? no, 2"), ONE_FIVE).status is Status.UNPARSED
    assert parse_reply(dialect, reply.format("4\nActually, the score should be 2."), ONE_FIVE).label is None
    assert parse_reply(dialect, reply.format("4\nThat said, this deserves a 1."), ONE_FIVE).label is None
    assert parse_reply(dialect, reply.format("5 stars would be too much"), ONE_FIVE).label is None
    assert parse_reply(dialect, reply.format("4\nThe score should not surprise."), ONE_FIVE).label == "4"
    assert "just kidding" in parse_reply(dialect, reply.format("5 - just kidding, 2"), ONE_FIVE).reason


def test_a_number_cut_off_after_its_point_is_truncated() -> None:
    for reply in ("Verdict: 1.", "Verdict: 4.", "Verdict: 4/", "**Verdict: 4.**"):
        assert parse_reply("verdict", reply, ONE_TEN, finish="length").status is Status.TRUNCATED, reply
        assert parse_reply("verdict", reply.replace("/", ""), ONE_TEN).status is Status.OK, reply
    assert parse_reply("verdict", "Verdict: 4.\nIt", ONE_TEN, finish="length").label == "4"
    assert parse_reply("verdict", "Verdict: 4.\n", ONE_TEN, finish="length").label == "4"


def test_a_list_of_the_choices_does_not_hide_the_verdict_before_it() -> None:
    reply = "[[B]]\n\nI was asked for [[A]] if A is better, [[B]] if B is better, [[C]] for a tie."
    assert told(parse_reply("mt-bench", "x" * 100 + reply)) == "unparsed"  # too close to the list to be told from it
    spaced = reply.replace(
        "I was", "It names the source, the page and the year, and it says what it does not know. I was"
    )
    assert told(parse_reply("mt-bench", spaced)) == "second"


def test_mt_bench_ratings() -> None:
    assert parse_reply("mt-bench", "Rating: [[7]]", ONE_TEN).label == "7"
    assert parse_reply("mt-bench", "Rating: [[11]]", ONE_TEN).status is Status.OFF_SCALE
    assert parse_reply("mt-bench", "See [[note]].", ONE_TEN).status is Status.UNPARSED


def test_a_conflict_in_json_is_seen_in_one_object_and_between_two() -> None:
    assert told(parse_reply("json", '{"verdict": 2, "verdict": 3}', ONE_FIVE)) == "3!"
    assert told(parse_reply("json", '{"verdict": 2}\n{"verdict": 3}', ONE_FIVE)) == "3!"
    assert told(parse_reply("json", '{"verdict": 3, "verdict": 3}', ONE_FIVE)) == "3"
    assert told(parse_reply("json", '{"verdict": 2} or {"verdict": 3}', ONE_FIVE)) == "unparsed"
