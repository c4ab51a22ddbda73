"""What can be built: one module a recipe, each with its options, tasks and filters."""

from typing import Any

from dikast.corpus.recipes import feedback, preference
from dikast.corpus.run import Kind

KINDS: dict[str, Kind[Any]] = {each.name: each for each in (feedback.KIND, preference.KIND)}
