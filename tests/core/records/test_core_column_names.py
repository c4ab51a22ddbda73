"""Columns that are recognised, conversations, ids from content: what people's own files look like."""

import csv
import json
import shlex
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dikast.core.errors import DataError, UserError
from dikast.core.gold import GoldCheck
from dikast.core.item import ANSWERERS, ANSWERS, ASKERS, NAMES, REQUESTS, Item
from dikast.core.part import Image, Text, text_of
from dikast.core.records import Arrangement, item_of, read_items, scan_items, systems_of, write_items
from dikast.core.records.column_cures import lacking
from dikast.core.records.column_names import recognise
from dikast.core.records.items import scan_rows
from dikast.core.records.rows_in_memory import rows_in
from dikast.core.records.shapes.pair_winners import winner
from dikast.core.rubric import Rubric
from dikast.surface.functions import grade

PAGE = Path(__file__).parents[3] / "docs" / "core.md"


def one(**row: Any) -> Item:
    (found,) = scan_rows([row], {})
    assert isinstance(found, Item), found
    return found


def texts(item: Item) -> tuple[str, list[str]]:
    return " / ".join(f"{t.role}: {text_of(t.content)}" for t in item.instruction), [text_of(r) for r in item.responses]


def test_the_page_shows_the_table() -> None:
    page = PAGE.read_text("utf-8")
    asked = {f"{who}_{what}" for who in ASKERS for what in REQUESTS}
    said = {f"{who}_{what}" for who in ANSWERERS for what in ANSWERS} - {"model_output"}
    short = {"instruction": (asked, f"{' and '.join(f'`{who}_X`' for who in ASKERS)} with {spelt(REQUESTS)} as `X`"),
             "response": (said, f"`X_Y` with {spelt(ANSWERERS)} as `X` and {spelt(ANSWERS)} as `Y`")}  # fmt: skip
    for field, names in NAMES.items():
        made, written = short.get(field, (set[str](), ""))
        assert made <= set(names)
        shown = list(dict.fromkeys(written if name in made else f"`{name}`" for name in names))
        assert f"| {field} | {', '.join(shown)} |" in page


def spelt(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


@pytest.mark.parametrize("asked", ["question", "query", "instruction", "input", "User Input", "customer_message"])
@pytest.mark.parametrize("said", ["answer", "response", "prediction", "Model-Output", "model_answer", "Chatbot reply"])
def test_one_response(asked: str, said: str) -> None:
    assert texts(one(**{asked: "q", said: "a"})) == ("user: q", ["a"])


def test_responses_of_a_pair_are_told() -> None:
    told = recognise(["question", "response_a", "response_b", "winner"], {}).guessed()
    assert (told["response_a"], told["response_b"]) == ("response_0", "response_1")


def test_a_caption_is_the_response_beside_a_picture() -> None:
    for keys, guessed in (
        (["image_path", "caption"], {"image_path": "image", "caption": "response"}),
        (["image", "caption"], {"caption": "response"}),
        (["image_path", "caption", "output"], {"image_path": "image", "output": "response"}),
        (["title", "caption"], {}),
    ):
        assert recognise(keys, {}).guessed() == guessed


def test_names_with_two_meanings() -> None:
    item = one(question="q", answer="right", output="said")
    assert (texts(item), item.reference and text_of(item.reference)) == (("user: q", ["said"]), "right")
    item = one(question="q", answer="said", ground_truth="right")
    assert (texts(item), item.reference and text_of(item.reference)) == (("user: q", ["said"]), "right")
    item = one(instruction="do", input="on this", output="done")
    assert (texts(item), item.context and text_of(item.context)) == (("user: do", ["done"]), "on this")
    item = one(input="q", actual_output="said", expected_output="right", retrieval_context=["c", "d"])
    assert (texts(item), item.reference and text_of(item.reference)) == (("user: q", ["said"]), "right")
    assert item.context is not None
    assert text_of(item.context) == "c\nd"


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"output": "a", "completion": "b"}, "'output' and 'completion' could both be the response; the columns are "),
        ({"prompt": "a", "question": "b", "answer": "c"}, "'prompt' and 'question' could both be the instruction"),
        ({"answer_1": "a", "answer_3": "b"}, "numbered from 0 or lettered from a without a gap"),
        ({"answer_a": "a", "answer_b": "b", "answer_d": "d"}, "lettered from a without a gap"),
        (
            {"answer": "Paris", "gpt4_response": "It is Paris."},
            "'answer' and 'gpt4_response' could each be the response",
        ),
    ],
)
def test_what_is_not_clear_is_asked_for(row: dict[str, str], told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(orjson.dumps(row) + b"\n" + orjson.dumps(row))
    with pytest.raises(DataError, match=told):
        list(scan_items(str(path), {}))  # raised, not yielded: once for the file
    first, second, *_ = row
    if "both" in told:
        field = "response" if "response" in told else "instruction"
        (item, _again) = read_items(path, columns={field: first, "id": ""})
        assert item.meta[second] == row[second]


@pytest.mark.parametrize(
    "column",
    [
        "gpt4_answer",
        "llama_output",
        "response_text",
        "generated",
        "candidate",
        "submission",
        "hypothesis",
        "GPT-4 answer",
    ],
)
def test_an_answer_that_may_be_the_reference_is_asked_for(column: str, tmp_path: Path) -> None:
    """A question, its right answer and what a model said is a common table; the right answer was graded."""
    path = tmp_path / "a.csv"
    path.write_text(f"question,answer,{column}\nWhere?,Paris,It is Paris\n", "utf-8")
    with pytest.raises(DataError, match=r"--map '?response=.* --map reference=answer, or --map response=answer"):
        list(scan_items(str(path), {}))
    [item] = read_items(path, columns={"response": column, "reference": "answer"})
    assert (texts(item), item.reference and text_of(item.reference)) == (("user: Where?", ["It is Paris"]), "Paris")
    with pytest.raises(
        DataError, match=r"to compare the two, name both with --map response_0=answer --map '?response_1="
    ):
        list(scan_items(str(path), {}))
    [item] = read_items(path, columns={"reference": column})  # what the column is was said, and so what it is not
    assert (texts(item), item.reference and text_of(item.reference)) == (("user: Where?", ["Paris"]), "It is Paris")


@pytest.mark.parametrize(("column", "value"), [
    ("model", "gpt-4"), ("answer_time", "two minutes"), ("result", "pass"), ("gpt4_score", "4"), ("llm", "llama-3"),
    ("output_tokens", "a few"), ("category", "capital cities"), ("gpt4_feedback", "it is right"),
])  # fmt: skip
def test_what_is_beside_an_answer_is_no_other_answer(column: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"question,answer,{column}\nWhere?,It is Paris,{value}\n", "utf-8")
    [item] = read_items(path)
    assert texts(item) == ("user: Where?", ["It is Paris"])


def test_responses_are_lettered_as_far_as_they_go() -> None:
    for letters in ("ab", "abc", "abcdefgh"):
        names = tuple(f"answer_{letter}" for letter in letters)
        assert recognise(("question", *names), {}).responses == names


@pytest.mark.parametrize(("header", "winner", "systems"), [
    ("model_1_response,model_2_response,model_1,model_2", "y", ("x", "y")),
    ("Model A Response,Model B Response,model_a,model_b", "model_b", ("x", "y")),
    ("response_model_1,response_model_2,model_1,model_2", "2", ("x", "y")),
    ("gpt4_answer,claude_answer", "claude", ("gpt4", "claude")),
    ("GPT-4o mini response,Claude 3.5 Sonnet response", "Claude 3.5 Sonnet", ("GPT-4o mini", "Claude 3.5 Sonnet")),
    ("output_llama-3.1-8b-instruct,output_qwen2.5-72b", "second", ("llama-3.1-8b-instruct", "qwen2.5-72b")),
    ("claude_answer,gpt4_answer,model_a,model_b", "y", ("x", "y")),
])  # fmt: skip
def test_responses_of_models(header: str, winner: str, systems: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    names = ",x,y" if header.count(",") == 3 else ""
    path.write_text(f"question,{header},winner\nWhy?,one,two{names},{winner}\n", "utf-8")
    reading = Arrangement()
    [item] = scan_items(str(path), {}, reading)
    assert isinstance(item, Item)
    assert texts(item) == ("user: Why?", ["one", "two"])
    assert (systems_of(item), item.gold, item.gold_from) == (systems, "b", "winner")
    assert "-> response_1" in reading.mapping_line()
    assert not any(each in reading.mapping_line() for each in {"model_a", "model_b"} - {*reading.columns})
    [before] = scan_items(str(path), {}, Arrangement(names=4))
    assert isinstance(before, Item)
    assert not before.responses  # a folder that was begun before goes on as it was begun


def test_columns_named_after_models_are_responses_only_where_nothing_else_is() -> None:
    found = recognise(("question", "response", "gpt4_answer", "claude_answer"), {})
    assert (found.responses, found.models) == ((), ())
    found = recognise(("question", "answer", "gpt4_answer", "claude_answer"), {})
    assert found.responses == ("gpt4_answer", "claude_answer")
    assert ("reference", "answer") in found.moves
    for keys in (("gpt4_answer", "human_answer"), ("gpt4_answer", "claude_output"), ("gpt4_score", "claude_score"),
                 ("answer_gpt4_score", "answer_claude_score"), ("short_answer", "long_answer")):  # fmt: skip
        assert recognise(("question", *keys), {}).responses == ()


def test_clearer_names_come_first() -> None:
    assert texts(one(user_input="q", llm_answer="a")) == ("user: q", ["a"])
    assert texts(one(question="q", user_input="x", generated_text="b", output="a")) == ("user: q", ["a"])
    item = one(question="q", answer="right", llm_answer="said")
    assert (texts(item), item.reference and text_of(item.reference)) == (("user: q", ["said"]), "right")
    with pytest.raises(DataError, match="'ai_answer' and 'bot_answer' could both be the response"):
        recognise(("question", "ai_answer", "bot_answer"), {})
    assert texts(one(response="a", generated_text="b")) == ("", ["a"])


def test_a_cell_of_text_called_meta_is_metadata(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('question,answer,response,meta\nq,a,b,from the web\nr,c,d,"{""x"": 1}"\n', "utf-8")
    named = {"response": "answer"}
    first, second = read_items(path, columns=named)  # what the named column displaces is kept, too
    assert first.meta == {"response": "b", "meta": "from the web"}
    assert second.meta == {"response": "d", "x": 1}
    path.write_text("question,answer,meta\nq,a,{draft}\n", "utf-8")
    with pytest.raises(DataError, match="or keep the text as it stands with --map meta="):
        list(read_items(path))
    (item,) = read_items(path, columns={"meta": ""})
    assert item.meta == {"meta": "{draft}"}


LONG, SHORT = "A long prompt with the document that the question is about. " * 20, "A short answer."
PROPOSED = [  # a header, what the cells of each column are (Long, short, a number, key), and the flags to copy
    ("ticket_text,reply_text", "Ls", "instruction=ticket_text response=reply_text"),
    ("full prompt,machine text", "Ls", "'instruction=full prompt' 'response=machine text'"),
    ("task,text", "Ls", "instruction=task response=text"),
    ("user_turn,bot_turn", "Ls", "instruction=user_turn response=bot_turn"),
    ("document,summary", "Ls", "instruction=document response=summary"),
    ("source,translation", "Ls", "instruction=source response=translation"),
    ("article,headline", "Ls", "instruction=article response=headline"),
    ("dialogue,next_turn", "Ls", "instruction=dialogue response=next_turn"),
    ("customer_case,agent,agent_score", "Lsn", "instruction=customer_case response=agent"),
    ("Frage,Antwort,Bewertung", "Lsn", "instruction=Frage response=Antwort"),
    ("pregunta,respuesta,nota", "Lsn", "instruction=pregunta response=respuesta"),
    ("q_text,says", "Ls", "instruction=q_text response=says"),
    ("q,a_text", "ss", "instruction=q response=a_text"),
    ("col1,col2", "Ls", "instruction=col1 response=col2"),
    ("col1,col2", "sL", "instruction=col1 response=col2"),
    ("a,b,c", "kLL", "instruction=b response=c"),
    ("question,ours,theirs", "Lss", "response=ours"),
    ("question,LLM words,Human Rating", "Lsn", "'response=LLM words'"),
    ("id,prompt,said by model,notes", "nLsL", "'response=said by model'"),
    ("question,response_time,text", "Lns", "response=text"),
    ("question,date,body", "Lks", "response=body"),
    ("instruction,topic,essay", "LsL", "response=essay"),
    ("prompt,reasoning,final", "LLs", "response=final"),
    ("question,answer_length,story", "LnL", "response=story"),
    ("query,documents,generated", "LLs", "response=generated"),
    ("id,1st,2nd", "nsL", "instruction=1st response=2nd"),
]
PROPOSED_PAIRS = [
    ("prompt,ours,theirs", "Lss", "response_0=ours response_1=theirs"),
    ("question,left_text,right_text", "LLs", "response_0=left_text response_1=right_text"),
    ("q,a,b", "Lss", "instruction=q response_0=a response_1=b"),
    ("question,base,finetuned,note", "LssL", "response_0=base response_1=finetuned"),
    ("task,first_reply,second_reply,reason", "LssL", "instruction=task response_0=first_reply response_1=second_reply"),
    ("prompt,Model A,Model B", "Lss", "'response_0=Model A' 'response_1=Model B'"),
    ("question,only", "Ls", "response_0=only response_1=OTHER"),
]


@pytest.mark.parametrize(
    ("needed", "header", "cells", "flags"),
    [(1, *each) for each in PROPOSED] + [(2, *each) for each in PROPOSED_PAIRS],
)
def test_which_columns_are_proposed(needed: int, header: str, cells: str, flags: str, tmp_path: Path) -> None:
    path, columns = tmp_path / "a.csv", header.split(",")
    row = [{"L": LONG, "s": SHORT, "n": "4.5", "k": "2024-05-01"}[each] for each in cells]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([columns, row])
    reading = Arrangement()
    list(scan_items(str(path), {}, reading))
    told = lacking(needed, reading.columns, reading.mapped, reading.lengths)
    written = told.partition("name it with ")[2].partition(", if")[0]
    assert shlex.split(written)[::2] == ["--map"] * len(shlex.split(flags))
    assert shlex.split(written)[1::2] == shlex.split(flags)
    if "OTHER" not in flags:
        named = dict(each.split("=") for each in shlex.split(flags))
        (item,) = read_items(path, columns=named)
        assert (len(item.responses), bool(item.instruction)) == (needed, True)


def test_messages_of_two_systems_are_proposed(tmp_path: Path) -> None:
    turns = {side: [{"role": "assistant", "content": f"{side} says"}] for side in ("gpt", "other")}
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "q"}]
    row = {"conversation_id": "a long name of the conversation", "messages": asked, **turns, "better": "gpt"}
    path = tmp_path / "a.jsonl"
    path.write_bytes(orjson.dumps(row))
    reading = Arrangement()
    list(scan_items(str(path), {}, reading))
    told = lacking(2, reading.columns, reading.mapped, reading.lengths)
    assert told.endswith("--map response_0=gpt --map response_1=other")
    assert "no instruction" not in reading.mapping_line()


def test_a_column_means_one_thing_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"question": "q", "answer": "a"}\n{"question": "q", "answer": "a", "output": "b"}')
    with pytest.raises(DataError, match=r"a\.jsonl:2: .*'answer' is the reference here, and was the response"):
        list(read_items(path))


@pytest.mark.parametrize(
    ("columns", "systems"),
    [(("answer_a", "answer_b"), ("model_a", "model_b")), (("response_1", "response_2"), ("model_1", "model_2")),
     (("chosen", "rejected"), ("chosen_model", "rejected_model"))],
)  # fmt: skip
def test_pairs_and_their_systems(columns: tuple[str, str], systems: tuple[str, str]) -> None:
    row = dict(zip(columns, ("x", "y"), strict=True)) | dict(zip(systems, ("gpt", "llama"), strict=True))
    item = one(prompt="q", **row)
    assert texts(item) == ("user: q", ["x", "y"])
    assert systems_of(item) == ("gpt", "llama")
    assert item.gold == ("a" if columns[0] == "chosen" else None)
    assert systems_of(one(question="q", answer="a", model="gpt")) == ("gpt",)


@pytest.mark.parametrize(
    ("said", "gold"),
    [("model_a", "a"), ("model_b", "b"), ("A", "a"), ("gpt", "a"), ("llama", "b"), ("tie (bothbad)", "tie"),
     ("first", "a"), ("answer_b", "b"), ("both", "tie"), ("2", "2"), ("", None), ("nobody", "nobody")],
)  # fmt: skip
def test_winners(said: str, gold: str | None) -> None:
    item = one(prompt="q", answer_a="x", answer_b="y", model_a="gpt", model_b="llama", winner=said)
    assert (item.gold, item.gold_from) == (gold, "winner" if said else "")


def test_winners_by_number_count_as_the_columns_do() -> None:
    assert one(prompt="q", response_1="x", response_2="y", winner=2).gold == "b"
    assert one(prompt="q", response_0="x", response_1="y", winner=1).gold == "b"
    assert one(prompt="q", answer_1="x", answer_2="y", winner=1).gold == "a"


def test_winners_by_number_of_columns_without_numbers_are_no_gold() -> None:
    # 1 may be the first (counted from 1) or the second (from 0): as an index it made every first the second
    for said in (1, 2, 0, 1.0, True, 1.3):
        item = one(prompt="q", answer_a="x", answer_b="y", winner=said)
        assert (item.gold, item.gold_from) == (str(int(said) if said == 1 and said is not True else said), "winner")
        (note,) = checked(item).notes()
        assert "does not say which response is better, so it is metadata only" in note
    assert checked(one(prompt="q", answer_a="x", answer_b="y", winner="b")).notes() == ()
    assert one(prompt="q", answer_a="x", answer_b="y", winner=float("nan")).gold is None


def checked(item: Item) -> GoldCheck:
    found = GoldCheck(pairs=True)
    found.look(item, Rubric("better", "Which is better?"), (0, 1))
    return found


def test_winners_go_by_the_names_of_named_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"

    def read(first: str, second: str, said: str) -> Any:
        path.write_text(f"q,answer_1,answer_2,gpt4,claude,winner\nq,one,two,x,y,{said}\n", "utf-8")
        (item,) = read_items(path, columns={"response_0": first, "response_1": second})
        return item.gold

    assert read("answer_1", "answer_2", "2") == "b"  # an index made this the third response
    assert read("answer_2", "answer_1", "2") == "a"
    assert (read("gpt4", "claude", "claude"), read("gpt4", "claude", "GPT4")) == ("b", "a")


def test_responses_named_in_the_other_order_than_their_systems_are_refused() -> None:
    row = {"question": "q", "answer_a": "x", "answer_b": "y", "model_a": "gpt", "model_b": "llama"}
    (found,) = scan_rows([row], {"response_0": "answer_a", "response_1": "answer_b"})
    assert isinstance(found, Item)
    assert systems_of(found) == ("gpt", "llama")
    with pytest.raises(DataError, match="--map response_0=answer_a --map response_1=answer_b"):
        list(scan_rows([row], {"response_0": "answer_b", "response_1": "answer_a"}))


@pytest.mark.parametrize(
    "names", [("response_1", "response_2"), ("answer_a", "answer_b"), ("Response A", "Response B")]
)
def test_chosen_and_rejected_beside_the_same_texts_are_gold(names: tuple[str, str]) -> None:
    def row(first: str, second: str, chosen: str, rejected: str) -> dict[str, str]:
        return {"prompt": "q", names[0]: first, names[1]: second, "chosen": chosen, "rejected": rejected}

    same = [row("x", "y", "y", "x"), row("z", "w", "z", "w")]
    found = [each for each in scan_rows(same, {}) if isinstance(each, Item)]
    assert [(texts(item)[1], item.gold, item.gold_from) for item in found] == [
        (["x", "y"], "b", "chosen"), (["z", "w"], "a", "chosen")]  # fmt: skip
    with pytest.raises(DataError, match="could both be the responses") as caught:  # once for the file
        list(scan_rows([row("x", "y", "u", "v"), *same], {}))
    later = list(scan_rows([*same, row("x", "y", "x", "v")], {}))
    assert str(later[2]).startswith("rows:2: ")
    assert "could both be the responses" in str(later[2])
    lines = str(caught.value).partition(": name those that are with ")[2].split(", or ")
    flags = [dict(flag.split("=") for flag in shlex.split(line)[1::2]) for line in lines]
    chosen, others = (
        [
            (texts(item)[1], item.gold)
            for item in scan_rows([row("x", "y", "u", "v"), *same], each)
            if isinstance(item, Item)
        ]
        for each in flags
    )
    assert chosen == [(["u", "v"], "a"), (["y", "x"], "a"), (["z", "w"], "a")]  # as of a file of these two alone
    assert others == [(["x", "y"], None), (["x", "y"], None), (["z", "w"], None)]


@pytest.mark.parametrize("one_of", ["response", "output"])
@pytest.mark.parametrize("two", [("chosen", "rejected"), ("answer_a", "answer_b"), ("response_0", "response_1")])
def test_one_response_beside_two_is_asked_for(one_of: str, two: tuple[str, str]) -> None:
    row = {"question": "q", one_of: "x", two[0]: "y", two[1]: "z"}
    with pytest.raises(DataError, match="could both be the responses") as caught:
        list(scan_rows([row], {}))
    lines = str(caught.value).partition(": name those that are with ")[2].split(", or ")
    found = [next(scan_rows([row], dict(flag.split("=") for flag in shlex.split(line)[1::2]))) for line in lines]
    assert sorted(texts(item)[1] for item in found if isinstance(item, Item)) == [["x"], ["y", "z"]]


def test_the_answer_beside_a_pair_is_the_reference() -> None:
    item = one(question="q", answer="right", answer_a="x", answer_b="y")
    assert (texts(item)[1], item.reference and text_of(item.reference)) == (["x", "y"], "right")


@pytest.mark.parametrize("name", ["Chosen", "chosen"])
def test_the_better_of_named_responses_is_gold(name: str) -> None:
    row = {"prompt": "q", name: "x", "rejected": "y"}
    assert one(**row).gold == "a"
    (first,) = scan_rows([row], {"response_0": name, "response_1": "rejected"})
    (second,) = scan_rows([row], {"response_0": "rejected", "response_1": name})
    assert [each.gold for each in (first, second) if isinstance(each, Item)] == ["a", "b"]


def test_gold_is_guessed_from_one_column_and_stays_metadata() -> None:
    item = one(question="q", answer="a", human_score=4)
    assert (item.gold, item.gold_from, item.meta) == (4, "human_score", {"human_score": 4})
    assert one(**{"question": "q", "answer": "a", "Rating (1-5)": 4, "Rater": "Ann"}).gold == 4
    assert one(question="q", answer="a", rating=4, label="good").gold is None  # which of them?
    assert one(question="q", answer="a", rating=4, gold=2).gold == 2
    assert one(question="q", answer_a="a", answer_b="b", rating=4).gold is None  # of which response?


def test_names_of_people_are_gold_or_reference() -> None:
    assert one(question="q", answer="a", human_label=4).gold == 4
    for name in ("gold_answer", "expected_answer", "Correct Answer", "reference_output", "ground_truth_answer"):
        assert one(**{"question": "q", "answer": "a", name: "x"}).reference == (Text("x"),)
    row = {"question": "q", "answer": "a", "expected_answer": "x"}
    (earlier,) = scan_rows([row], {}, Arrangement(3))
    assert isinstance(earlier, Item)
    assert (earlier.reference, earlier.meta) == (None, {"expected_answer": "x"})  # as folders of before read it


@pytest.mark.parametrize("asked", ["user_prompt", "prompt", "instruction", "messages"])
def test_a_system_prompt_is_the_system_turn_of_the_instruction(asked: str) -> None:
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    row = {asked: talk} if asked == "messages" else {asked: "q", "answer": "a"}
    item = one(system_prompt="Be brief.", **row)
    assert texts(item) == ("system: Be brief. / user: q", ["a"])
    assert item.meta == {}
    assert one(system_prompt="", **row).instruction == one(**row).instruction
    assert recognise(["System Prompt", asked, "answer"], {}).guessed()["System Prompt"] == "system turn"


def test_a_system_prompt_does_not_replace_a_turn_nor_stand_alone() -> None:
    talk = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "q"}]
    item = one(system_prompt="Be brief.", prompt=talk, answer="a")
    assert texts(item) == ("system: Be kind. / user: q", ["a"])
    assert item.meta == {"system_prompt": "Be brief."}
    alone = one(system_prompt="Be brief.", answer="a")
    assert (alone.instruction, alone.meta) == ((), {"system_prompt": "Be brief."})
    pictured = one(system_prompt="Be brief.", prompt="q", answer="a", image="cat.png")
    assert [turn.role for turn in pictured.instruction] == ["system", "user"]
    assert isinstance(pictured.instruction[1].content[0], Image)
    assert texts(one(system_prompt="Add.", prompt=12, answer="a"))[0] == "system: Add. / user: 12"


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], "model": "claude"},
        {"messages": [{"role": "user", "content": "q"}], "response": "a"},
        {"question": "q", "chosen": "a", "rejected": "b"},
        {"instruction": "q", "output": "a"},
    ],
)
@pytest.mark.parametrize(
    "said",
    ["Be brief.", "You are a helpful assistant", "Be\nbrief", "请简短回答。", "你是一个乐于助人的助手",
     "Du bist ein höflicher Assistent", "answer in at most 3 sentences"],
)  # fmt: skip
def test_a_system_prompt_under_the_name_system(row: dict[str, Any], said: str) -> None:
    (item,) = scan_rows([{**row, "system": said}], {}, reading := Arrangement())
    assert isinstance(item, Item)
    assert texts(item) == (f"system: {said} / user: q", ["a", "b"] if "rejected" in row else ["a"])
    assert systems_of(item) == (("claude",) if "model" in row else ())
    assert "system -> system turn" in reading.mapping_line()
    assert texts(one(**row, system=[{"type": "text", "text": said}])) == texts(item)


@pytest.mark.parametrize(
    "name",
    ["gpt-4.1", "GPT 4 Turbo (preview)", "v1.", "/models/llama-3-8b-instruct/epoch-3", "Llama 3 8B Instruct v2 final",
     "Qwen 2.5 7B Instruct, temperature 0.7", "Our Own Support Bot with RAG 2", "文心一言 4.0"],
)  # fmt: skip
def test_the_name_of_a_system_is_no_system_turn(name: str) -> None:
    (item,) = scan_rows([{"question": "q", "answer": "a", "system": name}], {}, reading := Arrangement())
    assert isinstance(item, Item)
    assert (texts(item)[0], systems_of(item)) == ("user: q", (name,))
    assert "system -> system turn" not in reading.mapping_line()
    assert "system -> system" in reading.mapping_line()


def test_the_developer_speaks_as_the_system() -> None:
    talk = [{"role": "developer", "content": "s"}, {"role": "user", "content": "q"}, SAID]
    assert texts(one(messages=talk)) == ("system: s / user: q", ["a"])


WON = ("winner_model_a", "winner_model_b", "winner_tie")


@pytest.mark.parametrize("text", [False, True])
def test_a_column_for_each_outcome_is_guessed_gold(text: bool, tmp_path: Path) -> None:
    rows = [(1, 0, 0), (0, 1, 0), (0, 0, 1), ("", "", "")]
    if text:
        path = tmp_path / "arena.csv"
        lines = [f"q{i},one {i},two {i},{','.join(map(str, row))}" for i, row in enumerate(rows)]
        path.write_text("\n".join([f"prompt,response_a,response_b,{','.join(WON)}", *lines]))
        found = scan_items(str(path), {}, reading := Arrangement())
    else:
        pair = {"prompt": "q", "response_a": "one", "response_b": "two"}
        told = [{**pair, **dict(zip(WON, row, strict=True)), "n": i} for i, row in enumerate(rows)]
        found = scan_rows(told, {}, reading := Arrangement())
    items = [item for item in found if isinstance(item, Item)]
    assert [item.gold for item in items] == ["a", "b", "tie", None]
    assert items[0].gold_from == "winner_model_a"
    assert "winner_model_a -> gold (guessed), winner_model_b -> gold (guessed), winner_tie ->" in reading.mapping_line()


@pytest.mark.parametrize("row", [(0, 0, 0), (1, 1, 0), (1, "", 0), (2, 0, 0), (0.5, 0.5, 0)])
def test_outcomes_of_which_not_one_is_marked_are_told_with_the_line(row: tuple[Any, ...]) -> None:
    pair = {"id": "x", "prompt": "q", "response_a": "one", "response_b": "two", **dict(zip(WON, row, strict=True))}
    (error,) = scan_rows([pair], {})
    assert isinstance(error, DataError)
    assert (error.line, error.field) == (0, "winner_model_a")
    assert "'winner_tie' 0: correct the row, or keep them as metadata with --map gold=" in str(error)
    (kept,) = scan_rows([pair], {"gold": ""})
    assert isinstance(kept, Item)
    assert (kept.gold, kept.meta["winner_tie"]) == (None, 0)


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        ({"rater_1": 3, "rater_2": "4", "rater_id": 7}, "'rater_1', 'rater_2' look like gold"),
        ({"Score (human)": "3"}, "'Score (human)' looks like gold, kept as metadata: --map 'gold=Score (human)'"),
        ({"annotation": 3}, "'annotation' looks like gold, kept as metadata: --map gold=annotation"),
        ({"Preferred": "A"}, "'Preferred' looks like gold, kept as metadata: --map gold=Preferred"),
        ({"Better response": "tie"}, "--map 'gold=Better response'"),
        ({"Preferred": "Ann", "grade_band": "A", "winner": ""}, ""),
        ({"winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0}, "make one column `winner`"),
        ({"annotator": "Ann", "rater": "Ben", "humanity": 3, "human": ""}, ""),
    ],
)
def test_columns_that_look_like_gold_are_told(meta: dict[str, Any], told: str) -> None:
    check = GoldCheck()
    check.look(one(question="q", answer="a", **meta), Rubric("good", "Is it good?"), [0])
    assert told in "".join(check.notes())
    assert bool(check.notes()) == bool(told)


def test_calls_of_tools_are_turns_in_words() -> None:
    function = {"name": "weather", "arguments": '{"city":"Rome"}'}
    talk = [
        {"role": "user", "content": "Weather in Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "21 C"},
        {"role": "assistant", "content": "It is 21 degrees."},
    ]
    item = one(messages=talk)
    assert item.responses == ((Text("It is 21 degrees."),),)
    said = [(turn.role, text_of(turn.content)) for turn in item.instruction]
    assert said == [
        ("user", "Weather in Rome?"),
        ("assistant", '[tool call] weather({"city":"Rome"})'),
        ("assistant", "[tool result] 21 C"),
    ]
    assert one(messages=talk[:2]).responses == ((Text('[tool call] weather({"city":"Rome"})'),),)


def test_guessed_gold_is_known_as_such_in_a_file_that_is_written(tmp_path: Path) -> None:
    item = one(question="q", answer="a", human_score=4)
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        write_items(tmp_path / name, [item])
        (back,) = read_items(tmp_path / name)
        assert (back, back.gold_from) == (item, "human_score")


ASKED = {"role": "user", "content": "q"}
SAID = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [ASKED, SAID]},  # OpenAI, trl
        {"messages": '[{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]'},
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},  # ShareGPT
        {"prompt": [ASKED], "completion": [SAID]},  # trl
        {"prompt": "q", "completion": "a"},
        {"prompt": "q", "messages": [ASKED, SAID]},
        {"messages": [ASKED], "response": "a"},
    ],
)
def test_conversations(row: dict[str, Any]) -> None:
    assert texts(one(**row)) == ("user: q", ["a"])


OTHER = {"role": "assistant", "content": "b"}


@pytest.mark.parametrize(
    "row",
    [
        {"chosen": [ASKED, SAID], "rejected": [ASKED, OTHER]},
        {"prompt": "q", "chosen": [ASKED, SAID], "rejected": [ASKED, OTHER], "messages": [ASKED, SAID]},
        {"prompt": [ASKED], "chosen": [SAID], "rejected": [OTHER]},
        {"prompt": "q", "chosen": "a", "rejected": "b"},
        {"conversations": [{"from": "human", "value": "q"}], "chosen": {"from": "gpt", "value": "a"},
         "rejected": {"from": "gpt", "value": "b"}},
        {"conversation_a": [ASKED, SAID], "conversation_b": [ASKED, OTHER], "winner": "model_a"},
        {"conversation_a": json.dumps([ASKED, SAID]), "conversation_b": json.dumps([ASKED, OTHER]),
         "winner": "model_a"},
    ],
)  # fmt: skip
def test_conversational_preferences(row: dict[str, Any], tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    item = one(**row)
    assert (texts(item), item.gold) == (("user: q", ["a", "b"]), "a")
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")  # the usual file of such rows
    (read,) = read_items(tmp_path / "a.parquet")
    assert texts(read) == texts(item)


def test_texts_that_are_json_are_judged_as_texts_unless_they_hold_the_prompt() -> None:
    spelt = json.dumps([ASKED, SAID])
    assert texts(one(question="q", answer=spelt)) == ("user: q", [spelt])  # asked for a conversation, say
    for answer in (json.dumps([SAID]), json.dumps([{"a": 1}, {"b": 2}]), json.dumps([SAID, SAID]), "[1, 2]"):
        assert texts(one(answer=answer)) == ("", [answer])
    assert texts(one(answer=spelt)) == ("user: q", ["a"])
    pair = {"response_a": spelt, "response_b": json.dumps([ASKED, OTHER])}
    assert texts(one(prompt="q", **pair)) == ("user: q", ["a", "b"])
    asked_for = "Write a chat that begins with q, as JSON."
    assert texts(one(prompt=asked_for, **pair)) == (f"user: {asked_for}", [*pair.values()])


def test_several_turns() -> None:
    first = [ASKED, SAID, {"role": "user", "content": "more"}]
    item = one(chosen=[*first, SAID], rejected=[*first, OTHER])
    assert texts(item) == ("user: q / assistant: a / user: more", ["a", "b"])
    assert texts(one(messages=[{"role": "system", "content": "s"}, *first, SAID]))[1] == ["a"]
    apart = one(chosen=[ASKED, SAID, ASKED, SAID], rejected=[ASKED, OTHER, ASKED, SAID])
    assert texts(apart) == (
        "user: q",
        ["Assistant: a\n\nUser: q\n\nAssistant: a", "Assistant: b\n\nUser: q\n\nAssistant: a"],
    )


def test_pictures_stand_where_the_conversation_has_their_place() -> None:
    turns = [{"from": "human", "value": "Look: <image>\nWhat is it?"}, {"from": "gpt", "value": "A cat."}]
    item = one(conversations=turns, image="cat.png")
    assert item.instruction[0].content[1] == Image("cat.png")
    assert texts(item) == ("user: Look: \nWhat is it?", ["A cat."])
    assert one(question="q", image_path="cat.png", answer="a").images == [Image("cat.png")]
    assert "<image>" in texts(one(conversations=turns))[0]  # without a picture it is text
    parts = [{"type": "text", "text": "Look:", "image": None}, {"type": "image", "text": None}, {"type": "image"}]
    read = one(prompt=[{"role": "user", "content": parts}], completion="A cat.", images=["a.png", "b.png"])
    assert [image.source for image in read.images] == ["a.png", "b.png"]
    assert text_of(read.instruction[0].content) == "Look:"


def test_a_wrong_type_names_line_column_and_value(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"question": "q", "answer": "a"}\n{"question": "q", "answer": 42}')
    with pytest.raises(DataError, match=r"a\.jsonl:2: field 'response': column 'answer': .*got a number \(42\)"):
        list(read_items(path))


def test_numbers_are_text_in_every_format(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"question": ["6 x 7?", "1/2?"], "answer": [42, 7], "expected": [42.0, 0.5]})
    frame["right"] = [True, False]
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True, double_precision=1)
    frame.to_parquet(tmp_path / "a.parquet")
    told = "columns question -> instruction, answer -> response, expected -> reference"
    numbers = "; the numbers of answer and expected are read as text"
    for name in ("a.csv", "a.parquet", "a.jsonl"):
        reading = Arrangement()
        items = [item for item in scan_items(str(tmp_path / name), {}, reading) if isinstance(item, Item)]
        assert [(item.response, item.reference) for item in items] == [
            ((Text("42"),), (Text("42.0"),)), ((Text("7"),), (Text("0.5"),)),
        ], name  # fmt: skip
        assert reading.mapping_line() == told + numbers * (name != "a.csv")
    run = grade(frame, "mock:constant", "helpfulness", map={"response": "right"})
    assert [item["response"] for item in run.table()] == ["True", "False"]
    assert "the numbers of right and expected are read as text" in caplog.text
    with pytest.raises(DataError, match=r"rows:1: .*'answer': got text \('so'\) where earlier records hold numbers"):
        grade([{"question": "q", "answer": 1}, {"question": "q", "answer": "so"}], "mock:constant", "helpfulness")


def test_systems_are_named_in_the_line_that_says_what_was_mapped() -> None:
    reading = Arrangement()
    row = {"question": "q", "answer_a": "a", "answer_b": "b", "model_a": "x", "model_b": "y", "winner": "a"}
    (item,) = scan_rows([row], {}, reading)
    assert isinstance(item, Item)
    assert reading.mapping_line() == (
        "columns question -> instruction, answer_a -> response_0, answer_b -> response_1, winner -> gold (guessed), "
        "model_a -> system of response_0, model_b -> system of response_1"
    )


def table(path: Path, rows: list[list[str]], **how: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **how).writerows(rows)
    return path


ROWS = [["question", "answer", "note"], ["Why; or, how?", 'He said "so"\nand left', "x\ty"], ["B", "c", ""]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.txt", "a"])
def test_tables_of_any_delimiter_and_quoting(tmp_path: Path, delimiter: str, quoting: int, name: str) -> None:
    path = table(tmp_path / name, ROWS, delimiter=delimiter, quoting=quoting)
    read = list(read_items(path))
    assert [texts(item) for item in read] == [("user: Why; or, how?", ['He said "so"\nand left']), ("user: B", ["c"])]
    assert read[0].meta["note"] == "x\ty"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("escape", [None, "\\"])
def test_tables_quoted_with_apostrophes(tmp_path: Path, delimiter: str, quoting: int, escape: str | None) -> None:
    said = f"It's a{delimiter} \"good\" one{delimiter}\nisn't it?"
    rows: list[list[Any]] = [["question", "answer", "rating"], [f"Why{delimiter} or how?", said, 3], ["B", "", 4]]
    how = {"delimiter": delimiter, "quoting": quoting, "quotechar": "'", "escapechar": escape}
    path = table(tmp_path / "a.csv", rows, **how, doublequote=escape is None)
    read = list(read_items(path))
    assert [(*texts(item), item.gold) for item in read] == [
        (f"user: Why{delimiter} or how?", [said], 3), ("user: B", [""], 4),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cells"),
    [  # as exports of databases write it, with a bare header, NULL and a decimal comma
        ("question;answer;rating\n'Why?';'So';3,5\n'B';'it''s';NULL\n", ["Why?", "So", "B", "it's"]),
        # apostrophes of ordinary text stay, also where they begin and end cells
        ("question,answer\n'Tis so?,It's so\n\"Who, me?\",'Yes'\n", ["'Tis so?", "It's so", "Who, me?", "'Yes'"]),
        ("question,answer\nthe '90s,rock 'n' roll\n'q',plain\n", ["the '90s", "rock 'n' roll", "'q'", "plain"]),
        ("question\tanswer\n'a\tb'\nc\t'd'\n", ["'a", "b'", "c", "'d'"]),
    ],
)  # fmt: skip
def test_apostrophes_that_quote_and_those_that_do_not(text: str, cells: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text, "utf-8")
    asked = [texts(item) for item in read_items(path)]
    assert [each for a, b in asked for each in (a.removeprefix("user: "), *b)] == cells


def test_a_quotation_mark_that_is_not_closed_is_no_reason_for_apostrophes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("question,answer\nq,\"a\nit's,b\n", "utf-8")
    with pytest.raises(DataError, match=r'a\.csv:2: broken row .* write " inside them as ""'):
        list(read_items(path))
    path.write_text("'question','answer'\n'q','a'\n'it's','b'\n", "utf-8")
    with pytest.raises(DataError, match=r"a\.csv:3: broken row .* write ' inside them as ''"):
        list(read_items(path))


GERMAN = 'Frage;Antwort;Bewertung;Modell\r\nWarum?;"Darum; so ""schön"" es ist.";4,5;Süd\r\nWer?;Niemand;2,0;Nord\r\n'


@pytest.mark.parametrize(("head", "code"), [("", "utf-8"), ("", "utf-8-sig"), ("sep=;\r\n", "utf-8-sig")])
def test_a_table_from_a_german_spreadsheet(head: str, code: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes((head + GERMAN).encode(code))
    reading = Arrangement()
    assert not any(isinstance(each, DataError) or each.responses for each in scan_items(str(path), {}, reading))
    told = lacking(1, reading.columns, reading.mapped, reading.lengths)
    proposed = [word.partition("=") for word in shlex.split(told.replace(",", " ").replace(";", " ")) if "=" in word]
    assert [(a, b) for a, _, b in proposed] == [
        ("instruction", "Frage"),
        ("response", "Antwort"),
        ("gold", "Bewertung"),
    ]
    items = list(read_items(path, columns={field: column for field, _, column in proposed}))
    assert texts(items[0]) == ("user: Warum?", ['Darum; so "schön" es ist.'])
    assert [(item.gold, item.meta) for item in items] == [(4.5, {"Modell": "Süd"}), (2, {"Modell": "Nord"})]
    assert items[0].origin.endswith(f":{2 + bool(head)}")


@pytest.mark.parametrize("code", ["cp1252", "utf-16"])
def test_other_encodings_are_refused_with_the_command_that_converts(code: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(GERMAN.encode(code))
    name = {"cp1252": "WINDOWS-1252", "utf-16": "UTF-16"}[code]
    with pytest.raises(DataError, match=f"iconv -f {name} -t UTF-8 FILE > OTHER"):
        list(read_items(path))


def test_the_index_of_a_data_frame_is_metadata(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(",question,answer\n0,q,a\n1,q,b\n")  # as frame.to_csv("a.csv") writes it
    assert [(texts(item), item.meta) for item in read_items(path)] == [
        (("user: q", ["a"]), {"Unnamed: 0": "0"}),
        (("user: q", ["b"]), {"Unnamed: 0": "1"}),
    ]


def test_blanks_before_quoted_cells(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('question, answer, rating\n"a, b", "c, d", 3\n"e, f", "g", 4\n')
    found = [(*texts(item), item.gold) for item in read_items(path)]
    assert found == [("user: a, b", ["c, d"], 3), ("user: e, f", ["g"], 4)]


@pytest.mark.parametrize("name", ["image_id", "context_id", "image2", "response_time", "idx", "goal", "content"])
def test_columns_near_a_field_that_are_names_of_their_own(name: str) -> None:
    assert one(**{"question": "q", "answer": "a", name: "x"}).meta == {name: "x"}


def test_a_column_that_is_a_slip_of_a_field_names_the_map_to_write() -> None:
    (found,) = scan_rows([{"question": "q", "answer": "a", "references": "r"}], {})
    assert "did you mean 'reference'? Then write --map reference=references" in str(found)


@pytest.mark.parametrize(("said", "gold"), [(1.0, "a"), (2.0, "b"), (2, "b"), ("1", "a"), (1.5, "tie"), ("tie", "tie")])
def test_preferences_as_alpaca_eval_writes_them(said: object, gold: str) -> None:
    row = {"instruction": "q", "output_1": "a", "generator_1": "x", "output_2": "b", "generator_2": "y"}
    item = one(**row, annotator="gpt-4", preference=said)
    assert (item.gold, item.gold_from, systems_of(item)) == (gold, "preference", ("x", "y"))
    single = one(instruction="q", output="a", generator="x")
    assert systems_of(single) == ("x",)


@pytest.mark.parametrize(("said", "gold"), [(1.5, "1.5"), ("1.5", "1.5"), (1, "a"), (2.0, "b"), (2.5, "2.5")])
def test_nothing_lies_halfway_between_three_responses(said: object, gold: str) -> None:
    assert winner(said, (), ("response_1", "response_2", "response_3")) == gold


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"messages": [{"role": "user", "content": "hi"}]}, "no conversation in 'messages' ends with a turn of the"),
        ({"data": [{"question": "a", "answer": "b"}]}, "no column holds text; the columns are data"),
        ({"a": 1, "b": 2}, "no column holds text; the columns are a, b"),
    ],
)
def test_what_cannot_be_named_is_not_proposed(row: dict[str, Any], told: str) -> None:
    reading = Arrangement()
    list(scan_rows([row], {}, reading))
    assert lacking(1, reading.columns, reading.mapped, reading.lengths).startswith(told)


def test_an_argilla_record_says_how_its_fields_become_columns() -> None:
    row = {"id": "1", "fields": {"prompt": "q", "response": "a"}, "responses": {"rating": [{"value": 3}]}}
    with pytest.raises(
        DataError, match=r"rows:0: an Argilla record: make its fields columns \(jq -c '\{id\} \+ \.fields'"
    ):
        list(scan_rows([row], {}))


GEMINI_SAID = {"candidates": [{"content": {"role": "model", "parts": [
    {"text": "Let me think.", "thought": True}, {"text": "a"}]}}], "modelVersion": "gemini-2.5-flash"}  # fmt: skip
CLAUDE_ASKED = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}
CLAUDE_SAID = {"type": "succeeded", "message": {"content": [{"type": "text", "text": "a"}]}}
OTHERS = [  # files of other programs, by name, and what the columns are after the command of the message
    ({"FILE": [{"custom_id": "r", "response": {"body": {"choices": [{"message": {"content": "a"}}]}}, "error": None}],
      "REQUESTS": [{"custom_id": "r", "method": "POST", "url": "/", "body": {"model": "m", "messages": [
          {"role": "user", "content": "q"}]}}]}, None),
    ({"FILE": [{"custom_id": "r", "method": "POST", "url": "/", "body": {"model": "m", "messages": [
        {"role": "user", "content": "q"}]}}],
      "REPLIES": [{"custom_id": "r", "response": {"body": {"choices": [{"message": {"content": "a"}}]}}}]}, None),
    ({"FILE": [{"id": 7, "data": {"question": "q", "answer": "a"}, "annotations": [
        {"result": [{"value": {"rating": 4}}]}]}]}, 4),
    ({"FILE": [{"id": 7, "data": {"question": "q", "answer": "a"}, "annotations": [
        {"result": [{"value": {"choices": ["good"]}}]}]}]}, "good"),
    ({"FILE": [{"contents": [{"parts": [{"text": "q"}]}, {"role": "model", "parts": [{"text": "a"}]}]}]}, None),
    ({"FILE": [{"key": "r", "error": {"code": 13}}, {"key": "s", "response": GEMINI_SAID}],
      "REQUESTS": [{"key": "s", "request": {"contents": [{"parts": [{"text": "q"}]}]}}]}, None),
    ({"FILE": [{"key": "r", "request": {"contents": [{"parts": [{"text": "q"}]}]}}],
      "REPLIES": [{"key": "r", "response": GEMINI_SAID}]}, None),
    ({"FILE": [{"request": {"contents": [{"parts": [{"text": "q"}]}]}, "status": "", "response": GEMINI_SAID}]}, None),
    ({"FILE": [{"custom_id": "r", "result": CLAUDE_SAID}], "REQUESTS": [{"custom_id": "r", "params": CLAUDE_ASKED}]},
     None),
    ({"FILE": [{"custom_id": "r", "params": CLAUDE_ASKED}], "REPLIES": [{"custom_id": "r", "result": CLAUDE_SAID}]},
     None),
]  # fmt: skip


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands are of jq")
@pytest.mark.parametrize(("files", "gold"), OTHERS)
def test_files_of_other_programs_name_a_command_that_works(files: dict[str, Any], gold: object, tmp_path: Path) -> None:
    item = made_by_the_cure(files, tmp_path)
    assert (texts(item), item.gold) == (("user: q", ["a"]), gold)


def made_by_the_cure(files: dict[str, Any], folder: Path) -> Item:
    """The last item that is read after the command which the message about `FILE` names."""
    for name, rows in files.items():
        (folder / name).write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    with pytest.raises(DataError) as told:
        list(read_items(folder / "FILE"))
    command = str(told.value).partition("(jq ")[2].removesuffix(")").partition(" (jq ")
    subprocess.run("jq " + (command[2] or command[0]), shell=True, check=True, cwd=folder)
    return list(read_items(folder / "OTHER.jsonl"))[-1]


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands are of jq")
@pytest.mark.parametrize(
    "files",
    [
        {"FILE": [{"systemInstruction": {"parts": [{"text": "s"}]},
                   "contents": [{"parts": [{"text": "q"}]}, {"role": "model", "parts": [{"text": "a"}]}]}]},
        {"FILE": [{"key": "r", "response": GEMINI_SAID}], "REQUESTS": [{"key": "r", "request": {
            "system_instruction": {"parts": [{"text": "s"}]}, "contents": [{"parts": [{"text": "q"}]}]}}]},
        {"FILE": [{"custom_id": "r", "result": CLAUDE_SAID}],
         "REQUESTS": [{"custom_id": "r", "params": {**CLAUDE_ASKED, "system": "s"}}]},
    ],
)  # fmt: skip
def test_commands_for_files_of_other_programs_keep_the_system_turn(files: dict[str, Any], tmp_path: Path) -> None:
    assert texts(made_by_the_cure(files, tmp_path)) == ("system: s / user: q", ["a"])


@pytest.mark.skipif(shutil.which("jq") is None, reason="the commands are of jq")
def test_a_batch_reply_that_failed_is_no_empty_response(tmp_path: Path) -> None:
    asked = [{"key": key, "request": {"contents": [{"parts": [{"text": key}]}]}} for key in "rs"]
    blocked = {"candidates": [{"finishReason": "SAFETY"}]}
    said = [{"key": "r", "response": GEMINI_SAID}, {"key": "s", "response": blocked}]
    item = made_by_the_cure({"FILE": said, "REQUESTS": asked}, tmp_path)
    assert item.responses == ()


def test_what_an_annotator_decided_is_no_response() -> None:
    row = {"text": "said", "answer": "accept", "_input_hash": 1, "_task_hash": 2}
    with pytest.raises(DataError, match=r"an annotation of Prodigy, .* --map response=COLUMN"):
        list(scan_rows([row], {}))
    (item,) = scan_rows([row], {"response": "text"})
    assert isinstance(item, Item)
    assert texts(item) == ("", ["said"])


def turns(*said: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": each} for i, each in enumerate(said)]


@pytest.mark.parametrize(
    ("columns", "cells"),
    [
        (("conversation_a", "conversation_b"), (turns("q", "x"), turns("q", "y"))),
        (("prompt", "chosen", "rejected"), ("q", turns("q", "x"), turns("q", "y"))),
        (("prompt", "chosen", "rejected"), ("q", turns("q", "x")[1:], turns("q", "y")[1:])),
        (("prompt", "response_a", "response_b"), (["q"], ["x"], ["y"])),
        (("prompt", "chosen", "rejected"), (turns("q"), turns("q", "x")[1:], turns("q", "y")[1:])),
        (("prompt", "chosen", "rejected"), (turns("q"), turns("q", "x"), turns("q", "y"))),
        (("prompt", "chosen", "rejected"), (turns("q"), "x", "y")),
    ],
)
def test_conversations_in_the_cells_of_a_table(
    columns: tuple[str, ...], cells: tuple[Any, ...], tmp_path: Path
) -> None:
    written = [each if isinstance(each, str) else orjson.dumps(each).decode() for each in cells]
    (item,) = read_items(table(tmp_path / "a.csv", [list(columns), written]))
    assert texts(item) == ("user: q", ["x", "y"])


@pytest.mark.parametrize("said", ["a", [SAID], [ASKED, SAID]])
@pytest.mark.parametrize("asked", ["prompt", "question"])
def test_a_prompt_and_one_response_in_the_cells_of_a_table(asked: str, said: Any, tmp_path: Path) -> None:
    cells = [json.dumps([ASKED]), said if isinstance(said, str) else json.dumps(said)]
    (item,) = read_items(table(tmp_path / "a.csv", [[asked, "completion"], cells]))
    assert texts(item) == ("user: q", ["a"])


@pytest.mark.parametrize("asked", ['[{"role": "tutor", "content": "q"}]', '[{"name": "q"}]', "[1, 2]", "[sic] q"])
def test_prompts_that_are_no_conversation_stay_text(asked: str) -> None:
    assert texts(one(prompt=asked, completion="a")) == (f"user: {asked}", ["a"])
    assert texts(one(prompt=asked, completion=json.dumps([SAID]))) == (f"user: {asked}", [json.dumps([SAID])])


def test_several_turns_in_the_cells_of_a_table(tmp_path: Path) -> None:
    cells = ['["q", "r"]', '["x", "y"]', '["z", null]']
    (item,) = read_items(table(tmp_path / "a.csv", [["prompt", "response_a", "response_b"], cells]))
    said = ["Assistant: x\n\nUser: r\n\nAssistant: y", "Assistant: z\n\nUser: r\n\nAssistant: "]
    assert texts(item) == ("user: q", said)


@pytest.mark.parametrize(
    "cells",
    [("Sort it", "[1, 2]", "[2, 1]"), ("[3]", '["a"]', '["b"]'), ("Ask", '[{"role": "a"}]', '[{"role": "b"}]'),
     ('["a", "b"]', '["a"]', '["b"]')],
)  # fmt: skip
def test_lists_that_are_no_conversations_stay_text(cells: tuple[str, ...], tmp_path: Path) -> None:
    (item,) = read_items(table(tmp_path / "a.csv", [["prompt", "answer_a", "answer_b"], list(cells)]))
    assert texts(item) == (f"user: {cells[0]}", list(cells[1:]))


def test_conversations_as_python_prints_them_are_refused(tmp_path: Path) -> None:
    cells = [str(turns("q", each)) for each in "xy"]
    path = table(tmp_path / "a.csv", [["conversation_a", "conversation_b"], cells])
    with pytest.raises(DataError, match=r"a\.csv:2: .* as Python prints it, .*: write the table as JSONL or Parquet"):
        list(read_items(path))
    path = table(tmp_path / "b.csv", [["prompt", "completion"], [str(turns("q")), "a"]])
    with pytest.raises(DataError, match=r"b\.csv:2: field 'instruction': .* as Python prints it"):
        list(read_items(path))


@pytest.mark.parametrize("names", [("model_a", "model_b"), ("system_a", "system_b")])
def test_the_name_of_a_system_is_not_proposed_as_the_prompt(names: tuple[str, str]) -> None:
    reading = Arrangement()
    list(scan_rows([{"answer_a": "x", "answer_b": "y", **dict.fromkeys(names, "a long name")}], {}, reading))
    assert "--map" not in reading.mapping_line()


@pytest.mark.parametrize(
    ("row", "flags"),
    [
        ({"inputs": SHORT, "outputs": SHORT}, "--map instruction=inputs --map response=outputs"),
        ({"userPrompt": SHORT, "modelReply": SHORT, "humanScore": "3"},
         "--map instruction=userPrompt --map response=modelReply, if these are the question and the answer to judge; "
         "--map gold=humanScore"),
        ({"title": SHORT, "id": "3"}, "--map response=COLUMN, or add it if the file has nothing to judge yet"),
        ({"title": SHORT, "spec": SHORT, "source": "web"}, "--map response=COLUMN, or add it if the file has nothing"),
        ({"topic": SHORT, "task": SHORT}, "--map response=COLUMN, or add it if the file has nothing to judge yet"),
    ],
)  # fmt: skip
def test_cures_name_all_that_is_likely_and_nothing_else(row: dict[str, str], flags: str) -> None:
    reading = Arrangement()
    list(scan_rows([row], {}, reading))
    assert f"name it with {flags}" in lacking(1, reading.columns, reading.mapped, reading.lengths)


@pytest.mark.parametrize(
    ("row", "cure"),
    [
        ({"prompt": "q", "outputs": ["x", "y"]}, ""),
        ({"prompt": "q", "completions": [{"response": "x", "model": "m"}, {"response": "y", "model": "n"}]}, "prompt"),
        ({"prompt": "q", "candidates": [{"text": "x"}, {"text": "y"}]}, "prompt"),
        ({"qa": {"question": "q", "answer_a": "x", "answer_b": "y", "answer": "z"}, "n": 1}, "qa"),
    ],
)
@pytest.mark.parametrize("parquet", [False, True])
def test_responses_in_lists_and_objects_have_a_cure_that_works(
    row: dict[str, Any], cure: str, parquet: bool, tmp_path: Path
) -> None:
    path = tmp_path / "FILE"
    if parquet:
        pq.write_table(pa.Table.from_pylist([row]), path)
    else:
        path.write_bytes(orjson.dumps(row) + b"\n")
    list(scan_items(str(path), {}, reading := Arrangement()))
    for needed in (1, 2):
        told = lacking(needed, reading.columns, reading.mapped, reading.lengths, reading.nested)
        if not cure:
            assert told.endswith("'outputs' holds lists of texts: name it with --map responses=outputs")
            (item,) = read_items(path, columns={"responses": "outputs"})
        elif shutil.which("jq"):
            command = told[told.index("(python " if parquet else "(jq ") + 1 :].removesuffix(")")
            subprocess.run(command.replace("python ", f"{sys.executable} "), shell=True, check=True, cwd=tmp_path)
            (item,) = read_items(tmp_path / "OTHER.jsonl")
    assert texts(item) == ("user: q", ["x", "y"])


@pytest.mark.parametrize("field", ["response", "answer", "completion", "output"])
@pytest.mark.parametrize("said", [["x", "y"], np.array(["x", "y"])])
def test_a_list_of_texts_is_not_joined_into_one_response(field: str, said: Any) -> None:
    with pytest.raises(DataError, match=f"--map responses={field} judges each"):
        raise next(iter(scan_rows(rows_in([{"prompt": "q", field: said}]), {})))  # type: ignore[misc]
    (item,) = scan_rows(rows_in([{"prompt": "q", field: said}]), {"responses": field})
    assert isinstance(item, Item)
    assert texts(item)[1] == ["x", "y"]
    assert texts(one(prompt="q", **{field: ["x"]}))[1] == ["x"]
    assert texts(one(prompt="q", **{field: [{"type": "text", "text": "x"}, "y"]}))[1]  # parts, by their form


@pytest.mark.parametrize("fields", [("chosen", "rejected"), ("answer_a", "answer_b")])
def test_lists_of_better_and_worse_responses_become_pairs(fields: tuple[str, str], tmp_path: Path) -> None:
    path, row = tmp_path / "FILE", {"id": "r", "prompt": "q", fields[0]: ["x"], fields[1]: ["y", "z"]}
    path.write_bytes(orjson.dumps(row) + b"\n")
    with pytest.raises(DataError, match=f"{fields[1]!r} holds a list of texts where one response is needed") as told:
        list(read_items(path))
    if shutil.which("jq"):
        command = str(told.value).partition("(")[2].partition(" FILE > OTHER.jsonl)")[0] + " FILE > OTHER.jsonl"
        subprocess.run(command, shell=True, check=True, cwd=tmp_path)
        pairs = list(read_items(tmp_path / "OTHER.jsonl"))
        assert [texts(each)[1] for each in pairs] == [["x", "y"], ["x", "z"]]
        assert len({each.id for each in pairs}) == 2


@pytest.mark.parametrize(
    "row",
    [{"prompt": "q", "tags": ["x", "y"]}, {"prompt": "q", "meta_info": {"web": "x"}}, {"prompt": "q", "replies": []}],
)
def test_lists_and_objects_without_responses_are_no_cure(row: dict[str, Any]) -> None:
    list(scan_rows([row], {}, reading := Arrangement()))
    assert reading.nested == {}


def test_escaped_and_plain_quotation_marks(tmp_path: Path) -> None:
    escaped = table(tmp_path / "a.csv", ROWS, escapechar="\\", doublequote=False)
    assert texts(next(read_items(escaped)))[1] == ['He said "so"\nand left']
    plain = tmp_path / "b.tsv"
    plain.write_text('question\tanswer\n"Why" he asked\tso\nB\t"c\n', "utf-8")
    assert [texts(item) for item in read_items(plain)] == [('user: "Why" he asked', ["so"]), ("user: B", ['"c'])]


def test_a_row_that_is_inserted_changes_no_other_id(tmp_path: Path) -> None:
    rows = [["question", "answer", "score"], *([f"q{i}", f"a{i}", str(i)] for i in range(20))]
    before = [item.id for item in read_items(table(tmp_path / "a.csv", rows))]
    rows.insert(1, ["new", "row", "3"])
    rows[5][2] = "mended"  # metadata is not shown
    after = [item.id for item in read_items(table(tmp_path / "a.csv", rows))]
    assert after[1:] == before
    assert len(set(after)) == 21
    named = {item.id for item in read_items(table(tmp_path / "b.csv", rows), columns={"id": "score"})}
    assert "mended" in named


def test_equal_rows_are_numbered_and_told() -> None:
    row = {"question": "q", "answer": "a"}
    arrangement = Arrangement()
    ids = [item.id for item in scan_rows([row, row, {"question": "other", "answer": "a"}, row], {}, arrangement)
           if isinstance(item, Item)]  # fmt: skip
    assert [each.partition("#")[2] for each in ids] == ["", "2", "", "3"]
    assert (arrangement.equal, arrangement.equal_at) == (2, ["rows:1", "rows:3"])
    assert arrangement.mapping_line() == "columns question -> instruction, answer -> response"
    assert arrangement.equal_items_note() == "2 without an id equal to an earlier item, called #2, #3, ...: row 1, 3"


def test_equal_rows_of_a_folder_are_told_with_their_files(tmp_path: Path) -> None:
    rows = [["question", "answer"], ["q", "a"], ["q", "b"]]
    first, _ = table(tmp_path / "a.csv", rows), table(tmp_path / "b.csv", rows[:2])
    arrangement = Arrangement()
    assert len(list(scan_items(str(tmp_path), {}, arrangement))) == 3
    assert arrangement.equal_items_note() == "1 without an id equal to an earlier item, called #2, #3, ...: b.csv:2"
    table(first, [*rows, rows[1]])
    arrangement = Arrangement()
    list(scan_items(str(first), {}, arrangement))
    assert arrangement.equal_items_note().endswith(": line 4")


def test_an_id_column_with_duplicates_names_both_lines_and_a_way_out(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", [["uid", "question", "answer"], ["1", "q", "a"], ["2", "q", "b"], ["1", "q", "c"]])
    with pytest.raises(DataError, match=r"a\.csv:4: .*the id '1' is on line 2 already: .*--map id= "):
        list(read_items(path))
    assert len(list(read_items(path, columns={"id": ""}))) == 3


def test_a_large_table_is_read_in_flat_memory(tmp_path: Path) -> None:
    """Twenty times the file takes the memory of the ids (12 bytes a slot) and no more."""

    def peak(rows: int) -> int:
        path = table(
            tmp_path / f"{rows}.csv", [["question", "answer"], *([f"q{i}", f"a{i}" * 300] for i in range(rows))]
        )
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_items(path)) == rows
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(300), peak(6000)  # of .6 and 12 MB
    assert large - small < 2**14 * 12 + 200_000


def test_one_row_in_python() -> None:
    item = item_of({"question": "q", "answer": "a", "model": "gpt"})
    assert (texts(item), item.id, item.meta) == (("user: q", ["a"]), "item", {"model": "gpt"})


@pytest.mark.parametrize(
    ("head", "named", "told"),
    [
        ("prompt,generated_image", {"response": "generated_image"}, "--map image=generated_image shows them"),
        ("prompt,image_a,image_b", {"response_0": "image_a", "response_1": "image_b"}, "written in JSONL as"),
        ("filename,caption", {"instruction": "filename", "response": "caption"}, "--map image=filename shows them"),
        ("prompt,answer", {}, ""),
    ],
)
def test_names_of_pictures_are_not_judged_as_text(head: str, named: dict[str, str], told: str, tmp_path: Path) -> None:
    row = ["p/0.png" if "image" in each or each in ("filename", "answer") else "a cat" for each in head.split(",")]
    path = tmp_path / "own.csv"
    path.write_text(f"{head}\n{','.join(row)}\n")
    if told:
        with pytest.raises(DataError, match=told):
            list(read_items(path, columns=named))
    else:  # the name of a file that is not there may be an answer
        assert texts(next(read_items(path)))[1] == ["p/0.png"]
    list(scan_items(str(path), {}, reading := Arrangement()))
    assert not any(reading.lengths.get(each) for each in head.split(",") if "image" in each or each == "filename")


@pytest.mark.parametrize("name", ["own.md", "own.csv", "own.txt"])
def test_a_markdown_table_is_refused_with_the_command_that_converts(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("| question | answer |\n|---|:-:|\n| What is 2, + 2? | It is 4. |\n| q2 | a2 |\n")
    with pytest.raises(UserError, match="a Markdown table") as told:
        list(read_items(path))
    command = str(told.value).partition("a bar (")[2].removesuffix(")")
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    found = [texts(each) for each in read_items(tmp_path / "OTHER.csv")]
    assert found == [("user: What is 2, + 2?", ["It is 4."]), ("user: q2", ["a2"])]


def test_frames_whose_columns_have_no_name_of_their_own_are_refused() -> None:
    twice = pd.DataFrame([["q", "wrong", "right"]], columns=["question", "answer", "answer"])
    levels = pd.DataFrame({("a", "question"): ["q"], ("a", "answer"): ["a"]})
    table = pa.Table.from_arrays([["q"], ["a"]], names=["answer", "answer"])
    for frame, told in ((twice, "several columns called 'answer'"), (levels, "have 2 levels"), (twice.answer, "called"),
                        (table, "called 'answer'")):  # fmt: skip
        with pytest.raises(UserError, match=told):
            list(rows_in(frame))
    assert list(rows_in(pd.Series(["x", "y"], name="answer"))) == [{"answer": "x"}, {"answer": "y"}]
    assert list(rows_in(pd.Series(["x", "y"], index=["question", "answer"]))) == [{"question": "x", "answer": "y"}]
    with pytest.raises(UserError, match="without a name"):
        list(rows_in(pd.Series(["x", "y"])))
