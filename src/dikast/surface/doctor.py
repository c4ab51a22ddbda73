"""What is installed, what works, and how to fix what does not.

Every package is imported in a separate process, so that a broken or crashing package affects only its own finding. The
most common fault is a torchvision built for another torch; it is reported, never patched.
"""

import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from dikast.engines.local.install_hints import TORCHVISION_CURE

State = Literal["ok", "missing", "broken"]

TIMEOUT = 180.0  # seconds for one import; a cold torch on a slow disk takes about a minute


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. `cure` is empty where nothing needs repair."""

    name: str
    state: State
    version: str = ""
    detail: str = ""
    cure: str = ""


@dataclass(frozen=True, slots=True)
class _Package:
    """A package to look at: its name for pip, the statement that proves it works, what it is for, how to get it."""

    name: str
    proof: str
    use: str
    cure: str = ""


_CORE = "import aiohttp, jinja2, numpy, orjson, PIL.Image, yaml, rich, scipy.stats, typer"
_TORCH = (
    "import torch; torch.ones(2).sum(); "
    "print(torch.cuda.get_device_name() if torch.cuda.is_available() else "
    "'no CUDA in this build' if torch.version.cuda is None else 'built for CUDA, but no device was found')"
)
_TRANSFORMERS = "from transformers import AutoModelForCausalLM, AutoProcessor, LlamaForCausalLM"
_HF = "pip install 'dikast[hf]'"
_PACKAGES = (
    _Package("torch", _TORCH, "local models", _HF),
    _Package("transformers", _TRANSFORMERS, "local models", _HF),
    _Package("llguidance", "import llguidance", "replies in JSON or of fixed choices from local models", _HF),
    _Package("torchvision", "import torchvision, torchvision.transforms.v2", "not needed: Pillow processes images"),
    _Package("pyarrow", "import pyarrow.parquet", "Parquet files", "pip install 'dikast[parquet]'"),
    _Package("huggingface_hub", "import fsspec, huggingface_hub", "data of the Hub", "pip install 'dikast[remote]'"),
)


def examine() -> list[Finding]:
    """Look at Python, the packages and the model cache; takes as long as importing them all once."""
    running = [(package, _start(package.proof)) for package in _PACKAGES if _version(package.name)]
    core = _start(_CORE)
    findings = [
        Finding("python", "ok", platform.python_version(), sys.executable),
        _finding(
            _Package("core", _CORE, "everything", "pip install --force-reinstall dikast"), core, _version("dikast")
        ),
    ]
    outcomes = {package.name: process for package, process in running}
    for package in _PACKAGES:
        if package.name not in outcomes:
            findings.append(Finding(package.name, "missing", detail=package.use, cure=package.cure))
        else:
            findings.append(_finding(package, outcomes[package.name], _version(package.name)))
    return [*_with_torchvision_judged(findings), _cache()]


def render(findings: Sequence[Finding]) -> str:
    """One line for each finding, and its cure on the next."""
    wide = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        facts = "  ".join(part for part in (finding.version, finding.detail) if part)
        lines.append(f"{finding.state:<8}{finding.name:<{wide}}  {facts}".rstrip())
        if finding.cure:
            lines.append(" " * 8 + f"-> {finding.cure}")
    return "\n".join(lines)


def as_json(findings: Sequence[Finding]) -> list[dict[str, str]]:
    """The findings as JSON values."""
    return [asdict(finding) for finding in findings]


def _start(proof: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", proof],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )


def _finding(package: _Package, process: subprocess.Popen[str], version: str) -> Finding:
    try:
        said, complaint = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Finding(package.name, "broken", version, f"did not load within {TIMEOUT:.0f} s", package.cure)
    if process.returncode == 0:
        return Finding(package.name, "ok", version, said.strip() or package.use)
    if process.returncode < 0:
        reason = f"loading it crashed with signal {-process.returncode}"
    else:
        reason = (complaint.strip().splitlines() or ["does not load"])[-1]
    return Finding(package.name, "broken", version, reason, package.cure)


def _with_torchvision_judged(findings: Sequence[Finding]) -> list[Finding]:
    """A torchvision that does not load gets the cure; transformers broken at the same time is its consequence."""
    states = {finding.name: finding for finding in findings}
    vision, torch = states["torchvision"], states["torch"]
    if vision.state != "broken":
        return list(findings)
    wanted = matching_torchvision(torch.version)
    pair = f"torch {torch.version} goes with torchvision {wanted}.*: " if wanted else ""
    judged: dict[str, Finding] = {
        "torchvision": Finding("torchvision", "broken", vision.version, vision.detail, pair + TORCHVISION_CURE)
    }
    model = states["transformers"]
    if model.state == "broken" and torch.state == "ok":
        judged["transformers"] = Finding(
            "transformers", "broken", model.version, model.detail, "fix torchvision first: transformers imports it"
        )
    return [judged.get(finding.name, finding) for finding in findings]


def matching_torchvision(torch_version: str) -> str:
    """The torchvision series built for a torch: 0.28 for 2.13.0, as its releases have paired since torch 2.0."""
    numbers = torch_version.split("+")[0].split(".")
    if len(numbers) < 2 or numbers[0] != "2" or not numbers[1].isdigit():
        return ""
    return f"0.{int(numbers[1]) + 15}"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _cache(environment: Mapping[str, str] = os.environ) -> Finding:
    """Where downloaded models are kept, and the room there."""
    home = environment.get("HF_HOME") or str(Path(environment.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface")
    folder = Path(environment.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    standing = next((place for place in (folder, *folder.parents) if place.exists()), None)
    if standing is None:
        return Finding("model cache", "broken", detail=f"{folder} is not reachable", cure="set HF_HOME to a folder")
    free = shutil.disk_usage(standing).free / 1e9
    offline = ", offline (HF_HUB_OFFLINE)" if environment.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE") else ""
    if not os.access(standing, os.W_OK):
        return Finding("model cache", "broken", detail=f"{folder} cannot be written", cure="set HF_HOME to a folder")
    return Finding("model cache", "ok", detail=f"{folder}, {free:.0f} GB free{offline}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(as_json(examine())) + "\n")
