"""Texts: what differs between two, and what of one may be shown."""

import sys

from dikast.core.text import changed_lines, listing, printable


def test_what_a_terminal_obeys_is_escaped_and_nothing_else() -> None:
    """Every character by itself and between others: controls, marks of direction, surrogates."""
    ranges = [(0, 8), (11, 31), (127, 159), (0x2028, 0x202E), (0x2066, 0x2069), (0xD800, 0xDFFF), (0xFEFF, 0xFEFF),
              (0xFFF9, 0xFFFB)]  # fmt: skip
    obeyed = {code for first, last in ranges for code in range(first, last + 1)}
    for code in range(sys.maxunicode + 1):
        shown = f"\\u{code:04x}" if code in obeyed else chr(code)
        assert printable(chr(code)) == shown
    assert printable("as\tit\nis, \x1b[1mnot\u202e") == "as\tit\nis, \\u001b[1mnot\\u202e"


def test_changed_lines() -> None:
    same = "a\nb\nc\nd\ne\nf\ng\nh"
    assert list(changed_lines(same, same)) == []
    assert list(changed_lines("", "x")) == [("+", "x")]
    other = same.replace("a", "A").replace("h", "- h")
    assert list(changed_lines(same, other, around=1)) == [
        ("-", "a"), ("+", "A"), (" ", "b"), ("…", ""), (" ", "g"), ("-", "h"), ("+", "- h"),
    ]  # fmt: skip
    assert list(changed_lines("--- x", "+++ x")) == [("-", "--- x"), ("+", "+++ x")]


def test_of_many_names_the_first_are_listed() -> None:
    assert listing([]) == ""
    assert listing(["a"]) == "a"
    assert listing(["a", "b", "c"], 3) == "a, b, c"
    assert listing(["a", "b", "c", "d", "e"], 3) == "a, b, c and 2 more"
