"""One engine over several real servers on loopback: some slow, some that die and come back, some with another model."""

import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from benches.own_bench import own
from dikast.core.errors import UserError
from dikast.engines.base import Completion, Request, Sampling
from dikast.engines.http.servers.several_servers import SeveralServers
from dikast.engines.spec import open_engine
from dikast.judging.judge import Judge
from dikast.testing.faults import Faults, FaultServer, prompt_of
from engines.http_servers import FAST, ask, dying, grade, verdicts, write_items
from ports import free_port
from runs import dikast_here, pairs, rows, write_jsonl
from serving.serving_here import serving


def about(item: int, n: int) -> Request:
    request = ask(f"{item}-{n}", f"Task {item}.")
    return Request(request.key, request.messages, Sampling(), about={"item": f"i{item}"})


@contextmanager
def running(*servers: FaultServer, options: str = FAST) -> Iterator[SeveralServers]:
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        engine = open_engine(f"{','.join(each.url for each in servers)}#judge,{options}")
        assert isinstance(engine, SeveralServers)
        with engine:
            yield engine


def keys(found: list[Completion]) -> list[str]:
    return sorted(each.key for each in found)


def test_each_item_stays_with_one_server_and_all_have_work() -> None:
    requests = [about(item, n) for item in range(200) for n in range(10)]
    with running(*(FaultServer(latency=0.05) for _ in range(3))) as engine:  # above a busy machine's delays
        found = list(engine.stream(requests))
        asked = {place.url for place in engine._listed.places}  # type: ignore[attr-defined]
    assert keys(found) == sorted(request.key for request in requests)
    shares = Counter(each.server for each in found)
    assert shares.keys() == asked
    assert min(shares.values()) > 0.1 * len(requests)  # idle servers take items of busy ones
    homes: dict[str, Counter[str]] = {}
    for each in found:
        homes.setdefault(each.key.split("-")[1], Counter())[each.server] += 1
    strays = sum(sum(counts.values()) - max(counts.values()) for counts in homes.values())
    assert strays < 0.05 * len(requests)


def test_an_item_with_more_questions_than_its_server_can_take_is_shared() -> None:
    with running(*(FaultServer(latency=0.02) for _ in range(3)), options=f"concurrency=4,{FAST}") as engine:
        found = list(engine.stream([about(7, n) for n in range(200)]))
    assert keys(found) == sorted({f"key-7-{n}" for n in range(200)})
    shares = Counter(each.server for each in found)
    assert len(shares) == 3
    assert min(shares.values()) > 40


def test_a_slow_server_gets_less_and_holds_up_nothing() -> None:
    requests = [about(item, n) for item in range(150) for n in range(4)]
    slow = FaultServer(latency=0.4, most_in_flight=4)
    with running(FaultServer(latency=0.01), slow, FaultServer(latency=0.01)) as engine:
        began = time.monotonic()
        found = list(engine.stream(requests))
        took = time.monotonic() - began
        shares = Counter(each.server for each in found)
        assert keys(found) == sorted(request.key for request in requests)
        assert [str(each.error) for each in found if each.error] == []
        assert shares[slow.url] < 0.2 * len(requests)
        assert took < 8  # 200 of them at four in .4 s would take 20


def test_one_that_dies_and_returns_loses_and_doubles_nothing(tmp_path: Path) -> None:
    n, items = 400, write_items(tmp_path / "items.jsonl", 400)
    with FaultServer() as alone:
        code, whole = grade(items, f"{alone.spec},server=judges,{FAST}", tmp_path / "alone")
    assert (code, whole["verdicts"]) == (0, n)
    with FaultServer(latency=0.02) as first, FaultServer(latency=0.2) as slow, dying(after=20) as (address, back):
        spec = f"{first.url},{slow.url},{address}#judge,server=judges,concurrency=4,{FAST}"
        code, summary = grade(items, spec, tmp_path / "run")
        answered = Counter(each["server"] for each in verdicts(tmp_path / "run"))
    assert code == 0
    assert summary["status"] == {"ok": n}
    assert back.is_set(), "the server that returned is asked again"
    assert summary["servers"] == dict(sorted(answered.items()))
    assert len(answered) == 3
    assert any(f"{address}: down for a while" in note for note in summary["notes"])
    kept, plain = ({each["key"]: each["label"] for each in verdicts(tmp_path / way)} for way in ("run", "alone"))
    assert len(verdicts(tmp_path / "run")) == n
    assert kept == plain, "the same keys and verdicts as from one server"
    assert (
        grade(items, spec.replace(first.url, slow.url.replace("127.0.0.1", "localhost")), tmp_path / "run")[1]["asked"]
        == 0
    )


def test_servers_that_fail_now_and_then_lose_nothing() -> None:
    faults = Faults(server_error=0.15, rate_limited=0.1, cut=0.05)
    requests = [about(item, n) for item in range(100) for n in range(4)]
    with running(*(FaultServer(faults=faults, seed=seed, latency=0.005) for seed in range(3))) as engine:
        found = list(engine.stream(requests))
    assert keys(found) == sorted(request.key for request in requests)
    assert [str(each.error) for each in found if each.error] == []


def test_a_server_nobody_answers_at_is_told_and_the_others_work() -> None:
    gone = f"http://127.0.0.1:{free_port()}/v1"
    with FaultServer() as server, open_engine(f"{gone},{server.url}#judge,{FAST}") as engine:
        found = list(engine.stream([ask(i) for i in range(40)]))
        assert {each.server for each in found} == {server.url}
        assert isinstance(engine, SeveralServers)
        assert any(gone in note for note in engine.notes)
        assert "1 of 2 servers down" in engine.status


def test_nobody_at_all_ends_the_run_with_the_cure(tmp_path: Path) -> None:
    spec = ",".join(f"http://127.0.0.1:{free_port()}/v1" for _ in range(2)) + f"#judge,retries=2,{FAST}"
    code, summary = grade(write_items(tmp_path / "items.jsonl", 60), spec, tmp_path / "run")
    assert code == 1
    assert "cannot be reached" in summary["gave_up"]


def test_a_server_with_another_model_is_refused_before_a_call_where_it_lists_its_models() -> None:
    told = pytest.raises(UserError, match=r"/v1 has other, not judge: take it from the list")
    with running(FaultServer(lists=True), FaultServer(lists=True, model="other")) as engine, told:
        list(engine.stream([ask(1)]))


def test_a_server_that_answers_as_another_model_is_refused_while_the_others_go_on() -> None:
    def other(value: dict[str, Any], key: str) -> dict[str, Any]:
        return {**value, "model": "other"}

    right, wrong = FaultServer(latency=0.01), FaultServer(latency=0.01, spoil=other)
    with running(right, wrong) as engine:
        found = list(engine.stream([ask(i) for i in range(200)]))
        assert [str(each.error) for each in found if each.error] == []
        assert {each.server for each in found} == {right.url}
        assert any(note.startswith(f"{wrong.url}: refused") for note in engine.notes)


def test_a_file_of_addresses_is_read_again_while_running(tmp_path: Path) -> None:
    listed = tmp_path / "servers.txt"
    with FaultServer(latency=0.02) as first, FaultServer(latency=0.02) as second:
        listed.write_text(f"# ours\n\n{first.url}\n")
        with open_engine(f"servers:{listed}#judge,concurrency=4,{FAST}") as engine:
            seen: list[str] = []

            def endless() -> Iterator[Request]:
                began, n = time.monotonic(), 0
                while not (len(seen) > 40 and set(seen[-20:]) == {second.url}):
                    assert time.monotonic() < began + 25
                    n += 1
                    yield ask(n)

            for done in engine.stream(endless()):
                assert done.error is None
                seen.append(done.server)
                if len(seen) == 20:
                    listed.write_text(f"{first.url}\n{second.url}\n")
                if seen.count(second.url) == 10:
                    listed.write_text(f"{second.url}\n")
    assert seen[0] == first.url
    assert seen[-1] == second.url


def test_every_machine_behind_a_name_is_a_server() -> None:
    with FaultServer() as server, open_engine(f"http://localhost:{server.port}/v1#judge,resolve=yes,{FAST}") as engine:
        found = list(engine.stream([ask(i) for i in range(10)]))
        assert f"http://127.0.0.1:{server.port}/v1" in {each.server for each in found}
        assert engine.identity()["server"] == f"http://localhost:{server.port}/v1"


COME_AND_GO = """
import sys, time
from pathlib import Path
from dikast.engines.spec import open_engine
from dikast.testing.faults import FaultServer
from benches.own_bench import own
from engines.http_servers import FAST, ask

def named(*numbers):
    Path("/etc/hosts").write_text("".join(f"127.0.0.{n} judges\\n" for n in numbers))

def endless():
    began, n = time.monotonic(), 0
    while set(seen[-40:]) != later and time.monotonic() < began + 25:
        n += 1
        yield ask(n)

named(1, 2)
with FaultServer(latency=.02) as a, FaultServer(latency=.02, port=a.port, host="127.0.0.2") as b, \\
     FaultServer(latency=.02, port=a.port, host="127.0.0.3") as c, \\
     open_engine(f"http://judges:{a.port}/v1#judge,resolve=yes,concurrency=4,{FAST}") as engine:
    seen, later = [], {a.url, c.url}
    for done in engine.stream(endless()):
        assert done.error is None, done.error
        seen.append(done.server)
        if len(seen) == 40:
            assert set(seen) == {a.url, b.url}, set(seen)
            named(1, 3)
    assert set(seen[-40:]) == later, set(seen[-40:])
print("followed")
"""


@pytest.mark.slow
def test_machines_behind_a_name_come_and_go(tmp_path: Path) -> None:
    """The name is resolved by the system, in a mount namespace with a file of hosts of its own."""
    apart = ["unshare", "--mount", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("a mount namespace cannot be made here")
    (tmp_path / "hosts").touch()
    enter = f'mount --bind {tmp_path}/hosts /etc/hosts && exec "$@"'
    command = [*apart, "sh", "-c", enter, "sh", sys.executable, "-c", COME_AND_GO]
    here = Path(__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=120)
    assert done.stdout == "followed\n", done.stderr


@pytest.mark.parametrize("verb", ["compare", "rank", "probe", "bench"])
def test_every_verb_says_the_same_by_a_list_as_by_one_server(verb: str, tmp_path: Path) -> None:
    def told(body: Mapping[str, Any]) -> str:
        drawn = int(prompt_of(body)[:4], 16)
        return f"One says more.\nVerdict: {'AB'[drawn % 2] if 'compare two' in str(body) else drawn % 5 + 1}"

    several = [{**row, "responses": [f"Short {i}.", f"Longer {i}, and more.", f"Longest of {i}, by many words."]}
               for i, row in enumerate(rows(12))]  # fmt: skip
    for row in several:
        del row["response"], row["gold"]
    many = write_jsonl(tmp_path / "several.jsonl", several)
    two = write_jsonl(tmp_path / "pairs.jsonl", pairs(30))
    one = write_jsonl(tmp_path / "items.jsonl", rows(40))
    asked = [{"q": f"Q{i}?", "a": f"Answer {i}.", "l": i % 5 + 1} for i in range(40)]
    bench = own(tmp_path, asked, kind="scores", rubric="helpfulness", fields={"instruction": "q", "response": "a"},
                gold={"column": "l"}, official={"metric": "pearson"})  # fmt: skip
    words = {
        "compare": ["compare", two, "--rubric", "helpfulness"],
        "rank": ["rank", many, "--rubric", "helpfulness"],
        "probe": ["probe", "--items", one, "--rubric", "helpfulness", "--calls", "60", "--only", "length"],
        "bench": ["bench", "run", bench, "--data", tmp_path],
    }[verb]
    said, servers = [], [FaultServer(told, latency=0.01) for _ in range(3)]
    with ExitStack() as stack:
        for server in servers:
            stack.enter_context(server)
        for way, spec in (("one", servers[0].spec), ("list", ",".join(each.url for each in servers) + "#judge")):
            out = tmp_path / way
            done = dikast_here(*words, "--judge", f"{spec},server=ours,{FAST}", "--out", out, "--quiet")
            assert done.returncode == 0, done.stderr
            found = [each for path in out.rglob("verdicts.jsonl") for each in verdicts(path.parent)]
            said.append({(each["key"], each["status"], str(each["label"])) for each in found})
    assert len(said[0]) >= 40
    assert {status for _, status, _ in said[0]} == {"ok"}
    assert said[1] == said[0]
    assert {each["server"] for each in found} == {server.url for server in servers}


def test_builds_and_services_take_a_list_and_go_on_without_one_of_it(tmp_path: Path) -> None:
    def told(body: Mapping[str, Any]) -> str:
        asked = str(body["messages"])
        better = "a" if asked.index("strong") < asked.index("weak") else "b"
        return orjson.dumps(
            {"commonalities": "Both answer.", "differences": "One names more.", "better": better}
        ).decode()

    gone = f"http://127.0.0.1:{free_port()}/v1"
    graded = [{**row, "id": f"{k}-{score}", "gold": {"score": score, "feedback": said}, "instruction": f"Q{k}?"}
              for k, row in enumerate(rows(20)) for score, said in ((1, "weak"), (4, "strong"))]  # fmt: skip
    write_jsonl(tmp_path / "graded.jsonl", graded)
    with FaultServer(told, structured=False) as first, FaultServer(told, structured=False) as second:
        made = []
        for way, spec in (("one", first.spec), ("list", f"{first.url},{gone},{second.url}#judge")):
            recipe = {"recipe": "preference", "source": "graded.jsonl", "near": False, "teacher": f"{spec},server=ours"}
            (tmp_path / "recipe.yaml").write_bytes(orjson.dumps(recipe))
            done = dikast_here("corpus", "build", tmp_path / "recipe.yaml", "--out", tmp_path / way, "--quiet")
            assert done.returncode == 0, done.stderr
            made.append((tmp_path / way / "items.jsonl").read_bytes())
    assert made[0] == made[1]
    assert made[0].count(b"One names more.") == 20
    report = orjson.loads((tmp_path / "list" / "report.json").read_bytes())
    assert report["notes"] == [f"{gone}: down for a while: cannot be reached"]
    assert report["stages"][0]["servers"].keys() == {first.url, second.url}
    with running(FaultServer(), FaultServer()) as engine, serving(Judge(engine, "helpfulness")) as here:
        answered = here.post("/v1/score", {"items": rows(20)}).json()["results"]
        assert [each["verdicts"][0]["status"] for each in answered] == ["ok"] * 20
        assert all(each.served for each in engine._pool.servers)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("http://a:1/v1,http://a:1/v1#m", "is listed twice"),
        ("http://a:1/v1,,http://b:1/v1#m", "between commas is empty"),
        ("http://a:1/v1#m,http://b:1/v1#m", "the model is named once"),
        ("http://a:1/v1,http://b:1/v1", "does not say which model"),
        ("http://a:1/v1,b:1/v1#m", "not an address of a server"),
        ("http://a:1/v1,http://u:secret@b:1/v1#m", "a name or password"),
        ("http://a:1/v1,http://b:1/v1#m,resolve=yes", "goes with one address"),
        ("http://127.0.0.1:1/v1#m,resolve=yes", "is a single machine"),
        ("http://a:1/v1,http://b:1/v1#m,concurency=3", "did you mean 'concurrency'"),
        ("servers:nowhere.txt#m", "nowhere.txt: No such file"),
        ("servers:nowhere.txt", "which file or model"),
        (f"http://{'a' * 64}/v1,http://b:1/v1#m", "not a URL"),
        ("http://a..b/v1#m", "not a URL"),
        ("http://a:1/v1\x1b[31m#m", "not a URL"),
        ("http://a:1/v1\u202e#m", "not a URL"),
    ],
)
def test_lists_that_cannot_be_meant_are_refused(spec: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as raised:
        open_engine(spec)
    assert "secret" not in str(raised.value)


def test_a_line_that_is_no_address_is_named(tmp_path: Path) -> None:
    listed = tmp_path / "servers.txt"
    for text, told in (
        ("", "no address"),
        ("http://a:1/v1\nhtp://b\n", ":2: "),
        ("http://a/v1#m", ":1: .*names a model"),
    ):
        listed.write_text(text)
        with pytest.raises(UserError, match=told):
            open_engine(f"servers:{listed}#m")


@pytest.mark.parametrize(
    "line",
    [
        "sk-proj-abcdefghijklmnop1234567890", "http://user:sk-proj-hidden@b/v1", "http://b/v1?api_key=sk-proj-hidden",
        "http://b/v1#sk-proj-abcdefghijklmnop1234567890", "root:x:0:0:sk-proj-root:/root:/bin/sh", "sk-proj-\x1b[31m",
    ],
)  # fmt: skip
def test_what_a_list_holds_is_not_repeated(line: str, tmp_path: Path) -> None:
    listed = tmp_path / "servers.txt"
    listed.write_text(f"http://a/v1\n{line}\n")
    for spec in (f"servers:{listed}#m", f"http://a/v1,{line}#m"):
        with pytest.raises(UserError) as raised:
            open_engine(spec)
        assert "sk-proj" not in str(raised.value)


def test_a_list_is_a_file_of_bounded_size(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"#" * 4_000_001)
    (tmp_path / "long.txt").write_text("".join(f"http://a/{k}\n" for k in range(200_000)))
    (tmp_path / "itself.txt").write_text(f"servers:{tmp_path}/itself.txt\n")
    os.mkfifo(tmp_path / "pipe")
    for name, told in (
        (".", "not a file"), ("/dev/zero", "not a file"), ("pipe", "not a file"), ("large.txt", "bytes"),
        ("long.txt", "^servers:.*long.txt: 200,000 addresses"), ("itself.txt", "itself.txt:1: not an address"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=told):
            open_engine(f"servers:{tmp_path / name}#m")
    with pytest.raises(UserError, match=r"^engine: 10,001 addresses; the maximum is 10,000"):
        open_engine(",".join(f"http://a/{k}" for k in range(10_001)) + "#m")
    (tmp_path / "marked.txt").write_text("\ufeffhttp://a:1/v1\n", "utf-8")
    open_engine(f"servers:{tmp_path / 'marked.txt'}#m").close()


def test_the_keys_hold_the_list_in_any_order_or_the_name_given_to_it() -> None:
    def identity(spec: str) -> bytes:
        with open_engine(spec) as engine:
            return orjson.dumps(dict(engine.identity()))

    a, b = "http://a:1/v1", "http://b:1/v1"
    assert identity(f"{a},{b}#m") == identity(f"{b},{a}#m") != identity(f"{a}#m")
    assert identity(f"{a},{b}#m,server=ours") == identity(f"{a}#m,server=ours")
