"""Label probabilities from token log-probabilities, each case worked out by hand."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from dikast.core.distribution import NoDistribution
from dikast.engines.http.label_logprobs import (
    Place,
    Spellings,
    TooFewListed,
    places_of,
    read_after_marker,
    read_at_start,
)

FIVE = (" 1", " 2", " 3", " 4", " 5")
TEN = tuple(f" {level}" for level in range(1, 11))


def place(text: str, **options: float) -> Place:
    """A token as written; its alternatives by text (`_` stands for a blank), as probabilities."""
    shares = {name.replace("_", " "): share for name, share in options.items()} or {text: 1.0}
    return Place(text.encode(), {name.encode(): math.log(share) for name, share in shares.items()})


def options(text: str, shares: Mapping[str, float]) -> Place:
    return Place(text.encode(), {name.encode(): math.log(share) for name, share in shares.items()})


def read(places: Sequence[Place], labels: tuple[str, ...] = FIVE, seen: Spellings | None = None) -> dict[str, float]:
    text = b"".join(each.text for each in places).decode()
    found = read_after_marker(text, places, "Verdict:", labels, seen or Spellings())
    assert found is not None
    return {label.strip(): math.exp(value) for label, value in found.items()}


def unread(places: Sequence[Place], labels: tuple[str, ...] = FIVE) -> bool:
    text = b"".join(each.text for each in places).decode()
    try:
        return read_after_marker(text, places, "Verdict:", labels, Spellings()) is None
    except TooFewListed:
        return True


SHARES = {" 4": 0.7, " 3": 0.2, "4": 0.05, " 5": 0.03, " 1": 0.005, " 2": 0.005}


def test_alternatives_that_spell_a_label_add_up() -> None:
    found = read([place("Verdict"), place(":"), options(" 4", SHARES)])
    # " 4" and "4" both state 4: 0.70 + 0.05
    assert found == pytest.approx({"1": 0.005, "2": 0.005, "3": 0.2, "4": 0.75, "5": 0.03})


def test_blanks_and_markdown_before_the_label_are_passed_over() -> None:
    digits = {"4": 0.9, "3": 0.06, "5": 0.02, "2": 0.01, "1": 0.01}
    for lead in ([place("**"), place(" ")], [place(" ")], [place("\n"), place("**")], [place(" `")]):
        found = read([place("**"), place("Verdict:"), *lead, options("4", digits), place("**")])
        assert found == pytest.approx({name: share for name, share in digits.items()})


def test_a_marker_that_ends_inside_the_labels_token_is_not_read() -> None:
    assert unread([place("Verdict"), options(":4", {":4": 0.9, ":3": 0.1})])
    # a blank that belongs to the marker's token is no hindrance
    assert read([place("Verdict"), place(": "), options("4", {"4": 0.98, "3": 0.01, "1": 0.01})])["4"] == (
        pytest.approx(0.98)
    )


def test_a_label_of_two_tokens_is_followed_along_what_was_written() -> None:
    # "1" has 0.6 and "0" after it 0.75: P(10) = 0.45, P(1) = 0.15
    ones = options(" 1", {" 1": 0.6, " 9": 0.3, " 8": 0.1})
    after = options("0", {"0": 0.75, "\n": 0.25})
    found = read([place("Verdict:"), ones, after], TEN)
    assert found["10"] == pytest.approx(0.45)
    assert found["1"] == pytest.approx(0.15)
    assert found["9"] == pytest.approx(0.3)
    assert found["2"] <= 1e-9


def test_a_beginning_that_was_not_written_stays_unknown() -> None:
    """Whether the 0.3 on "1" would have gone on to 10 cannot be known; a hundredth would not matter."""
    assert unread([place("Verdict:"), options(" 9", {" 9": 0.7, " 1": 0.3})], TEN)
    found = read([place("Verdict:"), options(" 9", {" 9": 0.99, " 1": 0.01})], TEN)
    assert found["9"] == pytest.approx(0.99)


def test_a_label_known_to_be_one_token_is_not_spelt_in_pieces() -> None:
    seen = Spellings()
    whole = options(" 9", {" 9": 0.6, " 10": 0.3, " 1": 0.1})
    assert read([place("Verdict:"), whole], TEN, seen)["1"] == pytest.approx(0.1)
    later = options(" 9", {" 9": 0.8, " 1": 0.2})
    assert read([place("Verdict:"), later], TEN, seen)["1"] == pytest.approx(0.2)


def test_labels_beyond_the_alternatives_are_bounded_or_nothing_is_read() -> None:
    # 1 - 0.99 = 0.01 is left for three labels, none above the smallest alternative: they get a third of it each
    found = read([place("Verdict:"), options(" 4", {" 4": 0.95, " 5": 0.04})])
    assert found["1"] == pytest.approx(0.01 / 3)
    assert sum(found.values()) <= 1 + 1e-9
    assert unread([place("Verdict:"), options(" 4", {" 4": 0.5, " 5": 0.2})])


def test_mass_off_the_labels_is_no_labels_mass() -> None:
    shares = {" good": 0.9, " 1": 0.02, " 2": 0.02, " 3": 0.02, " 4": 0.02, " 5": 0.02}
    assert sum(read([place("Verdict:"), options(" good", shares)]).values()) == pytest.approx(0.1)


def test_words_are_labels_too() -> None:
    pair = {" first": 0.8, " second": 0.15, " tie": 0.05}
    assert read([place("Verdict:"), options(" first", pair)], (" first", " second", " tie")) == pytest.approx(
        {"first": 0.8, "second": 0.15, "tie": 0.05}
    )
    pieces = [place("Verdict:"), options(" sec", {" sec": 0.9, " first": 0.1}), options("ond", {"ond": 1.0})]
    assert read(pieces, (" first", " second"))["second"] == pytest.approx(0.9)


def test_the_last_marker_that_a_label_follows_counts() -> None:
    first = [place("Verdict:"), options(" 2", {" 2": 0.99, " 3": 0.01}), place("\n")]
    last = [place("Verdict:"), options(" 4", {" 4": 0.98, " 3": 0.02}), place("\nThe line Verdict:"), place(" ends.")]
    found = read([*first, *last])
    assert max(found, key=found.__getitem__) == "4"


def test_tokens_that_do_not_make_the_text_are_not_believed() -> None:
    places = [place("Verdict:"), options(" 4", SHARES)]
    assert read_after_marker("Something else. Verdict: 4", places, "Verdict:", FIVE, Spellings()) is None
    assert read_after_marker("no marker", [place("no marker")], "Verdict:", FIVE, Spellings()) is None
    # text inside more tokens, as when a server takes an end token or thinking off
    more = [place("<think>"), *places, place("<|im_end|>")]
    assert read_after_marker("Verdict: 4", more, "Verdict:", FIVE, Spellings()) is not None


DRAFT = [place("<think>"), place("Verdict:"), options(" 5", {" 5": 0.9, " 4": 0.1})]
FINAL = [place("</think>"), place("Verdict:"), options(" 2", {" 2": 0.96, " 3": 0.04}), place("<|im_end|>")]


@pytest.mark.parametrize("text", ["Verdict: 2", "<think>Verdict: 5</think>Verdict: 2"], ids=["taken off", "left in"])
def test_a_draft_inside_the_thinking_is_never_read(text: str) -> None:
    found = read_after_marker(text, [*DRAFT, *FINAL], "Verdict:", FIVE, Spellings())
    assert found is not None
    assert math.exp(found[" 2"]) == pytest.approx(0.96)


def test_a_draft_that_reads_as_the_answer_does_is_not_taken_for_it() -> None:
    """Both say `Verdict: 2`, word for word; the draft was unsure, the answer is not."""
    draft = [place("<think>"), place("Verdict:"), options(" 2", {" 2": 0.5, " 5": 0.5})]
    found = read_after_marker("Verdict: 2", [*draft, *FINAL], "Verdict:", FIVE, Spellings())
    assert found is not None
    assert math.exp(found[" 2"]) == pytest.approx(0.96)


@pytest.mark.parametrize("text", ["<think>Verdict: 5</think>I cannot say.", "<think>Verdict: 5"])
def test_where_only_the_thinking_has_a_marker_nothing_is_read(text: str) -> None:
    places = [*DRAFT, place("</think>"), place("I cannot say.")]
    assert read_after_marker(text, places, "Verdict:", FIVE, Spellings()) is None


def entry(text: str, logprob: object, *others: tuple[str, object], **more: Any) -> dict[str, Any]:
    told = [{"token": name, "logprob": each} for name, each in others]
    return {"token": text, "logprob": logprob, "top_logprobs": told, **more}


SPELT = [f"{lead}5" for lead in ("", " ", "  ", "\n", "\t", "\n\n", " \n", "\n ", "\r\n", "   ")]


@pytest.mark.parametrize(
    ("label", "why"),
    [
        (entry(" 4", 0.0, *[(f" {level}", 0.0) for level in range(1, 6)]), "sum to 5"),
        (entry(" 4", 3.0, (" 4", 3.0), (" 5", 2.0)), "above 0"),
        (entry("5", -0.1, *[(text, -0.1) for text in SPELT]), "sum to 9.04"),  # 10 exp(-.1) = 9.048
        (entry(" 4", -0.1, (" 4", -3.0), (" 5", -2.5)), "the token ' 4' twice"),
        (entry(" 4", -0.1, (" 4", -0.1), (" 5", -2.5), (" 5", -5.0)), "the token ' 5' twice"),
        (entry(" 4", True), "log-probability of True"),
        (entry(" 4", "-0.1"), "log-probability of '-0.1'"),
        (entry(" 4", None, (" 4", -0.1)), "log-probability of None"),
        (entry(" 4", float("nan")), "log-probability of nan"),
        (entry(" 4", -0.1, top_logprobs=5), "no list (5)"),
        (entry(" 4", -0.1, top_logprobs=["x"]), "an alternative that is none ('x')"),
        (entry(" 4", -0.1, top_logprobs=[-1.0]), "an alternative that is none (-1.0)"),
        (entry(" 4", -0.1, top_logprobs={"a": 1}), "no list"),
        (entry(" 4", 18446744073709551615), "above 0"),
    ],
)
def test_what_is_no_distribution_is_not_read(label: dict[str, Any], why: str) -> None:
    places = places_of({"content": [entry("Verdict:", -0.1), label]})
    with pytest.raises(NoDistribution, match=re.escape(why)):
        read_after_marker(f"Verdict:{label['token']}", places, "Verdict:", FIVE, Spellings())


def test_one_bad_token_elsewhere_does_not_hide_the_label() -> None:
    label = entry(" 4", math.log(0.97), (" 4", math.log(0.97)), (" 5", math.log(0.03)))
    places = places_of({"content": [entry("Well", None, top_logprobs=5), entry(". Verdict:", "x"), label]})
    found = read_after_marker("Well. Verdict: 4", places, "Verdict:", FIVE, Spellings())
    assert found is not None
    assert math.exp(found[" 4"]) == pytest.approx(0.97)


def test_parts_of_characters_look_alike_and_are_no_contradiction() -> None:
    """Without bytes, different tokens that are pieces of characters are all spelt as one replacement character."""
    odd = [("\ufffd", math.log(0.01)), ("\ufffd", math.log(0.001)), ("", math.log(0.01)), ("", math.log(0.002))]
    label = entry(" 4", math.log(0.97), *odd)
    places = places_of({"content": [entry("Verdict:", 0.0), label]})
    assert read_after_marker("Verdict: 4", places, "Verdict:", FIVE, Spellings()) is not None


def test_many_tokens_without_a_text_are_no_labyrinth() -> None:
    """Each was followed by a call of its own: a thousand of them ended in a RecursionError."""
    empty = [options("", {"": 1.0})] * 5000
    places = [place("Verdict:"), options(" 1", {" 1": 0.6, " 9": 0.4}), *empty]
    with pytest.raises(TooFewListed, match=r"the 2 tokens that the server lists leave 0\.60 of the probability"):
        read_after_marker("Verdict: 1", places, "Verdict:", TEN, Spellings())


def test_a_reply_that_goes_on_is_read_where_it_begins() -> None:
    found = read_at_start([place(" "), options("4", {"4": 0.97, "5": 0.03})], FIVE, Spellings())
    assert found is not None
    assert math.exp(found[" 4"]) == pytest.approx(0.97)
    assert read_at_start([], FIVE, Spellings()) is None


def test_places_come_from_bytes_where_there_are_bytes() -> None:
    entry: dict[str, Any] = {
        "token": "\ufffd", "bytes": [0xC3], "logprob": -0.5,
        "top_logprobs": [{"token": "\ufffd", "bytes": [0xC3], "logprob": -0.5}, {"token": "a", "logprob": -1.0}],
    }  # fmt: skip
    assert places_of({"content": [entry]}) == [Place(b"\xc3", {b"\xc3": -0.5, b"a": -1.0})]
    nothings: list[Any] = [None, {}, {"content": None}, {"content": [{"token": "a"}]}, {"content": [3]}, []]
    for nothing in nothings:
        assert places_of(nothing) == []
