"""The delimiters with which models set their reasoning apart, as their templates write them."""

import pytest

from dikast.core.scale import Scale
from dikast.core.thinking import after_thinking, answer_begins, begun_thinking
from dikast.core.verdict import Status
from dikast.prompts.parse import parse_reply

DRAFT, ANSWER = "First [[A]], or [[B]]? Verdict: [[A]]", "It is complete.\n\n[[B]]"
PAIRS = [
    ("<think>", "</think>"),
    ("<THINK>\n", "\n</THINK>\n"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>\n", "</reasoning>\n"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel>thought\n", "<channel|>"),
    ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|begin_of_thought|>\n", "\n<|end_of_thought|>\n\n<|begin_of_solution|>\n"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>\n<|start|>assistant<|channel|>final<|message|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|channel|>final <|constrain|>json<|message|>"),
    ("<|channel|>commentary<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ("analysis", "assistantfinal"),
    ("assistantanalysis", "assistantfinal"),
]


@pytest.mark.parametrize(("begin", "end"), PAIRS)
def test_only_the_answer_is_read(begin: str, end: str) -> None:
    reply = f"{begin}{DRAFT}{end}{ANSWER}"
    text, thought, inside = after_thinking(reply)
    assert (text.strip(), inside) == (ANSWER, False)
    assert DRAFT in thought
    assert reply[answer_begins(reply) :].strip() == ANSWER
    assert parse_reply("mt-bench", reply).label == "second"
    assert not parse_reply("mt-bench", reply).conflict


@pytest.mark.parametrize(("begin", "end"), PAIRS)
def test_a_reply_cut_inside_its_reasoning_has_no_verdict(begin: str, end: str) -> None:
    reply = f"{begin}{DRAFT}"
    assert after_thinking(reply)[0] == ""
    assert after_thinking(reply)[2]
    assert answer_begins(reply) == len(reply)
    assert parse_reply("mt-bench", reply, finish="length").status is Status.TRUNCATED
    assert parse_reply("mt-bench", reply).status is Status.UNPARSED
    assert parse_reply("mt-bench", f"{reply}{end}").status is Status.UNPARSED


@pytest.mark.parametrize(("begin", "end"), [pair for pair in PAIRS if not pair[0].endswith("nalysis")])
def test_reasoning_that_begins_in_the_prompt(begin: str, end: str) -> None:
    assert parse_reply("mt-bench", f"{DRAFT}{end}{ANSWER}").label == "second"
    if "|channel" not in begin:
        assert begun_thinking(f"Judge.\n{begin}") == begin.strip()


def test_the_channels_of_gpt_oss() -> None:
    draft = "<|channel|>analysis<|message|>Perhaps [[A]].<|end|>"
    head = "<|start|>assistant<|channel|>"
    final = f"{head}final<|message|>[[B]]<|return|>"
    assert after_thinking(draft + final) == ("[[B]]", "Perhaps [[A]].", False)
    assert after_thinking(f"{draft}{head}commentary<|message|>On it.<|end|>{final}")[0] == "[[B]]"
    assert after_thinking(f"{draft}{final.replace('return', 'end')}{head}analysis<|message|>[[A]]!")[0] == "[[B]]"
    assert after_thinking("<|channel|>final<|message|>[[B]]") == ("[[B]]", "", False)
    assert parse_reply("verdict", draft + final.replace("[[B]]", "Verdict: 4"), Scale.parse("1-5")).label == "4"
    # a head that the model only quotes, in the middle of its reasoning, begins no message
    quoted = "<|channel|>analysis<|message|>It says <|channel|>final<|message|>[[A]]"
    assert after_thinking(quoted)[2]
    assert after_thinking(f"{quoted}<|end|>{final}")[0] == "[[B]]"
    told = "It says <|channel|>final<|message|>[[A]], but [[B]]"
    assert after_thinking(told) == (told, "", False)
    assert after_thinking(f"{draft}{head}final")[2]
    assert begun_thinking("<|start|>assistant<|channel|>analysis<|message|>") == "<|channel|>analysis<|message|>"


def test_reasoning_that_is_taken_up_again_and_cut_is_no_answer() -> None:
    assert after_thinking("<think>a</think>\n[[A]]\n<think>Wait, [[B]]")[2]
    assert after_thinking("Let me see.\n<think>[[A]]")[2]
    assert after_thinking("<think>a</think>\n[[A]]\n<think>Wait.</think>\n[[B]]")[0].strip() == "[[B]]"
    assert after_thinking("[THINK]a[/THINK]b[THINK]c[/THINK]d") == ("d", "a[/THINK]b[THINK]c", False)


@pytest.mark.parametrize(
    "reply",
    [
        "Analysis: both are good. [[A]]",
        "analysis of both: [[A]]",
        "Finally, [[A]]",
        "final: [[A]]",
        "finally [[A]]",
        "The tag <think> stands in Response B. [[A]]",
        "I think [THINK]ing helps. [[A]]",
        "<b>thinking</b> [[A]]",
        "<reasons>short</reasons> [[A]]",
        "Reasoning: short. [[A]]",
        "The channel is final. [[A]]",
    ],
)
def test_prose_about_thinking_is_prose(reply: str) -> None:
    assert after_thinking(reply) == (reply, "", False)
