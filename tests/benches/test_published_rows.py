"""Rows in the form that data sets publish, of benches whose rows were not seen here; clips as well as pictures."""

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from benches.own_bench import cards, judge_own, own, run
from dikast.benches.bench_rows import read_rows
from dikast.benches.definition import load_bench, names
from dikast.core.errors import UserError
from dikast.core.item import Item


def _picture(path: Path) -> None:
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (32, 32), (80, 90, 200)).save(path, "PNG")


def _clip(path: Path) -> None:
    import av

    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=8)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        for shade in range(16):
            for packet in stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), shade, np.uint8))):
                file.mux(packet)
        for packet in stream.encode():
            file.mux(packet)


def test_clips_are_shown_as_clips_and_one_of_picture_and_clip_is_enough(tmp_path: Path) -> None:
    """A clip was read as a picture, which cannot be opened: no question of such a bench had a verdict."""
    _clip(tmp_path / "c/one.mp4")
    _picture(tmp_path / "p.png")
    pair = {"prompt": "What is it?", "chosen": "x", "rejected": "y"}
    rows = [
        {"id": "1", **pair, "image": "p.png"}, {"id": "1", **pair, "video": "c/one.mp4"}, {"id": "2", **pair},
    ]  # fmt: skip
    listed = yaml.safe_load((resources.files("dikast.benches") / "catalogue/mm-rlhf-reward.yaml").read_text("utf-8"))
    bench = own(
        tmp_path, rows, **{key: listed[key] for key in ("kind", "fields", "optional", "gold", "official", "groups")}
    )
    read = read_rows(load_bench(str(bench)), tmp_path)
    assert [(len(item.images), len(item.videos)) for item in read.items] == [(1, 0), (0, 1), (0, 0)]
    assert "1 of 3 rows have no image, which is optional: asked without it" in read.notes
    found = judge_own(bench, "mock:first-slot", tmp_path / "out")
    assert found["ours"]["failed"]["value"] == 0
    (tmp_path / "c/one.mp4").unlink()
    with pytest.raises(UserError, match=r":2: the clip 'c/one.mp4' is not there"):
        read_rows(load_bench(str(bench)), tmp_path)
    assert len(read_rows(load_bench(str(bench)), tmp_path, pictures="skip").items) == 2


def test_a_clip_that_is_a_folder_of_frames_is_shown_as_at_most_32_of_them(tmp_path: Path) -> None:
    """As the authors' code of MM-RLHF reads it; the folder was told to be a missing picture."""
    for place in range(40):
        _picture(tmp_path / f"mm-rlhf-reward/video/scene/c01_{place:04}.jpeg")
    row = {"id": "1", "prompt": "q", "chosen": "x", "rejected": "y", "video": "video/scene"}
    (tmp_path / "mm-rlhf-reward/mm_reward_bench.jsonl").write_text(json.dumps(row) + "\n")
    [item] = read_rows(load_bench("mm-rlhf-reward"), tmp_path / "mm-rlhf-reward").items
    shown = [Path(each.source).name for each in item.images]
    assert (len(shown), shown[0], shown[-1]) == (32, "c01_0000.jpeg", "c01_0039.jpeg")
    assert shown == sorted(set(shown))
    done = run(
        "run", "mm-rlhf-reward", "--judge", "mock:first-slot", "--data", tmp_path, "--out", tmp_path / "out", "-q"
    )
    assert done.exit_code == 1, "the paths of rows lead from the folder that is given"
    done = run("run", "mm-rlhf-reward", "--judge", "mock:first-slot", "--data", tmp_path / "mm-rlhf-reward",
               "--out", tmp_path / "out", "-q")  # fmt: skip
    assert done.exit_code == 0, done.exception
    assert cards(tmp_path / "out")["mm-rlhf-reward"]["ours"]["failed"]["value"] == 0


def test_rows_in_the_published_form_of_data_sets_that_were_not_seen(tmp_path: Path) -> None:
    """Columns and files as the data sets' cards and their authors' code have them."""
    import pyarrow as arrow
    from pyarrow import parquet

    def put(path: str, *rows: dict[str, Any]) -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".parquet"):
            parquet.write_table(arrow.Table.from_pylist(list(rows)), tmp_path / path)
        elif path.endswith(".jsonl"):
            (tmp_path / path).write_text("".join(json.dumps(row) + "\n" for row in rows))
        else:
            (tmp_path / path).write_text(json.dumps(rows))

    def read(name: str) -> list[Item]:
        return read_rows(load_bench(name), tmp_path / name, unverified=True).items

    pair = {"prompt": "q", "chosen": "x", "rejected": "y", "source": "s", "category": "Chat"}
    for language in ("arb_Arab", "deu_Latn"):
        put(f"m-rewardbench/{language}/test-00000-of-00001.parquet", {"id": 1, "language": language, **pair})
    assert [(i.id, i.gold, i.meta["category"]) for i in read("m-rewardbench")] == [
        ("arb_Arab-1", "a", "Chat"), ("deu_Latn-1", "a", "Chat"),
    ]  # fmt: skip
    multimodal = tmp_path / "multimodal-rewardbench"
    _picture(multimodal / "images/nocaps/1.png")
    row = {"ID": "nocaps-1", "Text": "q", "Image": "images/nocaps/1.png", "Output1": "x", "Output2": "y",
           "Better": "Output2", "Category": "vqa"}  # fmt: skip
    put("multimodal-rewardbench/all_data.json", row)
    [item] = read("multimodal-rewardbench")
    assert (item.gold, item.meta["category"], len(item.images)) == ("b", "vqa", 1)
    picture = {"bytes": (multimodal / "images/nocaps/1.png").read_bytes(), "path": "1.png"}
    ratings = [0.0, 1.0, 0.25, 2 / 3]
    put("polaris/data/test-00000-of-00002.parquet",
        *({"refs": ["r"], "cand": f"a caption {i}", "img": picture, "human_score": each}
          for i, each in enumerate(ratings)))  # fmt: skip
    assert [item.gold for item in read("polaris")] == ratings
    done = run("run", "polaris", "--judge", "mock:constant", "--data", tmp_path, "--out", tmp_path / "out", "-q")
    assert done.exit_code == 0, done.exception
    ours = cards(tmp_path / "out")["polaris"]["ours"]
    assert ours["ours: mae"]["value"] == pytest.approx(np.abs(np.array(ratings) - 0.5).mean(), abs=1e-4)  # 3 of 1-5
    template = {"question_type": "attribute", "question_topic": "food", "image_id": "a1", "image_content": ["Egg"],
                "image_src": "https://pictures.test/1.jpg", "question": "q", "gt_answer": "red"}  # fmt: skip
    put("mmhal/response_template.json", template)
    [item] = read("mmhal")
    assert (item.id, item.meta["type"], item.images[0].source) == ("1", "attribute", "https://pictures.test/1.jpg")
    answer = {"id": 100, "instruction": "q", "original_dataset": "coco"}
    two = {"answer1": {"name": "gpt4", "answer": "x"}, "answer2": {"name": "llava", "answer": "y"}}
    for name in ("mllm-as-a-judge", "mllm-as-a-judge-pairs", "mllm-as-a-judge-batch"):  # as in a clone
        _picture(tmp_path / name / "Dataset/image/100.jpg")
    put("mllm-as-a-judge/Dataset/Benchmark/score.jsonl", {**answer, "answer": "x", "image_path": "100.jpg", "human": 4})
    put("mllm-as-a-judge-pairs/Dataset/Benchmark/pair.jsonl",
        {**answer, **two, "pair_id": 5, "image_path": "100.jpg", "human_answer": "B"})  # fmt: skip
    put("mllm-as-a-judge-batch/Dataset/Benchmark/batch.jsonl",
        {**answer, "answers": [two["answer1"]] * 4, "image_path": "image/100.jpg", "human_answer": "CDAB"})  # fmt: skip
    said = [read(name)[0] for name in ("mllm-as-a-judge", "mllm-as-a-judge-pairs", "mllm-as-a-judge-batch")]
    assert [item.gold for item in said] == [4, "b", {"places": [3, 4, 1, 2]}]
    assert [len(item.images) for item in said] == [1, 1, 1]
    put("rewardbench/data/filtered-00000-of-00001.parquet", {**pair, "id": 7, "subset": "hep-go"})
    assert read("rewardbench")[0].meta["subset"] == "hep-go"
    _clip(tmp_path / "video-dc/Test_Videos/v1.mp4")
    put("video-dc/data/test-00000-of-00001.parquet", {"video_name": "v1", "question": "q", "answer": "a"})
    assert [(item.id, len(item.videos)) for item in read("video-dc")] == [("v1", 1)]
    told = {"orig_instruction": "q", "orig_criteria": "Is it good?", "orig_reference_answer": "r", "instruction": "p"}
    told |= {f"orig_score{n}_description": f"level {n}" for n in range(1, 6)}
    put("feedback-bench/data/train-00000-of-00001-eddf1add30d20be1.parquet",
        {**told, "orig_response": "x", "orig_score": "4", "output": "o"})  # fmt: skip
    assert [item.gold for item in read("feedback-bench")] == ["4"]
    put("preference-bench/data/train-00000-of-00001-e61ca0c277ac061a.parquet",
        {**told, "orig_response_A": "x", "orig_response_B": "y", "orig_score_A": "5", "orig_score_B": "2",
         "orig_preference": "A"})  # fmt: skip
    assert [item.gold for item in read("preference-bench")] == ["a"]
    _picture(tmp_path / "visit-bench/test/1.png")
    header = "file_name,instruction_category,instruction,gpt4_prediction"
    (tmp_path / "visit-bench/test/metadata.csv").write_text(f"{header}\n1.png,art,Who painted it?,Nobody\n")
    [item] = read("visit-bench")
    assert (item.id, item.images[0].source, item.meta["category"]) == ("1.png", "test/1.png", "art")
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "x"}]
    put("wildvision-arena/battle/test-00000-of-00001.parquet",
        {"question_id": "w", "conversation_a": talk, "conversation_b": talk, "image": picture, "turn": 1,
         "winner": "model_b"})  # fmt: skip
    assert [(item.id, item.gold, len(item.images)) for item in read("wildvision-arena")] == [("w", "b", 1)]


def test_a_bench_is_described_with_its_files_their_checks_and_the_ids_of_responses() -> None:
    told = run("show", "visit-bench").stdout
    assert "mlfoundations/VisIT-Bench @ 2d08c7fa1a80: test/metadata.csv" in told
    assert "no SHA-256 is known of its file: a run notes what it read, and goes on with the same files only" in told
    assert "to be brought; their id is file_name" in told
    assert "the number of the row" in run("show", "mmhal").stdout
    found = json.loads(run("show", "visit-bench", "--json").stdout)
    assert found["from_memory"] == ["the rows", "how the authors compute their figure"]
    assert "1527be2" in found["checked"][0]
    for bench in map(load_bench, names()):
        if bench.state == "schema only":
            assert any(re.search(r"\b(at|card|page)\b", each) for each in bench.checked), bench.name


def test_responses_are_brought_to_rows_without_an_id_by_their_number_and_what_is_left_out_is_told(
    tmp_path: Path,
) -> None:
    """The ids were lines: "1", "1#2" of a JSON file in one line, others of one that is indented."""
    row = {"question_type": "attribute", "image_src": "p.png", "gt_answer": "red"}
    rows = [{**row, "question": f"What is {place}?"} for place in range(3)]
    _picture(tmp_path / "p.png")
    answers = [{"id": "2", "response": "It is 1."}, {"id": "9", "response": "?"}]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in answers))
    for indent in (None, 2):
        (tmp_path / "response_template.json").write_text(json.dumps(rows, indent=indent))
        assert [item.id for item in read_rows(load_bench("mmhal"), tmp_path).items] == ["1", "2", "3"]
        done = run("run", "mmhal", "--judge", "mock:constant", "--data", tmp_path, "--responses",
                   tmp_path / "answers.jsonl", "--out", tmp_path / f"out{indent}")  # fmt: skip
        assert done.exit_code == 0, done.exception
        assert "1 response for other ids left out: 9" in done.stderr
        assert "2 prompts without a response left out: 1, 3" in done.stderr
        asked = (tmp_path / f"out{indent}/mmhal/items.jsonl").read_text()
        assert "What is 1?" in asked
        assert "What is 0?" not in asked


def test_rows_of_several_files_without_an_id_are_numbered_through(tmp_path: Path) -> None:
    import pyarrow as arrow
    from pyarrow import parquet

    _picture(tmp_path / "p.png")
    picture = {"bytes": (tmp_path / "p.png").read_bytes(), "path": "p.png"}
    (tmp_path / "data").mkdir()
    for n in range(2):
        rows = [{"Question": f"q{n}{place}", "Answer": "a", "image": picture} for place in range(2)]
        parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / f"data/test-0000{n}-of-00002.parquet")
    assert [item.id for item in read_rows(load_bench("l-wilder"), tmp_path).items] == ["1", "2", "3", "4"]
