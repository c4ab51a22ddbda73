"""The proof of the card, in small: `python -m benchmarks.probes` repeats it as often as the figures in the docs."""

import pytest
from benchmarks.probes import FAULTS, Cards, alarms, cards, found

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Cards:
    return cards(tmp_path_factory.mktemp("power"))


@pytest.mark.parametrize("probe", FAULTS)
def test_a_planted_fault_is_found(card: Cards, probe: str) -> None:
    assert found(card, probe, 2) == 2


def test_sound_judges_are_left_alone(card: Cards) -> None:
    assert len(alarms(card, 20)) <= 2  # nominally one in twenty at most; three or more happen once in thirteen then
