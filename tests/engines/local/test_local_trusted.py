"""Folders of models from elsewhere: no code of theirs runs, and the error names the file that asks for it."""

import io
import json
import os
import pickle
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from dikast.core.errors import UserError
from dikast.core.message import Message, Span
from dikast.engines.base import Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.source import locate
from dikast.engines.local.tokens import Piece

Tiny = Callable[[str], Path]
CODE = """
from pathlib import Path
Path({marker!r}).write_text("ran")
from transformers import PretrainedConfig
class Evil(PretrainedConfig):
    model_type = "evil"
"""


@pytest.fixture
def model(tiny: Tiny, tmp_path: Path) -> Path:
    """A sound model with a Python file beside it that tells when it runs."""
    folder = tmp_path / "model"
    shutil.copytree(tiny("llama"), folder)
    (folder / "evil.py").write_text(CODE.format(marker=str(tmp_path / "ran")), "utf-8")
    return folder


def change(path: Path, **values: Any) -> None:
    old = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    path.write_text(json.dumps({**old, **values}), "utf-8")


def opened(folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> LocalEngine:
    """The folder opened while somebody answers yes to everything."""
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 100))
    return LocalEngine(str(folder), device="cpu", **options)


@pytest.mark.parametrize(
    ("file", "values", "told"),
    [
        ("config.json", {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil"}}, "auto_map"),
        ("config.json", {"model_type": "evil", "auto_map": {"AutoConfig": "someone/else--evil.Evil"}}, "auto_map"),
        ("tokenizer_config.json",
         {"tokenizer_class": "EvilTokenizer", "auto_map": {"AutoTokenizer": ["evil.Evil", None]}}, "auto_map"),
        ("preprocessor_config.json",
         {"image_processor_type": "Evil", "auto_map": {"AutoImageProcessor": "evil.Evil"}}, "auto_map"),
        ("processor_config.json", {"processor_class": "Evil", "auto_map": {"AutoProcessor": "evil.Evil"}}, "auto_map"),
        ("config.json", {"attn_implementation": "someone/kernel"}, "attn_implementation"),
        ("config.json", {"text_config": {"_attn_implementation": "someone/kernel"}}, "_attn_implementation"),
        ("generation_config.json", {"trust_remote_code": True}, "trust_remote_code"),
    ],
)  # fmt: skip
def test_a_folder_that_needs_foreign_code_is_refused_by_file_and_field(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, values: dict[str, Any], told: str
) -> None:
    change(model / file, **values)
    with pytest.raises(UserError, match=f"{file}: field '{told}' asks for .*never runs code that comes with a model"):
        opened(model, monkeypatch)
    assert not (tmp_path / "ran").exists()


def parts_by_code(folder: Path, tmp_path: Path) -> Path:
    """A LLaVA whose parts are types that have a configuration and no model of their own, and name code beside it."""
    part = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    named = {"AutoModel": f"{tmp_path / 'model'}--evil.Evil"}
    change(
        folder / "config.json", model_type="llava", architectures=["LlavaForConditionalGeneration"],
        vision_config={**part, "model_type": "blip_vision_model", "auto_map": named},
        text_config={**part, "model_type": "blip_text_model", "auto_map": named, "vocab_size": 64},
    )  # fmt: skip
    return folder


@pytest.mark.parametrize("alone", [False, True], ids=["as it is", "the second wall alone"])
def test_code_for_a_part_of_a_model_never_runs(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, alone: bool
) -> None:
    """LLaVA makes its parts by itself, and transformers would ask whether their code may run."""
    import transformers

    from dikast.engines.local import trusted

    parts_by_code(model, tmp_path)
    told = "field 'auto_map' asks for code for a part of the model"
    if alone:
        monkeypatch.setattr(trusted, "refuse_foreign_code", lambda folder: None)
        told = "trust_remote_code=True|cannot be loaded|no model can be made"
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 100))

    def made() -> None:
        config = trusted.model_config(model)
        kind: Any = transformers.AutoModelForImageTextToText
        kind.from_config(config, trust_remote_code=False)

    with pytest.raises((UserError, ValueError), match=told):
        made()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind", [["llama"], {"a": 1}, None, 5])
def test_a_type_of_model_that_is_no_text_is_refused(model: Path, kind: Any) -> None:
    from dikast.engines.local.trusted import refuse_foreign_code

    named = {"model_type": kind, "auto_map": {"AutoModel": "evil.Evil"}}
    for written in (named, {"model_type": "llava", "text_config": named}):
        (model / "config.json").write_text(json.dumps(written), "utf-8")
        with pytest.raises(UserError, match="field 'auto_map' asks for"):
            refuse_foreign_code(model)


def test_a_part_that_transformers_has_itself_may_name_code(model: Path) -> None:
    from dikast.engines.local.trusted import refuse_foreign_code

    part = {"model_type": "llama", "auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"}}
    change(model / "config.json", model_type="llava", text_config=part)
    refuse_foreign_code(model)


def test_a_model_that_transformers_has_itself_is_opened_by_its_own_class(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many checkpoints carry the code they were first published with."""
    change(model / "config.json", auto_map={"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"})
    assert type(opened(model, monkeypatch)._loaded.model).__name__ == "LlamaForCausalLM"
    assert not (tmp_path / "ran").exists()


def pickled(model: Path, value: Any) -> Path:
    """The model with its weights in one pickled file."""
    (model / "model.safetensors").unlink()
    torch.save(value, model / "pytorch_model.bin")
    return model


class Bomb:
    """What runs a function as it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_pickled_weights_are_read_as_tensors_and_that_is_said_once(
    model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    safe = opened(model, monkeypatch)._loaded.model.state_dict()
    pickled(model, load_file(model / "model.safetensors"))
    for _ in range(2):
        found = opened(model, monkeypatch)._loaded.model.state_dict()
    assert all(torch.equal(safe[name], found[name]) for name in safe)
    said = [each.message for each in caplog.records if "pytorch_model.bin" in each.message]
    assert len(said) == 1
    assert "no safetensors" in said[0]


@pytest.mark.parametrize("old", [True, False], ids=["plain pickle", "torch's file"])
def test_pickled_weights_that_hold_more_than_tensors_are_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, old: bool
) -> None:
    held = {"model.norm.weight": Bomb(tmp_path / "ran"), "rest": bytes(100_000)}  # large enough for the model
    pickled(model, held)
    if old:
        (model / "pytorch_model.bin").write_bytes(pickle.dumps(held))
    with pytest.raises(UserError, match=r"hold more than tensors|cannot be loaded"):
        opened(model, monkeypatch)
    assert not (tmp_path / "ran").exists()


def test_safetensors_go_before_pickled_weights(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"x": Bomb(tmp_path / "ran")}, model / "pytorch_model.bin")
    opened(model, monkeypatch)
    assert not (tmp_path / "ran").exists()


def in_shards(model: Path, where: str) -> Path:
    """The model with half of its weights in a file of another name, as the index says."""
    whole = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    names = sorted(whole)
    place = {name: "a.safetensors" if i % 2 else where for i, name in enumerate(names)}
    for file in set(place.values()):
        (model / file).parent.mkdir(exist_ok=True)
        some = {name: whole[name] for name in names if place[name] == file}
        save_file(some, model / file, metadata={"format": "pt"})
    change(model / "model.safetensors.index.json", metadata={"total_size": 1}, weight_map=place)
    return model


@pytest.mark.parametrize("where", ["../elsewhere/b.safetensors", "sub/b.safetensors", "b.bin"])
def test_an_index_that_leads_out_of_the_folder_is_refused(
    where: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights there could change, and old answers would still be taken for those of this model."""
    from dikast.training.models.folders import Weights

    in_shards(model, where)
    with pytest.raises(UserError, match=f"index.json: field 'weight_map': '{where}' is no .safetensors file in this"):
        opened(model, monkeypatch)
    with pytest.raises(UserError, match=f"index.json: field 'weight_map': '{where}' is no .safetensors file in this"):
        Weights(model)


def test_an_index_of_files_in_the_folder_opens(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(in_shards(model, "b.safetensors"), monkeypatch).close()


@pytest.mark.parametrize("written", ["[]", "{}", '{"weight_map": 5}', "[" * 100_000, '{"weight_map": {"a": 5}}'])
def test_an_index_that_is_none_is_refused_by_file(written: str, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_shards(model, "b.safetensors")
    (model / "model.safetensors.index.json").write_text(written, "utf-8")
    with pytest.raises(UserError, match=r"model.safetensors.index.json: field 'weight_map': "):
        opened(model, monkeypatch)


def test_weights_that_are_read_are_those_that_are_identified(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other safetensors beside the `.bin` file that is read do not hide its change."""
    weights = load_file(model / "model.safetensors")
    (model / "model.safetensors").rename(model / "other.safetensors")
    torch.save(weights, model / "pytorch_model.bin")
    before = locate(str(model)).identity()
    opened(model, monkeypatch).close()
    torch.save({name: each + 1 for name, each in weights.items()}, model / "pytorch_model.bin")
    assert locate(str(model)).identity() != before


@pytest.fixture
def adapter(model: Path, tmp_path: Path) -> Path:
    """A LoRA adapter over the model, as peft saves it."""
    import peft
    import transformers

    under = transformers.AutoModelForCausalLM.from_pretrained(model)
    folder = tmp_path / "adapter"
    made = peft.get_peft_model(under, peft.LoraConfig(r=2, target_modules=["q_proj"]))
    made.save_pretrained(str(folder))
    change(folder / "adapter_config.json", base_model_name_or_path=str(model))
    return folder


def test_an_adapter_opens_and_its_own_class_may_be_named(adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = json.loads((adapter / "adapter_config.json").read_text())["auto_mapping"]
    assert named["parent_library"].startswith("transformers.")
    opened(adapter, monkeypatch)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"auto_mapping": {"base_model_class": "Evil", "parent_library": "evil"}}, "auto_mapping.parent_library"),
        ({"megatron_config": {"x": 1}, "megatron_core": "evil"}, "megatron_config"),
        ({"peft_type": "PROMPT_TUNING", "tokenizer_kwargs": {"trust_remote_code": True}}, "trust_remote_code"),
    ],
)
def test_an_adapter_that_names_modules_of_others_is_refused(
    adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], told: str
) -> None:
    change(adapter / "adapter_config.json", **values)
    monkeypatch.syspath_prepend(str(tmp_path / "model"))
    with pytest.raises(UserError, match=f"adapter_config.json: field '{told}' asks for"):
        opened(adapter, monkeypatch)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"peft_type": "SHADOW", "shadow_model": "MODEL"},
            "field 'peft_type': no adapter of the kind 'SHADOW' is read",
        ),
        ({"peft_type": "XLORA", "adapters": {"0": "evil/repo"}, "hidden_size": 16}, "no adapter of the kind 'XLORA'"),
        (
            {"peft_type": "MULTITASK_PROMPT_TUNING", "num_tasks": 10**9},
            "no adapter of the kind 'MULTITASK_PROMPT_TUNING'",
        ),
        ({"layer_replication": [[0, 2]] * 20_000}, "field 'layer_replication': no model has 40,000 layers"),
    ],
)
def test_an_adapter_that_is_more_than_matrices_is_refused(
    adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], told: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(tmp_path / "model" / "evil.py", other)
    change(other / "config.json", model_type="evil", auto_map={"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"})
    written = {name: str(other) if value == "MODEL" else value for name, value in values.items()}
    change(adapter / "adapter_config.json", **written)
    with pytest.raises(UserError, match=f"adapter_config.json: .*{told}"):
        opened(adapter, monkeypatch)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "base",
    ["https://example.org/model", "file:///etc", "..", ".", "../../../etc/passwd", "//example.org/model", "a\x00b"],
)
def test_an_adapter_over_an_address_or_a_path_that_is_no_model_asks_nobody(
    base: str, adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*_: object) -> None:
        raise AssertionError("the Hub was asked")

    monkeypatch.setattr("dikast.engines.local.source._from_hub", asked)
    monkeypatch.chdir(adapter)
    change(adapter / "adapter_config.json", base_model_name_or_path=base)
    with pytest.raises(UserError, match=r"adapter_config.json: the base model of the adapter is not found"):
        opened(adapter, monkeypatch)


@pytest.mark.parametrize(
    "values",
    [
        {"target_modules": "((a|[a-z._0-9])+)+!"},
        {"rank_pattern": {"((a|[a-z._0-9])+)+!": 4}},
        {"modules_to_save": ["((a|[a-z._0-9])+)+!"]},
        {"target_modules": "((a|[a-z._0-9])?)" * 40 + "!"},  # no repetition, and 2 ** 40 ways
    ],
)
def test_a_pattern_of_an_adapter_that_never_ends_is_refused(
    values: dict[str, Any], adapter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dikast.core.machine.endless_patterns._SECONDS", 0.5)
    change(adapter / "adapter_config.json", **values)
    with pytest.raises(UserError, match=r"adapter_config.json: the pattern '\(\(a.* takes more than .* list the names"):
        opened(adapter, monkeypatch)


def test_a_pickled_adapter_that_holds_more_than_tensors_is_refused(
    adapter: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (adapter / "adapter_model.safetensors").unlink()
    torch.save({"x": Bomb(tmp_path / "ran")}, adapter / "adapter_model.bin")
    with pytest.raises(UserError, match=r"hold more than tensors|cannot be loaded"):
        opened(adapter, monkeypatch)
    assert not (tmp_path / "ran").exists()


def test_an_adapter_over_a_model_that_needs_code_names_the_models_file(
    adapter: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(model / "config.json", model_type="evil", auto_map={"AutoConfig": "evil.Evil"})
    with pytest.raises(UserError, match=r"model/config.json: field 'auto_map' asks for"):
        opened(adapter, monkeypatch)


@pytest.mark.parametrize("kind", ["LORA", "XLORA"])
def test_an_adapter_inside_a_models_folder_is_not_put_over_it_unchecked(
    kind: str, adapter: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transformers does so by itself, whatever the kind of the adapter loads or its patterns are."""
    for file in adapter.glob("adapter*"):
        shutil.copy(file, model)
    change(model / "adapter_config.json", peft_type=kind)
    with pytest.raises(UserError, match=r"holds a whole model .config.json. and an adapter .* base=FOLDER"):
        opened(model, monkeypatch)


def test_names_of_tensors_do_not_reach_the_terminal_as_they_are(
    model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = load_file(model / "model.safetensors")
    spare = {f"spare\x1b[31m{i}": torch.zeros(1) for i in range(2_000)}
    save_file({**weights, **spare}, model / "model.safetensors", metadata={"format": "pt"})
    opened(model, monkeypatch).close()
    said = [each.message for each in caplog.records if "spare" in each.message]
    assert len(said) == 1
    assert r"hold 2,000 tensors that the model has no place for (spare\u001b[31m0, " in said[0]
    assert "spare\x1b" not in "".join(capfd.readouterr())


def test_a_tokenizer_that_panics_is_an_error_of_its_file_or_of_one_prompt(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A panic of the library is no `Exception`, and would end the process."""
    path = model / "tokenizer.json"
    sound = json.loads(path.read_text("utf-8"))
    change(path, normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAA"})
    with pytest.raises(UserError, match=r"tokenizer_config.json: no tokenizer can be made .*panics: Precompiled"):
        opened(model, monkeypatch)
    endless = {"type": "Split", "pattern": {"Regex": "((?:[a-z ]+)+)+X"}, "behavior": "Isolated", "invert": False}
    path.write_text(json.dumps({**sound, "pre_tokenizer": endless}), "utf-8")
    asked = [Request(text, (Message("user", (Span(text),)),), Sampling(max_tokens=1)) for text in ("a " * 40, "1 2")]
    done = {each.key: each for each in opened(model, monkeypatch).stream(asked)}
    assert done["1 2"].error is None
    error = done["a " * 40].error
    assert error is not None
    assert error.kind == "tokenizer"
    assert "it panics: Onig: Regex search error" in str(error)


def test_a_tokenizer_gives_the_same_tokens_each_time(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout of merges is for training; it would make each verdict another draw."""
    path = model / "tokenizer.json"
    merges = json.loads(path.read_text("utf-8"))["model"]
    change(path, model={**merges, "dropout": 0.9})
    tokens = opened(model, monkeypatch)._loaded.tokens
    text = "The response follows the instruction and cites a source. " * 10  # longer than what is remembered
    assert len({tuple(tokens.encode([Piece(text)])) for _ in range(5)}) == 1


def test_a_template_of_the_tokenizer_cannot_reach_python(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reach = "{{ ''.__class__.__mro__[1].__subclasses__() }}{{ cycler.__init__.__globals__.os.mkdir('" + str(
        tmp_path / "ran"
    )
    for written, told in (
        (reach + "') }}", "SecurityError"), ("{% include '/etc/passwd' %}", "no loader"), ("{% broken", "SyntaxError"),
        ("{{ lipsum.__globals__ }}", "it renders nothing"), ("{% for i in range(10**9) %}x{% endfor %}", "Range too"),
    ):  # fmt: skip
        (model / "chat_template.jinja").write_text(written, "utf-8")
        with pytest.raises(UserError, match=f"model: its chat template .chat_template.jinja, .* renders no .*{told}"):
            opened(model, monkeypatch)
    assert not (tmp_path / "ran").exists()


def test_settings_that_are_no_json_are_left_to_the_loader(model: Path) -> None:
    (model / "video_preprocessor_config.json").write_text("[" * 100_000, "utf-8")
    assert locate(str(model)).folder == model


def test_a_context_that_is_not_stated_is_that_of_the_tokenizer(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(model / "config.json", max_position_embeddings=-1)
    change(model / "tokenizer_config.json", model_max_length=777)
    engine = opened(model, monkeypatch)
    assert engine._loaded.context == 777
    engine.close()


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"num_hidden_layers": 10**9}, "field 'num_hidden_layers': no model has 1,000,000,000"),
        ({"text_config": {"vision_layers": 1e300}}, "field 'vision_layers': no model has"),
        ({"num_hidden_layers": -5}, "field 'num_hidden_layers': no model has -5"),
        ({"vocab_size": 0}, "field 'vocab_size': no model has 0"),
        ({"max_position_embeddings": -2}, "field 'max_position_embeddings': no model has -2"),
        ({"hidden_size": "abc"}, "no model can be made with these settings .*'hidden_size'"),
        ({"hidden_size": {}}, "no model can be made with these settings .*'hidden_size'"),
        ({"rope_parameters": 3}, "no model can be made with these settings"),
        (None, "config.json: a pipe or a device"),
    ],
)
def test_settings_that_no_model_has_are_refused_by_judges_and_by_training(
    values: Any, told: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dikast.training.planning.plan_lines import PlanAsked, planned

    if isinstance(values, dict):
        change(model / "config.json", **values)
    else:
        (model / "config.json").unlink()
        os.mkfifo(model / "config.json")
    (tmp_path / "train.yaml").write_text(json.dumps({"model": str(model), "data": [{"items": ["x"]}], "out": "o"}))
    for opening in (
        lambda: opened(model, monkeypatch),
        lambda: planned(tmp_path / "train.yaml", PlanAsked(rows=1)),
    ):
        with pytest.raises(UserError, match=told) as refused:
            opening()
        assert "config.json" in str(refused.value)


@pytest.mark.parametrize(
    ("file", "values", "told"),
    [
        ("config.json", {"quantization_config": {"quant_method": "gptq", "bits": 0}}, "field 'quantization_config'"),
        ("config.json", {"quantization_config": {}}, "field 'quantization_config' asks for what cannot be used here"),
        ("config.json", {"dtype": "load"}, "no model can be made"),
        ("config.json", {"layer_types": ["evil"] * 2}, "no model can be made .*layer_types"),
        ("config.json", {"hidden_act": "evil"}, "no model can be made with these settings .KeyError: 'evil'"),
        ("config.json", {"vocab_size": 2**24}, "field 'vocab_size': the weights beside it are far too small"),
        ("config.json", {"intermediate_size": 96}, "the sizes in it are not those of the weights"),
        ("config.json", {"num_labels": 10**9}, "field 'num_labels': no model has 1,000,000,000"),
        ("tokenizer_config.json", {"extra_ids": 10**9}, "field 'extra_ids': no model has 1,000,000,000"),
        ("tokenizer_config.json", {"model_max_length": "x"}, "no tokenizer can be made .*model_max_length is 'x'"),
        ("generation_config.json", {"eos_token_id": "x"}, "field 'eos_token_id': 'x' is not the id of a token"),
        ("generation_config.json", {"cache_implementation": "evil"}, "no text can be generated with these settings"),
        ("adapter_config.json", {"r": 10**7}, "field 'r': the weights beside it are far too small"),
        ("adapter_config.json", {"peft_type": "EVIL"}, "field 'peft_type': no adapter of the kind 'EVIL' is read"),
    ],
)  # fmt: skip
def test_absurd_settings_are_refused_by_file_before_they_cost_memory(
    file: str, values: dict[str, Any], told: str, adapter: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = adapter if file.startswith("adapter") else model
    change(folder / file, **values)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError, match=f"{file}: {told}"):
        opened(folder, monkeypatch)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB


def test_weights_that_are_cut_short_are_no_fault_of_how_they_are_quantized(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fp8 = {"quant_method": "fp8", "weight_block_size": [64, 64], "activation_scheme": "dynamic"}
    change(model / "config.json", quantization_config=fp8)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(UserError, match=r"this model cannot be loaded: .*not fully covered"):
        opened(model, monkeypatch)


def test_an_adapter_of_full_kronecker_factors_may_state_any_rank(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import peft
    import transformers

    under = transformers.AutoModelForCausalLM.from_pretrained(model)
    made = peft.get_peft_model(under, peft.LoKrConfig(r=10_000, target_modules=["q_proj"], task_type="CAUSAL_LM"))
    made.save_pretrained(str(tmp_path / "lokr"))
    change(tmp_path / "lokr" / "adapter_config.json", base_model_name_or_path=str(model))
    opened(tmp_path / "lokr", monkeypatch).close()


def test_every_loader_goes_through_the_one_door() -> None:
    source = Path(__file__).parents[3] / "src" / "dikast"
    door = source / "engines" / "local"
    for path in source.rglob("*.py"):
        text = path.read_text("utf-8")
        if path == door / "trusted.py":
            assert "use_safetensors=safe, weights_only=True" in text  # whatever the default of transformers is
        if path in (door / "trusted.py", door / "adapters.py"):
            continue
        for call in (".from_pretrained(", "torch.load(", "pickle.load", "yaml.load(", "yaml.unsafe_load", "AutoPeft"):
            if call == "yaml.load(" and "SafeLoader" in text:
                continue
            assert call not in text, f"{path}: {call}"
