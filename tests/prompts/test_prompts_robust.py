"""Long and strange replies, built to make a careless pattern hang or go wrong. All readers are linear."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dikast import prompts
from dikast.core.scale import Scale
from dikast.core.verdict import Status
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.parse import parse_reply

MEGABYTE = 1_000_000
SOURCE = Path(prompts.__file__).parent
SCALE = Scale.parse("1-5")
REPEATED = [
    *(
        "Verdict:",
        "Verdict: ",
        "Verdict:\n",
        "[RESULT]",
        "[RESULT] ",
        "[RESULT] 1, ",
        "[RESULT] (",
        "score of ",
        "Score: ",
    ),
    *(
        "[",
        "[[",
        "[[A>",
        "{",
        '{"a":',
        '{"a":[',
        '"',
        '{"verdict"',
        "\\boxed{",
        "<answer>",
        "<think>",
        "</think>",
        "</s",
    ),
    *(" ", "\n", "\n\n ", "*", "`", "\\", "> ", "<|", "-", "(", "a", "é", "٤", "1", "1 ", "1,", "1 or ", "9.", "1 2\n"),
    *("Output (a) ", "Output (a) is ", "Output (a) is the ", "Output (a) is better or ", "while ", "the better ", "A "),
    *(
        "neither a ",
        "I really ",
        "equally ",
        "Therefore, ",
        "# Output\n",
        "not ",
        "that ",
        "if A is better, ",
        "A > B ",
        "Response A\n",
        "although B is better ",
        "Claim: x\n",
        "Finding:\n",
        "Final score: 1, ",
        "I am ",
    ),
    *("**", "[[]]", "[[A]]", "[[A>>B]] or ", "A>B", "((", "()", "(A) ", "**A** ", "Verdict: **", "4/5 ", "\\text{"),
    *(
        "> [[A]]\n",
        '"[[A]]" x ',
        "the judge wrote [[A]]. ",
        "[[A]] “x” ",
        "'",
        "the user's ",
        "A is short and ",
        "1 for style and ",
    ),
    *("\n8 7", "better one: [", "> Verdict: 4\n", '"Verdict: 4".\n', '> {"verdict": 4}\n'),
]


def repeated(pattern: str, size: int) -> str:
    return (pattern * (size // len(pattern) + 1))[:size] + "x"


@pytest.mark.parametrize("pattern", REPEATED)
def test_long_repetition_is_read(pattern: str) -> None:
    text = repeated(pattern, 20_000)
    for dialect in DIALECTS:
        for scale in (SCALE, None):
            assert isinstance(parse_reply(dialect, text, scale).status, Status)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", REPEATED)
def test_a_megabyte_of_repetition_is_read(pattern: str) -> None:
    text = repeated(pattern, MEGABYTE)
    for dialect in DIALECTS:
        scale = None if dialect in ("prose", "critic") else SCALE
        assert isinstance(parse_reply(dialect, text, scale).status, Status)


@pytest.mark.parametrize("pattern", [each for each in REPEATED if "think" not in each])
def test_the_verdict_after_long_repetition_is_found(pattern: str) -> None:
    text = repeated(pattern, 50_000) + "\n\nx\n"
    assert parse_reply("verdict", f"{text}Verdict: 4", SCALE).label == "4"
    assert parse_reply("bracketed", f"{text}[RESULT] 4", SCALE).label == "4"
    assert parse_reply("arena", f"{text}[[B>A]]").label == "second"
    assert parse_reply("boxed", f"{text}\\boxed{{4}}", SCALE).label == "4"


@pytest.mark.parametrize("dialect", ["prose", "critic"])
def test_of_a_long_reply_the_beginning_and_the_end_are_read(dialect: str) -> None:
    filler = "This part compares the sources of both. " * 25_000
    assert parse_reply(dialect, f"{filler}\nOverall, Response B is better.").label == "second"
    assert parse_reply(dialect, f"Response A is better.\n{filler}").label == "first"
    assert parse_reply(dialect, f"{filler}\nResponse A is better.\n{filler}").status is Status.UNPARSED


HUGE = [
    "4" * MEGABYTE,
    "4." + "0" * MEGABYTE,
    "0" * MEGABYTE + "4",
    "-" + "9" * MEGABYTE,
    "4e" + "9" * 9,
    "٤" * MEGABYTE,
]


@pytest.mark.parametrize("digits", HUGE, ids=lambda digits: digits[:4])
def test_huge_numbers_are_no_verdict(digits: str) -> None:
    replies = {"verdict": f"Verdict: {digits}", "bracketed": f"[RESULT] {digits}", "json": f'{{"verdict": {digits}}}'}
    for dialect, reply in replies.items():
        assert parse_reply(dialect, reply, SCALE).status in (Status.OFF_SCALE, Status.UNPARSED)


@pytest.mark.parametrize("digit", ["⁴", "④", "Ⅳ", "四", "½", "4\u20e3", "4\u0301"])
def test_signs_that_are_no_digits_are_no_verdict(digit: str) -> None:
    assert parse_reply("verdict", f"Verdict: {digit}", SCALE).label is None


PIECES = [
    *(
        "Verdict:",
        "[RESULT]",
        "4",
        "9",
        ".",
        "/5",
        " out of 5",
        "A",
        "B",
        "tie",
        "\n",
        " ",
        "*",
        "(",
        ")",
        "or",
        "[[A>B]]",
    ),
    *("\\boxed{", "}", "{", '"verdict"', ":", ",", "<think>", "</think>", "Output (a)", "is better", "Score", "Claim:"),
]
replies = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5))).map("".join)


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(sorted(DIALECTS)), replies, st.booleans())
def test_every_reply_is_a_verdict_on_the_scale_or_a_reason(dialect: str, reply: str, pair: bool) -> None:
    parsed = parse_reply(dialect, reply, None if pair else SCALE)
    if parsed.status is Status.OK:
        assert parsed.label in (("first", "second", "tie") if pair else SCALE.labels)
    else:
        assert parsed.label is None
        assert parsed.reason


def test_no_group_is_repeated_possessively() -> None:
    """Python 3.11.2 loses matches after such a group, 3.11.7 does not; atomic groups are right in both."""
    repeated = re.compile(r"\)(?:[*+?]|\{{1,2}[\d,]+\}{1,2})\+")
    found = [path.name for path in SOURCE.rglob("*.py") if repeated.search(path.read_text("utf-8"))]
    assert repeated.search("(?:a|b){0,6}+")
    assert not found
