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
from dikast.core.media import image_of_picture
from dikast.engines.base import Completion, Request
from dikast.engines.mock import Constant
from dikast.rewards import Reward

CALLS = 50
GROUP = 8  # completions of one prompt


def picture(rng: np.random.Generator, side: int) -> Image.Image:
    """A picture as cameras make them: smooth with some noise."""
    coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).resize((side, side))
    noise = rng.integers(-6, 7, (side, side, 3))
    return Image.fromarray((np.asarray(coarse, dtype=int) + noise).clip(0, 255).astype(np.uint8))


Group = tuple[list[Any], list[str], dict[str, Any]]


class Recorded(Constant):
    """A mock that keeps the requests of a call."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """As the mock."""
        self.asked = list(requests)
        return super().stream(self.asked)


def spent_on(work: Callable[[], object]) -> float:
    """Milliseconds of CPU of this process."""
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def cost(group: Callable[[int], Group]) -> tuple[float, float]:
    """Milliseconds of CPU a call beside the engine, and those of a plain grade: medians of all but the first call."""
    engine = Recorded()
    found: list[tuple[float, float]] = []
    with Reward(engine, "helpfulness") as reward:
        for n in range(CALLS + 1):
            prompts, completions, columns = group(n)
            call = spent_on(lambda: reward(prompts, completions, **columns))  # noqa: B023 (called at once)
            items = reward.items(prompts, completions, columns)
            plain = spent_on(lambda: list(reward.judge.grade_many(items)))  # noqa: B023
            alone = spent_on(lambda: list(Constant.stream(engine, engine.asked)))
            found.append((call - alone, plain - alone))
    call, plain = np.median(found[1:], axis=0)
    return float(call), float(plain)


def figures() -> list[Figure]:
    """Calls of one completion, of a group, and of a group that is shown a picture."""
    rng = np.random.default_rng(0)
    reply = "The sky is blue because air scatters short waves of light more than long ones. " * 5

    def text(size: int) -> Callable[[int], Group]:
        return lambda n: ([f"Why is the sky blue, {n}?"] * size, [f"{reply}{n} {i}" for i in range(size)], {})

    def shown(side: int) -> Callable[[int], Group]:
        def group(n: int) -> Group:
            image = picture(rng, side)
            return *text(GROUP)(n)[:2], {"images": [[image.copy()] for _ in range(GROUP)]}

        return group

    found = []
    for name, group in {
        "one completion, text": text(1),
        f"{GROUP} completions of a prompt, text": text(GROUP),
        f"{GROUP} completions of a prompt with a new picture of 96 x 96": shown(96),
    }.items():
        spent, plain = cost(group)
        found.append(Figure(name, spent, "ms CPU a call", 5, f"a plain grade of the same items {plain:.2f}"))
    spent, _ = cost(shown(512))
    encoded = np.median([spent_on(lambda: image_of_picture(picture(rng, 512))) for _ in range(CALLS)])
    encoded -= np.median([spent_on(lambda: picture(rng, 512)) for _ in range(CALLS)])
    note = f"of which encoding it as a PNG {encoded:.1f}"
    return [
        *found,
        Figure(f"{GROUP} completions of a prompt with a new picture of 512 x 512", spent, "ms CPU a call", note=note),
    ]


def main() -> None:
    """Measure and print; exit code 1 where a call costs more than its goal."""
    argparse.ArgumentParser(prog="python -m benchmarks.reward_cost", description=__doc__).parse_args()
    found = figures()
    print(table(found))
    sys.exit(not all(each.met for each in found))


if __name__ == "__main__":
    main()
