"""The plots of a data card, as SVG beside it (matplotlib, extra `train`)."""

from io import BytesIO
from pathlib import Path
from typing import Any

from dikast.core.errors import require
from dikast.core.records import write_file
from dikast.corpus.quality.check import Check


def plots(check: Check, path: Path) -> Path | None:
    """Write plots of scores, words by score and information of features to `path`; None if nothing is graded."""
    require("matplotlib", "train")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    drawn = [
        each
        for each in (_scores, _words, _draw_information)
        if each is not _draw_information or check.information or check.pairs
    ]
    if not check.scores:
        drawn = [each for each in drawn if each is _draw_information]
    if not drawn:
        return None
    drawing = BytesIO()
    with mpl.rc_context({"svg.hashsalt": "card", "font.size": 8}):
        figure = Figure(figsize=(3.4 * len(drawn), 2.8), layout="constrained")
        for axis, draw in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
            draw(axis, check)
            axis.spines[["top", "right"]].set_visible(False)
        figure.savefig(drawing, format="svg", metadata={"Date": None})
    write_file(path, drawing.getvalue())
    return path


def _labels(check: Check) -> list[str]:
    return sorted(check.scores, key=float)


def _scores(axis: Any, check: Check) -> None:
    labels = _labels(check)
    bars = axis.bar(labels, [check.scores[each] for each in labels], color="tab:blue")
    axis.bar_label(bars, [f"{check.scores[each] / check.scored:.0%}" for each in labels])
    axis.set(xlabel="score", ylabel="responses")


def _words(axis: Any, check: Check) -> None:
    labels = _labels(check)
    axis.bar(labels, [check.words[each] for each in labels], color="tab:grey")
    axis.set(xlabel="score", ylabel="mean words of a response")


def _draw_information(axis: Any, check: Check) -> None:
    """Bits of each feature beside the 95 % quantile of shuffled scores."""
    found = [each for each in check.information or check.pairs if each.bits == each.bits]
    names = [each.feature for each in found]
    axis.barh(names, [each.bits for each in found], color="tab:blue", label="measured")
    axis.plot([each.null_high for each in found], names, "k|", markersize=10, label="95 % of shuffles")
    axis.invert_yaxis()
    axis.set(xlabel="mutual information with the score, bits" if check.information else "with the preference, bits")
    axis.legend(fontsize=6)
