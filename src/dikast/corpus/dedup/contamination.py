"""Contamination: whether an item's rubric, instruction, response or image also occurs in other files."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from dikast.core.errors import DataError
from dikast.core.item import Item
from dikast.core.media import image_sha256
from dikast.core.part import Image
from dikast.corpus.dedup.image_dedup import NearDuplicateImages
from dikast.corpus.dedup.text_dedup import Index
from dikast.corpus.observations import observations, observed
from dikast.corpus.quality.check import check_file
from dikast.corpus.quality.check_options import CheckOptions

_LEAKED = "leaked: "
_DRAWS = 20  # shuffles in `check_file`, whose other figures are not used here


class Apart:
    """The rubrics, instructions, responses and images of files, to search for those of an item.

    Texts match if they share at least `likeness` of their word trigrams, estimated by MinHash (`Index` says how much
    memory it takes); images match if they look the same (`NearDuplicateImages`). The instruction of an item with images
    is not searched for: the same words about another picture ask something else. With `near` false only equal texts
    match, equal instructions included. With `bare`, files may come without their images (as a benchmark is published);
    missing images are then ignored.
    """

    def __init__(self, files: Iterable[Path], *, near: bool = True, likeness: float = 0.8, bare: bool = False) -> None:
        files = list(files)
        self._known = {
            name: Index(likeness, near=near and bool(files)) for name in ("rubric", "instruction", "response")
        }
        self._images, self._pictures, self._near = set[str](), NearDuplicateImages(), near
        self.rows: dict[str, int] = {}
        for path in files:
            self.rows[path.name] = 0
            for each in observations(path):
                self.rows[path.name] += 1
                where = f"{path}:{each.line}"
                for kind, name, text in each.texts:
                    self._known[kind].add(text, f"{where} {name}")
                for image in each.item.images:
                    with suppress(*([DataError] if bare else [])):
                        self._shown(image, where)

    def leak(self, item: Item) -> str:
        """Which part of the item occurs in the files: `rubric`, `instruction`, `response` or `image`; "" for none."""
        each = observed(item, 0)
        if each.rubric is not None and self._known["rubric"].find(each.rubric.criterion):
            return "rubric"
        return self.known(each.instruction, [response.response for response in each.responses], item.images)

    def known(self, instruction: str, responses: Iterable[str], images: Sequence[Image]) -> str:
        """As `leak`, for a question and its responses."""
        if not self.rows:
            return ""
        if not (images and self._near) and self._known["instruction"].find(instruction):
            return "instruction"
        if any(map(self._known["response"].find, responses)):
            return "response"
        return "image" if any(map(self._looks, images)) else ""

    def _shown(self, image: Image, where: str) -> None:
        hashed = image_sha256(image)
        if hashed not in self._images:
            self._images.add(hashed)
            if self._near:
                self._pictures.add(image, where)

    def _looks(self, image: Image) -> bool:
        return image_sha256(image) in self._images or (self._near and self._pictures.find(image) is not None)


def leaks(path: Path, files: list[Path], *, near: bool = True) -> Counter[str]:
    """How many rubrics, instructions, responses and images of a file `corpus check` finds in others, zeros included."""
    found = check_file(path, CheckOptions(against=tuple(map(str, files)), near=near, draws=_DRAWS)).findings
    return Counter({name.removeprefix(_LEAKED): each.found for name, each in found.items() if name.startswith(_LEAKED)})
