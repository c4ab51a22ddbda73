"""What a run's folder keeps of an engine's notes: each once, with counts of this run alone."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson

from dikast.judging.notes import EngineNotes


def kept(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = orjson.loads((folder / "notes.json").read_bytes())
    return found


def test_a_count_that_grows_stands_once_with_what_this_run_added(tmp_path: Path) -> None:
    engine: Any = SimpleNamespace(name="judge", notes={"{n} asked again": 40, "a warning": 1})
    notes = EngineNotes(tmp_path, engine)  # the engine has served another run
    notes.keep()
    assert not (tmp_path / "notes.json").exists()
    engine.notes = {"{n} asked again": 1000, "a warning": 1, "another": 3}
    notes.keep()
    assert kept(tmp_path) == {"judge": ["960 asked again", "another"]}
    engine.notes = {"{n} asked again": 1960, "a warning": 2, "another": 5}
    notes.keep()
    assert notes.told == ["1,920 asked again", "a warning", "another"]
    assert kept(tmp_path) == {"judge": notes.told}


def test_notes_of_an_earlier_call_stay_before_those_of_the_next(tmp_path: Path) -> None:
    for n, told in ((7, ["7 asked again", "a warning"]), (9, ["7 asked again", "a warning", "9 asked again"])):
        engine: Any = SimpleNamespace(name="judge", notes={})
        notes = EngineNotes(tmp_path, engine)
        engine.notes = {"{n} asked again": n, "a warning": 1}
        notes.keep()
        assert notes.told == kept(tmp_path)["judge"] == told
