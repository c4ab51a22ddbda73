"""The domains by name."""

from collections.abc import Mapping

from dikast.worlds.scenes import Scenes
from dikast.worlds.slots import Domain

DOMAINS: Mapping[str, Domain] = {"scenes": Scenes()}
