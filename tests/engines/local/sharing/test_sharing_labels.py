"""Labels of requests that begin alike: equal to each request by itself, with what they share computed once."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tiny_models
from dikast.core.errors import UserError
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.execution import Together
from dikast.engines.local.sharing.attention_part import attend
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.judging.judge_file import grade_file
from runs import write_jsonl

Tiny = Callable[[str], Path]
LABELS = ("1", "2", "10", "100", "0.5", "pass")
READ = Readout(LABELS, "\n[RESULT] ", generate=False)
TASK = "The response follows the instruction. " * 6


@pytest.fixture(scope="module")
def pair(tiny: Tiny) -> Callable[[str], tuple[LocalEngine, LocalEngine]]:
    """The engines of a family that share and that do not."""
    made: dict[str, tuple[LocalEngine, LocalEngine]] = {}

    def found(family: str) -> tuple[LocalEngine, LocalEngine]:
        if family not in made:
            folder = str(tiny(family))
            made[family] = LocalEngine(folder, device="cpu"), LocalEngine(folder, device="cpu", share=False)
        return made[family]

    return found


def noise(seed: int, width: int = 64, height: int = 64) -> Image:
    from PIL import Image as Pictures

    pixels = np.random.default_rng(seed).integers(0, 255, (height, width, 3), np.uint8)
    return Image.of(Pictures.fromarray(pixels))


def asked(key: str, *parts: str | Image | Video) -> Request:
    spans = [Span(part) if isinstance(part, str) else part for part in parts]
    return Request(key, (Message("user", tuple(spans)),), readout=READ)


def tournament(*shown: Image | Video) -> list[Request]:
    """All ordered pairs of five responses, two of which are equal and one of which begins another."""
    responses = ["good", "It cites a source", "It cites a source, but one claim is wrong", "good", "é 中 x"]
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    return [asked(f"{i}-{j}", *shown, f"{TASK}First: {responses[i]}\nSecond: {responses[j]}\nWhich?") for i, j in pairs]


def same(one: LocalEngine, other: LocalEngine, requests: list[Request]) -> None:
    """Both give every request the same probabilities, and the same most probable label."""
    first, second = ({done.key: done for done in engine.stream(requests)} for engine in (one, other))
    assert first.keys() == second.keys() == {request.key for request in requests}
    for key, done in first.items():
        assert probabilities(done) == pytest.approx(probabilities(second[key]), abs=5e-5)
        assert np.argmax(probabilities(done)) == np.argmax(probabilities(second[key]))
        assert done.usage.tokens_in == second[key].usage.tokens_in


def probabilities(done: Completion) -> list[float]:
    assert done.error is None
    assert done.label_logprobs is not None
    return [done.label_logprobs[label] for label in LABELS]


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_a_tournament_is_read_as_pair_by_pair(family: str, pair: Any) -> None:
    shared, alone = pair(family)
    before = dict(shared.work)
    same(shared, alone, tournament())
    assert shared.notes == {}
    work = {name: value - before[name] for name, value in shared.work.items()}
    assert work["tokens_computed"] < 0.45 * work["tokens_asked"]
    assert alone.work == {}


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_pictures_are_shared_only_where_they_are_equal(family: str, pair: Any) -> None:
    shared, alone = pair(family)
    one, wide = noise(1), noise(2, 120, 56)
    requests = [
        asked("one", one, TASK), asked("one too", one, TASK + "Well?"), asked("other", noise(3), TASK),
        asked("both", one, wide, TASK), asked("both, turned", wide, one, TASK), asked("twice", one, one, TASK),
        asked("none", TASK),
    ]  # fmt: skip
    same(shared, alone, requests)


@pytest.mark.parametrize("family", tiny_models.VIDEO_FAMILIES)
def test_clips_are_read_as_one_by_one(family: str, pair: Any) -> None:
    shared, alone = pair(family)
    frames = tuple(noise(n) for n in range(4))
    clip, later = Video(frames, (0.0, 1.0, 2.0, 3.0)), Video(frames, (0.0, 2.0, 4.0, 6.0))
    requests = [
        asked("clip", clip, TASK), asked("clip too", clip, TASK + "Well?"), asked("later", later, TASK),
        asked("with a picture", noise(9), clip, TASK), asked("picture", noise(9), TASK),
    ]  # fmt: skip
    same(shared, alone, requests)


@pytest.mark.parametrize("more", [{}, {"readout": None, "sampling": Sampling(max_tokens=2)}])
@pytest.mark.parametrize("family", ["llava", "llava_onevision"])
def test_the_vision_tower_sees_each_picture_of_a_group_once(family: str, more: dict[str, Any], pair: Any) -> None:
    shared, _ = pair(family)
    runs = 0

    def counted(*_: Any) -> None:
        nonlocal runs
        runs += 1

    tower = shared._loaded.model.model.vision_tower
    before = dict(shared.work)
    handle = tower.register_forward_hook(counted)
    try:
        requests = [*tournament(noise(1)), *(asked(f"o{n}", noise(2), f"{TASK}{n}") for n in range(4))]
        done = list(shared.stream([replace(request, **more) for request in requests]))
    finally:
        handle.remove()
    assert all(each.error is None for each in done)
    assert runs == 2
    assert shared.work["pictures_encoded"] - before["pictures_encoded"] == 2
    assert shared.work["pictures_shown"] - before["pictures_shown"] == 24


WORDS = st.lists(st.sampled_from(["good ", "bad ", "it cites a source ", "é"]), max_size=6).map("".join)


@pytest.mark.parametrize("most", [1024, 23])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.tuples(st.sampled_from(["", TASK, TASK[:90]]), WORDS), min_size=1, max_size=9))
def test_random_groups_are_read_as_one_by_one(most: int, texts: list[tuple[str, str]], pair: Any) -> None:
    shared, alone = pair("qwen")
    execution = shared._execution
    assert isinstance(execution, Together)
    execution.trees._most = most  # a pass of few tokens: segments are cut, and their keys and values are kept
    try:
        same(shared, alone, [asked(str(n), begin + end) for n, (begin, end) in enumerate(texts)])
    finally:
        execution.trees._most = 1024


@pytest.mark.slow
def test_a_thousand_requests_of_several_tasks_are_read_as_one_by_one(pair: Any) -> None:
    drawn = np.random.default_rng(0).integers(0, 6, (1000, 4))
    words = ("", "good ", "bad ", "it cites a source ", "é", TASK[:60])
    texts = [f"{TASK[: 30 * row[0]]}{''.join(words[k] for k in row[1:])}" for row in drawn]
    shared, alone = pair("llama")
    same(shared, alone, [asked(f"{n}", text) for n, text in enumerate(texts)])


def test_memory_bounds_what_is_held(tiny: Tiny, pair: Any) -> None:
    _, alone = pair("llama")
    requests = [asked("long", "it cites a source " * 120), asked("short", TASK + "a"), asked("too", TASK + "b")]
    made = LocalEngine(str(tiny("llama")), device="cpu", memory=200 * 512 / 1e9)
    execution = made._execution
    assert isinstance(execution, Together)
    assert execution.trees.token_bytes == 512  # 2 layers, 2 heads of 16 numbers, keys and values, 4 bytes
    same(made, alone, requests)  # all fits in one pass, which keeps nothing
    execution.trees._most = 50
    done = {each.key: each for each in made.stream(requests)}
    error = done["long"].error
    assert error is not None
    assert error.kind == "out_of_memory"
    assert "GB, and memory is bounded to 0.000102 GB" in str(error)
    assert done["short"].error is None
    assert done["too"].error is None
    assert 0 < made.work["peak_bytes"] <= 200 * 512


def test_a_model_that_cannot_share_says_so(tiny: Tiny, tmp_path: Path) -> None:
    import json
    import shutil

    folder = shutil.copytree(tiny("mistral"), tmp_path / "sliding")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "sliding_window": 64}), "utf-8")
    made = LocalEngine(str(folder), device="cpu")
    assert made.notes == {}
    list(made.stream([asked("one", "x"), asked("two", "y")]))
    ((note, count),) = made.notes.items()
    assert "sliding windows" in note
    assert count == 2


def test_sharing_is_part_of_the_identity_in_half_precision_alone(tiny: Tiny) -> None:
    def identity(dtype: str, share: bool) -> Any:
        return LocalEngine(str(tiny("llama")), device="cpu", dtype=dtype, share=share).identity()

    assert identity("float32", True) == identity("float32", False)
    assert identity("bfloat16", True) == {**identity("bfloat16", False), "share": "yes"}


def test_a_folder_from_before_goes_on_without_sharing_and_a_summary_tells_the_work(tiny: Tiny, tmp_path: Path) -> None:
    def run(out: str, dtype: str, responses: Sequence[str], **options: Any) -> Mapping[str, Any]:
        engine = LocalEngine(str(tiny("llama")), device="cpu", dtype=dtype, **options)
        rows = [{"id": f"{n}", "instruction": TASK, "response": text} for n, text in enumerate(responses)]
        items = write_jsonl(tmp_path / "items.jsonl", rows)
        rubric = {"name": "good", "criterion": "Is it good?", "scale": "1-5"}
        return grade_file(Judge(engine, rubric, read="only"), str(items), tmp_path / out)

    run("old", "bfloat16", ["a"], share=False)
    again = run("old", "bfloat16", ["a", "b"])
    assert (again["answered_before"], again["asked"]) == (1, 1)
    assert "work" not in again
    new = run("new", "float32", ["a", "b", "c"])
    assert 0 < new["work"]["tokens_computed"] < 0.7 * new["work"]["tokens_asked"]
    assert run("new", "float32", ["a", "b", "c", "d"], share=False)["asked"] == 1  # one identity in float32


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("memory=0", "option 'memory': expected GB above 0, got 0"),
        ("memory=much", "option 'memory': expected a number, got 'much'"),
        ("share=ye", "option 'share': expected yes or no, got 'ye': did you mean 'yes'?"),
        ("shared=no", "unknown option 'shared': did you mean 'share'?"),
        ("batch_size=0", "option 'batch_size': expected a whole number of at least 1, got 0"),
        ("batch_size=16,window=8", "option 'window': expected at least 16 (batch_size), got 8"),
    ],
)
def test_wrong_values_are_refused(options: str, told: str, tiny: Tiny) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        open_engine(f"{tiny('llama')},{options}")


def test_a_batch_larger_than_the_window_widens_it(tiny: Tiny) -> None:
    assert LocalEngine(str(tiny("llama")), device="cpu", batch_size=100).window == 100


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("heads", [(4, 4), (4, 2)])
@pytest.mark.parametrize("causal", [True, False])
def test_attention_and_its_sum_by_hand(dtype: torch.dtype, heads: tuple[int, int], causal: bool) -> None:
    torch.manual_seed(0)
    query = torch.randn(1, heads[0], 5, 8, dtype=dtype)
    key, value = torch.randn(2, 1, heads[1], 5, 8, dtype=dtype)
    found = attend(query, key, value, 0.5, causal=causal)
    many = heads[0] // heads[1]
    scores = query.double() @ key.repeat_interleave(many, 1).double().mT * 0.5
    if causal:
        scores = scores.masked_fill(~torch.ones(5, 5).tril().bool(), -torch.inf)
    wanted = scores.softmax(-1) @ value.repeat_interleave(many, 1).double()
    far, off = (1e-6, 1e-5) if dtype == torch.float32 else (3e-2, 1e-2)
    assert torch.allclose(found.out.double(), wanted, atol=far, rtol=off)
    assert torch.allclose(found.log_sum[..., 0].double(), scores.logsumexp(-1), atol=far, rtol=off)
