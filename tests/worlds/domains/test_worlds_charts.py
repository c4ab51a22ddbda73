import numpy as np
import pytest

from dikast.worlds.domains.chart_drawing import LEGEND_FITS, Chart, draw_chart
from dikast.worlds.drawing.raster import RGB
from dikast.worlds.make import make
from dikast.worlds.settings import Settings


def _pixels(chart: Chart, colour: str) -> int:
    return int((draw_chart(chart, 240) == RGB[colour]).all(axis=2).sum())


def test_slices_are_as_wide_as_their_share() -> None:
    legend = [("C", "red"), ("A", "blue"), ("D", "green"), ("B", "pink")]
    chart = Chart("pie", {"A": 10, "B": 20, "C": 30, "D": 60}, "teal", legend=legend)
    swatch = 25
    counts = {letter: _pixels(chart, hue) - swatch for letter, hue in legend}
    total = sum(counts.values())
    for letter, value in chart.values.items():
        assert counts[letter] / total == pytest.approx(value / 120, abs=0.01)


def test_a_slice_of_everything_is_a_disc() -> None:
    chart = Chart("pie", {"A": 40}, "teal", legend=[("A", "red")])
    radius = (240 - 1 - 35) // 2 - 2
    assert _pixels(chart, "red") - 25 == pytest.approx(np.pi * radius**2, rel=0.01)


def test_a_legend_takes_the_letters_from_the_axis() -> None:
    values = {"A": 50, "B": 80}
    plain = draw_chart(Chart("bar", values, "red"), 96)
    named = draw_chart(Chart("bar", values, "red", legend=[("B", "red"), ("A", "blue")]), 96)
    assert (plain[-8:, 30:] != 248).any()
    assert (named[-8:] == 248).all()


def test_legends_are_drawn_where_they_fit() -> None:
    made = [s.graph for s in make(Settings(domain="charts", split="domain", size=96), 200)]
    assert {(chart.look, bool(chart.legend)) for chart in made} == {
        ("bar", False),
        ("bar", True),
        ("line", False),
        ("pie", True),
    }
    for chart in made:
        assert not chart.legend or {letter for letter, _ in chart.legend} == set(chart.values)
        assert len({hue for _, hue in chart.legend}) == len(chart.legend)
    small = [s.graph for s in make(Settings(domain="charts", split="domain", size=LEGEND_FITS - 1), 50)]
    assert {(chart.look, bool(chart.legend)) for chart in small} == {("bar", False), ("line", False)}


def test_a_legend_hides_values_that_no_claim_states_and_slices_tell_what_is_compared() -> None:
    compared = 0
    for sample in make(Settings(domain="charts", split="domain", version=4), 400):
        chart, claims = sample.graph, sample.responses[0].claims
        if not chart.hidden:
            continue
        assert chart.look == "pie"
        assert set(chart.hidden) == set(chart.values) - {claim.args[0] for claim in claims if claim.kind == "value"}
        order = sorted(chart.values.values())
        led = {"highest": order[-1] - order[-2], "lowest": order[1] - order[0]}
        for claim in claims:
            if claim.kind == "extreme":
                assert led[str(claim.args[0])] >= 10
            elif claim.kind == "order":
                one, other = (chart.values[str(letter)] for letter in claim.args)
                assert abs(one - other) >= 15
            compared += claim.kind != "value"
    assert compared > 50


def test_a_hidden_value_is_not_drawn() -> None:
    values, legend = {"A": 40, "B": 60}, [("A", "red"), ("B", "blue")]
    shown, hidden = (draw_chart(Chart("pie", values, "red", legend=legend, hidden=each), 96) for each in ((), ("A",)))
    differs = np.argwhere((shown != hidden).any(axis=2))
    top, left = differs.min(axis=0)
    assert left >= 96 - 1 - 35 + 2 + 15  # where values stand
    assert differs[:, 0].max() < top + 8  # on one line
    drawn = draw_chart(Chart("pie", values, "red", legend=legend, hidden=("A", "B")), 96)
    assert ((drawn == RGB["red"]).all(axis=2).sum()) > ((shown == RGB["red"]).all(axis=2).sum())  # a larger pie


def test_a_blanked_chart_is_drawn() -> None:
    for look in ("bar", "line", "pie"):
        assert draw_chart(Chart(look, {}, "red", legend=[("A", "red")] if look == "pie" else []), 96).shape == (
            96,
            96,
            3,
        )


def test_many_responses_find_room_on_a_chart() -> None:
    assert all(len(s.levels) == 8 for s in make(Settings(domain="charts", split="domain", responses=8, seed=11), 60))
