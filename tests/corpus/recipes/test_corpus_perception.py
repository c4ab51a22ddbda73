"""The recipe `perception` end to end: with exact worlds, and with a teacher that has to be asked again."""

import re
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image as Pillow

from corpus.sources import LEVELS
from dikast.core.canonical import fingerprint
from dikast.core.errors import DataError, UserError
from dikast.core.media import image_file, load_image
from dikast.core.part import Image, text_of
from dikast.core.records import read_items
from dikast.corpus.pipeline.build import build, estimate
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.check_options import CheckOptions
from dikast.corpus.sources.image_lists import Listed, drawn, sensitive_of
from dikast.corpus.teachers.picture_teacher import PictureTeacher
from dikast.engines.base import Request
from scripted import Scripted

WORDS = ("river", "stone", "tower", "garden", "window", "letter", "bridge", "winter", "market", "candle", "harbour")


def recipe(tmp_path: Path, **values: Any) -> Any:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(orjson.dumps({"recipe": "perception", "teacher": "world:scenes", **values}))
    return load_recipe(path)


def photos(tmp_path: Path, n: int, name: str = "photos") -> None:
    folder = tmp_path / name
    folder.mkdir()
    for i in range(n):
        noise = np.random.default_rng([i, len(name)]).integers(0, 255, (40, 40, 3), dtype=np.uint8)
        Pillow.fromarray(noise).save(folder / f"{i}.png")


@pytest.mark.parametrize("domain", ["scenes", "plates", "charts"])
def test_a_world_teaches_pictures_exactly(tmp_path: Path, domain: str) -> None:
    told = recipe(tmp_path, teacher=f"world:{domain}", take=4, per_image=2, rounds=8)
    built = build(told, tmp_path / "out")
    assert (built.items, built.waits) == (80, "")
    assert built.kept == {str(n): 16 for n in range(1, 6)}
    items = list(read_items(tmp_path / "out" / "items.jsonl"))
    lost: dict[Any, dict[int, int]] = defaultdict(dict)
    for item in items:
        [image] = item.images
        assert load_image(image).size == (96, 96)
        asked = (item.rubric.hash, text_of(item.instruction[0].content))  # type: ignore[union-attr]
        lost[asked][item.gold["score"]] = sum(claim["cost"] for claim in item.gold["claims"])
        assert all(claim["text"] in text_of(item.response) for claim in item.gold["claims"])
    assert len({image.source for item in items for image in item.images}) == 4
    for costs in lost.values():  # the dearer the mistakes, the lower the score
        assert [costs[score] for score in range(1, 6)] == sorted(set(costs.values()), reverse=True)
    build(told, tmp_path / "again")
    assert (tmp_path / "again" / "items.jsonl").read_bytes() == (tmp_path / "out" / "items.jsonl").read_bytes()
    words = check_file(tmp_path / "out" / "items.jsonl", CheckOptions(near=False, draws=20)).information[0]
    assert abs(words.r) < 0.05


def test_a_world_s_inspection_finds_what_the_picture_does_not_show(tmp_path: Path) -> None:
    built = build(recipe(tmp_path, take=12, per_image=2, regrade=False, rounds=6), tmp_path / "out")
    refused = built.dropped["rubric that does not fit its image"]
    assert refused > 2
    inspected = [stage for stage in built.stages if stage.name.startswith("1-fit")]
    assert sum(stage.records for stage in inspected) == 24 + refused
    assert inspected[0].records == 24
    assert built.items == 240


def test_a_share_of_a_world_s_pictures_holds_text(tmp_path: Path) -> None:
    teacher = PictureTeacher("scenes", text_rich=0.3)
    assert Counter(teacher.domain_of(n) for n in range(20)) == {"scenes": 14, "plates": 3, "charts": 3}
    build(recipe(tmp_path, take=4, per_image=1, text_rich=0.5, regrade=False, rounds=8), tmp_path / "out")
    rich = {
        image.source: item.meta["text_rich"]
        for item in read_items(tmp_path / "out" / "items.jsonl")
        for image in item.images
    }
    assert sorted(rich.values()) == [False, False, True, True]
    with pytest.raises(UserError, match="every picture of world:plates contains text"):
        PictureTeacher("plates", text_rich=0.5)


def answer(request: Request) -> str:
    """A capable teacher, with words drawn from the request; its first rubric for a picture never fits."""
    about = request.about
    rng = np.random.default_rng(int(fingerprint([request.messages[0].text, request.key])[:8], 16))
    if about["stage"] == "rubrics":
        made = [
            {
                "criterion": f"Does it speak of {rng.choice(WORDS)} number {about['first'] + i} of {about['picture']}?",
                "levels": LEVELS,
            }
            for i in range(about["count"])
        ]
        return orjson.dumps({"rubrics": made}).decode()
    if about["stage"] == "fit":
        return orjson.dumps({"reason": "It is so.", "fits": "number 0 of" not in request.messages[0].text}).decode()
    if about["stage"] == "instructions":
        found = [
            {"instruction": f"Tell of {' '.join(rng.choice(WORDS, 12))}", "reference": "Yes."}
            for _ in range(about["count"])
        ]
        return orjson.dumps({"instructions": found}).decode()
    if about["stage"] == "responses":
        text = " ".join(rng.choice(WORDS, 20)) + f" {about['score']}"
        return orjson.dumps({"response": text, "feedback": "It goes on about it at length."}).decode()
    return f"Good enough.\nVerdict: {about['response'].split()[-1]}"


def engine_recipe(tmp_path: Path, **values: Any) -> Any:
    given = {"teacher": "mock:constant", "images": "photos", "per_image": 2, "words": 20, "near": False}
    return recipe(tmp_path, **{**given, **values})


def shown(request: Request) -> list[Image]:
    return [part for message in request.messages for part in message.parts if isinstance(part, Image)]


def test_rubrics_that_do_not_fit_are_asked_for_again_and_every_stage_is_shown_its_picture(tmp_path: Path) -> None:
    photos(tmp_path, 3)
    engine = Scripted(answer)
    built = build(engine_recipe(tmp_path), tmp_path / "out", teacher=engine)
    assert (built.items, built.waits) == (3 * 2 * 2 * 5, "")
    assert built.dropped == {"rubric that does not fit its image": 3}
    assert [(s.name, s.tasks) for s in built.stages] == [
        ("1-rubrics-1", 3), ("1-fit-1", 6), ("1-rubrics-2", 3), ("1-fit-2", 3),
        ("2-instructions", 6), ("3-responses", 60), ("4-regrade", 60),
    ]  # fmt: skip
    assert all(len(shown(request)) == 1 for request in engine.requests)
    second = next(r for r in engine.requests if r.about["stage"] == "rubrics" and r.about["first"] == 2)
    assert re.search(r"that this picture has \]==\n- .*number 1 of 0", second.messages[0].text)
    assert re.search(r"did not suit this picture \]==\n- .*number 0 of 0\? \(It is so\.\)\n", second.messages[0].text)
    assert "Rubrics for other pictures" in second.messages[0].text  # those that come with Dikast
    item = next(read_items(tmp_path / "out" / "items.jsonl"))
    assert item.images[0].source == "../photos/0.png"
    assert item.meta["lineage"]["picture"] == 0


def test_rounds_are_bounded_and_enough_is_a_share(tmp_path: Path) -> None:
    photos(tmp_path, 2)
    (tmp_path / "plan.yaml").write_text("language: [Frisian]\n")  # which no filter identifies
    told = engine_recipe(tmp_path, fit=0.5, plan="plan.yaml", language="Welsh")
    half = build(told, tmp_path / "half", teacher=(engine := Scripted(answer)))
    assert {r.about["stage"] for r in engine.requests if "Welsh" in r.messages[0].text} == {"rubrics", "fit"}
    (tmp_path / "plan.yaml").write_text("language: [Breton]\n")
    with pytest.raises(UserError, match=r"plan\.yaml: the file of 'plan' has changed"):
        build(told, tmp_path / "half", teacher=engine)
    assert [s.name for s in half.stages][:3] == ["1-rubrics-1", "1-fit-1", "2-instructions"]
    assert half.dropped["rubrics short of the number asked for"] == 2

    def never(request: Request) -> str:
        return answer(request).replace("true", "false")

    none = build(engine_recipe(tmp_path, rounds=3), tmp_path / "none", teacher=Scripted(never))
    assert sum(s.name.startswith("1-fit") for s in none.stages) == 3
    assert none.items == 0
    assert none.dropped["image without a rubric that fits"] == 2
    assert re.search(r"0\.png: no rubric fits, such as: .* \(It is so\.\)$", none.notes[0])


def test_the_same_request_about_two_pictures_is_no_duplicate(tmp_path: Path) -> None:
    photos(tmp_path, 2)

    def same(request: Request) -> str:
        if request.about["stage"] == "instructions":
            return orjson.dumps({"instructions": [{"instruction": "What is it?", "reference": "A."}] * 2}).decode()
        return answer(request)

    built = build(engine_recipe(tmp_path, per_image=1), tmp_path / "out", teacher=Scripted(same))
    assert built.items == 2 * 5
    assert built.dropped["near-duplicate instruction"] == 2 * 5


def test_images_that_cannot_be_read_are_found_before_any_call(tmp_path: Path) -> None:
    photos(tmp_path, 2)
    (tmp_path / "photos" / "bad.png").write_bytes(b"<html>not here</html>")
    shutil.copy(tmp_path / "photos" / "1.png", tmp_path / "photos" / "copy.png")
    engine = Scripted(answer)
    for ask in (lambda told: build(told, tmp_path / "out", teacher=engine), estimate):
        with pytest.raises(DataError, match=r"(?s)1 of 4 images cannot be read.*skip_unreadable.*bad\.png"):
            ask(engine_recipe(tmp_path))
    assert engine.requests == []
    built = build(engine_recipe(tmp_path, skip_unreadable=True), tmp_path / "skipped", teacher=engine)
    assert built.items == 2 * 20
    assert built.dropped["image that cannot be read"] == 1
    assert built.dropped["the same image twice"] == 1


def test_images_come_from_folders_patterns_and_lists(tmp_path: Path) -> None:
    photos(tmp_path, 3)
    (tmp_path / "list.txt").write_text("# two of them\nphotos/2.png\n\nphotos/0.png\n")
    (tmp_path / "list.jsonl").write_bytes(b'{"image": "photos/1.png"}\n')
    for images, n in (("photos", 3), ("photos/[12].png", 2), ("list.txt", 2), ("list.jsonl", 1), ("photos/0.png", 1)):
        assert estimate(engine_recipe(tmp_path, images=images))[0].calls == n
    assert estimate(engine_recipe(tmp_path, take=2))[0].calls == 2
    with pytest.raises(UserError, match="3 images are needed, 2 can be read"):
        estimate(engine_recipe(tmp_path, images="list.txt", take=3))
    with pytest.raises(UserError, match=r"nothing found at .*nowhere"):
        estimate(engine_recipe(tmp_path, images="nowhere"))


def test_shares_of_text_and_of_sensitive_content_are_kept(tmp_path: Path) -> None:
    photos(tmp_path, 6)
    photos(tmp_path, 3, "documents")
    told = engine_recipe(tmp_path, text_images="documents", text_rich=0.25, sensitive=0.5, take=8, regrade=False)
    engine = Scripted(answer)
    built = build(told, tmp_path / "out", teacher=engine)
    found = {item.images[0].source: item.meta for item in read_items(tmp_path / "out" / "items.jsonl")}
    assert len(found) == 8
    assert built.items == 160
    assert sum(meta["text_rich"] for meta in found.values()) == 2
    assert all(meta["text_rich"] == ("documents" in source) for source, meta in found.items())
    assert Counter(meta.get("sensitive") for meta in found.values()) == {None: 4, "explicit": 2, "implicit": 2}
    hard = [r for r in engine.requests if "hard cases" in r.messages[0].text]
    assert len({r.about["picture"] for r in hard}) == 4
    assert Counter(sensitive_of(40, 0.1, 3)) == {"": 36, "explicit": 2, "implicit": 2}
    with pytest.raises(UserError, match="6 images with text are needed, 1 can be read"):
        drawn([Listed("a", True), *(Listed(str(i)) for i in range(9))], 8, 0.75, 0)


def test_a_moved_folder_asks_nothing_again(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    photos(first, 1)
    build(engine_recipe(first), first / "out", teacher=Scripted(answer))
    first.rename(tmp_path / "second")
    engine = Scripted(answer)
    built = build(engine_recipe(tmp_path / "second"), tmp_path / "second" / "out", teacher=engine)
    assert (built.items, engine.requests) == (20, [])


def test_options_that_a_world_cannot_have_are_told(tmp_path: Path) -> None:
    for values, told in (
        ({"images": "photos", "take": 1}, "a world makes its own pictures"),
        ({"take": 1, "sensitive": 0.1}, "no sensitive or biased content"),
        ({}, "how many pictures"),
        ({"teacher": "mock:constant"}, "needs 'images'"),
        ({"teacher": "mock:constant", "images": "x", "text_rich": 0.5}, "'text_images'"),
        ({"teacher": "mock:constant", "images": "x", "text_images": "y"}, "set the share"),
    ):
        with pytest.raises(DataError, match=told):
            recipe(tmp_path, **values)
    with pytest.raises(UserError, match="no world 'text' for this recipe; known: scenes, plates, charts"):
        build(recipe(tmp_path, teacher="world:text", take=1), tmp_path / "out")


def test_a_bench_s_pictures_are_those_that_its_answers_speak_of(tmp_path: Path) -> None:
    """A bench of a world uses another split, and so other scenes."""
    path = tmp_path / "bench.yaml"
    values = {"recipe": "bench", "of": "images", "teacher": "world:scenes", "rubrics": 1, "instructions": 1, "spare": 0}
    path.write_bytes(orjson.dumps({**values, "regrade": False}))
    build(load_recipe(path), tmp_path / "bench")
    item = next(read_items(tmp_path / "bench" / "items.jsonl"))
    number = item.meta["lineage"]["picture"]
    held_out = PictureTeacher("scenes", per_rubric=1, split="wordings").picture(number)
    assert image_file(item.images[0]) == held_out != PictureTeacher("scenes", per_rubric=1).picture(number)


def test_what_is_asked_about_a_picture_leaks_with_its_picture(tmp_path: Path) -> None:
    photos(tmp_path, 3)
    rows = [
        {"id": str(i), "image": f"photos/{i}.png", "instruction": "What is it?", "response": f"A {word}.", "gold": 3}
        for i, word in enumerate(WORDS[:3])
    ]
    for name, part in (("set", rows[:2]), ("other", rows[2:]), ("same", [{**rows[1], "response": "A comb."}])):
        (tmp_path / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, part)))
    for name, found in (("other", 0), ("same", 1)):
        against = (str(tmp_path / f"{name}.jsonl"),)
        findings = check_file(tmp_path / "set.jsonl", CheckOptions(against=against, draws=20)).findings
        told = [findings[f"leaked: {what}"] for what in ("instruction", "image")]
        assert [(each.found, each.n) for each in told] == [(found, 2), (found, 2)]
    asked = engine_recipe(tmp_path, near=True, against=["same.jsonl"], per_image=1)
    built = build(asked, tmp_path / "out", teacher=Scripted(answer))
    assert built.dropped["in a benchmark"] == 10
    assert {item.images[0].source for item in read_items(tmp_path / "out" / "items.jsonl")} == {
        "../photos/0.png", "../photos/2.png",
    }  # fmt: skip


def test_pictures_that_look_alike_count_once(tmp_path: Path) -> None:
    photos(tmp_path, 2)
    Pillow.open(tmp_path / "photos" / "0.png").convert("RGB").resize((80, 80)).save(tmp_path / "photos" / "large.png")
    assert estimate(engine_recipe(tmp_path))[0].calls == 3
    assert estimate(engine_recipe(tmp_path, near=True))[0].calls == 2
