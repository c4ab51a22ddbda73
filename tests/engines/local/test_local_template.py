"""The model's own chat template, and what happens where it refuses."""

from typing import Any

import pytest
from transformers import AutoTokenizer

import tiny_models
from dikast.core.errors import EngineError
from dikast.engines.local.template import Medium, Template, Turn, joined, without_system


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert AutoTokenizer is not None
    return tiny_models.byte_level_tokenizer(specials, bos=None, eos=specials[2], pad=specials[0], template=None)


SYSTEM, USER, MORE = Turn("system", ("Judge.",)), Turn("user", ("One.",)), Turn("user", ("Two.",))
REPLY = Turn("assistant", ("Yes.",))


def test_a_system_turn_the_template_takes_stays(tokenizer: Any) -> None:
    template = Template(tokenizer, tiny_models.CHATML.replace("IMAGE", "''").replace("VIDEO", "''"))
    assert template.render([SYSTEM, USER]) == (
        "<|im_start|>system\nJudge.<|im_end|>\n<|im_start|>user\nOne.<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_refused_system_turn_goes_into_the_users(tokenizer: Any) -> None:
    template = Template(tokenizer, tiny_models.ALTERNATING.replace("{{ bos_token }}", ""))
    assert not template.takes_system
    assert template.render([SYSTEM, USER]) == "[INST] Judge.\n\nOne. [/INST]"
    assert template.render([SYSTEM, USER, REPLY, MORE]) == (
        "[INST] Judge.\n\nOne. [/INST]Yes.<|im_end|>[INST] Two. [/INST]"
    )


def test_turns_that_must_alternate_are_joined(tokenizer: Any) -> None:
    template = Template(tokenizer, tiny_models.ALTERNATING.replace("{{ bos_token }}", ""))
    assert template.render([USER, MORE]) == "[INST] One.\n\nTwo. [/INST]"


def test_a_template_that_drops_system_turns_silently_is_seen_through(tokenizer: Any) -> None:
    template = Template(
        tokenizer, "{% for m in messages if m.role != 'system' %}[{{ m.role }}] {{ m.content }} {% endfor %}"
    )
    assert template.render([SYSTEM, USER]) == "[user] Judge.\n\nOne. "


def test_content_goes_in_the_form_that_the_template_shows(tokenizer: Any) -> None:
    assert Template(tokenizer, tiny_models.VICUNA).takes_parts
    assert not Template(tokenizer, tiny_models.HEADERS).takes_parts, "it would print the list itself"


def test_images_keep_their_place(tokenizer: Any) -> None:
    written = tiny_models.CHATML.replace("IMAGE", "'<image>'").replace("VIDEO", "'<video>'")
    template = Template(tokenizer, written)
    assert "a<image>b<video>" in template.render([Turn("user", ("a", Medium.IMAGE, "b", Medium.VIDEO))])
    plain = Template(tokenizer, tiny_models.HEADERS, placeholders={Medium.IMAGE: "<image>", Medium.VIDEO: "<video>"})
    assert "a<image>b<video>" in plain.render([Turn("user", ("a", Medium.IMAGE, "b", Medium.VIDEO))])


def test_a_conversation_that_nothing_helps_is_an_error(tokenizer: Any) -> None:
    template = Template(tokenizer, "{{ raise_exception('Never.') }}")
    with pytest.raises(EngineError, match=r"refuses this conversation: Never\.") as caught:
        template.render([USER])
    assert caught.value.kind == "chat_template"


def test_a_template_that_wants_a_system_turn_is_no_broken_one(tokenizer: Any) -> None:
    wants = "{% if messages[0]['role'] != 'system' %}{{ raise_exception('No system.') }}{% endif %}"
    template = Template(tokenizer, wants + "{% for m in messages %}[{{ m.role }}] {{ m.content }} {% endfor %}")
    assert (template.takes_system, template.refusal) == (True, "")
    assert template.render([SYSTEM, USER]) == "[system] Judge. [user] One. "
    assert Template(tokenizer, "{{ raise_exception('Never.') }}").refusal == "TemplateError: Never."


def test_a_model_without_a_template_gets_the_plain_one(tokenizer: Any) -> None:
    template = Template(tokenizer, None, placeholders={Medium.IMAGE: "<image>"})
    assert not template.own
    assert template.render([SYSTEM, Turn("user", (Medium.IMAGE, "One."))]) == (
        "System: Judge.\n\nUser: <image> One.\n\nAssistant:"
    )


def test_system_turns_find_a_user() -> None:
    assert without_system([SYSTEM]) == [Turn("user", ("Judge.",))]
    assert without_system([SYSTEM, REPLY]) == [Turn("user", ("Judge.",)), REPLY]
    assert without_system([SYSTEM, SYSTEM, Turn("user", (Medium.IMAGE, "x"))]) == [
        Turn("user", ("Judge.\n\nJudge.\n\n", Medium.IMAGE, "x"))
    ]
    assert without_system([USER, REPLY, SYSTEM]) == [USER, REPLY, Turn("user", ("Judge.",))]
    assert joined([USER, USER, REPLY]) == [Turn("user", ("One.\n\nOne.",)), REPLY]
