"""Clips as the models' own video input: numbers, places, batches, and a video item from the command line."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pictures

import tiny_models
from dikast.core.canonical import fingerprint
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.engines.base import Readout, Request, Sampling
from dikast.engines.local.batch import TokenRow, tensors_of
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.prompt import encode
from dikast.engines.local.seeing.video_tensors import Clip, Clips
from runs import dikast_here as dikast
from runs import lines
from videos import make_video

Engines = Callable[[str], LocalEngine]
Tiny = Callable[[str], Path]


def frames(n: int, size: tuple[int, int] = (80, 60), seed: int = 0) -> tuple[Pictures.Image, ...]:
    rng = np.random.default_rng(seed)
    return tuple(Pictures.fromarray(rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)) for _ in range(n))


def clip(n: int, size: tuple[int, int] = (80, 60), seed: int = 0, step: float = 0.5) -> Video:
    return Video(tuple(Image.of(each) for each in frames(n, size, seed)), tuple(i * step for i in range(n)))


CASES = [(4, (64, 64), 0.5), (5, (100, 70), 1.0), (3, (300, 200), 0.25), (8, (200, 96), 2.0)]


def digests(family: str, processor: Any) -> list[str]:
    """One fingerprint for each case of everything that goes into the model."""
    found = []
    for n, size, step in CASES:
        made = encode([Message("user", (clip(n, size, step=step), Span("Rate this.")))], processor)
        tensors = tensors_of([TokenRow(made, made.ids)], processor)
        spelt = {
            name: [list(t.shape), np.frombuffer(t.numpy().tobytes(), np.uint8).sum(dtype=np.int64).item(), t.tolist()]
            for name, t in sorted(tensors.items())
            if name != "attention_mask"
        }
        found.append(fingerprint(spelt))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("family", tiny_models.VIDEO_FAMILIES)
def test_clips_equal_the_models_own_video_processor(family: str, tiny: Tiny, engine: Engines) -> None:
    """Bit for bit, in a process where torchvision loads: DIKAST_TORCHVISION_PYTHON, or this one."""
    import torch

    python = os.environ.get("DIKAST_TORCHVISION_PYTHON", sys.executable)
    code = f"""
import sys, torch, numpy as np
from transformers import AutoProcessor
from transformers.video_utils import VideoMetadata
from PIL import Image
sys.path.insert(0, {str(Path(__file__).parent)!r})
def frames(n, size):
    rng = np.random.default_rng(0)
    return np.stack([rng.integers(0, 256, (size[1], size[0], 3), dtype=np.uint8) for _ in range(n)])
own = AutoProcessor.from_pretrained({str(tiny(family))!r})
made = []
for n, size, step in {CASES!r}:
    meta = VideoMetadata(total_num_frames=n, fps=1 / step, frames_indices=list(range(n)))
    turn = [{{"role": "user", "content": [{{"type": "video"}}, {{"type": "text", "text": "Rate this."}}]}}]
    text = own.apply_chat_template(turn, add_generation_prompt=True, tokenize=False)
    more = {{}} if {family!r} == "llava_onevision" else {{"cap_pixels_per_frame": True}}
    made.append(dict(own(text=[text], videos=[frames(n, size)], video_metadata=[meta], do_sample_frames=False,
                         return_tensors="pt", **more)))
torch.save(made, sys.argv[1])
"""
    out = tiny(family).parent / f"{family}.pt"
    done = subprocess.run([python, "-c", code, str(out)], capture_output=True, text=True)
    if done.returncode and ("torchvision" in done.stderr.lower() or "VIDEO_PROCESSOR" in done.stderr):
        pytest.skip("torchvision does not load here: name a Python where it does in DIKAST_TORCHVISION_PYTHON")
    assert done.returncode == 0, done.stderr
    processor = engine(family)._loaded.processor
    for (n, size, step), theirs in zip(CASES, torch.load(out, weights_only=False), strict=True):
        made = encode([Message("user", (clip(n, size, step=step), Span("Rate this.")))], processor)
        ours = tensors_of([TokenRow(made, made.ids)], processor)
        assert ours.keys() == theirs.keys()
        for name, tensor in theirs.items():
            assert torch.equal(ours[name], torch.as_tensor(tensor).to(ours[name].dtype)), (name, n, size)


@pytest.mark.parametrize("family", tiny_models.VIDEO_FAMILIES)
def test_clips_keep_the_numbers_of_the_models_own_video_processor(family: str, engine: Engines) -> None:
    """The fingerprints were taken when the test above held, with torchvision 0.28.0 and transformers 5.23.0."""
    path = Path(__file__).parent / "clips.json"
    found = digests(family, engine(family)._loaded.processor)
    if os.environ.get("DIKAST_WRITE_GOLDEN"):
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**known, family: found}, indent=1, sort_keys=True) + "\n")
    assert json.loads(path.read_text())[family] == found


def ask(key: str, *parts: Image | Video | str, readout: bool = True) -> Request:
    shown = tuple(Span(part) if isinstance(part, str) else part for part in parts)
    read = Readout(("1", "2", "10"), "\nScore: ", generate=False) if readout else None
    return Request(key, (Message("user", shown),), Sampling(max_tokens=6), readout=read)


def picture(seed: int, size: tuple[int, int] = (90, 60)) -> Image:
    return Image.of(frames(1, size, seed)[0])


@pytest.mark.parametrize("family", tiny_models.VIDEO_FAMILIES)
@pytest.mark.parametrize("readout", [True, False], ids=["read", "written"])
def test_many_at_once_answer_as_each_alone(family: str, readout: bool, engine: Engines) -> None:
    made = engine(family)
    asked = [
        ask("text", "good", readout=readout),
        ask("image", picture(1), "good", readout=readout),
        ask("wide", picture(2, (150, 40)), "good good", readout=readout),
        ask("two", picture(1), picture(3, (60, 120)), "which?", readout=readout),
        ask("clip", clip(4), "good", readout=readout),
        ask("later", "What happens? ", clip(4, seed=5, step=2), "And then?", readout=readout),
        ask("longer", clip(7, (64, 96)), "good", readout=readout),
        ask("clips", clip(4), "or", clip(4, seed=9), readout=readout),
        ask("both", picture(4), clip(3, seed=2), "good", readout=readout),
        ask("again", clip(4), "good good good", readout=readout),
    ]
    together = {done.key: done for done in made.stream(asked)}
    assert len({done.text + str(done.label_logprobs) for done in together.values()}) > 5
    for request in asked:
        (alone,) = made.stream([request])
        found = together[request.key]
        assert alone.error is None
        assert found.error is None
        assert (found.text, found.usage.tokens_in) == (alone.text, alone.usage.tokens_in)
        if alone.label_logprobs is not None:
            assert found.label_logprobs == pytest.approx(dict(alone.label_logprobs), abs=2e-5)


@pytest.mark.parametrize("family", tiny_models.VIDEO_FAMILIES)
def test_the_order_of_frames_is_seen(family: str, engine: Engines) -> None:
    forth = clip(4)
    back = Video(forth.frames[::-1], forth.seconds)
    a, b = engine(family).stream([ask("a", forth, "x"), ask("b", back, "x")])
    assert a.label_logprobs is not None
    assert b.label_logprobs is not None
    assert not math.isclose(a.label_logprobs["1"], b.label_logprobs["1"], abs_tol=1e-4)


def test_times_are_told_to_models_that_take_them(engine: Engines) -> None:
    tokens = engine("qwen3_vl")._loaded.tokens
    text = tokens.tokenizer.decode(
        encode(ask("a", clip(4, step=1.5)).messages, engine("qwen3_vl")._loaded.processor).ids
    )
    assert "<0.8 seconds>" in text  # the mean of 0 and 1.5
    assert "<3.8 seconds>" in text
    slow, fast = (ask(str(step), clip(4, step=step), "x") for step in (4.0, 0.5))
    a, b = engine("qwen_vl").stream([slow, fast])
    assert a.label_logprobs != b.label_logprobs


def test_clips_of_two_lengths_in_one_item_are_told_to_onevision(engine: Engines) -> None:
    (done,) = engine("llava_onevision").stream([ask("a", clip(4), clip(5), "x")])
    assert done.error is not None
    assert done.error.kind == "bad_media"
    assert "sample the same number of frames" in str(done.error)
    (done,) = engine("qwen_vl").stream([ask("a", clip(4), clip(5), "x")])
    assert done.error is None


def test_settings_of_the_checkpoint_count_and_the_cap_can_be_turned_off() -> None:
    long = [Clip(frames(6, (200, 160)), [float(i) for i in range(6)])]
    given = {"size": {"shortest_edge": 32**2, "longest_edge": 6 * 64 * 64}, "max_video_tokens": 1}
    sizes = {
        cap: Clips("qwen3_vl", {**given, "cap_pixels_per_frame": cap})(long)["video_grid_thw"].tolist()
        for cap in (True, False)
    }
    assert sizes[True] != sizes[False]


def test_an_unknown_family_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    from dikast.core.errors import UserError

    (tmp_path / "config.json").write_text(json.dumps({"model_type": "idefics3"}))
    with pytest.raises(UserError, match=r"'idefics3' are not supported here: .*LLaVA-OneVision .*Qwen3-VL"):
        LocalEngine(str(tmp_path), device="cpu")


def test_a_video_item_is_graded_from_the_command_line(tiny: Tiny, tmp_path: Path) -> None:
    make_video(tmp_path / "clip.mp4")
    part = {"type": "video", "video": "clip.mp4"}
    rows: list[dict[str, Any]] = [
        {"id": "shown", "instruction": [part, "What happens?"], "response": "It gets brighter."},
        {"id": "made", "instruction": "Make a clip.", "response": [{**part, "frames": 3}]},
        {"id": "gone", "instruction": [{"video": "gone.mp4"}], "response": "x"},
    ]
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "run"
    more = ["--rubric", "helpfulness", "--read", "only", "--min-mass", 0, "--frames", 4]
    done = dikast("grade", items, "--judge", tiny("llava_onevision"), "--out", out, *more)
    verdicts = {each["question"]["item"]: each for each in lines(out / "verdicts.jsonl")}
    assert verdicts["shown"]["status"] == verdicts["made"]["status"] == "ok", done.stderr
    assert verdicts["shown"]["clips"] == [{"indices": [0, 4, 7, 11], "seconds": [0.0, 1.0, 1.75, 2.75]}]
    assert verdicts["made"]["clips"][0]["indices"] == [0, 6, 11]
    assert verdicts["gone"]["status"] == "bad_item"
    assert "gone.mp4 does not exist" in verdicts["gone"]["reason"]
    lock = json.loads((out / "judge.lock.json").read_text())
    assert lock["identity"]["settings"]["frames"] == 4
