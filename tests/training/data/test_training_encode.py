"""Training and judging use the same prompt: text, tokens and images."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny_models
from dikast.core.item import item_from
from dikast.core.part import Video
from dikast.core.records.items import read_items
from dikast.core.rubric import Rubric
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.label_scoring import place
from dikast.engines.local.loading import load
from dikast.engines.local.prompt import encode as encode_prompt
from dikast.engines.local.seeing.shown import media_of
from dikast.engines.local.source import locate
from dikast.judging.judge import Judge
from dikast.judging.settling import AskSettings, first_request
from dikast.judging.task import tasks_of
from dikast.prompts.format import load_format
from dikast.training.config import Augment, Config, Data
from dikast.training.data.batches import micro_batches
from dikast.training.data.collate import collate, summed_loss, units_of
from dikast.training.data.encode import encode, end_of_reply
from dikast.training.data.examples import Asker, ExampleRow
from dikast.training.data.shards import Shards, ShardWriter
from dikast.training.loop import placed
from videos import make_video

FORMATS = ("absolute", "claims", "score-only", "score-first", "pairwise", "choice-only")


@pytest.mark.parametrize(("family", "images", "clips"), [("llava", 5, 0), ("qwen_vl", 0, 1)])
def test_a_video_file_is_trained_on_as_the_judge_shows_it(
    family: str, images: int, clips: int, tiny: Callable[[str], Path], tmp_path: Path
) -> None:
    """An item with grey images has nothing of the original file."""
    make_video(tmp_path / "clip.mp4")
    rubric = {"name": "seen", "criterion": "Is it so?", "scale": "1-5"}
    shown = [{"type": "video", "video": "clip.mp4"}, {"type": "text", "text": "What is seen?"}]
    row = {"id": "a", "instruction": shown, "response": "Grey.", "gold": 4, "rubric": rubric}
    item = item_from(row, path="x", line=1, root=str(tmp_path))
    assert isinstance(item.rubric, Rubric)
    loaded = load(locate(str(tiny(family))), device="cpu", dtype="float32")
    config = Config("out", (Data(items=("x",), formats=("score-only",)),), augment=Augment(blank=1.0), frames=5)
    example, blank = Asker(config).examples(ExampleRow(0, 0, item))
    task = next(tasks_of(item, item.rubric, judge="", format="", shape="each", samples=range(1)))
    judged = encode_prompt(
        first_request(task, load_format("score-only"), AskSettings(frames=5)).messages, loaded.processor
    )
    assert (len(judged.seen.images), len(judged.seen.clips)) == (images, clips)
    encoded = encode(example, loaded, end=end_of_reply(loaded), most=100_000)
    assert encoded.ids[: len(judged.ids)] == judged.ids
    assert encoded.media == media_of(example.messages, loaded.processor.vision)
    assert (len(encoded.media.images), len(encoded.media.clips)) == (images, clips)
    (clip,) = (part for message in blank.messages for part in message.parts if isinstance(part, Video))
    assert (clip.source, len({frame.source for frame in clip.frames})) == ("", 1)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_text_tokens_and_images_are_those_of_judging(
    family: str, tiny: Callable[[str], Path], world: Path, tmp_path: Path
) -> None:
    loaded = load(locate(str(tiny(family))), device="cpu", dtype="float32")
    end = end_of_reply(loaded)
    sees = family in tiny_models.IMAGE_FAMILIES
    writer, expected = ShardWriter(tmp_path, 0), []
    for name in FORMATS:
        form = load_format(name)
        pair = form.kind == "pairwise"
        folder = ("pairs" if pair else "scenes") if sees else "texts"
        if pair and not sees:
            continue
        item = next(read_items(world / folder / "items-00000.jsonl"))
        data = Data(items=("x",), formats=(name,))
        asker = Asker(Config("out", (data,), augment=_plain()))
        (example,) = asker.examples(ExampleRow(0, 0, item))
        encoded = encode(example, loaded, end=end, most=100_000, find_others=True)

        assert isinstance(item.rubric, Rubric)
        task = next(
            tasks_of(item, item.rubric, judge="", format="", shape="pairs" if pair else "each", samples=range(1))
        )
        request = first_request(task, form, AskSettings())
        judged = encode_prompt(request.messages, loaded.processor)
        assert example.messages == request.messages
        assert encoded.ids[: len(judged.ids)] == judged.ids
        assert encoded.ids[-1] == end
        assert end in loaded.ends
        written = encoded.ids[len(judged.ids) : -1]
        assert loaded.tokens.decode(written, after=judged.ids) == example.reply.text

        labels = list(form.labels(item.rubric).values())
        marked = example.reply.before.rstrip()
        n = next(n for n in range(len(written) + 1) if marked in loaded.tokens.decode(written[:n], after=judged.ids))
        read = place(judged, written[:n], marked, labels, loaded.tokens)
        label = read.labels[labels.index(f" {example.reply.label}")]
        whole = [*read.context, *label]
        assert encoded.ids[: len(whole)] == whole
        first, last = encoded.label
        assert tuple(encoded.ids[first:last]) == label
        differ = [
            (next(n for n, token in enumerate(each) if token != label[n]), each)
            for each in read.labels
            if each != label
        ]
        assert encoded.others == tuple((len(read.context) + n, each[n]) for n, each in differ)
        assert len(encoded.others) == len(labels) - 1
        writer.add(example.id, example.origin, encoded)
        expected.append((encoded, judged.seen.tensors))
    writer.flush()

    shards = Shards.open(tmp_path, loaded.processor.vision)
    assert len(shards) == len(expected)
    for number, (encoded, judged_tensors) in enumerate(expected):
        part, row = shards.find(number)
        assert part.ids(row).tolist() == encoded.ids
        assert int(part.rows[row]["prompt"]) == encoded.prompt
        (made,) = shards.load([number])
        assert made.keys() == judged_tensors.keys()
        assert bool(made) == sees
        for key, tensor in judged_tensors.items():
            assert made[key].dtype == tensor.dtype
            assert torch.equal(made[key], tensor)  # bit for bit


def _plain() -> Augment:
    return Augment(swap="none")


def test_an_example_that_is_too_long_says_so(tiny: Callable[[str], Path], world: Path) -> None:
    from dikast.core.errors import DataError

    loaded = load(locate(str(tiny("llama"))), device="cpu", dtype="float32")
    item = next(islice(read_items(world / "texts" / "items-00000.jsonl"), 2, None))
    (example,) = Asker(Config("out", (Data(items=("x",), formats=("claims",)),))).examples(ExampleRow(0, 0, item))
    with pytest.raises(DataError, match=r"items-00000.jsonl:3: .*more than max_tokens: 50; raise it"):
        encode(example, loaded, end=1, most=50)


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_clips_are_trained_on_as_they_are_judged(
    family: str, tiny: Callable[[str], Path], world: Path, tmp_path: Path
) -> None:
    """Models that support video get clips as video, others as frames; several images likewise."""
    loaded = load(locate(str(tiny(family))), device="cpu", dtype="float32")
    asker, writer = Asker(Config("out", (Data(items=("x",), formats=("score-only",)),))), ShardWriter(tmp_path, 0)
    items = list(read_items(world / "clips" / "items-00000.jsonl"))
    for item in items:
        (example,) = asker.examples(ExampleRow(0, 0, item))
        encoded = encode(example, loaded, end=loaded.ends[0], most=100_000)
        judged = encode_prompt(example.messages, loaded.processor)
        assert encoded.ids[: len(judged.ids)] == judged.ids
        assert bool(judged.seen.clips) == (family in tiny_models.VIDEO_FAMILIES)
        assert len(judged.seen.clips or judged.seen.images) >= 1
        writer.add(example.id, example.origin, encoded)
    writer.flush()
    shards = Shards.open(tmp_path, loaded.processor.vision)
    whole = 0.0
    step = [(int(n),) for n in np.argsort(-shards.lengths)]
    for run in micro_batches(units_of(step, shards, loaded, "none"), 100_000):
        batch = placed(collate(shards, [unit.numbers[0] for unit in run], loaded), loaded)
        with torch.no_grad():
            whole += float(summed_loss(loaded.model(**batch.inputs).logits, batch))
    alone = 0.0
    for number in range(len(items)):
        batch = placed(collate(shards, [number], loaded), loaded)
        with torch.no_grad():
            alone += float(summed_loss(loaded.model(**batch.inputs).logits, batch))
    assert whole == pytest.approx(alone, rel=1e-4)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_the_engine_reads_the_probability_that_the_loss_scores(
    family: str, tiny: Callable[[str], Path], world: Path, tmp_path: Path
) -> None:
    loaded = load(locate(str(tiny(family))), device="cpu", dtype="float32")
    folder = "scenes" if family in tiny_models.IMAGE_FAMILIES else "texts"
    items = list(islice(read_items(world / folder / "items-00000.jsonl"), 3))
    asker, writer = Asker(Config("out", (Data(items=("x",), formats=("score-only",)),))), ShardWriter(tmp_path, 0)
    end = end_of_reply(loaded)
    for item in items:
        (example,) = asker.examples(ExampleRow(0, 0, item))
        writer.add(example.id, example.origin, encode(example, loaded, end=end, most=100_000))
    writer.flush()
    shards = Shards.open(tmp_path, loaded.processor.vision)
    batch = placed(collate(shards, range(3), loaded, label_weight=1.0), loaded)
    only = placed(collate(shards, range(3), loaded, label_weight=2.0), loaded)
    label = only.weights - batch.weights  # 1 on the tokens of the verdict's label
    with torch.no_grad():
        told = torch.nn.functional.log_softmax(loaded.model(**batch.inputs).logits.float(), -1)
    counted = told.gather(-1, batch.targets[:, None])[:, 0] * label
    scored = torch.stack([row.sum() for row in torch.split(counted, (shards.lengths - shards.prompts).tolist())])

    judge = Judge(LocalEngine.of(loaded, name="tiny"), format="score-only", read="only", min_mass=0.0)
    read = {verdict.question.item: verdict for verdict in judge.grade_many(items)}
    for item, expected in zip(items, scored.tolist(), strict=True):
        logprobs = read[item.id].attempts[0].label_logprobs
        assert logprobs is not None
        assert logprobs[f" {item.gold['label']}"] == pytest.approx(expected, abs=1e-4)
