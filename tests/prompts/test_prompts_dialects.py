"""What each dialect accepts and refuses, as tables of replies. None of the replies is anybody's but ours."""

import pytest

from dikast.core.errors import UserError
from dikast.core.scale import Scale
from dikast.core.verdict import Claim, Status
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.dialects.arena import ARENA
from dikast.prompts.parse import parse_reply

ONE_FIVE, ZERO_TEN, HUNDRED = Scale.parse("1-5"), Scale.parse("0-10"), Scale.parse("0-100")
LETTERS, PASS = Scale.parse("A-E"), Scale.parse("pass/fail")
UNPARSED, OFF = Status.UNPARSED, Status.OFF_SCALE

BRACKETED = [
    # what the first published parser takes
    ("Fine. [RESULT] 4", "4"),
    ("Fine. [RESULT] (4)", "4"),
    ("Fine. [RESULT]: 4", "4"),
    ("Fine. [RESULT] 4/5", "4"),
    ("Fine. [RESULT] 4 out of 5", "4"),
    ("Fine.\nResult: [4]", "4"),
    ("All in all I arrive at a score of 4", "4"),
    ("At first [RESULT] 2 seemed due, in the end [RESULT] 5", "5"),
    ("Fine. [SCORE] 4", "4"),
    ("Fine.\nScore: 4", "4"),
    ("Fine. [Score 4]", "4"),
    ("Fine. [Result: 4]", "4"),
    # what it refuses, and a person would not
    ("Fine. [RESULT] 4.", "4"),
    ("Fine. [RESULT] **4**", "4"),
    ("Fine. **[RESULT] 4**", "4"),
    ("Fine. **[RESULT]** 4", "4"),
    ("Fine. [RESULT] 4 / 5", "4"),
    ("Fine. [RESULT] 4 [END]", "4"),
    ("Fine. [RESULT] 5</s>", "5"),
    ("Fine. [RESULT] 5<|im_end|>", "5"),
    ("Fine. [RESULT] 4 because nothing is missing.", "4"),
    ("Fine. [RESULT] 4\n\nNothing else is to be said.", "4"),
    ("Fine. [RESULT] 4. Nothing else is to be said.", "4"),
    ("Fine. [RESULT] 4 The rest is good.", "4"),
    ("Fine. [RESULT] 4 - good", "4"),
    ("Fine.\n[RESULT]\n4", "4"),
    ("Fine. [ result ] 4", "4"),
    ("Fine. [RESULT] 4.0", "4"),
    ("Fine. [RESULT] ４", "4"),
    ("4", "4"),
    ("**4**", "4"),
    # no verdict, or none on the scale
    ("Fine. [RESULT] 4.5", OFF),
    ("Fine. [RESULT] 4.50001", OFF),
    ("Fine. [RESULT] 10", OFF),
    ("Fine. [RESULT] 0", OFF),
    ("Fine. [RESULT] -4", OFF),
    ("Fine. [RESULT] 3/10", OFF),
    ("Fine. [RESULT] 4 out of 10", OFF),
    ("Fine. [RESULT] 80%", OFF),
    ("Fine. [RESULT] 4-5", OFF),
    ("Fine. [RESULT] 3 or 4", OFF),
    ("Fine. [RESULT] 2 then [RESULT] 9", OFF),
    ("Fine. [RESULT] 1.2.3", OFF),
    ("Fine. [RESULT] four", UNPARSED),
    ("Fine. [RESULT] four\n4 points would be too much", UNPARSED),
    ("Fine. [RESULT] (an integer between 1 and 5)", UNPARSED),
    ("Fine. [RESULT] (1-5)", UNPARSED),
    ("Fine. [RESULT] 1, 2, 3, 4 or 5", UNPARSED),
    ("Fine. [RESULT] <score>", UNPARSED),
    ("Fine. [RESULT]", UNPARSED),
    ("Fine. [RESULT]\n1. First of all it is long", UNPARSED),
    ("Fine. [RESULT] 4 responses were compared", UNPARSED),
    ("Fine. [RESULT] 4th", UNPARSED),
    ("Score 5: the answer is complete", UNPARSED),
    ("As good as the reference (Score 5)", UNPARSED),
    ("Score 1: bad\nScore 2: weak\nScore 3: fair\nScore 4: good\nScore 5: best", UNPARSED),
    ("It makes 4 mistakes and gets 5 things right", UNPARSED),
    ("A score of 4 would be too high for this", UNPARSED),
    ("\\boxed{4}", UNPARSED),
    ("Fine. [RESULT] 4\n[RESULT] (an integer between 1 and 5)", "4"),
]


@pytest.mark.parametrize(("reply", "said"), BRACKETED)
def test_bracketed_scores(reply: str, said: str | Status) -> None:
    check("bracketed", reply, ONE_FIVE, said)


BRACKETED_PAIR = [
    ("Fine. [RESULT] A", "first"),
    ("Fine. [RESULT] a", "first"),
    ("Fine. [RESULT] B.", "second"),
    ("Fine. [RESULT]: A", "first"),
    ("Fine. [RESULT] (B)", "second"),
    ("Fine. [RESULT] **B**", "second"),
    ("Fine. [RESULT] Response B", "second"),
    ("Fine. [RESULT] A is better", "first"),
    ("Fine.\n[Response A]", "first"),
    ("Fine.\n[Result: B]", "second"),
    ("Fine.\nResult: B", "second"),
    ("[RESULT] A\n[RESULT] B", "second"),
    ("Fine. [RESULT] TIE", "tie"),
    ("Fine. [RESULT] equally good", "tie"),
    ("(A)", "first"),
    ("**B**", "second"),
    ("Fine. [RESULT] C", UNPARSED),
    ("Fine. [RESULT] A or B", UNPARSED),
    ("Fine. [RESULT] A/B", UNPARSED),
    ("Fine. [RESULT] (A or B)", UNPARSED),
    ("Fine. [RESULT] A response that helps", UNPARSED),
    ("Response A is better", UNPARSED),
    ("Fine. [RESULT] A is worse", UNPARSED),
    ("Fine. [RESULT] A is clearly not better", UNPARSED),
    ("Fine. [RESULT] A > B", UNPARSED),
    ("Fine. [RESULT] Neither A nor B", UNPARSED),
    ("\\boxed{A}", UNPARSED),
]


@pytest.mark.parametrize(("reply", "said"), BRACKETED_PAIR)
def test_bracketed_choices(reply: str, said: str | Status) -> None:
    check("bracketed", reply, None, said)


def test_a_tie_is_off_the_scale_of_a_format_that_allows_none() -> None:
    words = (("first", "A"), ("second", "B"))
    assert parse_reply("bracketed", "Fine. [RESULT] tie", words=words).status is OFF
    assert parse_reply("prose", "Therefore, both are equally good.", words=words).status is OFF
    assert parse_reply("arena", "[[A=B]]", words=words).status is OFF


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("It is good. So the overall score is 4.\n[RESULT] 4", "4"),
        ("It is good. So the overall score is 3.\n[RESULT] 4", "4"),
        ("It is good. So the overall score is 4.", "4"),
        ("It is good. So the overall score is 4.5.", OFF),
        ("It is good. So the overall score is high.", UNPARSED),
    ],
)
def test_the_bridge_sentence(reply: str, said: str | Status) -> None:
    check("bridge", reply, ONE_FIVE, said)


VERDICT = [
    ("Good.\nVerdict: 4", "4"),
    ("Good.\n**Verdict:** 4", "4"),
    ("Good.\n**Verdict: 4**", "4"),
    ("Good.\n**Verdict**: 4", "4"),
    ("Good.\n### Verdict: 4", "4"),
    ("Good.\n`Verdict: 4`", "4"),
    ("Good.\nverdict: 4", "4"),
    ("Good.\nFinal verdict: 4", "4"),
    ("Good.\nVerdict：4", "4"),
    ("Good.\nVerdict:\n\n4", "4"),
    ("Good. Verdict: 4", "4"),
    ('"Verdict: 4"', "4"),
    ("Verdict: 2\nNo, better:\nVerdict: 3", "3"),
    ("<think>Verdict: 2</think>Verdict: 3", "3"),
    ("4", "4"),
    ("Good.\nVerdict: 4\n- 5 things are right\n- and 3 are wrong", "4"),
    ("Good.\nVerdict: 4 (good)", "4"),
    ("Good.\nVerdict: 4 -- good", "4"),
    ("Good.\nVerdict: 4 stars.", "4"),
    ("```\nVerdict: 4\n```", "4"),
    ("Good.\nVerdict: 4.5", OFF),
    ("Good.\nVerdict: 1-5", UNPARSED),
    ("Good.\nVerdict: one of 1, 2, 3, 4, 5", UNPARSED),
    ("Good.\nVerdict: 4\nVerdict: good", UNPARSED),
    ("Verdict: 4\nVerdict: ", UNPARSED),
    ("Good.\n> Verdict: 4", UNPARSED),
    ('It ends on "Verdict: 5", which nobody asked for.', UNPARSED),
    ("It ends on Verdict: 5, which nobody asked for.", UNPARSED),
    ("\\Verdict: 5 is what the response says", UNPARSED),
    ("The verdict of the court: 5", UNPARSED),
    ("<think>Verdict: 2", UNPARSED),
    ("", UNPARSED),
    ("  \n", UNPARSED),
]


@pytest.mark.parametrize(("reply", "said"), VERDICT)
def test_our_own_verdict_line(reply: str, said: str | Status) -> None:
    check("verdict", reply, ONE_FIVE, said)


@pytest.mark.parametrize(
    ("scale", "reply", "said"),
    [
        (ZERO_TEN, "Verdict: 10", "10"),
        (ZERO_TEN, "Verdict: 3/10", "3"),
        (ZERO_TEN, "Verdict: 3/5", OFF),
        (HUNDRED, "Verdict: 85%", "85"),
        (HUNDRED, "Verdict: 85 out of 100", "85"),
        (HUNDRED, "Verdict: 101", OFF),
        (Scale.parse("0-1/0.1"), "Verdict: 0.5", "0.5"),
        (Scale.parse("0-1/0.1"), "Verdict: 0.55", OFF),
        (LETTERS, "Verdict: B", "B"),
        (LETTERS, "Verdict: (b).", "B"),
        (LETTERS, "Verdict: A to E", UNPARSED),
        (LETTERS, "Verdict: A decent response", UNPARSED),
        (LETTERS, "Verdict: F", UNPARSED),
        (PASS, "Verdict: PASS", "pass"),
        (PASS, "Verdict: fail. The date is wrong.", "fail"),
        (PASS, "Verdict: pass/fail", UNPARSED),
        (PASS, "Verdict: passable", UNPARSED),
        (Scale(("no", "not really", "yes"), (0, 1, 2)), "Verdict: Not really", "not really"),
        (Scale(("--", "-", "+", "++"), (0, 1, 2, 3)), "Verdict: ++", "++"),
        (Scale.parse("-2-2"), "Verdict: -1", "-1"),
        (Scale(("1 star", "2 stars"), (1, 2)), "Verdict: 2 stars", "2 stars"),
        (Scale(("1 star", "2 stars"), (1, 2)), "Verdict: 3 stars", OFF),
        (LETTERS, "Verdict: 4", OFF),
    ],
)
def test_any_scale(scale: Scale, reply: str, said: str | Status) -> None:
    check("verdict", reply, scale, said)


CRITIC_PAIR = [
    ("The better response: [first]. It counts right.", "first"),
    ("The better response: [2]", "second"),
    ("The better response: [B]", "second"),
    ("The better response is [1].", "first"),
    ("The first response is better because it counts right.", "first"),
    ("The second response is clearly better than the first response.", "second"),
    ("The two responses are equally good.", "tie"),
    ("8 7\nThe first one counts right.", "first"),
    ("6.5 9", "second"),
    ("7 7\nBoth count right.", "tie"),
    ("My final verdict: [[A>>B]]", "first"),
    ("[[A=B]]", "tie"),
    ("[[A>B]] at first, then [[B>A]]", "second"),
    ("The better response: [first|second]", UNPARSED),
    ("Both responses are long.", UNPARSED),
    ("There are 8 cats and 7 dogs.", UNPARSED),
]


@pytest.mark.parametrize(("reply", "said"), CRITIC_PAIR)
def test_mixed_critic_on_pairs(reply: str, said: str | Status) -> None:
    check("critic", reply, None, said)


@pytest.mark.parametrize(
    ("scale", "reply", "said"),
    [
        (HUNDRED, "It is right.\nFinal Score: 85", "85"),
        (HUNDRED, "It is right. Final Score: 85/100.", "85"),
        (HUNDRED, "**Score:** 85", "85"),
        (HUNDRED, "I give it a score of 85 out of 100.", "85"),
        (HUNDRED, "Score: 40\nScore: 60", "60"),
        (HUNDRED, "85", "85"),
        (HUNDRED, "Final Score: 85.5", OFF),
        (HUNDRED, "Final Score: 120", OFF),
        (HUNDRED, "Score 85: all is right", UNPARSED),
        (HUNDRED, "There are 85 cats.", UNPARSED),
        (ZERO_TEN, "8 7\nThe second one counts right.", UNPARSED),
        (Scale.parse("0-6"), "Rating: 4", "4"),
        (ARENA, "So: [[B>>A]]", "B>>A"),
    ],
)
def test_mixed_critic_on_scores(scale: Scale, reply: str, said: str | Status) -> None:
    check("critic", reply, scale, said)


@pytest.mark.parametrize(
    ("scale", "reply", "said"),
    [
        (ZERO_TEN, "10 7\nAssistant 2 misses the cup.", "7"),
        (ZERO_TEN, "10, 7", "7"),
        (ZERO_TEN, "10 9\nRather:\n10 7", "7"),
        (ZERO_TEN, "10 11\nBetter than the reference.", OFF),
        (ZERO_TEN, "7", UNPARSED),
        (ZERO_TEN, "There are 10 7 s in it.", UNPARSED),
        (None, "10 7", UNPARSED),
    ],
)
def test_the_second_of_two_scores_is_the_responses(scale: Scale | None, reply: str, said: str | Status) -> None:
    check("second-score", reply, scale, said)


@pytest.mark.parametrize(
    ("reply", "said", "slot"),
    [
        ("[[A>>B]]", "A>>B", "first"),
        ("so [[ B > A ]].", "B>A", "second"),
        ("[[A<B]]", "B>A", "second"),
        ("[[B=A]]", "A=B", "tie"),
        ("[[A>B]] or rather [[A=B]]", "A=B", "tie"),
        ("[[A>A]]", OFF, OFF),
        ("[A>B]", UNPARSED, UNPARSED),
        ("A>B", UNPARSED, UNPARSED),
        ("$ERROR$", UNPARSED, UNPARSED),
    ],
)
def test_arena_labels(reply: str, said: str | Status, slot: str | Status) -> None:
    check("arena", reply, ARENA, said)
    check("arena", reply, None, slot)


@pytest.mark.parametrize(
    ("reply", "scale", "said"),
    [
        ("<think>it counts</think>\\boxed{A}", None, "first"),
        ("<think>it counts</think>\n\\boxed{\\text{B}}.", None, "second"),
        ("\\boxed{1}", None, "first"),
        ("<answer>2</answer>", None, "second"),
        ("<answer> Response 2 </answer>", None, "second"),
        ("\\boxed{4}", ONE_FIVE, "4"),
        ("\\boxed{4/5}", ONE_FIVE, "4"),
        ("\\boxed{2} no, \\boxed{3}", ONE_FIVE, "3"),
        ("\\boxed{}\\boxed{3}\\boxed{...}", ONE_FIVE, "3"),
        ("\\boxed{1 or 2}", None, UNPARSED),
        ("\\boxed{7}", ONE_FIVE, OFF),
        ("\\boxed{good}", ONE_FIVE, UNPARSED),
        ("\\boxed{4", ONE_FIVE, UNPARSED),
        ("<think>\\boxed{4}", ONE_FIVE, UNPARSED),
        ("<think>\\boxed{4}</think> so 3", ONE_FIVE, UNPARSED),
        ("4 is the answer", ONE_FIVE, UNPARSED),
    ],
)
def test_boxed_answers(reply: str, scale: Scale | None, said: str | Status) -> None:
    check("boxed", reply, scale, said)


JSON = [
    ('{"feedback": "ok", "verdict": "4"}', "4"),
    ('{"feedback": "ok", "verdict": 4}', "4"),
    ('{"verdict": 4.0}', "4"),
    ('```json\n{"feedback": "ok", "verdict": "4"}\n```', "4"),
    ('Here it is:\n{"verdict": "4"}\nI hope this helps {sic}.', "4"),
    ('{"verdict": 2, "verdict": 3}', "3"),
    ('{"verdict": 2} {"verdict": 3}', "3"),
    ('{"verdict": 2} {"note": 3}', "2"),
    ('{"claims": [{"verdict": 1}], "Verdict": "4"}', "4"),
    ('{"feedback": "{\\"verdict\\": 5}", "verdict": "4"}', "4"),
    ('{"feedback": "it says "five"", "verdict": "4"}', "4"),
    ('{"feedback": "two\nlines", "verdict": "4"}', "4"),
    ('{"score": 4}', "4"),
    ('{"verdict": "4/5"}', "4"),
    ('{"verdict": 4.5}', OFF),
    ('{"verdict": "9"}', OFF),
    ('{"verdict": "good"}', OFF),
    ('{"verdict": "4 or so"}', OFF),
    ('{"verdict": null}', UNPARSED),
    ('{"verdict": true}', UNPARSED),
    ('{"verdict": [4]}', UNPARSED),
    ('{"note": 4}', UNPARSED),
    ('{"feedback": "the verdict", ', UNPARSED),
    ("4 of 5 are right", UNPARSED),
]


@pytest.mark.parametrize(("reply", "said"), JSON)
def test_json_objects(reply: str, said: str | Status) -> None:
    check("json", reply, ONE_FIVE, said)


PROSE = [
    ("Output (a)", "first"),
    ("Output (b).", "second"),
    ("B", "second"),
    ("One is short. Therefore, Output (b) is better.", "second"),
    ("Output (a) is right, Output (b) is not. Output (a) is better because it is right.", "first"),
    ("Output (a) is more detailed than Output (b). So Output (b) is the better output.", "second"),
    ("Overall, the first response is clearly superior to the second response.", "first"),
    ("**Response B** is better overall.", "second"),
    ("I prefer Response A.", "first"),
    ("The better response is **B**", "second"),
    ("My final answer: Response 2", "second"),
    ("Assistant A wins.", "first"),
    ("Output (a) is worse.", "second"),
    ("Although Output (a) is better at style, Output (b) is better.", "second"),
    ("Output (a) is better in style. Output (b) is right. Therefore, Output (b) is better.", "second"),
    ("Both are right. Therefore, they are equally good.", "tie"),
    ("They are equally good in style. Therefore, Output (b) is better.", "second"),
    # opens with its verdict, and slips or thinks again at the end
    ("Output (b) is better.\nOutput (a) is wrong. So Output (a) is better.", "second"),
    ("Output (b) is better.\nWait, it miscounts. So Output (a) is better.", "first"),
    # runs on into the next case
    ("Therefore, Output (a) is better.\n\n# Instruction: sort.\nOutput (b) is better.", "first"),
    ("Output (a) and Output (b) both answer. Output (b) is longer.", UNPARSED),
    ("Output (a) is more accurate.", UNPARSED),
    ("Output (a) is not better.", UNPARSED),
    ("It is hard to say whether Output (a) is better.", UNPARSED),
    ("Say that Output (a) is better or Output (b) is better.", UNPARSED),
    ("Therefore, Output (b)", UNPARSED),
    ("Both outputs say that a is better than nothing.", UNPARSED),
]


@pytest.mark.parametrize(("reply", "said"), PROSE)
def test_prose(reply: str, said: str | Status) -> None:
    check("prose", reply, None, said)


def test_prose_reads_no_scores() -> None:
    check("prose", "Output (a) is better.", ONE_FIVE, UNPARSED)


def test_claims_carry_what_was_found() -> None:
    reply = (
        "1. Claim: there are two cats\n   Finding: wrong - there are three\n"
        "**Claim:** it rains\n**Finding:** right\nClaim: x\nVerdict: 2"
    )
    parsed = parse_reply("claims", reply, ONE_FIVE)
    assert (parsed.label, parsed.claims) == (
        "2",
        (Claim("there are two cats", "wrong", "there are three"), Claim("it rains", "right", ""), Claim("x", "", "")),
    )


@pytest.mark.parametrize(
    ("dialect", "reply", "feedback"),
    [
        ("verdict", "Good, but short.\n\n**Verdict: 4**", "Good, but short."),
        ("verdict", "Verdict: 4\nGood, but short.", "Good, but short."),
        ("verdict", "<think>let me see</think>Verdict: 4", "let me see"),
        ("bracketed", "Feedback: Good, but short. [RESULT] 4</s>", "Good, but short."),
        ("bracketed", "Good [1], but short. **[RESULT] 4** [END]", "Good [1], but short."),
        ("json", '{"feedback": " Good, but short. ", "verdict": 4}', "Good, but short."),
        ("boxed", "Good, but short. \\boxed{4}.", "Good, but short."),
        ("verdict", "Good, but short.", "Good, but short."),
    ],
)
def test_the_feedback_is_the_prose_without_the_verdict(dialect: str, reply: str, feedback: str) -> None:
    assert parse_reply(dialect, reply, ONE_FIVE).feedback == feedback


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_cut_reply_without_a_verdict_is_truncated(dialect: str) -> None:
    scale = None if dialect == "prose" else ONE_FIVE
    parsed = parse_reply(dialect, "It begins well, and then", scale, finish="length")
    assert parsed.status is Status.TRUNCATED
    assert "token limit" in parsed.reason


def test_a_cut_label_that_could_go_on_is_truncated() -> None:
    assert parse_reply("verdict", "Verdict: 1", ZERO_TEN, finish="length").status is Status.TRUNCATED
    assert parse_reply("verdict", "Verdict: 1", ZERO_TEN).label == "1"
    assert parse_reply("verdict", "Verdict: 2", ZERO_TEN, finish="length").label == "2"
    assert parse_reply("verdict", "Verdict: 1\nIt", ZERO_TEN, finish="length").label == "1"
    assert parse_reply("json", '{"verdict": "1"}', ZERO_TEN, finish="length").label == "1"


@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot evaluate this.",
        "As an AI, I do not judge.",
        "Sorry, I can't assist.",
    ],
)
def test_a_refusal_in_words_is_refused(reply: str) -> None:
    parsed = parse_reply("verdict", reply, ONE_FIVE)
    assert parsed.status is Status.REFUSED
    assert parsed.feedback == reply


@pytest.mark.parametrize(
    "reply",
    [
        "I cannot find a fault.",
        "The response says \"I'm sorry, but I can't help\".",
        "It should refuse, as an AI would.",
    ],
)
def test_a_judge_that_speaks_of_refusals_has_not_refused(reply: str) -> None:
    assert parse_reply("verdict", reply, ONE_FIVE).status is UNPARSED


def test_a_verdict_beats_a_refusal_in_words_and_the_servers_refusal_beats_both() -> None:
    assert parse_reply("verdict", "I'm sorry to say it is bad.\nVerdict: 1", ONE_FIVE).label == "1"
    parsed = parse_reply("verdict", "Verdict: 1", ONE_FIVE, refusal="content policy")
    assert (parsed.status, parsed.label) == (Status.REFUSED, None)
    assert "content policy" in parsed.reason


def test_an_unknown_dialect_names_its_near_miss() -> None:
    with pytest.raises(UserError, match="did you mean 'bracketed'"):
        parse_reply("braketed", "x", ONE_FIVE)


def check(dialect: str, reply: str, scale: Scale | None, said: str | Status) -> None:
    parsed = parse_reply(dialect, reply, scale)
    assert (parsed.label or parsed.status) == said, parsed
    assert (parsed.reason == "") == (parsed.status is Status.OK)


def test_the_reason_tells_a_missing_marker_from_one_that_states_nothing() -> None:
    assert parse_reply("bracketed", "All is fine.", ONE_FIVE).reason == "no [RESULT] in the reply"
    assert "stands in the reply" in parse_reply("bracketed", "Score 3 was near. [RESULT] ", ONE_FIVE).reason
