"""How long a reply takes to be read: `python -m benchmarks.parsing`, with recorded replies under DIKAST_RECORDED.

Times are the least of several rounds over the same replies, in milliseconds of CPU per reply, in one process.
`--against SRC` reads the same replies with the package under SRC (another checkout's `src`) as well, in turns.
"""

import argparse
import gzip
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Parse = Callable[..., Any]
_ROUNDS = 3


def main() -> None:
    """Print a line for each dialect and set of replies."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--against", type=Path, help="folder `src` of another checkout")
    options.add_argument("--n", type=int, default=500, help="replies of each set")
    given = options.parse_args()
    parsers = {"here": _parser(None)} | ({"there": _parser(given.against)} if given.against else {})
    for name, dialect, replies in _sets(Path(os.environ["DIKAST_RECORDED"]), given.n):
        best = dict.fromkeys(parsers, float("inf"))
        for _ in range(_ROUNDS):
            for which, parse in parsers.items():
                begin = time.process_time()
                for reply in replies:
                    parse(dialect, reply)
                best[which] = min(best[which], (time.process_time() - begin) / len(replies) * 1000)
        told = ", ".join(f"{which} {ms:.3f} ms" for which, ms in best.items())
        mean = sum(map(len, replies)) / len(replies)
        print(f"{name:24} {dialect:10} n {len(replies):5} of {mean:5.0f} characters: {told}")


def _parser(source: Path | None) -> Parse:
    """`parse_reply` of this package, or of the one under another folder, which is imported beside it."""
    if source is not None:
        sys.path.insert(0, str(source))
    for name in [name for name in sys.modules if name.partition(".")[0] == "dikast"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    parse: Parse = importlib.import_module("dikast.prompts.parse").parse_reply
    if source is not None:
        sys.path.remove(str(source))
    return parse


def _sets(folder: Path, n: int) -> list[tuple[str, str, list[str]]]:
    arena = importlib.import_module("dikast.prompts.dialects.arena")
    with gzip.open(folder / "wildvision" / "raw_judgements_4models.jsonl.gz", "rt", encoding="utf-8") as lines:
        wildvision = [json.loads(line)["judgement"] or "" for line in lines]
    with gzip.open(folder / "llmbar" / "raw_completions.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line)["results"][0][f"swap = {swapped}"] for line in lines for swapped in (False, True)]
    llmbar = [row["completion"][0] for row in rows if "completion" in row]
    cut = [arena.LABEL.sub("", reply) for reply in wildvision]
    sets = [("WildVision-Bench", wildvision), ("its labels cut out", cut), ("LLMBar", llmbar)]
    return [
        (name, dialect, replies[:: max(1, len(replies) // n)][:n])
        for name, replies in sets
        for dialect in (["prose"] if name == "LLMBar" else ["arena", "mt-bench", "prose", "critic"])
    ]


if __name__ == "__main__":
    main()
