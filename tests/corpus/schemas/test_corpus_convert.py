"""Round trips between rows and items in every schema lose nothing."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from corpus.rows import (
    ALL,
    ARGILLA,
    CRITIC,
    CRITIC_RELATIVE,
    FEEDBACK,
    FLASK_REVIEW,
    HHH,
    LABEL_STUDIO,
    LLAVA,
    LLAVA_RLHF,
    MT_BENCH,
    PERCEPTION,
    PREFERENCE,
    RLAIF_V,
    RLHF_V,
    TRL_PREFERENCE,
    VLFEEDBACK,
)
from dikast.core.errors import DataError, UserError
from dikast.core.item import item_from, item_to
from dikast.core.part import Image, text_of
from dikast.core.records import read_items
from dikast.corpus.convert import convert_file, remapped, to_record, to_row
from dikast.corpus.schemas import SCHEMAS, get_schema, guess_schema
from dikast.corpus.schemas.delta import difference, restored, same
from dikast.corpus.schemas.sections import fields_of
from dikast.corpus.sources.scored_pairs import from_people, from_scores
from dikast.surface.cli import app
from dikast.worlds.make import make
from dikast.worlds.settings import Settings
from runs import dikast_here


@pytest.mark.parametrize(("name", "row"), ALL, ids=[f"{name}-{i}" for i, (name, _) in enumerate(ALL)])
def test_rows_come_back_exactly(name: str, row: dict[str, Any]) -> None:
    assert guess_schema(row).name == name
    record = to_record(row, SCHEMAS[name])
    item_from({"id": "x", **record})
    assert same(to_row(record, SCHEMAS[name]), row)
    # also after a detour through the item's own JSON form, and through JSON text
    again = orjson.loads(orjson.dumps(item_to(item_from({"id": "x", **record}))))
    if "id" not in record:
        again.pop("id")
    back = to_row(again, SCHEMAS[name])
    assert same({k: v for k, v in back.items() if k != "meta"}, {k: v for k, v in row.items() if k != "meta"})


def world(**settings: Any) -> list[dict[str, Any]]:
    return [item_to(sample.item()) for sample in make(Settings(scales=("1-5",), seed=3, **settings), 6)]


PREFERRED = (
    "trl-preference", "llava-preference", "llamafactory", "swift", "openrlhf", "verl", "rlhf-v", "llava-rlhf", "hhh",
    "mt-bench-human",
)  # fmt: skip


def records() -> Iterator[tuple[str, dict[str, Any]]]:
    single = [r for r in world() + world(domain="text") if not r["rubric"]["lower_is_better"]]
    pair = [r for r in world(responses=2) + world(domain="text", responses=2) if not r["rubric"]["lower_is_better"]]
    for name in SCHEMAS.keys() - {"talk"}:  # which holds what is taught, and no more
        pairs = name in ("preference", "autoj", *PREFERRED)
        for record in pair if pairs else single + (pair if name in ("critic", "argilla", "label-studio") else []):
            if name in PREFERRED and record["gold"]["preference"] == "tie":
                continue
            if name == "openrlhf" and any(image for image in item_from({"id": "x", **record}).images):
                continue
            if name == "flask":
                record = {**record, "reference": "It is as the picture shows."}
            yield name, {**record, "gold": 1} if name in ("trl-kto", "llamafactory-kto") else record


def test_items_come_back_exactly_through_every_schema() -> None:
    seen = set()
    for name, record in records():
        row = orjson.loads(orjson.dumps(to_row(record, SCHEMAS[name])))
        assert same(to_record(row, SCHEMAS[name]), record), name
        seen.add(name)
    assert seen == SCHEMAS.keys() - {"talk"}


def test_a_row_survives_a_chain_of_schemas() -> None:
    record = to_record(FEEDBACK, SCHEMAS["feedback"])
    for name in ("label-studio", "critic", "trl", "argilla", "biggen", "perception", "llava"):
        record = to_record(to_row(record, SCHEMAS[name]), SCHEMAS[name])
    assert same(to_row(record, SCHEMAS["feedback"]), FEEDBACK)


def test_what_a_row_says_arrives() -> None:
    item = item_from({"id": "x", **to_record(FEEDBACK, SCHEMAS["feedback"])})
    assert text_of(item.response) == "The Oder."
    assert item.gold == {"score": 4, "feedback": "Short, but right."}
    pair = item_from({"id": "x", **to_record(PREFERENCE, SCHEMAS["preference"])})
    assert pair.gold["preference"] == "a"
    assert pair.gold["scores"] == [5, 1]
    seen = item_from({"id": "x", **to_record(PERCEPTION, SCHEMAS["perception"])})
    assert [image.source for image in seen.images] == ["../train2017/000000000009.jpg"]
    assert text_of(seen.response) == "The Oder.\n###Note: it is long."  # a heading inside the response is part of it
    assert seen.gold["score"] == 4
    talk = item_from({"id": "x", **to_record(LLAVA, SCHEMAS["llava"])})
    assert [type(part) is Image for part in talk.instruction[0].content] == [True, False, True, False]
    assert text_of(talk.response) == "The first."


def test_the_preference_of_a_published_set_is_never_lost() -> None:
    def gold(name: str, row: dict[str, Any]) -> Any:
        return item_from({"id": "x", **to_record(row, SCHEMAS[name])}).gold

    assert gold("rlhf-v", RLHF_V) == gold("rlhf-v", RLAIF_V) == {"preference": "a"}
    assert gold("llava-rlhf", LLAVA_RLHF) == {"preference": "b"}
    assert gold("hhh", HHH) == {"preference": "b"}
    assert gold("mt-bench-human", MT_BENCH) == {"preference": "b"}
    rated = gold("vlfeedback", VLFEEDBACK)
    assert rated["scores"] == [round(14 / 3, 9), 3.5]  # (5 + 5 + 4) / 3, and (2 + 5) / 2 without the one that is N/A
    assert rated["responses"][1]["scores"] == {"Helpfulness": 2, "Ethical Considerations": 5}
    assert gold("flask", FLASK_REVIEW) == {"scores": {"factuality": 1}, "feedback": FLASK_REVIEW["review"]}
    columns = {key: [each[key] for each in VLFEEDBACK["completions"]] for key in VLFEEDBACK["completions"][0]}
    assert gold("vlfeedback", {**VLFEEDBACK, "completions": columns}) == rated  # as `datasets` reads it


@pytest.mark.parametrize(
    ("name", "row", "said"),
    [
        ("llava-rlhf", {**LLAVA_RLHF, "preference": 3}, "preference.*is 1 or 2, got 3"),
        ("hhh", {**HHH, "targets": {"choices": ["a", "b"], "labels": [1, 1]}}, "two choices of which one"),
        ("mt-bench-human", {**MT_BENCH, "winner": "model_c"}, "winner.*model_a, model_b or tie"),
        ("mt-bench-human", {**MT_BENCH, "turn": 3}, "conversation_a.*answers 3 questions"),
        ("vlfeedback", {**VLFEEDBACK, "completions": []}, "completions"),
        ("vlfeedback", {**VLFEEDBACK, "completions": [{"response": "A cat."}]}, r"completions\[0\].*'annotations'"),
        ("flask", {"text": "Name a river.", "answer": None, "metrics": []}, "answer"),
    ],
)
def test_a_row_of_a_published_set_without_what_it_needs_is_told(name: str, row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        to_record(row, SCHEMAS[name])


def test_pairs_for_critics_are_made_of_published_sets(tmp_path: Path) -> None:
    for name, row in (("vlfeedback", VLFEEDBACK), ("rlhf-v", RLHF_V), ("llava-rlhf", LLAVA_RLHF)):
        (tmp_path / f"{name}.jsonl").write_bytes(orjson.dumps(row) + b"\n")
    dropped: Counter[str] = Counter()
    ((pair,),) = from_scores(tmp_path / "vlfeedback.jsonl", 0.6, dropped)
    assert (pair.better, pair.gap) == (0, round(14 / 3 - 3.5, 9))
    better = [next(from_people(tmp_path / f"{name}.jsonl", dropped))[0].better for name in ("rlhf-v", "llava-rlhf")]
    assert (better, dropped) == ([0, 1], Counter())


@pytest.mark.parametrize(("row", "said"), [*CRITIC, (CRITIC_RELATIVE, {"score": 6})])
def test_the_dialects_of_the_critic_set(row: dict[str, Any], said: dict[str, Any]) -> None:
    gold = to_record(row, SCHEMAS["critic"])["gold"]
    assert {key: value for key, value in gold.items() if key != "feedback"} == said
    assert gold["feedback"]


def test_people_count_before_machines_and_differing_people_are_listed() -> None:
    assert to_record(ARGILLA, SCHEMAS["argilla"])["gold"] == {"score": 4}
    two = {**ARGILLA, "responses": {"score": [{"value": 4, "user_id": "a"}, {"value": 2, "user_id": "b"}]}}
    assert to_record(two, SCHEMAS["argilla"])["gold"] == {"raters": [4, 2]}
    assert to_record(LABEL_STUDIO, SCHEMAS["label-studio"])["gold"] == {"preference": "a", "feedback": "B is a city."}


def test_an_answer_given_in_a_tool_comes_back_and_the_rest_stays() -> None:
    record = next(r for name, r in records() if name == "label-studio" and "score" in r["gold"])
    task = to_row(record, SCHEMAS["label-studio"])
    given = {"type": "rating", "from_name": "score", "to_name": "response", "value": {"rating": 1}}
    task["annotations"] = [{"result": [given]}]
    back = to_record(task, SCHEMAS["label-studio"])
    assert back["gold"]["score"] == 1
    assert back["gold"]["claims"] == record["gold"]["claims"]
    assert back["rubric"] == record["rubric"]


def test_marks_are_regions_of_the_tools_and_come_back() -> None:
    """Characters of the response and boxes on its pictures; what people mark takes their place."""
    content = [{"type": "image", "image": "p.png"}, {"type": "text", "text": "What is it?"}]
    gold: dict[str, Any] = {"score": 2, "spans": [[2, 5]], "boxes": [[0, 0.105, 0.2, 0.3, 0.4]]}
    record: dict[str, Any] = {"id": "x", "instruction": content, "response": "A red cube.", "gold": gold}
    task = to_row(record, SCHEMAS["label-studio"])
    _, span, box = task["predictions"][0]["result"]
    assert span["value"] == {"start": 2, "end": 5, "text": "red", "labels": ["wrong"]}
    assert (span["type"], box["type"], box["item_index"]) == ("labels", "rectanglelabels", 0)
    assert [box["value"][name] for name in ("x", "y", "width", "height")] == [10.5, 20, 30, 40]
    assert same(to_record(task, SCHEMAS["label-studio"]), record)
    moved = [{**span, "value": {"start": 6, "end": 10, "labels": ["odd"]}}, span]
    task["annotations"] = [{"result": moved}]
    assert to_record(task, SCHEMAS["label-studio"])["gold"] == {**gold, "spans": [[2, 5], [6, 10]]}
    task["annotations"] += [{"result": [span]}]
    assert to_record(task, SCHEMAS["label-studio"])["gold"]["rater_spans"] == [[[2, 5], [6, 10]], [[2, 5]]]
    row = to_row(record, SCHEMAS["argilla"])
    assert row["suggestions"]["spans"] == {"value": [{"start": 2, "end": 5, "label": "wrong"}]}
    assert same(to_record(row, SCHEMAS["argilla"]), record)
    row["responses"] = {"spans": [{"value": [{"start": 0, "end": 5, "label": "wrong"}], "user_id": "a"}]}
    assert to_record(row, SCHEMAS["argilla"])["gold"] == {**gold, "spans": [[0, 5]]}
    odd = [{"type": "labels", "value": value} for value in ({}, {"start": "/p[1]", "end": "/p[1]", "startOffset": 0})]
    html = {"type": "labels", "value": {"start": "/p[1]", "end": "/p[1]", "globalOffsets": {"start": 0, "end": 1}}}
    task["annotations"] = [{"result": odd}]
    assert to_record(task, SCHEMAS["label-studio"])["gold"] == gold
    task["annotations"] = [{"result": [*odd, html, {"type": "rectanglelabels", "value": {"x": 1}}]}]
    assert to_record(task, SCHEMAS["label-studio"])["gold"] == {**gold, "spans": [[0, 1]]}
    unseen = {**record, "gold": {**gold, "boxes": [[1, 0.1, 0.2, 0.3, 0.4]]}}  # on a picture that the task lacks
    task = to_row(unseen, SCHEMAS["label-studio"])
    assert [each["type"] for each in task["predictions"][0]["result"]] == ["rating", "labels"]
    assert same(to_record(task, SCHEMAS["label-studio"]), unseen)


@pytest.mark.parametrize("people", [[9, 9], [9, 7], ["good", "good"]])
def test_sheets_of_people_on_another_scale_stop_before_a_call(tmp_path: Path, people: list[Any]) -> None:
    """What annotators gave is off 1-5: alike, not alike, or a word of a scale that is not the rubric's."""
    answers = [{"user_id": str(k), "value": value, "status": "submitted"} for k, value in enumerate(people)]
    fields = {"instruction": "Name a river.", "response": "The Elbe."}
    record = {"id": "1", "fields": fields, "suggestions": {}, "responses": {"score": answers}, "metadata": {}}
    sheet, items = tmp_path / "sheet.jsonl", tmp_path / "items.jsonl"
    sheet.write_bytes(orjson.dumps(record) + b"\n")
    convert_file(sheet, items, to="dikast")
    assert same(to_row(orjson.loads(items.read_bytes()), SCHEMAS["argilla"]), record)
    done = dikast_here(
        "grade", items, "--judge", "mock:oracle,r=0", "--rubric", "helpfulness", "--out", tmp_path / "run"
    )
    assert done.returncode == 2
    for told in ("off 1-5 of the rubric 'helpfulness'", repr(people[0]), "Nothing was asked", "--equate", "--scale"):
        assert told in done.stderr
    assert (
        not (tmp_path / "run" / "verdicts.jsonl").exists() or not (tmp_path / "run" / "verdicts.jsonl").stat().st_size
    )


def test_a_prompt_of_the_old_text_does_not_come_back() -> None:
    record = to_record(FEEDBACK, SCHEMAS["feedback"])
    changed = to_row({**record, "response": "The Elbe."}, SCHEMAS["feedback"])
    assert changed["orig_response"] == "The Elbe."
    assert "The Elbe." in changed["instruction"]
    assert changed["orig_score"] == "4"


@pytest.mark.parametrize("named", [{"completion": "A cat."}, {"chosen": "A cat.", "rejected": "A dog."}])
def test_rows_of_trl_as_text_are_read_and_written_as_messages(named: dict[str, str]) -> None:
    schema = SCHEMAS["trl" if "completion" in named else "trl-preference"]
    told = {key: [{"role": "assistant", "content": text}] for key, text in named.items()}
    for row in ({"prompt": "What is it?", **named}, {"prompt": [{"role": "user", "content": "What is it?"}], **told}):
        item = item_from({"id": "x", **to_record(row, schema)})
        assert [text_of(each) for each in (item.instruction[0].content, *item.responses)] == [
            "What is it?", *named.values()
        ]  # fmt: skip
        assert schema.writes(item) == {"prompt": [{"role": "user", "content": "What is it?"}], **told}


def test_pictures_of_trl_without_a_place_stand_before_the_first_turn_of_the_user() -> None:
    turns = [("system", "Be short."), ("user", "What is it?"), ("assistant", "A cat."), ("user", "Sure?")]
    row = {"prompt": [{"role": role, "content": text} for role, text in turns], "images": ["a.png", "b.png"],
           "completion": [{"role": "assistant", "content": "Yes."}]}  # fmt: skip
    item = item_from({"id": "x", **to_record(row, SCHEMAS["trl"])})
    assert [[type(part) is Image for part in turn.content] for turn in item.instruction] == [
        [False], [True, True, False], [False], [False]
    ]  # fmt: skip
    placed = SCHEMAS["trl"].writes(item)["prompt"][1]["content"]
    assert [part["type"] for part in placed] == ["image", "image", "text"]


@pytest.mark.parametrize("pictures", [True, False])
def test_in_files_for_trl_all_rows_have_images_or_none_has(pictures: bool, tmp_path: Path) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": str(n), "instruction": "What is it?", "response": "A cat."} for n in range(3)]
    if pictures:
        rows[1]["image"] = "a.png"
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    convert_file(source, out, to="trl")
    written = [orjson.loads(line) for line in out.read_bytes().splitlines()]
    assert [row.get("images") for row in written] == ([[], ["a.png"], []] if pictures else [None] * 3)
    convert_file(out, tmp_path / "back.jsonl", to="dikast")
    back = [item_from(orjson.loads(line)) for line in (tmp_path / "back.jsonl").read_bytes().splitlines()]
    assert [len(item.images) for item in back] == [0, int(pictures), 0]


def test_differences_are_exact_and_yield_to_edits() -> None:
    wanted, derived = {"a": 3, "b": [{"c": 1.0}], "d": "x"}, {"a": 3.0, "b": [{"c": 1}], "e": None}
    delta = difference(wanted, derived)
    assert same(restored(derived, delta), wanted)
    assert restored({**derived, "a": 9}, delta)["a"] == 9
    assert difference(wanted, wanted) == {}


def test_what_cannot_be_held_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'feedback'"):
        get_schema("feedbak")
    tie = {"instruction": "q", "responses": ["a", "b"], "gold": {"preference": "tie"}}
    with pytest.raises(DataError, match="is a tie"):
        to_row(tie, SCHEMAS["trl-preference"])
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_bytes(orjson.dumps(TRL_PREFERENCE) + b"\n" + orjson.dumps({**TRL_PREFERENCE, "chosen": 3}) + b"\n")
    with pytest.raises(DataError, match=r"in\.jsonl:2: field 'chosen'"):
        convert_file(source, out, to="dikast")
    assert not out.exists()
    with pytest.raises(DataError, match="no known schema has these columns"):
        guess_schema({"foo": 1})
    with pytest.raises(DataError, match="is not a score"):
        to_record({**FEEDBACK, "orig_score": "four"}, SCHEMAS["feedback"])


def test_convert_on_the_command_line(tmp_path: Path) -> None:
    source, items, back = tmp_path / "in.json", tmp_path / "items.jsonl", tmp_path / "back.json"
    source.write_bytes(orjson.dumps([PERCEPTION, {**PERCEPTION, "id": 8}]))
    (tmp_path / "coco").mkdir()
    result = CliRunner().invoke(
        app,
        ["corpus", "convert", str(source), str(items), "--to", "dikast", "--images", "../train2017/=coco/", "--json"],
    )
    assert result.exit_code == 0, result.output
    told = orjson.loads(result.stderr)
    assert (told["rows"], told["images"], told["missing_images"]) == (2, 1, 1)
    assert [item.images[0].source for item in read_items(items)] == ["coco/000000000009.jpg"] * 2
    more = ["--to", "perception", "--images", "coco/=../train2017/"]
    assert CliRunner().invoke(app, ["corpus", "convert", str(items), str(back), *more]).exit_code == 0
    assert same(orjson.loads(back.read_bytes()), [PERCEPTION, {**PERCEPTION, "id": 8}])
    ties = tmp_path / "ties.jsonl"
    ties.write_bytes(orjson.dumps({"id": "1", "instruction": "q", "responses": ["a", "b"], "gold": "tie"}) + b"\n")
    left = CliRunner().invoke(app, ["corpus", "convert", str(ties), str(back), "--to", "trl-preference", "--skip"])
    assert "1 left out: the item is a tie" in left.stderr
    assert remapped({"images": ["x/1", {"image": "y/2"}]}, {"x/": "z/"}) == {"images": ["z/1", {"image": "y/2"}]}


def recorded_rows(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in ("vicuna_eval", "mt_bench_eval", "biggen_items"):
        value = json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))
        yield from ((name, row) for row in (value.values() if isinstance(value, dict) else value))
    with gzip.open(folder / "autoj_pairwise.jsonl.gz") as file:
        yield from (("autoj_pairwise", json.loads(line)) for line in file)
    yield from (
        ("eval", json.loads(line)) for line in (folder / "perception_eval_sample.jsonl").read_text().splitlines()
    )
    yield from (("train", row) for row in json.loads((folder / "perception_train_sample.json").read_text()))


def test_published_rows_come_back_exactly(recorded: Path) -> None:
    """Public samples of the Prometheus family: 320 + 320 rendered prompts, 765 items, 1,392 pairs, 3 + 3 rows.

    The first hundred of each; `dikast corpus convert` gave all 320 of the first back equal.
    """
    seen: dict[str, int] = {}
    for name, row in recorded_rows(recorded / "prometheus"):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 100:  # enough of each for a quick test
            continue
        schema = guess_schema(row)
        record = to_record(row, schema)
        assert same(to_row(record, schema), row), name
        item = item_from({"id": "x", **record})
        if name in ("vicuna_eval", "mt_bench_eval"):
            rubric: Any = item.rubric
            assert len(rubric.levels) == 5
            assert item.reference is not None
            assert len(item.gold["raters"]) == 3
    assert seen == {
        "vicuna_eval": 320,
        "mt_bench_eval": 320,
        "biggen_items": 765,
        "autoj_pairwise": 1392,
        "eval": 3,
        "train": 3,
    }


def test_parts_of_published_prompts_are_found(recorded: Path) -> None:
    """The evaluation rows hold both the rendered prompt and its parts."""
    for line in (recorded / "prometheus" / "perception_eval_sample.jsonl").read_text().splitlines():
        row = json.loads(line)
        found = fields_of(row["instruction"])
        assert found["instruction"] == row["orig_instruction"].strip()
        assert found["response"] == row["original_response"].strip()
        assert found["reference"] == row["orig_reference_answer"].strip()
        assert found["rubric"]["criterion"] == row["orig_criteria"].strip()
        assert list(found["rubric"]["levels"].values()) == [
            row[f"orig_score{n}_description"].strip() for n in range(1, 6)
        ]
