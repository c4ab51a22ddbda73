"""Kernels of the Hub: where `kernels` is installed, transformers fetches what a folder names, but not for Dikast."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers.utils.import_utils import KERNELS_MIN_VERSION

from dikast.core.errors import UserError
from dikast.engines.local.engine import LocalEngine

Tiny = Callable[[str], Path]
STAND_IN = """
from pathlib import Path
def get_kernel(name, *given, **options):
    with open({marker!r}, "a") as asked:
        asked.write(name + "\\n")
    raise OSError("no Hub here")
def _decorator(*given, **options):
    return lambda thing: thing
use_kernel_forward_from_hub = use_kernelized_func = _decorator
def __getattr__(name):
    return _decorator
"""
BY_TRANSFORMERS = """
import sys, transformers
for folder in sys.argv[1:]:
    try:
        transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        print(type(error).__name__)
    open({marker!r}, "a").write(folder + "\\n")
"""
BY_DIKAST = """
import sys
from dikast.core.errors import UserError
from dikast.core.message import Message, Span
from dikast.engines.base import Request, Sampling
from dikast.engines.local.engine import LocalEngine
from dikast.engines.local.trusted import model_config
question = Request("a", (Message("user", (Span("Which is it?"),)),), Sampling(max_tokens=2))
for folder in sys.argv[1:]:
    try:
        with LocalEngine(folder, device="cpu") as engine:
            print([answer.error for answer in engine.stream([question])])
        print(getattr(model_config(folder), "quantization_config", None))
    except UserError as error:
        print(error)
import kernels
try:
    kernels.get_kernel("of/the-program-itself")
except OSError as error:
    print(error)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of packages in which `kernels` is what transformers takes for it, and writes down what is fetched."""
    site = tmp_path / "site"
    about = site / f"kernels-{KERNELS_MIN_VERSION}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: kernels\nVersion: {KERNELS_MIN_VERSION}\n", "utf-8")
    (site / "kernels").mkdir()
    (site / "kernels" / "__init__.py").write_text(STAND_IN.format(marker=str(tmp_path / "asked")), "utf-8")
    return site


def changed(tiny: Tiny, folder: Path, **values: Any) -> Path:
    shutil.copytree(tiny("llama"), folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), "utf-8")
    return folder


def fetched(code: str, folders: list[Path], site: Path) -> tuple[list[str], list[str]]:
    """Which kernels the code fetches with the folders, and the lines that it prints."""
    asked = site.parent / "asked"
    asked.write_text("", "utf-8")
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, folders)], env={**os.environ, "PYTHONPATH": path}, text=True,
        capture_output=True, check=True,
    )  # fmt: skip
    return asked.read_text("utf-8").split(), done.stdout.splitlines()


def test_no_folder_makes_transformers_fetch_a_kernel(tiny: Tiny, tmp_path: Path, installed: Path) -> None:
    gptj = changed(tiny, tmp_path / "gptj", model_type="gptj", n_embd=16, n_head=2, n_layer=1, rotary_dim=8)
    flash = changed(tiny, tmp_path / "flash", _attn_implementation="flash_attention_2")
    paged = changed(tiny, tmp_path / "paged", attn_implementation="paged|flash_attention_3")
    packed = changed(tiny, tmp_path / "packed", quantization_config={"quant_method": "fp8"})
    folders = [gptj, flash, paged, packed]
    alone, _ = fetched(BY_TRANSFORMERS.format(marker=str(tmp_path / "asked")), folders, installed)
    before = [alone[alone.index(str(folder)) - 1] for folder in folders[:3]]
    assert all(name.startswith("kernels-community/") for name in before), "otherwise the test proves nothing"
    asked, said = fetched(BY_DIKAST, folders, installed)
    assert asked == ["of/the-program-itself"]  # which Dikast does not forbid
    assert "the weight files lack" in said[0]
    assert said[1:6] == ["[None]", "None", "[None]", "None", "[None]"]
    assert "'dequantize': True" in said[6]  # kernels would read the weights as they are
    assert said[7:] == ["no Hub here"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("experts_implementation", "deepgemm"), ("_experts_implementation", "sonicmoe"),
     ("experts_implementation", "someone/kernel"), ("_experts_implementation_internal", "deepgemm_megamoe")],
)  # fmt: skip
def test_experts_that_are_kernels_are_refused_by_file_and_field(
    tiny: Tiny, tmp_path: Path, field: str, value: str
) -> None:
    folder = changed(tiny, tmp_path / "experts", **{field: value})
    with pytest.raises(UserError, match=f"config.json: field '{field}' asks for a kernel from the Hub"):
        LocalEngine(str(folder), device="cpu")


def test_flash_attention_that_is_not_installed_becomes_torchs_own(
    tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = changed(tiny, tmp_path / "flash", _attn_implementation="flash_attention_2")
    LocalEngine(str(folder), device="cpu").close()
    assert "field 'attn_implementation': flash_attention_2 is not installed" in caplog.text


def test_a_way_to_generate_that_comes_with_a_model_never_runs(tiny: Tiny, tmp_path: Path) -> None:
    folder = changed(tiny, tmp_path / "own")
    (folder / "custom_generate").mkdir()
    marker = tmp_path / "ran"
    (folder / "custom_generate" / "generate.py").write_text(f"open({str(marker)!r}, 'w')", "utf-8")
    LocalEngine(str(folder), device="cpu").close()
    assert not marker.exists()
