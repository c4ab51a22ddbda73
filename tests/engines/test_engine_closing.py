"""Engines are context managers, wrapped ones too, and a closed one says that it is closed."""

from pathlib import Path

import pytest

from dikast.core.errors import UserError
from dikast.core.message import Message, Span
from dikast.engines.base import Engine, Request, Sampling
from dikast.engines.budget import Budget
from dikast.engines.local.engine import LocalEngine
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.judging.panel import Panel
from runs import write_jsonl

ASK = Request("k", (Message("user", (Span("Grade this."),)),), Sampling(max_tokens=8))
ITEM = {"instruction": "Name a prime.", "response": "7 is a prime.", "gold": 4}


def test_a_mock_has_nothing_to_close() -> None:
    with open_engine("mock:constant") as engine:
        assert next(engine.stream([Request("k", ())])).key == "k"


def test_a_closed_replay_says_so(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "replies.jsonl", [{"item": "1", "reply": "4"}])
    with open_engine(f"replay:{file}") as engine:
        pass
    engine.close()  # twice does nothing
    with pytest.raises(UserError, match="this engine is closed; open it again"):
        next(engine.stream([Request("k", ())]))


def test_a_judge_closes_its_engine_through_what_wraps_it(tmp_path: Path) -> None:
    file = write_jsonl(tmp_path / "replies.jsonl", [{"item": "1", "reply": "4"}])
    inner = open_engine(f"replay:{file}")
    judges = [Judge(Budget(inner, calls=3), "helpfulness"), Judge("mock:constant", "helpfulness")]
    with Panel(judges) as panel:
        told = f"Panel([Judge('replay:{file}', 'helpfulness'), Judge('mock:constant', 'helpfulness')])"
        assert repr(panel) == told
    with pytest.raises(UserError, match="closed"):
        next(inner.stream([Request("k", ())]))


def test_an_engine_of_others_needs_no_close() -> None:
    class Own:
        name = "own"

        def __init__(self) -> None:
            self.mock: Engine = open_engine("mock:constant")
            self.stream, self.identity, self.versions = self.mock.stream, self.mock.identity, self.mock.versions

    with Judge(Own(), "helpfulness") as judge:
        assert judge.grade(ITEM).label == "3"


def test_a_closed_local_engine_keeps_its_identity_and_answers_no_more(tiny_text: Path) -> None:
    with open_engine(str(tiny_text)) as engine:
        assert isinstance(engine, LocalEngine)
        loaded, first = engine._loaded, next(engine.stream([ASK]))
        of = LocalEngine.of(loaded, name="in memory")
        assert of.versions() == engine.versions()  # an engine on a model in memory has versions too
    assert first.error is None
    assert engine.identity()["engine"] == "local"
    with pytest.raises(UserError, match="this engine is closed"):
        next(engine.stream([ASK]))
    assert next(of.stream([ASK])).text == first.text
