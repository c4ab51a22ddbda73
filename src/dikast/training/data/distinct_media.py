"""The pictures and clips of examples one by one, so that a pass computes the features of each picture once."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dikast.engines.local.seeing.seen import Medium


def distinct(media: Sequence[Medium], keys: Sequence[int]) -> tuple[list[Medium], list[int]]:
    """Each medium once, in an order that `joined` takes, and the index of each given one among the kept pictures.

    Clips are kept as they are.
    """
    pictures = [i for i, each in enumerate(media) if not each.clip]
    first: dict[int, int] = {}
    for i in pictures:
        first.setdefault(keys[i], i)
    order = sorted(first.values(), key=lambda i: media[i].alone is False)
    place = {keys[i]: n for n, i in enumerate(order)}
    return [*(media[i] for i in order), *(each for each in media if each.clip)], [place[keys[i]] for i in pictures]


@contextmanager
def shown_again(model: Any, places: Sequence[int] | None) -> Iterator[None]:
    """While the context lasts, the model uses the features of picture `places[i]` for its i-th picture.

    The features of each picture are computed once; gradients of all its places are summed. None changes nothing.
    """
    if places is None:
        yield
        return
    base = model.model
    features = base.get_image_features

    def repeated(*args: Any, **kwargs: Any) -> Any:
        made = features(*args, **kwargs)
        made.pooler_output = [made.pooler_output[i] for i in places]
        if getattr(made, "deepstack_features", None) is not None:
            made.deepstack_features = [[level[i] for i in places] for level in made.deepstack_features]
        return made

    base.get_image_features = repeated
    try:
        yield
    finally:
        del base.get_image_features
