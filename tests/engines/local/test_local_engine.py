"""The engine as a stream: lazy, in bounded windows, and one request's failure is one completion."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import tiny_models
from dikast.core.errors import MissingExtra, UserError
from dikast.core.message import Message, Span
from dikast.core.part import Image, Video
from dikast.engines.base import Engine, Readout, Request, Sampling
from dikast.engines.local import constraint
from dikast.engines.local.engine import LocalEngine
from dikast.testing import check_engine, sample_requests

Engines = Callable[[str], LocalEngine]
Tiny = Callable[[str], Path]


def ask(key: str, text: str = "good", *images: Image | Video, **more: Any) -> Request:
    more.setdefault("sampling", Sampling(max_tokens=4))
    return Request(key, (Message("user", (*images, Span(text))),), **more)


def colour(red: int, size: tuple[int, int] = (56, 56)) -> Image:
    from PIL import Image as Pictures

    return Image.of(Pictures.new("RGB", size, (red, 90, 160)))


def test_the_engine_meets_the_protocol(engine: Engines) -> None:
    made: Engine = engine("llama")
    assert set(made.versions()) >= {"torch", "transformers", "tokenizers"}
    assert list(made.stream([])) == []


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_every_request_is_answered_once(family: str, engine: Engines) -> None:
    asked = [ask(str(i), "x " * (i * 7 % 30)) for i in range(30)]
    made = engine(family)
    keys = [done.key for done in made.stream(iter(asked))]
    assert sorted(keys, key=int) == [request.key for request in asked]


def test_requests_are_taken_a_window_at_a_time(tiny: Tiny) -> None:
    taken: list[int] = []

    def source() -> Iterator[Request]:
        for i in range(1000):
            taken.append(i)
            yield ask(str(i))

    made = LocalEngine(str(tiny("llama")), device="cpu", batch_size=2, window=6)
    stream = made.stream(source())
    next(stream)
    assert len(taken) == 6
    for _ in range(6):
        next(stream)
    assert len(taken) == 12


def test_streams_may_take_turns(engine: Engines) -> None:
    made = engine("qwen_vl")
    shown = [ask(f"i{n}", "x", colour(n * 9)) for n in range(3)]
    plain = [ask(f"t{n}", "y " * n) for n in range(3)]
    alone = {done.key: done.text for done in [*made.stream(shown), *made.stream(plain)]}
    made.batch_size = 1
    try:
        turns = zip(made.stream(shown), made.stream(plain), strict=True)
        assert {done.key: done.text for pair in turns for done in pair} == alone
    finally:
        made.batch_size = 8


@pytest.mark.parametrize("family", tiny_models.IMAGE_FAMILIES)
def test_images_change_the_answer_and_clips_can_be_their_frames(family: str, tiny: Tiny) -> None:
    made = LocalEngine(str(tiny(family)), device="cpu", clips="frames")
    readout = Readout(("1", "2"), "\nScore: ", generate=False)
    red, blue = colour(250), colour(0)
    asked = [
        ask("red", "x", red, readout=readout),
        ask("blue", "x", blue, readout=readout),
        ask("clip", "x", Video((red, blue)), readout=readout),
        ask("two", "x", red, blue, readout=readout),
    ]
    found = {done.key: done.label_logprobs for done in made.stream(asked)}
    assert found["red"] != found["blue"]
    assert found["clip"] == pytest.approx(found["two"], abs=1e-5)


def test_a_text_model_says_that_it_cannot_see(engine: Engines) -> None:
    bad, good = engine("llama").stream([ask("image", "x", colour(1)), ask("text")])
    assert bad.error is not None
    assert (bad.key, bad.finish, bad.error.kind) == ("image", "error", "no_vision")
    assert "vision-language model" in str(bad.error)
    assert good.error is None


def test_an_image_that_cannot_be_used_is_its_requests_error(engine: Engines) -> None:
    done = {
        d.key: d for d in engine("llava").stream([ask("gone", "x", Image("/no/such.png")), ask("ok", "x", colour(1))])
    }
    error = done["gone"].error
    assert error is not None
    assert error.kind == "bad_media"
    assert "/no/such.png" in str(error)
    assert done["ok"].error is None


@pytest.mark.parametrize("family", ["llama", "llava"])
def test_a_prompt_beyond_the_context_is_an_error_with_numbers(family: str, engine: Engines) -> None:
    done = {d.key: d for d in engine(family).stream([ask("long", "word " * 3000), ask("ok")])}
    error = done["long"].error
    assert error is not None
    assert error.kind == "context_length"
    assert "2048" in str(error)
    assert done["ok"].error is None


@pytest.mark.parametrize("beside", [0, 2])  # requests that have their media prepared in threads
def test_thousands_of_pictures_are_refused_before_they_are_prepared(engine: Engines, beside: int) -> None:
    """A few bytes each: 20,000 were 5 GB of tensors before the length of their prompt was known."""
    asked = [ask(f"ok{n}", "x", colour(n)) for n in range(beside)]
    done = {each.key: each.error for each in engine("llava").stream([*asked, ask("many", "x", *[colour(9)] * 2_049)])}
    error = done.pop("many")
    assert error is not None
    assert error.kind == "context_length"
    assert "the prompt has 2,049 images and frames, at most 2,048 are prepared" in str(error)
    assert list(done.values()) == [None] * beside


def test_a_reply_ends_where_the_context_does(engine: Engines) -> None:
    made = engine("qwen")
    (probe,) = made.stream([ask("k", "good " * 400)])
    fill = "good " * (400 + (2048 - 3 - probe.usage.tokens_in))
    (done,) = made.stream([ask("k", fill, sampling=Sampling(max_tokens=100))])
    assert done.error is None
    assert (done.finish, done.usage.tokens_in + done.usage.tokens_out) == ("length", 2048)


def test_room_for_the_verdict_is_kept(engine: Engines) -> None:
    """A read at the very end of the context stays inside it, or the request says that it is too long."""
    made = engine("qwen")
    readout = Readout(("10",), "\n[RESULT] ")
    (probe,) = made.stream([ask("k", "good")])
    kept = made._loaded.tokens.tokenizer("\n[RESULT] 10", add_special_tokens=False)["input_ids"]
    room = 2048 - probe.usage.tokens_in
    long = ask("long", "good" + " good" * (room - 1), readout=readout)
    fits = ask("fits", "good" + " good" * (room - len(kept) - 5), readout=readout)
    done = {d.key: d for d in made.stream([long, fits])}
    error = done["long"].error
    assert error is not None
    assert error.kind == "context_length"
    assert done["fits"].error is None
    assert done["fits"].usage.tokens_in + len(kept) <= 2048


def test_a_checkpoint_that_lacks_tensors_is_refused(tiny: Tiny, tmp_path: Path) -> None:
    import shutil

    from safetensors.torch import load_file, save_file

    folder = tmp_path / "lacking"
    shutil.copytree(tiny("qwen"), folder)
    tensors = load_file(folder / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"lack 1 of the model's tensors \(lm_head\.weight\)"):
        LocalEngine(str(folder), device="cpu")


@pytest.mark.parametrize("family", ["llama", "llava"])
def test_the_engine_keeps_the_rules_of_all_engines(family: str, engine: Engines) -> None:
    check_engine(
        engine(family), requests=[replace(each, sampling=Sampling(max_tokens=6)) for each in sample_requests()]
    )


def test_memory_that_does_not_suffice_halves_the_batch(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    made = LocalEngine(str(tiny("llama")), device="cpu", share=False)
    asked = [ask(str(i), "x " * i, choices=("good", "bad")) for i in range(7)] + [ask("huge", "x " * 200)]
    expected = {done.key: done.text for done in made.stream(asked)}
    sizes: list[int] = []
    generate = made._loaded.model.generate

    def scarce(**options: Any) -> Any:
        rows, width = options["input_ids"].shape
        sizes.append(rows)
        if rows > 2 or width > 150:
            options["logits_processor"][0](
                options["input_ids"], torch.zeros(rows, made._loaded.model.config.vocab_size)
            )
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")
        return generate(**options)

    monkeypatch.setattr(made._loaded.model, "generate", scarce)
    done = {d.key: d for d in made.stream(asked)}
    assert sizes[:2] == [8, 4]
    huge = done.pop("huge").error
    assert huge is not None
    assert huge.kind == "out_of_memory"
    assert {key: each.text for key, each in done.items()} == {key: expected[key] for key in done}


def test_whatever_a_model_raises_is_one_requests_error(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    made = LocalEngine(str(tiny("llama")), device="cpu", share=False)
    generate = made._loaded.model.generate

    def fragile(**options: Any) -> Any:
        if options["attention_mask"].sum(-1).max() > 100:
            raise RuntimeError("index out of range\nmore")
        return generate(**options)

    monkeypatch.setattr(made._loaded.model, "generate", fragile)
    done = {d.key: d for d in made.stream([ask("bad", "x " * 100), *(ask(str(i)) for i in range(5))])}
    bad = done.pop("bad").error
    assert bad is not None
    assert bad.kind == "model"
    assert "index out of range" in str(bad)
    assert all(each.error is None for each in done.values())


def test_a_schema_that_cannot_be_followed_is_an_error(engine: Engines) -> None:
    asked = [ask("bad", schema={"type": "no such type"}), ask("clash", choices=("yes",), prefill="no"), ask("ok")]
    done = {d.key: d for d in engine("llama").stream(asked)}
    for key in ("bad", "clash"):
        error = done[key].error
        assert error is not None
        assert error.kind == "schema"
    assert done["ok"].error is None


def test_without_llguidance_only_requests_that_need_it_fail(engine: Engines, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str, extra: str) -> Any:
        raise MissingExtra(f"this needs the package {module!r}: pip install 'dikast[{extra}]'")

    monkeypatch.setattr(constraint, "require", missing)
    done = {d.key: d for d in engine("llama").stream([ask("json", schema={"type": "object"}), ask("ok")])}
    error = done["json"].error
    assert error is not None
    assert error.kind == "missing_extra"
    assert "dikast[hf]" in str(error)
    assert done["ok"].error is None


@pytest.mark.parametrize("wrong", [{"device": "gpu"}, {"dtype": "float7"}])
def test_options_torch_does_not_know_are_told(wrong: dict[str, str], tiny: Tiny) -> None:
    with pytest.raises(UserError, match="not known to torch"):
        LocalEngine(str(tiny("llama")), **wrong)  # type: ignore[arg-type]


def test_a_folder_with_broken_files_is_told(tiny: Tiny, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "broken"
    shutil.copytree(tiny("llama"), folder)
    (folder / "model.safetensors").write_bytes(b"not safetensors" * 10_000)
    with pytest.raises(UserError, match="cannot be loaded"):
        LocalEngine(str(folder), device="cpu")


def test_importing_the_engine_loads_neither_torch_nor_transformers() -> None:
    code = "import sys, dikast.engines.local.engine; print({'torch', 'transformers', 'numpy'} & set(sys.modules))"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == "set()"


def test_without_torch_the_extra_is_named(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"dikast\[hf\]"):
        LocalEngine(str(tiny("llama")))
