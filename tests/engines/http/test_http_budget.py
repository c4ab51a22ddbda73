from pathlib import Path

import pytest

from dikast.core.errors import UserError
from dikast.engines.base import Completion, Sampling
from dikast.engines.budget import Budget
from dikast.engines.http.prices import Price
from dikast.engines.mock import Random
from dikast.engines.priced import Priced
from dikast.engines.spec import open_engine
from dikast.testing import check_engine
from dikast.testing.faults import FaultServer
from engines.http_servers import FAST, ask, grade, opened, verdicts, write_items
from engines.provider_servers import OpenAIServer


def test_a_budget_of_calls_is_exact_and_the_rest_is_not_sent(tmp_path: Path) -> None:
    items, out = write_items(tmp_path / "items.jsonl", 50), tmp_path / "run"
    with FaultServer(latency=0.005) as server:
        code, summary = grade(items, f"{server.spec},{FAST},calls=20", out)
        assert (code, summary["status"]) == (3, {"ok": 20, "engine_error": 30})
        assert server.tries.total() == 20
        assert {each["reason"].split(":")[0] for each in verdicts(out) if each["status"] != "ok"} == {"budget"}
        code, summary = grade(items, f"{server.spec},{FAST}", out)
        assert (code, summary["status"], summary["answered_before"]) == (0, {"ok": 50}, 20)
        assert max(server.answered.values()) == 1, "what the budget let through was paid for once"


def test_a_budget_of_tokens_is_never_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer("one two three", latency=0.002) as server, opened(server, f"{FAST},tokens=1000") as engine:
        found = list(engine.stream(ask(i, "x" * 190, sampling=Sampling(max_tokens=100)) for i in range(60)))
        assert isinstance(engine, Budget)
        spent = engine.spent.tokens
    answered = [each for each in found if each.error is None]
    assert sum(each.usage.tokens_in + each.usage.tokens_out for each in answered) == spent <= 1000
    assert len(answered) >= 18, "an answer takes 51 tokens, so 19 fit"
    assert {each.error.kind for each in found if each.error is not None} == {"budget"}
    assert server.tries.total() == len(answered)
    monkeypatch.setenv("OPENAI_API_KEY", OpenAIServer.key)
    price = Price(1.0, 1.0, 1.0)
    for tokens, answers in ((20_000, 0), (30_000, 14)):  # 2,110 each; before the first, 26,024 and the prompt
        with OpenAIServer() as reasons:
            spec = f"openai:{reasons.model},url={reasons.url}/v1,{FAST},concurrency=8"
            with Budget(Priced(open_engine(spec), price), tokens=tokens) as bounded:
                found = list(bounded.stream(ask(i) for i in range(20)))
        assert bounded.spent.tokens == 2110 * answers <= tokens
        assert [each.error.kind for each in found if each.error is not None] == ["budget"] * (20 - answers)


def test_a_budget_of_money_is_never_passed(tmp_path: Path) -> None:
    table = tmp_path / "prices.yaml"
    table.write_text("judge: {in: 1000, out: 10000}\n")
    with FaultServer("one two three") as server:
        with opened(server, f"{FAST},prices={table},money=1") as engine:
            found = list(engine.stream(ask(i, "x" * 190) for i in range(60)))
            assert isinstance(engine, Budget)
            assert 0.8 < engine.spent.money <= 1.0
        with opened(server, f"{FAST},prices={table},money=0") as engine:
            assert [each.error.kind for each in engine.stream([ask()]) if each.error] == ["budget"]
    assert sum(each.usage.cost or 0.0 for each in found) == pytest.approx(engine_spent(found))


def engine_spent(found: list[Completion]) -> float:
    return sum((each.usage.tokens_in * 1000 + each.usage.tokens_out * 10000) / 1e6 for each in found)


def test_a_price_table_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "prices.yaml"
    spec = f"http://localhost:1/v1#judge,prices={table}"
    for text, told in [
        ("juge: {in: 1, out: 2}", "did you mean 'juge'"),
        ("judge: {in: 1}", "no 'out'"),
        ("judge: {in: 1, out: 2, cache: 1}", "unknown key 'cache'"),
        ("judge: {in: -1, out: 2}", "number from 0"),
        ("judge: 3", "write {in"),
        ("- judge", "maps names"),
    ]:
        table.write_text(text + "\n")
        with pytest.raises(UserError, match=told):
            open_engine(spec)
    home = tmp_path / "home"
    (home / "dikast").mkdir(parents=True)
    (home / "dikast" / "prices.yaml").write_text("judge: {in: 1, out: 2}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    assert open_engine("http://localhost:1/v1#judge,money=1").name == "http://localhost:1/v1#judge"
    open_engine("http://localhost:1/v1#unlisted")


def test_a_budget_keeps_the_protocol_and_wraps_any_engine() -> None:
    check_engine(Budget(Random()))
    found = list(Budget(Random(), calls=3).stream(ask(i) for i in range(5)))
    assert sum(each.error is None or each.error.kind != "budget" for each in found) == 3


def test_a_server_that_does_not_count_ends_a_budget_of_tokens() -> None:
    class Uncounted(FaultServer):
        def _completion(self, *about, **more):  # type: ignore[no-untyped-def]
            return {**super()._completion(*about, **more), "usage": None}

    with Uncounted() as server, opened(server, f"{FAST},concurrency=1,tokens=5000") as engine:
        found = list(engine.stream(ask(i) for i in range(50)))
    errors = [each.error for each in found if each.error is not None]
    assert len(errors) > 40
    assert "does not count tokens" in str(errors[-1])


def test_a_budget_is_not_negative() -> None:
    with pytest.raises(UserError, match="negative"):
        Budget(Random(), calls=-1)
