"""The recipes of `corpus build`: one module each, with its options, tasks and filters."""

from typing import Any

from dikast.corpus.pipeline.build_run import Kind
from dikast.corpus.recipes import (
    bench,
    critic_pairwise,
    critic_pointwise,
    feedback,
    perception,
    preference,
    self_improvement,
)

_ALL = (feedback, perception, critic_pointwise, critic_pairwise, preference, bench, self_improvement)
KINDS: dict[str, Kind[Any]] = {each.KIND.name: each.KIND for each in _ALL}
