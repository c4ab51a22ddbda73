"""Images as responses (the domain `pictures`): the sentences are the request, and the image drawn for it is judged."""

from collections.abc import Mapping, Sequence

from dikast.worlds.domains.protocol import Draft, Slot
from dikast.worlds.domains.scenes import Scenes

ASK = "Draw a picture of this."


class Pictures(Scenes):
    """Scenes in reverse: the claims are the request, and each is correct if the picture shows it."""

    name = "pictures"
    kinds: Mapping[str, tuple[str, ...]] = {
        aspect: kinds for aspect, kinds in Scenes.kinds.items() if aspect not in ("completeness", "certainty")
    }

    def ask(self, draft: Draft, slots: Sequence[Slot]) -> tuple[str, str]:
        """One task: to draw."""
        return "draw", ASK
