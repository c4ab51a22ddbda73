"""How often the dialects that read sentences are wrong where a label stood beside them that they cannot see.

    python -m benchmarks.sentence_replies JUDGEBENCH/outputs/*arena_hard*.jsonl

The files are JudgeBench's (github.com/ScalerLab/JudgeBench at e2c52c2, `outputs/`): judges that were asked for a label
such as `[[A>B]]` at the end, each pair in both orders, with the decision that its authors read from the label. Replies
are read without their labels, and again without the whole line of the last label; a verdict is right if it names the
response of the decision. Replies without a decision are left out. When these replies were first looked at, 3 of 1,028
verdicts were wrong; the patterns have been mended with them in view since.
"""

import argparse
import ast
import json
from collections.abc import Iterator
from pathlib import Path

from dikast.core.confidence import wilson
from dikast.prompts.dialects.arena import LABEL
from dikast.prompts.parse import parse_reply

_SLOTS = {"A": "first", "B": "second", "=": "tie"}


def main() -> None:
    """Print a line for each dialect and cut."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", type=Path, nargs="+")
    replies = [each for file in options.parse_args().files for each in _replies(file)]
    for cut in ("label", "last line"):
        for dialect in ("prose", "critic"):
            read = [(pair, parse_reply(dialect, _cut(reply, cut)).label, slot) for pair, reply, slot in replies]
            given = [each for each in read if each[1] is not None]
            wrong = [pair for pair, label, slot in given if label != slot]
            pairs = len({pair for pair, *_ in given})  # the replies on a pair are not independent
            high = wilson(len(set(wrong)), pairs)[1] if pairs else float("nan")
            told = f"{len(given):,} verdicts of {len(read):,} replies, {len(wrong)} wrong"
            print(f"{dialect:6} without the {cut:9}: {told} (95 % interval of {pairs:,} pairs: at most {high:.2%})")


def _replies(file: Path) -> Iterator[tuple[str, str, str]]:
    """The pair of each reply, the reply, and the slot that its authors read from it."""
    with file.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            for game in row["judgments"]:
                told = game["judgment"]
                told = ast.literal_eval(told) if isinstance(told, str) else told  # some are printed dictionaries
                if decision := game["decision"]:
                    yield f"{file}/{row['pair_id']}", told["response"], _SLOTS["=" if "=" in decision else decision[0]]


def _cut(reply: str, cut: str) -> str:
    last = max((match.start() for match in LABEL.finditer(reply)), default=len(reply))
    kept = reply if cut == "label" else reply[: max(0, reply.rfind("\n", 0, last))]
    return LABEL.sub("", kept)


if __name__ == "__main__":
    main()
