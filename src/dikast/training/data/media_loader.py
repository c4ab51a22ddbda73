"""Pictures and clips as tensors, made from their files in threads ahead of the step that needs them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from dikast.core.errors import EngineError, RunError
from dikast.core.machine.bounded import Bounded
from dikast.core.media import image_sha256
from dikast.engines.local.seeing.shown import prepare
from dikast.engines.local.seeing.vision import Vision
from dikast.training.data.media_references import MediaReference, path_of

if TYPE_CHECKING:
    import torch

Tensors = Mapping[str, "torch.Tensor"]
_KEPT = 256 * 2**20  # bytes of tensors: examples that show one picture often follow each other


class Due(NamedTuple):
    """An example whose media are needed. `name` tells its id and origin (`file:line`), for errors."""

    reference: MediaReference
    name: Callable[[], tuple[str, str]]


class MediaLoader:
    """Makes the tensors of examples in `threads` threads, and remembers the last used ones, up to 256 MiB."""

    def __init__(self, vision: Vision, threads: int) -> None:
        self._vision, self._pool = vision, ThreadPoolExecutor(threads)
        self._made: Bounded[object, Tensors] = Bounded(_KEPT, lambda each: sum(t.nbytes for t in each.values()))

    def load(self, due: Sequence[Due | None]) -> Iterator[Tensors]:
        """The tensors of each example in order, none for None; all are begun at once.

        They are those of preparation, bit for bit. RunError, naming file, row and cure, for a file that is gone or has
        another content than the one that was prepared.
        """
        keys = [each and each.reference.key for each in due]
        uses, waiting = Counter(keys), dict[object, Future[Tensors]]()
        for key, each in zip(keys, due, strict=True):
            if each is not None and key not in waiting:
                waiting[key] = self._pool.submit(self._tensors, key, each)
        try:
            for key in keys:
                uses[key] -= 1
                yield {} if key is None else waiting[key].result()
                if not uses[key]:
                    waiting.pop(key, None)
        finally:
            for future in waiting.values():
                future.cancel()

    def _tensors(self, key: object, due: Due) -> Tensors:
        found = self._made.get(key)
        if found is None:
            try:
                prepared = prepare(due.reference.media, self._vision)
            except EngineError as error:
                raise _not_as_prepared(due, str(error)) from error
            if prepared.key != key:
                changed = [path_of(image) for image, sha256 in due.reference.files() if image_sha256(image) != sha256]
                raise _not_as_prepared(due, f"{', '.join(changed[:1]) or 'a file'} has other content now")
            found = self._vision.tensors(prepared.made)
            self._made.put(key, found)
        return found


def _not_as_prepared(due: Due, why: str) -> RunError:
    name, origin = due.name()
    return RunError(
        f"{origin}: example {name!r}: {why}; training reads pictures when it needs them, and when the examples were "
        "prepared this one was another: put that file back, and the same command goes on from the last checkpoint; or "
        "give another 'out', to begin again with the files as they are"
    )
