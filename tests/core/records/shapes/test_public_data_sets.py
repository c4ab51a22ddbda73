"""Rows as public data sets have them, judged without a flag."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records import Arrangement, scan_items, systems_of
from dikast.core.records.column_names import recognise, since
from runs import dikast_here

BIN = Path(sys.executable).parent  # of the python that commands name


def read(folder: Path, *rows: dict[str, Any] | str, names: int | None = None) -> tuple[list[Item], Arrangement]:
    """The items of rows (a CSV where they are lines of one), and what was done."""
    path = folder / ("a.csv" if isinstance(rows[0], str) else "a.jsonl")
    path.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in rows) + "\n", "utf-8")
    reading = Arrangement() if names is None else Arrangement(names)
    found = list(scan_items(str(path), {}, reading))
    assert all(isinstance(each, Item) for each in found), found
    return [each for each in found if isinstance(each, Item)], reading


def spoken(item: Item) -> tuple[list[str], list[str]]:
    return [f"{turn.role}: {text_of(turn.content)}" for turn in item.instruction], list(map(text_of, item.responses))


@pytest.mark.parametrize("stem", ["completion", "response", "answer", "output", "Response"])
@pytest.mark.parametrize(("ends", "said", "gold"), [
    ("12", "1", "a"), ("12", "2", "b"), ("12", "model_2", "b"), ("12", "model1", "a"), ("12", "tie", "tie"),
    ("AB", "model_a", "a"), ("AB", "modelB", "b"), ("AB", "B", "b"),
])  # fmt: skip
def test_numbers_and_letters_behind_a_name(stem: str, ends: str, said: str, gold: str, tmp_path: Path) -> None:
    first, second = (stem + each for each in ends)
    (item,), _ = read(tmp_path, f"question,{first},{second},winner", f"q,x,y,{said}")
    assert (spoken(item), item.gold) == ((["user: q"], ["x", "y"]), gold)


def test_responses_of_numbered_models_name_their_systems(tmp_path: Path) -> None:
    (item,), _ = read(tmp_path, "prompt,model1,model2,model1_response,model2_response,winner", "q,gpt,llama,x,y,llama")
    assert (spoken(item), systems_of(item), item.gold) == ((["user: q"], ["x", "y"]), ("gpt", "llama"), "b")


def test_a_folder_that_was_begun_before_goes_on_as_it_was(tmp_path: Path) -> None:
    row = "question,completion1,completion2,gpt-4o,claude,filename"
    assert [since(each) for each in row.split(",")] == [1, 7, 7, 7, 7, 7]
    (item,), _ = read(tmp_path, row, "q,x,y,v,w,a.png", names=6)
    assert (item.responses, item.images, item.meta["completion1"], item.meta["gpt-4o"]) == ((), [], "x", "v")
    talk = {"context": [{"type": "text", "text": "c"}], "chosen": DIALOGUES[0], "rejected": DIALOGUES[1]}
    (item,), _ = read(tmp_path, talk, names=6)
    assert text_of(item.responses[0]) == DIALOGUES[0]


def test_columns_that_are_called_like_models_are_their_responses(tmp_path: Path) -> None:
    (item,), reading = read(tmp_path, "question,gpt-4o,claude,meta-llama/Llama-3.1-8B", "q,x,y,z")
    assert spoken(item)[1] == ["x", "y", "z"]
    assert systems_of(item) == ("gpt-4o", "claude", "meta-llama/Llama-3.1-8B")
    assert "claude -> response_1 of claude, meta-llama/Llama-3.1-8B -> response_2 of" in reading.mapping_line()


@pytest.mark.parametrize("header", ["question,gpt-4o,answer", "question,gpt-4o,claude_score,output"])
def test_one_column_that_is_called_like_a_model_is_none_of_several(header: str) -> None:
    assert len(recognise(header.split(","), {}).responses) == 0


def test_scores_under_the_names_of_models_are_no_responses(tmp_path: Path) -> None:
    (item,), _ = read(tmp_path, "question,answer,gpt-4o,claude", "q,a,4,3.5")
    assert (spoken(item)[1], item.meta["claude"]) == (["a"], "3.5")


def test_a_model_of_ones_own_beside_known_ones_is_named(tmp_path: Path) -> None:
    row = "q,The sky is blue.,It is blue.,Blue I think.,2024-01-02"
    _, reading = read(tmp_path, "question,gpt-4o,claude,ours,date", row)
    cure = reading.mapping_line().partition("'ours' may hold a response too: ")[2]
    flags = dict(each.split("=") for each in shlex.split(cure)[1::2])
    assert flags == {"response_0": "gpt-4o", "response_1": "claude", "response_2": "ours"}
    (item,) = scan_items(str(tmp_path / "a.csv"), flags)
    assert isinstance(item, Item)
    assert len(item.responses) == 3


TALK = [
    {"role": "user", "content": "Hi?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Why?"},
]


@pytest.mark.parametrize("column", ["context", "contexts"])
def test_a_context_that_is_a_conversation_is_the_instruction(column: str, tmp_path: Path) -> None:
    """As in HelpSteer3."""
    row = {"domain": "code", column: TALK, "response1": "x", "response2": "y", "overall_preference": -2}
    (item,), reading = read(tmp_path, row)
    assert spoken(item) == (["user: Hi?", "assistant: Yes.", "user: Why?"], ["x", "y"])
    assert (item.context, item.meta["overall_preference"]) == (None, -2)
    assert f"{column} -> instruction, response1" in reading.mapping_line()
    assert "by its own name" not in reading.mapping_line()
    (item,), _ = read(tmp_path, {"prompt": "q", "context": ["c", "d"], "response": "x"})
    assert item.context is not None


def test_what_was_named_is_not_proposed_again(tmp_path: Path) -> None:
    """The flags are pasted behind those that were given."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"domain": "code", "talk": TALK, "first text": "x " * 40, "second text": "y " * 40}))
    reading = Arrangement()
    list(scan_items(str(path), {"instruction": "talk"}, reading))
    told = reading.lacking(2)
    assert told.endswith("name it with --map 'response_0=first text' --map 'response_1=second text'")


ASKED = "\n\nHuman: Why is it blue?\n\nAssistant: Light scatters.\n\nHuman: Human: what?\n\nAssistant:"
DIALOGUES = (f"{ASKED} Well,\n\nit does.", f"{ASKED} No.")


def test_dialogues_that_are_written_out_are_parted_from_their_prompt(tmp_path: Path) -> None:
    """As in hh-rlhf."""
    asked = ["user: Why is it blue?", "assistant: Light scatters.", "user: Human: what?"]
    (item,), reading = read(tmp_path, {"chosen": DIALOGUES[0], "rejected": DIALOGUES[1]})
    assert (spoken(item), item.gold) == ((asked, ["Well,\n\nit does.", "No."]), "a")
    told = "dialogues (Human: ... Assistant: ...), whose shared turns are the instruction"
    assert reading.mapping_line().endswith(told)
    (item,), reading = read(tmp_path, {"prompt": ASKED, "chosen": " Well.", "rejected": " No."})
    assert spoken(item) == (asked, ["Well.", "No."])
    assert told in reading.mapping_line()
    other = "\n\nHuman: Why is it blue?\n\nAssistant: It is not.\n\nHuman: Oh.\n\nAssistant: No."
    (item,), _ = read(tmp_path, {"chosen": DIALOGUES[0], "rejected": other})
    assert spoken(item)[0] == asked[:1], "what differs is the response, turns included"
    assert spoken(item)[1][1] == "Assistant: It is not.\n\nUser: Oh.\n\nAssistant: No."


@pytest.mark.parametrize(
    "row",
    [
        {"chosen": "Human: hi", "rejected": "Human: hi\n\nAssistant: a"},
        {"chosen": "\n\nHuman: a\n\nAssistant: x", "rejected": "\n\nHuman: b\n\nAssistant: x"},
        {"prompt": "Write a dialogue.", "chosen": DIALOGUES[0], "rejected": DIALOGUES[1]},
        {"prompt": ASKED, "chosen": "Human: b", "rejected": "Assistant: x"},
        {"chosen": "He said:\n\nHuman: a\n\nAssistant: x", "rejected": "He said:\n\nHuman: a\n\nAssistant: y"},
    ],
)
def test_other_texts_with_speakers_stay_whole(row: dict[str, str], tmp_path: Path) -> None:
    (item,), reading = read(tmp_path, row)
    assert spoken(item)[1] == [row["chosen"], row["rejected"]]
    assert "dialogues" not in reading.mapping_line()
    (_, second), _ = read(tmp_path, row, {"chosen": DIALOGUES[0], "rejected": DIALOGUES[1]})
    assert spoken(second)[1] == [*DIALOGUES], "all records of a file are read alike"


@pytest.mark.parametrize("column", ["filename", "File Name", "image_file"])
def test_files_of_pictures_are_shown(column: str, tmp_path: Path) -> None:
    (item,), reading = read(tmp_path, f"{column},caption", "a.png,A red square.")
    assert ([each.source for each in item.images], spoken(item)[1]) == (["a.png"], ["A red square."])
    assert f"{column} -> image, caption -> response" in reading.mapping_line()
    (item,), _ = read(tmp_path, f"{column},image,caption", "a.png,b.png,A red square.")
    assert [each.source for each in item.images] == ["b.png"]


def test_files_that_are_no_pictures_are_metadata(tmp_path: Path) -> None:
    (item,), _ = read(tmp_path, "filename,question,answer", "data.txt,q,a")
    assert (item.images, item.meta) == ([], {"filename": "data.txt"})


def test_pictures_that_are_not_shown_are_told(tmp_path: Path) -> None:
    (item,), reading = read(tmp_path, "photo,question,answer", "a.png,q,a")
    assert not item.images
    assert reading.mapping_line().endswith(
        "the pictures that 'photo' names are not shown: --map image=photo shows them"
    )
    (shown,) = scan_items(str(tmp_path / "a.csv"), {"image": "photo"}, reading := Arrangement())
    assert isinstance(shown, Item)
    assert len(shown.images) == 1
    assert "not shown" not in reading.mapping_line()


@pytest.mark.parametrize(
    ("row", "gold"),
    [
        ({"response_0": "x", "response_1": "y", "better_response_id": 1, "safer_response_id": 0}, "b"),  # PKU-SafeRLHF
        ({"response_0": "x", "response_1": "y", "better_response_id": 0}, "a"),
        ({"Output1": "x", "Output2": "y", "Better": "Output2"}, "b"),  # Multimodal RewardBench
        ({"ChatGPT": "x", "Gemini": "y", "Preferred": "Gemini"}, "b"),
        ({"output_1": "x", "output_2": "y", "preference": 1.2}, "a"),  # AlpacaEval
        ({"output_1": "x", "output_2": "y", "preference": 1.96}, "b"),
        ({"output_1": "x", "output_2": "y", "preference": 1.5}, "tie"),
        ({"output_1": "x", "output_2": "y", "preference": 2.2}, "2.2"),
        ({"response_0": "x", "response_1": "y", "preference": 0.3}, "0.3"),  # of which is not known
    ],
)
def test_what_data_sets_say_of_the_better_one(row: dict[str, Any], gold: str, tmp_path: Path) -> None:
    (item,), _ = read(tmp_path, {"prompt": "q", **row})
    assert (spoken(item)[1], item.gold) == (["x", "y"], gold)


PAGE = "Score Rubrics: [Is it?] Response to evaluate: It is."
PROMETHEUS = {
    "instruction": PAGE, "output": "Good. [RESULT] 4", "orig_instruction": "What?", "orig_response": "It is.",
    "orig_criteria": "Is it?", "orig_score": "4", "orig_feedback": "Good.", "orig_reference_answer": "ref",
    **{f"orig_score{n}_description": f"level {n}" for n in range(1, 6)},
}  # fmt: skip
PROMPTFOO = {
    "vars": {"x": "hi"}, "provider": {"id": "openai:gpt-4o"}, "prompt": {"raw": "Say hi", "label": "Say {{x}}"},
    "response": {"output": "hi there", "tokenUsage": {}}, "success": True, "score": 1,
}  # fmt: skip
ULTRA = {"instruction": "q", "completions": [{"model": "gpt", "response": "x"}, {"model": "llama", "response": "y"}]}


def test_rows_of_prometheus_are_not_judged_by_their_feedback(tmp_path: Path) -> None:
    path = tmp_path / "FILE"
    path.write_text(json.dumps(PROMETHEUS), "utf-8")
    with pytest.raises(DataError, match="stand in columns of their own") as caught:
        list(scan_items(str(path), {}))
    command = re.search(r"dikast (corpus convert FILE OTHER.jsonl --to dikast)", str(caught.value))
    assert command
    assert dikast_here(*command[1].split(), cwd=tmp_path).returncode == 0
    (item,) = scan_items(str(tmp_path / "OTHER.jsonl"), {})
    assert isinstance(item, Item)
    assert spoken(item) == (["user: What?"], ["It is."])
    (item,), _ = read(tmp_path, PROMETHEUS, names=6)
    assert spoken(item)[0] == [f"user: {PAGE}"]


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands are of jq")
@pytest.mark.parametrize(
    ("made", "said", "systems"),
    [
        ({"results": {"version": 3, "prompts": [{"raw": "Say"}], "results": [PROMPTFOO]}}, ["hi there"], 1),
        (ULTRA, ["x", "y"], 2),
        ([ULTRA], ["x", "y"], 2),
        (
            {"question": {"dataset": "eli5", "full_text": "q"}, "answer_0": "x", "answer_1": "y"},
            ["x", "y"],
            0,
        ),  # WebGPT
    ],
)
def test_texts_inside_objects_have_a_command_that_works(
    made: Any, said: list[str], systems: int, tmp_path: Path
) -> None:
    (tmp_path / "FILE.json").write_text(json.dumps(made), "utf-8")
    reading = Arrangement()
    found = []
    try:
        found = list(scan_items(str(tmp_path / "FILE.json"), {}, reading))
        told = str(next((each for each in found if isinstance(each, DataError)), "")) or reading.lacking(2)
    except DataError as error:
        told = str(error)
    command = re.search(r"jq -c '.*' FILE > OTHER\.jsonl", told)
    assert command, told
    subprocess.run(command[0].replace(" FILE ", " FILE.json "), shell=True, cwd=tmp_path, check=True)
    (item,) = scan_items(str(tmp_path / "OTHER.jsonl"), {})
    assert isinstance(item, Item)
    assert spoken(item)[0] in (["user: q"], ["user: Say hi"])
    assert (spoken(item)[1], len(systems_of(item))) == (said, systems)


def test_the_question_beside_a_picture_is_asked_for(tmp_path: Path) -> None:
    _, reading = read(tmp_path, "Image,Text,source,Output1,Output2", "a.png,Describe it.,web,x,y")
    told = "no instruction, so the judge sees the pictures and the response alone: --map instruction=Text if"
    assert told in reading.mapping_line()
    _, reading = read(tmp_path, "image,caption,photographer", "a.png,A cat.,Ann Lee")
    assert "no instruction" not in reading.mapping_line()


@pytest.mark.parametrize(
    ("needed", "header", "row", "flags"),
    [
        (2, "domain,history,human_ref_A,human_ref_B", "bake,How to bake it?,Like this here.,Never.",
         {"instruction": "history", "response_0": "human_ref_A", "response_1": "human_ref_B"}),  # SHP
        (1, "user_prompt,judgment", "Rate it.,Rating: [[6]] since it is good.", {"response": "COLUMN"}),  # MT-Bench
    ],
)  # fmt: skip
def test_columns_that_are_proposed(needed: int, header: str, row: str, flags: dict[str, str], tmp_path: Path) -> None:
    _, reading = read(tmp_path, header, row)
    named = reading.lacking(needed).partition("name it with ")[2].partition(", or add")[0]
    assert dict(each.split("=") for each in shlex.split(named)[1::2]) == flags


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands are of jq")
@pytest.mark.parametrize(
    ("rows", "asked", "said"),
    [
        ([{"id": "1", "prompt": ["q1", "q2"], "response": ["a1", "a2"]}],
         ["user: q1", "assistant: a1", "user: q2"], "a2"),  # a conversation by its turns, as MT-Bench has it
        ([{"info": {"id": "t3", "post": "q", "title": "Help"}, "response": "a"}], ["user: q"], "a"),
        ([{"conversation_id": 3, "role": "user", "content": "q"},
          {"conversation_id": 3, "role": "assistant", "content": "a"}], ["user: q"], "a"),  # a log
        (["session,from,value", "3,human,q", "3,gpt,a"], ["user: q"], "a"),
    ],
)  # fmt: skip
def test_conversations_in_pieces_have_a_command_that_works(
    rows: list[Any], asked: list[str], said: str, tmp_path: Path
) -> None:
    try:
        _, reading = read(tmp_path, *rows)
        told = reading.mapping_line()
    except DataError as error:
        told = str(error)
    command = re.search(r"\(((?:python -c .*)?jq -c.* > OTHER\.jsonl)\)", told)
    assert command, told
    path = "a.csv" if isinstance(rows[0], str) else "a.jsonl"
    made = re.sub(r"\bFILE\b", path, command[1])
    subprocess.run(
        made, shell=True, cwd=tmp_path, check=True, env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    )
    reading = Arrangement()
    (item,) = scan_items(str(tmp_path / "OTHER.jsonl"), {}, reading)
    if "--map" in (more := reading.mapping_line()):  # what the next message names
        columns = dict(each.split("=") for each in re.findall(r"--map (\S+)", more))
        (item,) = scan_items(str(tmp_path / "OTHER.jsonl"), columns)
    assert isinstance(item, Item)
    assert spoken(item) == (asked, [said])


def test_a_list_of_tags_as_long_as_the_responses_is_no_conversation(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="--map responses=response judges each"):
        read(tmp_path, {"prompt": "q", "tags": ["new", "short"], "response": ["a1", "a2"]})
