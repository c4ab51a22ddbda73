"""The names in a figure do not run into each other, however long they are."""

import itertools
import re

import pytest

from dikast.surface.report.figures import WIDTH, histogram

LETTER = 10.3  # units of the figure's width that a letter takes on a phone
TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)" class="(\w*)">([^<]*)')


@pytest.mark.parametrize("gold", [0, 3])
@pytest.mark.parametrize(
    ("names", "below"),
    [
        (["1", "2", "3", "4", "5"], False),
        (["a", "b", "tie", "disagree"], False),
        ([f"{i} of 1-5{more}" for i in range(1, 6) for more in ("", ", lower is better")], True),
        ([f"{i / 2:g}" for i in range(21)], True),  # 640 / 21 = 30.5 units for "0.5", which takes 30.9
    ],
)
def test_names_of_labels_do_not_overlap(names: list[str], below: bool, gold: int) -> None:
    drawn = str(histogram({name: (i + 1, gold) for i, name in enumerate(names)}))
    told = [each for each in TEXT.findall(drawn) if each[3] != "small"]
    assert [each[4] for each in told] == names
    lines = {float(y) for _, y, *_ in told}
    assert len(lines) == (len(names) if below else 1)
    ends = []
    for x, y, anchor, _, name in told:
        wide = LETTER * len(name)
        left = float(x) - (wide if anchor == "end" else wide / 2)
        assert 0 <= left <= left + wide <= WIDTH
        ends.append((float(y), left, left + wide))
    ends.sort()
    for (y, _, right), (next_y, left, _) in itertools.pairwise(ends):
        assert right <= left if y == next_y else next_y - y >= 18  # the letters of a phone are 18 units high
    for x, wide in re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawn):
        assert float(x) + float(wide) <= WIDTH
    assert drawn.count("<rect") == len(names) * (2 if gold else 1)
