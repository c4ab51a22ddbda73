"""Replies of requests that begin alike: those that each request gets by itself, and labels read where they end."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_models
from dikast.core.message import Message, Span
from dikast.core.part import Image
from dikast.engines.base import Completion, Readout, Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.execution import Together
from dikast.engines.local.sharing import tree_replies
from dikast.engines.local.sharing.tree_attention import Block
from dikast.engines.local.sharing.tree_forward import Known
from dikast.engines.local.sharing.tree_forward import Path as KnownPath
from dikast.engines.local.sharing.tree_replies import own_blocks

Tiny = Callable[[str], Path]
LABELS = ("1", "2", "10", "pass")
TASK = "The response follows the instruction. " * 6
CHOICES = ("good", "The response cites a source, but one claim is wrong.", "It follows the instruction", "é")
GREEDY = Sampling(max_tokens=64)


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


def noise(size: int) -> Image:
    from PIL import Image as Pictures

    return Image.of(Pictures.effect_noise((size, 64), 80).convert("RGB"))


def ask(key: str, text: str, *shown: Image, sampling: Sampling = GREEDY, **more: Any) -> Request:
    return Request(key, (Message("user", (*shown, Span(text))),), sampling, **more)


def tournament(*shown: Image, **more: Any) -> list[Request]:
    """All ordered pairs of four responses, one of them long, with one request twice and one that begins another."""
    responses = ["good", "It cites a source", "It cites a source, but " + "one claim is wrong " * 12, "x"]
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]
    return [
        *(ask(f"{i}-{j}", f"{TASK}First: {responses[i]}\nSecond: {responses[j]}", *shown, **more) for i, j in pairs),
        ask("again", f"{TASK}First: good\nSecond: x", *shown, **more), ask("short", TASK, *shown, **more),
        ask("other", "x", **more),
    ]  # fmt: skip


def both(engines: tuple[LocalEngine, LocalEngine], requests: list[Request]) -> list[tuple[Completion, Completion]]:
    """Both answers to every request, without errors, of which all but probabilities and times are equal."""
    first, second = ({done.key: done for done in engine.stream(requests)} for engine in engines)
    assert first.keys() == second.keys() == {request.key for request in requests}
    for key, done in first.items():
        other = second[key]
        assert done.error is None
        assert replace(done, label_logprobs=None, usage=replace(done.usage, seconds=0)) == replace(
            other, label_logprobs=None, usage=replace(other.usage, seconds=0)
        )
        assert (done.label_logprobs is None) == (other.label_logprobs is None)
        if done.label_logprobs is not None:
            assert done.label_logprobs == pytest.approx(other.label_logprobs, abs=5e-5)
    return [(first[key], second[key]) for key in first]


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_64_greedy_tokens_are_those_of_each_alone(family: str, pair: Any) -> None:
    shown = (noise(64),) if family in tiny_models.IMAGE_FAMILIES else ()
    shared = pair(family)[0]
    before = shared.work.get("tokens_computed", 0)
    done = both(pair(family), tournament(*shown, readout=Readout(LABELS, "\n[RESULT] ")))
    assert len({first.text for first, _ in done}) > 5
    prompts = sum(first.usage.tokens_in for first, _ in done)
    assert shared.work["tokens_computed"] - before < 0.5 * prompts


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_labels_behind_replies_are_read_as_from_each_alone(family: str, pair: Any) -> None:
    shown = (noise(64),) if family in tiny_models.IMAGE_FAMILIES else ()
    sampling = Sampling(max_tokens=64, temperature=2.0, seed=1)
    requests = tournament(*shown, choices=CHOICES, sampling=sampling, readout=Readout(LABELS, "\n[RESULT] "))
    done = both(pair(family), requests)
    assert all(first.label_logprobs is not None for first, _ in done)
    assert len({first.text for first, _ in done}) > 1


@pytest.mark.parametrize("family", ["llama", "qwen", "llava"])
def test_draws_are_those_of_each_alone(family: str, pair: Any) -> None:
    sampling = Sampling(max_tokens=24, temperature=0.7, top_p=0.9, seed=3)
    done = both(pair(family), tournament(sampling=sampling, readout=Readout(LABELS, "\nScore: ")))
    assert len({first.text for first, _ in done}) == len(done)  # also of the request that is asked twice


def test_constraints_limits_markers_and_prefills_side_by_side(pair: Any) -> None:
    schema = {"type": "object", "properties": {"score": {"enum": [1, 2]}}, "required": ["score"]}
    both(
        pair("qwen"),
        [
            ask("schema", TASK + "a", schema=schema), ask("choice", TASK + "b", choices=("good", "bad")),
            ask("free", TASK + "c"), ask("brief", TASK + "d", sampling=Sampling(max_tokens=1)),
            ask("prefill", TASK + "e", prefill="Score:", readout=Readout(LABELS, "Score:")),
            ask("score only", TASK + "f", readout=Readout(LABELS, "Score:", generate=False)),
        ],
    )  # fmt: skip


def test_a_label_is_read_from_the_replys_own_keys_and_values(pair: Any) -> None:
    shared, _ = pair("llama")
    requests = tournament(choices=CHOICES)
    before = dict(shared.work)
    list(shared.stream(requests))
    written = shared.work["tokens_computed"] - before["tokens_computed"]
    before = dict(shared.work)
    done = list(shared.stream([replace(each, readout=Readout(LABELS, "\n[RESULT] ")) for each in requests]))
    assert all(each.label_logprobs is not None for each in done)
    # behind each reply: its last token, the marker and what labels begin with
    assert shared.work["tokens_computed"] - before["tokens_computed"] - written < 24 * len(done)


def test_what_is_held_is_what_the_tree_and_the_replies_take(tiny: Tiny) -> None:
    made = LocalEngine(str(tiny("llama")), device="cpu")
    execution = made._execution
    assert isinstance(execution, Together)
    list(made.stream([ask(f"{n}", f"{TASK * 4}{n}", sampling=Sampling(max_tokens=1)) for n in range(5)]))
    tree = made.work["tokens_computed"] * execution.trees.token_bytes
    assert tree <= made.work["peak_bytes"] <= 1.05 * tree


def paths(ends: list[int], *, middle: int = 0, each: int = 4) -> list[KnownPath]:
    """Paths behind one long prefix, in runs of `each` through a block of `middle` tokens, if any, with an end each."""
    prefix, found = Known(Block(5000), 5000), list[KnownPath]()
    for n, end in enumerate(ends):
        if n % each == 0:
            shared = (prefix, Known(Block(middle), middle)) if middle else (prefix,)
        found.append((*shared, Known(Block(end), end)))
    return found


def test_ends_of_prompts_are_computed_together_up_to_a_width_that_pays() -> None:
    def own(ends: list[int], most: int) -> set[int]:
        counts = own_blocks(paths(ends), most, copies=True)
        assert set(counts) <= {0, 1}  # the long prefix is not copied for each row
        return {end for end, n in zip(ends, counts, strict=True) if n}

    # attention takes as long as rows x width columns, and 1,000 columns for each end beyond the width
    assert own([250] * 20, 1280) == {250}  # 20 x 250 = 5,000, against 20,000
    assert own([1500] * 20, 1280) == set()
    assert own([50] * 19 + [70], 1280) == {50, 70}  # 1,400, against 1,000 + 1,000
    assert own([50] * 19 + [500], 9000) == {50}  # 500 would be 450 columns of padding for 19 rows
    ragged = [110, 130, 150, 170, 290] * 4  # mean 170: 290 takes 2,400 columns of padding, fewer than the ends
    assert own(ragged, 64 * 20) == set(ragged) - {290}
    assert own(ragged, sum(ragged)) == set(ragged)
    assert own_blocks([path[:1] for path in paths([1, 1])], 0, copies=True) == [0, 0]


def test_a_short_block_of_several_rows_is_copied_to_each_where_that_pays() -> None:
    several = paths([70] * 20, middle=50)  # a round robin: each first response stands before four ends
    assert own_blocks(several, 1280, copies=True) == [2] * 20  # 20 x 120 = 2,400, against 20 x 70 + 5 x 1,000
    assert own_blocks(several, 700, copies=True) == [1] * 20  # the copies would take 750 tokens more than the blocks
    assert own_blocks(several, 1280, copies=False) == [1] * 20
    assert own_blocks(paths([70] * 20, middle=400), 9000, copies=True) == [1] * 20  # 8,000 columns, against 5,000


def test_a_copied_block_gives_the_same_replies(pair: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[list[int]] = []

    def blocks(given: Any, most: int, *, copies: bool) -> list[int]:
        counted.append(own_blocks(given, most, copies=copies))
        return counted[-1]

    monkeypatch.setattr(tree_replies, "own_blocks", blocks)
    both(pair("llama"), tournament(readout=Readout(LABELS, "\n[RESULT] ")))
    assert max(counted[0]) > 1  # responses are copied, each with what follows it


def test_groups_are_cut_where_memory_says(tiny: Tiny, pair: Any) -> None:
    requests = tournament(sampling=Sampling(max_tokens=8))
    made = LocalEngine(str(tiny("llama")), device="cpu", memory=500 * 512 / 1e9)
    both((made, pair("llama")[1]), requests)
    assert made.work["peak_bytes"] <= 500 * 512
    small = LocalEngine(str(tiny("llama")), device="cpu", memory=100 * 512 / 1e9)
    done = {each.key: each for each in small.stream(requests)}
    assert done["other"].error is None
    error = done["0-1"].error
    assert error is not None
    assert error.kind == "out_of_memory"


def test_memory_that_does_not_suffice_halves_the_tree(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    made = LocalEngine(str(tiny("llama")), device="cpu")
    requests = [ask(f"{n}", f"{TASK}{'x ' * n}", choices=("good", "bad")) for n in range(7)]
    requests.append(ask("huge", "x " * 200))
    expected = {done.key: done.text for done in made.stream(requests)}
    execution = made._execution
    assert isinstance(execution, Together)
    run, sizes = execution.trees.run, list[int]()

    def scarce(rows: Any, *given: Any, **more: Any) -> Any:
        sizes.append(len(rows))
        found = run(rows, *given, **more)
        if len(rows) > 2 or max(len(row.ids) for row in rows) > 150:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return found

    monkeypatch.setattr(execution.trees, "run", scarce)
    done = {each.key: each for each in made.stream(requests)}
    assert sizes[0] == 8
    huge = done.pop("huge").error
    assert huge is not None
    assert huge.kind == "out_of_memory"
    assert {key: each.text for key, each in done.items()} == {key: expected[key] for key in done}


def test_a_prompt_beyond_the_context_and_a_damaged_picture_fail_alone(tiny: Tiny) -> None:
    made = LocalEngine(str(tiny("llava")), device="cpu")
    done = {
        each.key: each
        for each in made.stream(
            [
                ask("fine", TASK, sampling=Sampling(max_tokens=2)), ask("long", TASK * 400),
                ask("damaged", TASK, Image.of(b"no picture")), ask("too", TASK + "x", sampling=Sampling(max_tokens=2)),
            ]
        )
    }  # fmt: skip
    kinds = {key: each.error.kind for key, each in done.items() if each.error is not None}
    assert kinds == {"long": "context_length", "damaged": "bad_media"}
