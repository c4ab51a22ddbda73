"""Real servers with tiny models on the loopback interface: `transformers serve`, and vLLM's API server.

vLLM lives in an environment of its own, which `scripts/vllm_environment` makes in `.vllm`; `DIKAST_VLLM` names another
folder. With `DIKAST_VLLM` set, an environment that is not there is a failure, not a skip.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

import tiny_models
from own_environments import python_of
from ports import free_port

STARTS_WITHIN = 400.0  # seconds; importing vLLM on two busy cores takes minutes
WIDE = {"hidden_size": 64, "max_position_embeddings": 16384}  # vLLM on CPUs takes heads of 32 and more
VLLM_ON_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the model in the engine's process: a third import of vLLM less
}
_TRANSFORMERS = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"


def vllm_python() -> Path:
    """The interpreter of the environment with vLLM, or a skip that says how to make it."""
    return python_of("vllm", "DIKAST_VLLM", "scripts/vllm_environment")


@contextmanager
def transformers_server(model: Path, home: Path) -> Iterator[str]:
    """The address of `transformers serve` on a folder, up to and without `/v1`."""
    (home / "hub").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", _TRANSFORMERS, "serve", str(model), "--device", "cpu"]
    with _running(command, home / "log", {"HF_HOME": str(home)}) as address:
        yield address


@contextmanager
def vllm_server(model: Path, home: Path, *, name: str) -> Iterator[str]:
    """The address of vLLM's API server on a folder, whose model goes by `name`."""
    home.mkdir(parents=True, exist_ok=True)
    command = [
        str(vllm_python()), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--served-model-name",
        name, "--dtype", "float32", "--block-size", "32", "--max-num-seqs", "32", "--enforce-eager",
        "--limit-mm-per-prompt", '{"image": 2}', "--enable-prompt-tokens-details", "--max-logprobs", "100",
    ]  # fmt: skip
    with _running(command, home / "log", VLLM_ON_CPU) as address:
        yield address


@contextmanager
def _running(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """A server that is told its port, started, waited for, and ended with every process that it made."""
    port = free_port()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            stdout=out,
            stderr=out,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", **environment},
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + STARTS_WITHIN
        while not _healthy(address):
            said = log.read_text("utf-8", "replace")[-3000:]
            assert process.poll() is None, f"the server ended before it was there:\n{said}"
            assert time.monotonic() < deadline, f"the server is not there after {STARTS_WITHIN:.0f} s:\n{said}"
            time.sleep(0.5)
        yield address
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _healthy(address: str) -> bool:
    try:
        urllib.request.urlopen(f"{address}/health", timeout=2).close()
    except (urllib.error.URLError, OSError):
        return False
    return True


def with_hub_names(model: Path, folder: Path) -> Path:
    """A copy of a tiny LLaVA-1.5 whose weights go by the names that released checkpoints have, and vLLM knows."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(model, folder)
    weights = load_file(folder / "model.safetensors")
    renamed = {name.replace("vision_tower.", "vision_tower.vision_model.", 1): weights[name] for name in weights}
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def tiny_text(folder: Path) -> Path:
    """A tiny Qwen2 that vLLM takes."""
    return tiny_models.build("qwen", folder, **WIDE)


def tiny_llava(folder: Path) -> Path:
    """A tiny LLaVA-1.5 under released names, which transformers and vLLM take."""
    return with_hub_names(tiny_models.build("llava", folder.with_name(folder.name + "-as-saved"), **WIDE), folder)


def tiny_llava_with_start(folder: Path) -> Path:
    """The same, with a chat template that writes the first token itself: System One takes no images otherwise."""
    tiny_llava(folder)
    template = folder / "chat_template.jinja"
    template.write_text("{{ bos_token }}" + template.read_text("utf-8"), "utf-8")
    tokenizer = orjson.loads((folder / "tokenizer.json").read_bytes())
    (folder / "tokenizer.json").write_bytes(orjson.dumps({**tokenizer, "post_processor": None}))
    return folder
