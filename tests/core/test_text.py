"""Texts: what differs between two."""

from dikast.core.text import changed_lines


def test_changed_lines() -> None:
    same = "a\nb\nc\nd\ne\nf\ng\nh"
    assert list(changed_lines(same, same)) == []
    assert list(changed_lines("", "x")) == [("+", "x")]
    other = same.replace("a", "A").replace("h", "- h")
    assert list(changed_lines(same, other, around=1)) == [
        ("-", "a"), ("+", "A"), (" ", "b"), ("…", ""), (" ", "g"), ("-", "h"), ("+", "- h"),
    ]  # fmt: skip
    assert list(changed_lines("--- x", "+++ x")) == [("-", "--- x"), ("+", "+++ x")]
