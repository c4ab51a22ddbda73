"""From what corpora write to what is taught: own prompts, exchanged names, published rows, what ablations leave out."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image as Pillow
from transformers import AutoTokenizer

from corpus import rows
from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.records import read_items, write_items
from dikast.corpus.convert import convert_file
from dikast.corpus.pipeline.build import build
from dikast.corpus.pipeline.recipe_file import load_recipe
from dikast.corpus.sources.evaluation_prompts import pool
from dikast.corpus.sources.pair_templates import templates
from dikast.engines.local.loading import load
from dikast.engines.local.source import ModelSource
from dikast.prompts.pair_names import exchangeable, exchanged
from dikast.training.config import Config, load_config
from dikast.training.data.encode import encode, end_of_reply
from dikast.training.data.examples import Asker, Example, ExampleRow, rows_of_file

GOLDEN = Path(__file__).parent / "golden"


def examples(config: Config, file: str, *, talk: bool = False) -> list[Example]:
    asker = Asker(config)
    return [
        example
        for record, target in rows_of_file(file, talk=talk)
        for example in asker.examples(ExampleRow(0, 0, record, target))
    ]


def config_of(folder: Path, *, talk: bool = False, **values: Any) -> Config:
    augment = values.pop("augment", {})
    data = {"talk" if talk else "items": ["x.jsonl"], **values}
    return load_config({"model": str(folder), "out": str(folder / "run"), "data": [data], "augment": augment})


def asked(example: Example) -> str:
    return "\n".join(message.text for message in example.messages)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Response A is longer; response B names a river.", "Response B is longer; response A names a river."),
        ("The first response errs, the second one does not.", "The second response errs, the first one does not."),
        ("Assistant 1 and 2 agree, but A better word exists.", "Assistant 2 and 1 agree, but A better word exists."),
        ("A names a river, so it is better than B.", "B names a river, so it is better than A."),
        ("**Response A** wins over [B].", "**Response B** wins over [A]."),
        ("Both are short, and plan B is like response 1.5.", "Both are short, and plan B is like response 1.5."),
        ("A has 0 of 5 right, B 1 of 5. Wrong in A: all.", "B has 0 of 5 right, A 1 of 5. Wrong in B: all."),
        ("In its first line, response two says so.", "In its first line, response one says so."),
    ],
)  # fmt: skip
def test_names_of_a_pair_are_exchanged_and_nothing_else(text: str, other: str) -> None:
    assert exchanged(text) == other
    assert exchanged(other) == text


RECIPES: dict[str, dict[str, Any]] = {
    "feedback": {"teacher": "world:text", "rubrics": 3, "instructions": 1, "regrade": False},
    "perception": {"teacher": "world:scenes", "take": 2, "per_image": 1, "instructions": 1},
    "bench": {"teacher": "world:text", "rubrics": 3, "instructions": 1, "spare": 3},
    "preference": {"teacher": "world:text", "source": "feedback/items.jsonl"},
    "critic-pairwise": {"teacher": "world:text", "source": "feedback/items.jsonl", "pairs": 12},
    "critic-pointwise": {"teacher": "world:scenes", "pairs": 4, "samples": 7, "responses": 3},
}


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small set of each recipe, taught by worlds."""
    folder = tmp_path_factory.mktemp("corpora")
    for name, options in RECIPES.items():
        path = folder / f"{name}.yaml"
        path.write_bytes(orjson.dumps({"recipe": name, **options}))
        assert build(load_recipe(path), folder / name).items >= 3
    return folder


def decoded(found: list[Example], model: Path) -> list[str]:
    """What is learnt of each example, as the model's tokenizer spells it."""
    loaded = load(ModelSource(model), device="cpu", dtype="float32")
    end, told, tokenizer = end_of_reply(loaded), [], AutoTokenizer.from_pretrained(model)
    for example in found:
        made = encode(example, loaded, end=end, most=20_000)
        told.append(str(tokenizer.decode(made.ids[made.prompt : -1])))
    return told


def golden(name: str, targets: list[str]) -> None:
    path, text = GOLDEN / f"{name}.txt", "\n---\n".join(targets) + "\n"
    if "DIKAST_WRITE_GOLDEN" in os.environ:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), f"another target than in {path}"


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_recipe_builds_is_taught_with_its_feedback(
    name: str, corpora: Path, tiny: Callable[[str], Path]
) -> None:
    file = str(corpora / name / "items.jsonl")
    found = examples(config_of(tiny("llava")), file)
    items = {item.id: item for item in read_items(file)}
    assert {example.id.split("/")[0] for example in found} == set(items)
    for example in found:
        item, shown = items[example.id.split("/")[0]], example.id.rsplit("/", 1)[1]
        gold = item.gold["responses"][int(shown)] if len(item.responses) == 2 and len(shown) == 1 else item.gold
        told = exchanged(gold["feedback"]) if shown == "1-0" else gold["feedback"]
        assert told.strip() in example.reply.text
    golden(f"target-{name}", decoded(found[:10], tiny("llava")))


def test_pairs_are_taught_in_their_own_templates_in_either_order(corpora: Path, tiny: Callable[[str], Path]) -> None:
    file = str(corpora / "critic-pairwise" / "items.jsonl")
    both = examples(config_of(tiny("llava"), augment={"swap": "both"}), file)
    items = {item.id: item for item in read_items(file)}
    known = {each.name: each for each in templates()}
    assert len(both) == 2 * len(items)
    named = 0
    for one, other in zip(both[::2], both[1::2], strict=True):
        item = items[one.id.split("/")[0]]
        template = known[item.meta["template"]["name"]]
        assert template.form.ask(item, item.rubric, (0, 1)) == one.messages  # type: ignore[arg-type]
        assert template.form.ask(item, item.rubric, (1, 0)) == other.messages  # type: ignore[arg-type]
        slots = {template.form.parse(each.reply.text, template.rubric).label for each in (one, other)}
        assert slots in ({"first", "second"}, {"tie"})
        assert item.gold["feedback"] in one.reply.text
        assert exchanged(item.gold["feedback"]) in other.reply.text
        named += one.reply.text != other.reply.text
    assert named > len(items) // 2


def test_arena_labels_turn_with_the_pair(corpora: Path, tiny: Callable[[str], Path]) -> None:
    both = examples(config_of(tiny("llava"), augment={"swap": "both"}), str(corpora / "critic-pointwise/items.jsonl"))
    pairs = [each for each in both if each.id.endswith(("0-1", "1-0"))]
    singles = [each for each in both if not each.id.endswith(("0-1", "1-0"))]
    assert pairs  # one file holds both
    assert singles
    turned = {"A>>B": "B>>A", "A>B": "B>A", "A=B": "A=B", "B>A": "A>B", "B>>A": "A>>B"}
    for one, other in zip(pairs[::2], pairs[1::2], strict=True):
        assert other.reply.label == turned[one.reply.label]
    assert all(len(each.reply.text.splitlines()) > 1 for each in both)


def test_labels_of_own_prompts_of_pairs_are_not_smoothed(corpora: Path, tiny: Callable[[str], Path]) -> None:
    for corpus in ("critic-pairwise", "critic-pointwise"):
        file = str(corpora / corpus / "items.jsonl")
        with pytest.raises(DataError, match=r"in its own prompt, .* leave 'own' out of 'formats', or label_smoothing"):
            examples(replace(config_of(tiny("llava")), label_smoothing=0.1), file)


def test_a_prompt_of_another_version_is_told(corpora: Path, tiny: Callable[[str], Path], tmp_path: Path) -> None:
    item = next(iter(read_items(corpora / "critic-pairwise" / "items.jsonl")))
    meta = {**item.meta, "template": {**item.meta["template"], "hash": "0"}}
    write_items(tmp_path / "x.jsonl", [replace(item, meta=meta)])
    with pytest.raises(DataError, match="another version of Dikast: build the corpus again, or name the formats"):
        examples(config_of(tiny("llava")), str(tmp_path / "x.jsonl"))
    [only] = examples(config_of(tiny("llava"), formats=["pairwise"]), str(tmp_path / "x.jsonl"))
    assert only.id.split("/")[1] == "pairwise"


PUBLISHED: dict[str, list[dict[str, Any]]] = {
    "feedback-collection": rows.FEEDBACK_ROWS,
    "preference-collection": rows.PREFERENCE_ROWS,
    "perception-collection": rows.PERCEPTION_ROWS,
    "llava-critic": [{**row, "image": "a.png"} for row in rows.CRITIC_ROWS],
    "llava": rows.LLAVA_ROWS,
    "trl": rows.TRL_ROWS,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_rows_are_taught_unchanged(name: str, tiny: Callable[[str], Path], tmp_path: Path) -> None:
    for picture in ("a.png", "b.png"):
        Pillow.new("RGB", (30, 30)).save(tmp_path / picture)
    given = PUBLISHED[name]
    (tmp_path / "rows.jsonl").write_bytes(b"\n".join(map(orjson.dumps, given)))
    found = examples(config_of(tiny("llava"), talk=True), str(tmp_path / "rows.jsonl"), talk=True)
    assert len(given) == 10
    of_line: dict[int, list[Example]] = {}
    for example in found:
        of_line.setdefault(int(example.origin.rpartition(":")[2]), []).append(example)
    assert sorted(of_line) == list(range(1, 11))
    for line, row in enumerate(given, 1):
        example = of_line[line][0]
        if "conversations" in row:
            human, reply = row["conversations"][0]["value"], row["conversations"][1]["value"]
            assert asked(example) in (human.replace("<image>", ""), human.replace("<image>\n", "\n"))
            assert example.reply.text == reply.strip()
        elif "output" in row:
            assert (asked(example), example.reply.text) == (row["instruction"], row["output"])
    golden(f"target-{name}", decoded(found, tiny("llava")))
    if name != "trl":  # what `convert` makes of the row teaches the same, of a conversation its last reply
        convert_file(tmp_path / "rows.jsonl", tmp_path / "talk.jsonl", to="talk")
        again = examples(config_of(tiny("llava"), talk=True), str(tmp_path / "talk.jsonl"), talk=True)
        last = [each[-1] for _, each in sorted(of_line.items())]
        assert [(asked(each), each.reply.text) for each in again] == [(asked(each), each.reply.text) for each in last]


def test_every_reply_of_a_conversation_is_taught(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    for picture in ("a.png", "b.png"):
        Pillow.new("RGB", (30, 30)).save(tmp_path / picture)
    (tmp_path / "rows.jsonl").write_bytes(orjson.dumps(PUBLISHED["llava"][0]))
    one, two = examples(config_of(tiny("llava"), talk=True), str(tmp_path / "rows.jsonl"), talk=True)
    assert (one.id, two.id) == ("l-1/1", "l-1/2")
    assert (one.reply.text, two.reply.text) == ("The colour.", "The first.")
    assert [message.role for message in two.messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"conversations": [{"from": "human", "value": "Hello?"}]}, "no reply to what is asked"),
        ({"instruction": "Hello?", "output": " "}, "'output' has no text"),
        ({"messages": [{"role": "user", "content": "Hello?"}]}, "the last message is no reply"),
        ({"prompt": "Hello?", "completion": 3}, "a reply is text"),
    ],
)
def test_a_published_row_without_a_target_is_told(
    row: dict[str, Any], said: str, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "rows.jsonl").write_bytes(orjson.dumps(row))
    with pytest.raises(DataError, match=said) as caught:
        examples(config_of(tiny("llava"), talk=True), str(tmp_path / "rows.jsonl"), talk=True)
    assert "rows.jsonl:1" in str(caught.value)


def test_ablations_leave_out_rubric_reference_and_feedback(corpora: Path, tiny: Callable[[str], Path]) -> None:
    file = str(corpora / "feedback" / "items.jsonl")
    item = next(iter(read_items(file)))
    criterion = item.rubric.criterion  # type: ignore[union-attr]

    def first(**augment: float) -> Example:
        return examples(config_of(tiny("llava"), augment=augment), file)[0]

    assert criterion in asked(first())
    without = first(drop_rubric=1.0)
    assert criterion not in asked(without)
    assert "How good is the response?" in asked(without)
    assert without.reply.text == first().reply.text
    bare = first(drop_feedback=1.0)
    assert bare.reply.text == f"Verdict: {item.gold['score']:g}"
    assert bare.id.split("/")[1] == "score-only"
    assert criterion in asked(bare)
    assert "Reference" not in asked(first(drop_reference=1.0))


def test_ablations_hold_for_own_prompts(corpora: Path, tiny: Callable[[str], Path]) -> None:
    file = str(corpora / "critic-pairwise" / "items.jsonl")
    bare = examples(config_of(tiny("llava"), augment={"drop_feedback": 1.0, "drop_rubric": 1.0}), file)
    items = {item.id: item for item in read_items(file)}
    for example in bare:
        assert len(example.reply.text.splitlines()) == 1
        assert items[example.id.split("/")[0]].rubric.criterion not in asked(example)  # type: ignore[union-attr]


def test_a_reference_that_is_scored_too_is_not_left_out(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    [evaluation, *_] = pool(["relative"])
    told = {"family": "relative", "name": evaluation.name, "hash": evaluation.hash, "reference": "9"}
    item = Item.of("What is it?", "A cat.", id="c", rubric=evaluation.rubric, reference="A grey tom.",
                   gold={"score": 7, "feedback": "It leaves out the colour."}, meta={"prompt": told})  # fmt: skip
    write_items(tmp_path / "items.jsonl", [item])
    [made] = examples(config_of(tiny("llava"), augment={"drop_reference": 1.0}), str(tmp_path / "items.jsonl"))
    assert made.reply.text.startswith("9 7\n")
    assert "A grey tom." in asked(made)


def test_feedback_can_be_left_out_where_gold_has_claims(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    claims = [{"text": "The ball is red.", "verdict": "wrong"}, {"text": "It lies left.", "verdict": "right"}]
    item = Item.of("Say what is there.", "The ball is red. It lies left.", id="c", rubric="helpfulness",
                   gold={"score": 2, "claims": claims})  # fmt: skip
    write_items(tmp_path / "x.jsonl", [item])
    whole, bare = (
        examples(config_of(tiny("llava"), formats=["scout"], augment={"drop_feedback": share}),
                 str(tmp_path / "x.jsonl"))
        for share in (0.0, 1.0)
    )  # fmt: skip
    assert "The ball is red." in whole[0].reply.text
    assert bare[0].reply.text == "Verdict: 2"


def test_a_pair_whose_names_are_ambiguous_keeps_its_order(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    told = "B meanders."  # "A meanders" would not be read as a name: an article looks the same
    assert not exchangeable(told)
    pair = Item.of("Name a river.", responses=["Oder.", "Elbe."], id="p", rubric="helpfulness",
                   gold={"preference": "b", "feedback": told})  # fmt: skip
    write_items(tmp_path / "x.jsonl", [pair])
    found = examples(config_of(tiny("llava"), augment={"swap": "both"}), str(tmp_path / "x.jsonl"))
    assert [each.id for each in found] == ["p/pairwise/0-1"]


def test_lessons_about_a_pair_stand_in_the_order_shown(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    told = "First\nClaim: Oder.\nFinding: right\nGrade: A\nSecond\nClaim: Elbe.\nFinding: wrong\nGrade: B"
    turned = "First\nClaim: Elbe.\nFinding: wrong\nGrade: B\nSecond\nClaim: Oder.\nFinding: right\nGrade: A"
    assert (exchanged(told), exchanged(turned)) == (turned, told)  # a B is a grade, no response
    prose = "First\nResponse A names the river.\nSecond\nResponse B does not.\nSo A is better."
    assert exchanged(prose) == "First\nResponse B names the river.\nSecond\nResponse A does not.\nSo B is better."
    pair = Item.of("Name a river in Poland.", responses=["Oder.", "Elbe."], id="p", rubric="helpfulness",
                   gold={"preference": "a", "feedback": told})  # fmt: skip
    write_items(tmp_path / "x.jsonl", [pair])
    config = config_of(tiny("llava"), formats=["scout-pairs"], augment={"swap": "both"})
    found = {each.id: each.reply for each in examples(config, str(tmp_path / "x.jsonl"))}
    assert found["p/scout-pairs/0-1"].text == f"{told}\nVerdict: first"
    assert found["p/scout-pairs/1-0"].text == f"{turned}\nVerdict: second"


def test_a_pair_without_scores_is_compared_and_not_graded(tiny: Callable[[str], Path], tmp_path: Path) -> None:
    pair = Item.of("Name a river.", responses=["The Oder.", "Berlin."], id="p", rubric="helpfulness",
                   gold={"preference": "a", "feedback": "Only response A names a river."})  # fmt: skip
    one = Item.of("Name a river.", "The Oder.", id="s", rubric="helpfulness", gold={"score": 5, "feedback": "Right."})
    write_items(tmp_path / "x.jsonl", [one, pair])
    found = examples(config_of(tiny("llava"), augment={"swap": "both"}), str(tmp_path / "x.jsonl"))
    assert [each.id for each in found] == ["s/absolute/0", "p/pairwise/0-1", "p/pairwise/1-0"]
    assert found[2].reply.text == "Only response B names a river.\nVerdict: B"
    assert json.loads((tmp_path / "x.jsonl").read_text().splitlines()[1])["id"] == "p"
