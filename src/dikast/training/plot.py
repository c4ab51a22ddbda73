"""The curves of a run as one SVG: loss, learning rate and judge metrics."""

from collections import defaultdict
from io import BytesIO
from pathlib import Path
from typing import Any

from dikast.core.errors import require
from dikast.core.runs.run_files import write_checked
from dikast.training.log import read_log

_SHOWN = {
    "pearson": "Pearson with gold",
    "verdict_f1": "claim verdict F1",
    "clear_accuracy": "accuracy on clear pairs",
    "swap_consistency": "same in both orders",
    "failed": "failed",
}


def plot(out: Path) -> Path:
    """Write `curves.svg` from `train.jsonl` and `eval.jsonl` in `out`; bands are the 95 % intervals."""
    require("matplotlib", "train")
    from matplotlib.figure import Figure

    lines, evals = read_log(out / "train.jsonl"), read_log(out / "eval.jsonl")
    figure = Figure(figsize=(7, 6 if evals else 3), layout="constrained")
    axes = figure.subplots(2 if evals else 1, 1, sharex=True, squeeze=False)[:, 0]
    steps = [line["step"] for line in lines]
    axes[0].plot(steps, [line["loss"] for line in lines], color="black", linewidth=1, label="loss")
    axes[0].set_ylabel("loss, nats a learnt token")
    rate = axes[0].twinx()
    rate.plot(steps, [line["rate"] for line in lines], color="tab:grey", linewidth=0.8, linestyle=":")
    rate.set_ylabel("learning rate (dotted)")
    axes[-1].set_xlabel("steps")
    if evals:
        _metrics(axes[1], evals)
    path, drawn = out / "curves.svg", BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    write_checked(path, drawn.getvalue())
    return path


def _metrics(axis: Any, evals: list[dict[str, Any]]) -> None:
    curves: dict[tuple[str, str], list[tuple[float, ...]]] = defaultdict(list)
    for line in evals:
        for name in _SHOWN:
            known = line.get(name)
            if known and known["value"] is not None:
                low, high = (known[end] if known[end] is not None else known["value"] for end in ("low", "high"))
                curves[name, line["format"]].append((line["step"], known["value"], low, high))
    for (name, form), points in curves.items():
        at, value, low, high = zip(*points, strict=True)
        (drawn,) = axis.plot(at, value, marker=".", linewidth=1, label=f"{_SHOWN[name]} ({form})")
        axis.fill_between(at, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
    lowest = min((low for points in curves.values() for *_, low, _ in points), default=0.0)
    axis.set_ylim(min(-0.25, lowest - 0.02), 1.02)
    axis.grid(linewidth=0.3)
    if curves:
        axis.legend(fontsize="x-small", loc="best")
