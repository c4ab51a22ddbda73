"""The pictures of the pages in the documentation: `python -m benchmarks.screenshots`, which needs Chromium.

Everything is made anew from a seed: items, runs by judges of known faults, and the pages of them.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

DOCS = Path(__file__).parents[1] / "docs"
QUESTIONS = {  # of readers, and the part of the first screen that answers each or leads there with one click
    "Which system is better?": ".lead .light",
    "How sure is that?": ".lead .note",
    "Can I trust the judge?": ".lead .note b:last-of-type",
    "What was judged, and when?": ".about > dd:nth-of-type(1)",
    "By which judge?": ".about > dd:nth-of-type(2)",
    "By which rubric, and what exactly was it asked?": ".about > dd:nth-of-type(3)",
    "How do the systems rank?": ".board .sortable td.main",
    "Do they win only because they are longer?": ".board .sortable th:nth-child(5)",
    "What did it cost, and how many got no verdict?": ".top nav a:first-child",
    "Where does it fail?": ".top nav a:nth-child(3)",
}
_BADGES = """(places) => places.forEach((place, k) => {
  const at = document.querySelector(place).getBoundingClientRect(), badge = document.createElement("b");
  badge.textContent = k + 1;
  Object.assign(badge.style, {position: "fixed", left: `${Math.max(0, at.left - 14)}px`, top: `${at.top - 13}px`,
    zIndex: 9, width: "16px", font: "700 11px/16px sans-serif", borderRadius: "8px", textAlign: "center",
    background: "#b3005e", color: "#fff"});
  document.body.append(badge);
})"""
QUALITY = {"alpha": 3.9, "beta": 3.3, "gamma": 2.4}


def compared(folder: Path) -> Path:
    """A run of 300 pairs of three systems."""
    draw = random.Random(3)
    with (folder / "march.jsonl").open("wb") as file:
        for k in range(300):
            one, two = draw.sample(list(QUALITY), 2)
            gold = [max(1, min(5, round(draw.gauss(QUALITY[each], 1)))) for each in (one, two)]
            item = {"id": f"p{k}", "instruction": f"Is {k} even, and why?", "gold": gold}
            texts = {f"response_{s}": f"{k} ends in {k % 10}. " * draw.randint(1, 4) for s in "ab"}
            file.write(orjson.dumps({**item, **texts, "model_a": one, "model_b": two}) + b"\n")
    _dikast("compare", folder / "march.jsonl", "--judge", "mock:oracle,r=.9,nats=.5,failing=.01", "--rubric",
            "helpfulness", "--out", folder / "march")  # fmt: skip
    return folder / "march"


@contextmanager
def served(*words: object, before: str) -> Iterator[str]:
    """The address that a verb tells on a line which begins with `before`, while it serves."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dikast", *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if line.startswith(before))
        yield next(word for word in line.split() if word.startswith("http"))
    finally:
        process.terminate()
        process.wait(60)
        process.stderr.close()


def many(folder: Path) -> Path:
    """A folder of runs by several judges over the same responses, one of them unfinished."""
    rows = ({"id": f"q{k}", "instruction": f"Is {k} even?", "response": f"{k} ends in {k % 10}.", "gold": k % 5 + 1}
            for k in range(200))  # fmt: skip
    (folder / "answers.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in rows))
    for name, judge in (("first", "r=.6"), ("longer-prompt", "r=.75"), ("second", "r=.8,failing=.04"), ("now", "r=.8")):
        _dikast("grade", folder / "answers.jsonl", "--judge", f"mock:oracle,{judge}", "--rubric", "helpfulness",
                "--out", folder / "runs" / "answers" / name)  # fmt: skip
    now = folder / "runs" / "answers" / "now"
    (now / "summary.json").unlink()
    lines = (now / "verdicts.jsonl").read_bytes().splitlines(keepends=True)
    (now / "verdicts.jsonl").write_bytes(b"".join(lines[:120]))
    (folder / "march").rename(folder / "runs" / "march")
    return folder / "runs"


def main() -> None:
    """Write the pictures into docs/."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from browser import browser

    with tempfile.TemporaryDirectory() as made, browser() as tab:
        folder = Path(made)
        page = folder / "report.html"
        _dikast("report", compared(folder), "-o", page, "--title", "March: alpha, beta and gamma")
        tab.open(page, width=1280, height=830)
        tab.screenshot(DOCS / "report.png")
        tab.run(f"({_BADGES})({orjson.dumps(list(QUESTIONS.values())).decode()})")
        tab.screenshot(DOCS / "report-questions.png")
        tab.open(page, width=390, height=844, dark=True)
        tab.screenshot(DOCS / "report-phone.png")
        pairs = folder / "march.jsonl"
        words = ("annotate", pairs, "--rubric", "helpfulness", "--pairs", "--port", 0, "--out", folder / "l")
        with served(*words, before="rater") as link:
            tab.visit(link, width=1100, height=620)
            tab.screenshot(DOCS / "annotation.png")
        with served("view", many(folder), "--port", 0, before="viewing") as link:
            for name in ("first", "second", "longer-prompt", "now"):
                tab.visit(f"{link}run?of=answers/{name}")
            tab.visit(link, width=1440, height=430)
            tab.screenshot(DOCS / "viewer.png")


def _dikast(*words: object) -> None:
    done = subprocess.run([sys.executable, "-m", "dikast", *map(str, words)], check=False, capture_output=True)
    assert done.returncode in (0, 3), done.stderr.decode()  # 3: some have no verdict, as they should


if __name__ == "__main__":
    main()
