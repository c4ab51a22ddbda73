"""Records of other programs whose texts lie inside lists and objects, with the command that makes columns of them."""

import re
from collections.abc import Mapping
from typing import Any

from dikast.core.item import NAMES, plain_name
from dikast.core.records.conversations import turns_in
from dikast.core.records.shapes.wrapped_tables import records_in_members
from dikast.core.runs.judge_lock import NAMES_OF

_ABSENT: Any = object()
_SPEAKERS = ("user", "human", "assistant", "system", "gpt", "bot", "model")
_OF_A_TALK = re.compile(r"(?:(?:conversation|conv|dialog|dialogue|session|thread|chat|talk|request|trace)_?)?(?:uu)?id|"
                        r"conversation|dialogue|session|thread|chat")  # fmt: skip
_JOINED = (
    """jq -c --slurpfile q QUESTIONS '. as $a | $q[] | select(.question_id == $a.question_id) | {id:"""
    """ "\\(.question_id)", instruction: .turns[0], response: $a.choices[0].turns[0], model: $a.model_id}' ANSWERS >"""
    """ OTHER.jsonl"""
)
_BATCHED = (
    """jq -c --slurpfile q REQUESTS '. as $a | $q[] | select(.custom_id == $a.custom_id) | {id: .custom_id,"""
    """ instruction: .body.messages, response: $a.response.body.choices[0].message.content, model: .body.model}'"""
    """ REPLIES > OTHER.jsonl"""
)
_SPOKEN = (
    """map(select(.thought | not) | .text // empty) | if . == [] then null else join("") end"""  # of a reply's parts
)
_ANTHROPIC = (
    """jq -c --slurpfile q REQUESTS '. as $a | $q[] | select(.custom_id == $a.custom_id) | {id: .custom_id,"""
    """ instruction: ([.params.system // empty | {role: "system", content: .}] + .params.messages),"""
    f""" response: ($a.result.message.content // [] | {_SPOKEN}), model: .params.model}}' REPLIES > OTHER.jsonl"""
)
_TURNS = (  # of a request to Gemini
    """([.systemInstruction // .system_instruction // empty | .role = "system"] + .contents | map({role:"""
    """ (.role // "user"), content: ([.parts[].text // empty] | join("\\n"))}))"""
)
_GEMINI = f"""jq -c '{{messages: {_TURNS}}}' FILE > OTHER.jsonl"""
_CANDIDATE = f"""(.response.candidates[0].content.parts // [] | {_SPOKEN})"""
_GEMINI_BATCHED = (
    f"""jq -c --slurpfile q REQUESTS '. as $a | $q[] | select(.key == $a.key) | {{id: .key, instruction: (.request |"""
    f""" {_TURNS}), response: ($a | {_CANDIDATE}), model: $a.response.modelVersion}}' REPLIES > OTHER.jsonl"""
)
_VERTEX = (
    f"""jq -c '{{instruction: (.request | {_TURNS}), response: {_CANDIDATE}, model: .response.modelVersion}}'"""
    """ FILE > OTHER.jsonl"""
)

_OTHERS: tuple[tuple[tuple[str, ...], str, str], ...] = (  # names of the members that say what it is
    (
        ("doc", "arguments", "filtered_resps"),
        "a sample of lm-evaluation-harness",
        """jq -c '{id: "\\(.doc_id)", instruction: (.arguments | if type == "array" then .[0][0] else"""
        """ .gen_args_0.arg_0 end), response: .filtered_resps[0], reference: "\\(.target)"}' FILE > OTHER.jsonl""",
    ),
    (
        ("question_id", "model_id", "choices"),
        "an answer of MT-Bench, whose question is in another file (QUESTIONS)",
        _JOINED.replace("ANSWERS", "FILE"),
    ),
    (
        ("question_id", "category", "turns"),
        "a question of MT-Bench without an answer, which is in another file (ANSWERS)",
        _JOINED.replace("QUESTIONS", "FILE"),
    ),
    (
        ("custom_id", "response", "error"),
        "a reply of OpenAI's batch API, whose request is in another file (REQUESTS)",
        _BATCHED.replace("REPLIES", "FILE"),
    ),
    (
        ("custom_id", "method", "url", "body"),
        "a request of OpenAI's batch API without a reply, which is in another file (REPLIES)",
        _BATCHED.replace("REQUESTS", "FILE"),
    ),
    (
        ("custom_id", "result", "result.message"),
        "a reply of Anthropic's batch API, whose request is in another file (REQUESTS)",
        _ANTHROPIC.replace("REPLIES", "FILE"),
    ),
    (
        ("custom_id", "params", "params.messages"),
        "a request of Anthropic's batch API without a reply, which is in another file (REPLIES)",
        _ANTHROPIC.replace("REQUESTS", "FILE"),
    ),
    (
        ("vars", "provider", "response.output"),
        "a result of promptfoo",
        """jq -c '{instruction: .prompt.raw, response: (.response.output | if type == "string" then . else tojson"""
        """ end), model: (.provider.id // .provider), vars}' FILE > OTHER.jsonl""",
    ),
    (
        ("request.messages", "response.choices"),
        "a request to OpenAI's API and its reply",
        """jq -c '{instruction: .request.messages, response: .response.choices[0].message.content,"""
        """ model: .request.model}' FILE > OTHER.jsonl""",
    ),
    (("request.contents", "response.candidates"), "a request to Gemini and its reply", _VERTEX),
    (
        ("key", "response.candidates"),
        "a reply of Gemini's batch API, whose request is in another file (REQUESTS)",
        _GEMINI_BATCHED.replace("REPLIES", "FILE"),
    ),
    (
        ("key", "request.contents"),
        "a request of Gemini's batch API without a reply, which is in another file (REPLIES)",
        _GEMINI_BATCHED.replace("REQUESTS", "FILE"),
    ),
    (
        ("data", "annotations"),
        "a task of Label Studio",
        """jq -c '(if type == "array" then .[] else . end) | {id: "\\(.id)"} + .data +"""
        """ {gold: (.annotations[0].result[0].value // {} | .rating // .number // .choices[0])}' FILE > OTHER.jsonl""",
    ),
)


def foreign_record(value: Mapping[str, Any], names: int = NAMES_OF) -> str:
    """What a record is and how to make its texts columns; "" for a record that may hold them. Folders begun with an
    earlier table of `names` go on with the columns that they read.
    """
    if names > 6 and "orig_criteria" in value and {"orig_response", "orig_response_A"} & value.keys():
        told = "a row of Prometheus's collections, whose question, response and rubric stand in columns of their own"
        return f"{told}: make items of it (dikast corpus convert FILE OTHER.jsonl --to dikast)"
    if names > 6 and (told := _single_turn(value)):
        return told
    if isinstance(value.get("fields"), dict) and isinstance(value.get("responses"), dict):
        return "an Argilla record: make its fields columns (jq -c '{id} + .fields' FILE > OTHER.jsonl)"
    if "_task_hash" in value and value.get("answer") in ("accept", "reject", "ignore"):
        told = "an annotation of Prodigy, whose 'answer' is what the annotator decided: name the text to judge with"
        return f"{told} --map response=COLUMN, and what people said of it with --map gold=COLUMN"
    if any(isinstance(value.get(name), str | list) for name in NAMES["response"]):
        return ""
    turns = value.get("contents")
    if isinstance(turns, list) and turns and all(isinstance(turn, dict) and "parts" in turn for turn in turns):
        return f"a conversation with Gemini: make turns with roles of it ({_GEMINI})"
    if names > 6 and (told := records_in_members(value)):
        return told
    for members, told, command in _OTHERS:
        found = [_member(value, name) for name in members]
        if not any(each is _ABSENT for each in found) and any(isinstance(each, list | dict) for each in found):
            return f"{told}: make its texts columns ({command})"
    return ""


def _single_turn(value: Mapping[str, Any]) -> str:
    """What to say of a record that is one message of a conversation; "" for any other."""
    if not (turns_in(dict(value)) and str(value.get("role", value.get("from"))).casefold() in _SPEAKERS):
        return ""
    of = next((each for each in value if _OF_A_TALK.fullmatch(plain_name(each)) and each.isidentifier()), "")
    if not of:
        return "one message of a conversation, and no column says of which: write a conversation a row (messages)"
    role, content = (next(each for each in both if each in value) for both in (("role", "from"), ("content", "value")))
    made = f"group_by(.{of})[] | {{id: .[0].{of}, messages: map({{role: .{role}, content: .{content}}})}}"
    told = "one message of a conversation: write a conversation a row, its messages in the order of the file"
    return f"{told} (jq -cs '{made}' FILE > OTHER.jsonl)"


def _member(value: Any, path: str) -> Any:
    """What an object holds under a name, or under one within another (`request.contents`); `_ABSENT` for nothing."""
    for name in path.split("."):
        value = value.get(name, _ABSENT) if isinstance(value, Mapping) else _ABSENT
    return value
