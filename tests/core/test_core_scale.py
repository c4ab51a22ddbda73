import pytest
from hypothesis import given
from hypothesis import strategies as st

from dikast.core.errors import UserError
from dikast.core.scale import Scale


@pytest.mark.parametrize(
    ("text", "labels", "values"),
    [
        ("1-5", ["1", "2", "3", "4", "5"], [1, 2, 3, 4, 5]),
        (" 1 - 3 ", ["1", "2", "3"], [1, 2, 3]),
        ("1–3", ["1", "2", "3"], [1, 2, 3]),
        ("0-1/0.25", ["0", "0.25", "0.50", "0.75", "1"], [0, 0.25, 0.5, 0.75, 1]),
        ("-1-1", ["-1", "0", "1"], [-1, 0, 1]),
        ("-3--1", ["-3", "-2", "-1"], [-3, -2, -1]),
        ("A-C", ["C", "B", "A"], [1, 2, 3]),  # A is best, so it comes last
        ("pass/fail", ["fail", "pass"], [0, 1]),
    ],
)
def test_parse(text: str, labels: list[str], values: list[float]) -> None:
    scale = Scale.parse(text)
    assert list(scale.labels) == labels
    assert list(scale.values) == values
    assert (scale.low, scale.high) == (values[0], values[-1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5-1", "runs backwards: write 1-5"),
        ("1-" + "9" * 1_000_000, "numbers of too many digits"),
        ("0-1/0." + "0" * 5_000 + "1", "numbers of too many digits"),
        ("3-3", "runs backwards"),
        ("E-A", "runs backwards: write A-E"),
        ("1-5/7", "cannot be reached from 1 in steps of 7"),
        ("1-2/0.3", "cannot be reached"),
        ("0-1/0", "cannot be reached"),
        ("0-1001", "1001 is the most"),
        ("0-" + "9" * 40, "1001 is the most"),  # more digits than decimal arithmetic divides exactly
        ("1/5", "is not a scale"),  # a slip for 1-5, not two words
        ("good", "is not a scale"),
        ("good/", "is not a scale"),
        ("a/b/c", "is not a scale"),
        ("", "is not a scale"),
        ("poor<", "is not a scale"),
        ("poor<fair<Poor", "must be distinct"),
        ("poor<2<good", "mixes words and numbers"),
        ("3<2<1", "must rise"),
    ],
)
def test_parse_refuses(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Scale.parse(text)


def test_the_largest_scale() -> None:
    scale = Scale.parse("0-1000")
    assert len(scale.labels) == 1001
    assert scale.match("1000") == "1000"
    assert scale.match("1001") is None


@pytest.mark.parametrize(
    ("labels", "values", "message"),
    [
        (("1",), (1,), "at least two"),
        (("1", "2"), (1,), "one value for each"),
        (("a", "A"), (1, 2), "distinct"),
        (("1", "1.0"), (1, 2), "distinct"),  # one number cannot stand for two labels
        (("a", ""), (1, 2), "words"),
        (("a", " b"), (1, 2), "space"),
        (("a", "b"), (2, 1), "must rise"),
        (("a", "b"), (1, 1), "must rise"),
        (("a", "b"), (1, float("nan")), "must rise"),
        (("a", "b"), (1, float("inf")), "must rise"),
    ],
)
def test_a_scale_that_cannot_be(labels: tuple[str, ...], values: tuple[float, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Scale(labels, values)


@pytest.mark.parametrize(
    ("scale", "text", "label"),
    [
        ("1-5", "4", "4"),
        ("1-5", " 4\n", "4"),
        ("1-5", "4.0", "4"),
        ("1-5", "04", "4"),
        ("1-5", "4.5", None),
        ("1-5", "6", None),  # off the scale is no score, never clipped
        ("1-5", "-1", None),
        ("1-5", "four", None),
        ("1-5", "4/5", None),
        ("1-5", "1e0", None),
        ("1-5", "", None),
        ("0-1/0.5", "0.50", "0.5"),
        ("0-1/0.5", "1.000", "1"),
        ("A-E", "b", "B"),
        ("A-E", "F", None),
        ("A-E", "1", None),  # a letter's value is not its label
        ("pass/fail", "PASS", "pass"),
        ("pass/fail", "passed", None),
    ],
)
def test_match(scale: str, text: str, label: str | None) -> None:
    assert Scale.parse(scale).match(text) == label
    assert (text in Scale.parse(scale)) == (label is not None)


def test_values_labels_and_goodness_by_hand() -> None:
    scale = Scale.parse("1-5")
    assert scale.value("4") == 4
    assert scale.label(4) == "4"
    assert scale.label(4.5) is None
    assert scale.goodness(4) == 0.75  # (4 - 1) / (5 - 1)
    harm = Scale(scale.labels, scale.values, lower_is_better=True)
    assert harm.goodness(4) == 0.25
    assert list(scale) == ["1", "2", "3", "4", "5"]
    assert 4 not in scale  # labels are text
    assert hash(scale) == hash(Scale.parse("1-5"))


@given(
    low=st.integers(-50, 50), count=st.integers(1, 100), step=st.sampled_from(["1", "2", "0.5", "0.1", "0.25", "10"])
)
def test_the_short_spelling_of_a_range_reads_back(low: int, count: int, step: str) -> None:
    from decimal import Decimal

    scale = Scale.parse(f"{low}-{low + count * Decimal(step):f}/{step}")
    assert len(scale.labels) == count + 1
    assert Scale.parse(str(scale)) == scale
    for label, value in zip(scale.labels, scale.values, strict=True):
        assert scale.match(label) == label
        assert float(label) == value == scale.value(label)


@pytest.mark.parametrize(
    "text", ["1-5", "0-10", "0-1/0.1", "A-E", "pass/fail", "yes/no", "-3--1", "poor<fair<good", "1<2<5", "None<minor"]
)
def test_the_short_spelling_reads_back(text: str) -> None:
    assert str(Scale.parse(text)) == text


def test_a_scale_without_a_short_spelling_lists_its_labels() -> None:
    assert str(Scale(("poor", "fair", "good"), (0, 1, 3))) == "poor, fair, good"


def test_words_count_from_1_and_numbers_mean_themselves() -> None:
    assert Scale.parse(" poor < fair <good") == Scale(("poor", "fair", "good"), (1, 2, 3))
    assert Scale.parse("1<2<5").values == (1, 2, 5)
    assert Scale.parse("poor/bad<so so").labels == ("poor/bad", "so so")


def test_a_scale_prints_as_it_is_written() -> None:
    assert repr(Scale.parse("1-5")) == "<Scale 1-5>"
    harm = Scale(("mild", "grave"), (1, 2), lower_is_better=True)
    assert repr(harm) == "<Scale mild<grave, lower is better>"
