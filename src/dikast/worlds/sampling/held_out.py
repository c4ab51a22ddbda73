"""The held-out splits: what training may show, and what each test split contains that training never does."""

from dataclasses import replace

from dikast.core.errors import UserError
from dikast.core.text import near_miss
from dikast.worlds.domains.protocol import Rules

HELD_OUT_ASPECTS = ("texture", "comparison", "list", "cell", "moment", "removal")
HELD_OUT_KINDS = (
    "binding",
    "consistency",
    "shift",
)  # an error operator is held out with its kind of claim, or the kind would always be right
HELD_OUT_DOMAIN = "charts"
HELD_OUT_SCALES = ("1-4", "1-7", "0-3")
TRAIN_OBJECTS = 8

_SEEN = Rules(
    objects=(2, TRAIN_OBJECTS),
    held_aspects=HELD_OUT_ASPECTS,
    kinds_out=HELD_OUT_KINDS,
)

SPLITS: dict[str, tuple[str, Rules]] = {
    "train": ("what a judge may learn from", _SEEN),
    "fresh": ("as train, other seeds", _SEEN),
    "wordings": ("rubric wordings never seen", replace(_SEEN, wordings="held_out")),
    "combinations": ("aspects never weighed together", replace(_SEEN, held_together=True, terms="held_out")),
    "aspects": (
        "aspects never weighed",
        replace(_SEEN, held_aspects=(), only_aspects=HELD_OUT_ASPECTS, held_together=None, terms="unseen"),
    ),
    "attributes": (
        "colour and shape pairs never shown or mentioned",
        replace(_SEEN, pairs="held_out", about=("colour", "existence", "shape", "edit", "addition")),
    ),
    "operators": (
        "error operators never seen",
        replace(_SEEN, kinds_out=(), must=("binding", "consistency", "shift"), held_together=None),
    ),
    "voices": ("paraphrases never seen", replace(_SEEN, voices=(4, 5))),
    "longer2": ("twice as many claims", replace(_SEEN, claims=(6, 12))),
    "longer3": ("three times as many claims", replace(_SEEN, claims=(9, 18))),
    "domain": ("a domain never seen", replace(_SEEN, held_domain=True)),
    "objects": ("more objects than trained", replace(_SEEN, objects=(TRAIN_OBJECTS + 1, 12))),
    "style": ("another manner of drawing", replace(_SEEN, style=1)),
    "scale": ("scales never seen", replace(_SEEN, scales=HELD_OUT_SCALES)),
    "language": ("a second, word-substituted language", replace(_SEEN, language=1)),
    "all": (
        "everything at once, nothing held out",
        Rules(held_together=None, terms="all", wordings="all", voices=tuple(range(6)), objects=(2, 12)),
    ),
}


def rules_of(split: str) -> Rules:
    """The rules of a split by name; UserError for an unknown one."""
    if split not in SPLITS:
        near = near_miss(split, SPLITS)
        raise UserError(
            f"split: there is no split {split!r}: {f'did you mean {near!r}?' if near else ', '.join(SPLITS)}"
        )
    return SPLITS[split][1]
