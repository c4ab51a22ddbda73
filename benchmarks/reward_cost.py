"""What a reward costs beside its engine: the CPU of a call, less that of the engine alone on the same requests.

By itself: `python -m benchmarks.reward_cost`. The engine answers at once, so that what is measured is everything else:
items made of prompts, completions and pictures, keys, prompts rendered, verdicts settled, the way between threads.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.figures import Figure, table
from dikast.engines.base import Completion, Request
from dikast.engines.mock import Constant
from dikast.rewards import Reward

CALLS = 50
GROUP = 8  # completions of one prompt


class Timed(Constant):
    """A mock that keeps account of the CPU time it takes itself."""

    seconds = 0.0

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """As the mock, timed while it makes its reply."""
        for request in requests:
            began = time.thread_time()
            reply = self.reply(request)
            self.seconds += time.thread_time() - began
            yield reply


def picture(rng: np.random.Generator, side: int) -> Image.Image:
    """A picture as cameras make them: smooth with some noise."""
    coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((side, side))
    noise = rng.integers(-6, 7, (side, side, 3))
    return Image.fromarray((np.asarray(coarse, dtype=int) + noise).clip(0, 255).astype(np.uint8))


def cost(group: Callable[[int], tuple[list[Any], list[str], dict[str, Any]]]) -> tuple[float, float]:
    """Milliseconds of CPU a call beside the engine: the mean of all but the first call, and that of a plain grade."""
    engine = Timed()
    reward = Reward(engine, "helpfulness")
    calls = [group(n) for n in range(CALLS + 1)]
    reward(*calls[0][:2], **calls[0][2])
    engine.seconds, began = 0.0, time.process_time()
    for prompts, completions, columns in calls[1:]:
        reward(prompts, completions, **columns)
    spent = time.process_time() - began - engine.seconds
    items = [reward.items(*call[:2], call[2]) for call in calls[1:]]
    engine.seconds, began = 0.0, time.process_time()
    for each in items:
        list(reward.judge.grade_many(each))
    plain = time.process_time() - began - engine.seconds
    reward.close()
    return spent / CALLS * 1000, plain / CALLS * 1000


def figures() -> list[Figure]:
    """Calls of one completion, of a group, and of a group that is shown a picture."""
    rng = np.random.default_rng(0)
    reply = "The sky is blue because air scatters short waves of light more than long ones. " * 5

    def text(size: int) -> Callable[[int], tuple[list[Any], list[str], dict[str, Any]]]:
        return lambda n: ([f"Why is the sky blue, {n}?"] * size, [f"{reply}{n} {i}" for i in range(size)], {})

    def shown(n: int) -> tuple[list[Any], list[str], dict[str, Any]]:
        image = picture(rng, 96)
        return *text(GROUP)(n)[:2], {"images": [[image.copy()] for _ in range(GROUP)]}

    found = []
    for name, group in {
        "one completion, text": text(1),
        f"{GROUP} completions of a prompt, text": text(GROUP),
        f"{GROUP} completions of a prompt with a picture of 96 x 96": shown,
    }.items():
        spent, plain = cost(group)
        found.append(Figure(name, spent, "ms CPU a call", 5, f"a plain grade of the same items {plain:.2f}"))
    return found


def main() -> None:
    """Measure and print; exit code 1 where a call costs more than its goal."""
    argparse.ArgumentParser(prog="python -m benchmarks.reward_cost", description=__doc__).parse_args()
    found = figures()
    print(table(found))
    sys.exit(not all(each.met for each in found))


if __name__ == "__main__":
    main()
