"""Trees of rows: by hand, and random ones against the rows they stand for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dikast.engines.local.sharing.trie import Tree, agreed, parting, sorted_rows, walk


def test_a_tree_by_hand() -> None:
    # 20 tokens shared by all, then 30 shared by the first two, which go on with 5 and 7; the third goes on with 40
    first, second, third = [1] * 20 + [2] * 30 + [3] * 5, [1] * 20 + [2] * 30 + [4] * 7, [1] * 20 + [5] * 40
    tree = Tree([np.array(row) for row in (third, first, second)])
    assert tree.ends == [20, 50, 55, 62, 102]
    assert tree.parents == [-1, 0, 1, 1, 0]
    assert tree.tokens == 102  # of 60 + 55 + 57
    assert tree.places[2].tolist() == [*range(50), *range(55, 62)]
    assert tree.places[0].tolist() == [*range(20), *range(62, 102)]


def test_a_short_beginning_is_not_worth_a_segment() -> None:
    tree = Tree([np.array([1] * 15 + [n] * 4) for n in (2, 3)])
    assert (tree.ends, tree.parents) == ([19, 38], [-1, -1])


def test_equal_rows_and_rows_that_begin_others_stand_once() -> None:
    tree = Tree([np.full(30, 1), np.full(50, 1), np.full(30, 1)])
    assert (tree.ends, tree.parents) == ([30, 50], [-1, 0])
    assert tree.places[0].tolist() == tree.places[2].tolist() == list(range(30))
    assert tree.places[1].tolist() == list(range(50))
    assert Tree([np.full(7, 1)]).ends == [7]
    assert tree.leaves == [0, 1, 0]


PIECES = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 40)), min_size=1, max_size=4)


@given(st.lists(PIECES, min_size=1, max_size=8))
def test_every_row_can_be_read_along_its_segments(pieces: list[list[tuple[int, int]]]) -> None:
    rows = [np.concatenate([np.full(count, token) for token, count in row]) for row in pieces]
    tree = Tree(rows)
    laid = np.full(tree.tokens, -1)
    for row, place in zip(rows, tree.places, strict=True):
        laid[place] = row
    assert (laid >= 0).all()  # every token belongs to a row
    assert tree.tokens <= sum(map(len, rows))
    starts = [0, *tree.ends[:-1]]
    for row, place in zip(rows, tree.places, strict=True):
        assert (laid[place] == row).all()
        # the row is whole segments, from a root down
        segment = int(np.searchsorted(tree.ends, place[-1], side="right"))
        path: list[int] = []
        while segment >= 0:
            path = [*range(starts[segment], tree.ends[segment]), *path]
            assert tree.parents[segment] < segment
            segment = tree.parents[segment]
        assert place.tolist() == path


ROWS = st.lists(st.lists(st.integers(-3, 3), max_size=12), min_size=1, max_size=12)


@given(ROWS, st.integers(1, 5), st.integers(1, 9))
def test_a_walk_computes_each_token_after_those_before_it_and_keeps_what_it_needs(
    tokens: list[list[int]], least: int, most: int
) -> None:
    rows = [np.array(row, np.int64) for row in tokens]
    tree = Tree(rows, least=least)
    found = walk(tree, most)
    assert [n for part in found.passes for n in part] == list(range(len(found.segments)))
    sizes = [sum(found.segments[n].end - found.segments[n].start for n in part) for part in found.passes]
    assert sum(sizes) == tree.tokens
    assert all(size == most for size in sizes[:-1])
    assert all(size <= most for size in sizes)
    when = {n: number for number, part in enumerate(found.passes) for n in part}
    for row, leaf in zip(rows, found.leaves, strict=True):
        path = list[int]()
        n = leaf
        while n >= 0:
            segment = found.segments[n]
            path = [*rows[segment.row][segment.start : segment.end].tolist(), *path]
            assert segment.parent < n
            assert found.until[n] >= when[leaf]  # what a row needs is there when its end is computed
            n = segment.parent
        assert path == row.tolist()
    longest = max(map(len, rows))
    assert found.held <= longest  # depth first: no more than one path is held


@given(ROWS)
def test_with_the_smallest_segments_every_beginning_is_computed_once(tokens: list[list[int]]) -> None:
    beginnings = {tuple(row[:n]) for row in tokens for n in range(1, len(row) + 1)}
    assert Tree([np.array(row, np.int64) for row in tokens], least=1).tokens == len(beginnings)


def test_a_thousand_rows_each_the_beginning_of_the_next() -> None:
    rows = [np.arange(n) for n in range(1000, 0, -1)]
    tree = Tree(rows, least=1)
    assert tree.tokens == 1000
    assert tree.leaves == list(range(999, -1, -1))


def test_rows_are_parted_where_they_share_least() -> None:
    rows = [np.array(row) for row in ([1, 2, 3], [2, 5, 1], [1, 2, 4], [1, 2, 5], [2, 5, 2])]
    ordered = [rows[i] for i in sorted_rows(rows)]
    assert [row.tolist() for row in ordered] == [[1, 2, 3], [1, 2, 4], [1, 2, 5], [2, 5, 1], [2, 5, 2]]
    assert parting(ordered) == 3
    assert parting(ordered[:3]) in (1, 2)
    assert agreed(ordered[0], ordered[1]) == 2
