"""The model card of a trained judge: base model, data, configuration, hardware, and judge metrics."""

import dataclasses
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from dikast.core.runs.run_files import write_checked
from dikast.training.config import Config

_COLUMNS = ("failed", "forced", "pearson", "exact", "verdict_f1", "accuracy", "clear_accuracy", "swap_consistency")


def hardware() -> dict[str, str]:
    """The hardware of the training run."""
    import torch

    found = {"machine": platform.machine(), "python": platform.python_version(), "torch": str(torch.__version__)}
    if torch.cuda.is_available():
        found["device"] = f"{torch.cuda.device_count()} x {torch.cuda.get_device_name()}"
    else:
        found["device"] = f"CPU, {torch.get_num_threads()} threads"
    return found


def write_card(
    folder: Path,
    config: Config,
    *,
    data: str,
    run: str,
    examples: int,
    lines: Sequence[Mapping[str, Any]],
    evals: Sequence[Mapping[str, Any]],
    more: Mapping[str, str],
    kind: str = "judge",
) -> Path:
    """Write `README.md` into a model's folder. data, run: fingerprints; lines, evals: the run's two logs; more: facts
    beside those; kind: `judge`, or `policy` for a model that has learnt from preferences.
    """
    last = lines[-1] if lines else {}
    facts = {
        "trained from": config.model or f"scratch (`{Path(config.init).name}`, seed {config.seed})",
        "trained": config.train + (f", rank {config.lora.rank}" if config.train == "lora" else ""),
        "examples": f"{examples:,}",
        "steps": f"{last.get('step', 0):,} of {config.batch_size} examples",
        "data": f"`{data}` (fingerprint of the files' contents and of what was made of them)",
        "run": f"`{run}`",
        "last loss": f"{last['loss']:.4f} nats a {'learnt token' if kind == 'judge' else 'pair'}"
        if last
        else "unknown",
        "time": f"{last.get('seconds', 0.0) / 60:.1f} minutes",
        **hardware(),
        **more,
    }
    rows = "\n".join(f"| {name} | {value} |" for name, value in facts.items())
    text = (
        f"# {Path(config.out).name}\n\nA {kind} trained with Dikast.\n\n| | |\n|---|---|\n{rows}\n\n"
        f"{_judged(evals) if kind == 'judge' else ''}"
        "## The configuration\n\n"
        f"```yaml\n{yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True)}```\n"
    )
    path = folder / "README.md"
    write_checked(path, text.encode())
    return path


def _judged(evals: Sequence[Mapping[str, Any]]) -> str:
    return f"## Judged on held-out items while it was trained\n\n{_table(evals)}\n"


def _table(evals: Sequence[Mapping[str, Any]]) -> str:
    if not evals:
        return "It was not: the configuration names no items under `eval`. Audit it before you rely on it.\n"
    step = evals[-1]["step"]
    final = [line for line in evals if line["step"] == step]
    names = [name for name in _COLUMNS if any(name in line for line in final)]
    rows = [f"After step {step:,}; 95 % intervals; n in brackets. Correlations are of goodness (0 worst, 1 best).\n"]
    rows += [f"| format | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for line in final:
        rows.append(f"| {line['format']} | {' | '.join(_cell(line.get(name)) for name in names)} |")
    return "\n".join(rows) + "\n"


def _cell(value: Mapping[str, Any] | None) -> str:
    if value is None:
        return ""
    if value["value"] is None:
        return f"undefined ({value['n']})"
    ends = "" if value["low"] is None else f" [{value['low']:.3f}, {value['high']:.3f}]"
    return f"{value['value']:.3f}{ends} ({value['n']})"


def _plain(config: Config) -> dict[str, Any]:
    """The configuration as a user would write it: the values that differ from the defaults."""
    default = type(config)(out="", data=())
    found: dict[str, Any] = {}
    for each in dataclasses.fields(config):
        value = getattr(config, each.name)
        if each.name not in ("source", "root") and value != getattr(default, each.name):
            found[each.name] = _differing(value)
    return found


def _differing(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_differing(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = type(value)()
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {key: _differing(each) for key, each in fields.items() if each != getattr(plain, key)}
    return value
