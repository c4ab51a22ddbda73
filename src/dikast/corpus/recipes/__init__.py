"""What can be built: one module a recipe, each with its options, tasks and filters."""

from typing import Any

from dikast.corpus.recipes import bench, critic_pairwise, feedback, perception, preference, self_improvement
from dikast.corpus.run import Kind

KINDS: dict[str, Kind[Any]] = {
    each.name: each
    for each in (
        feedback.KIND, perception.KIND, preference.KIND, critic_pairwise.KIND, bench.KIND, self_improvement.KIND,
    )
}  # fmt: skip
