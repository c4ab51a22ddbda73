"""Lines of `verdicts.jsonl`: sealed, written again by others, changed by a bit; which of them count."""

import json
import os
import random
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
import pytest

from dikast.core.errors import DataError, RunError
from dikast.core.runs.current_verdicts import RunReader, current_records
from dikast.core.runs.examine import DAMAGED, examine_run, repair_run
from dikast.core.runs.lines import open_line, open_record, seal, seal_record
from dikast.core.runs.run_files import CHECKSUMS, changed_files, check, put_in_place, record, write_checked
from dikast.core.runs.schema import PreferenceLine, misfit
from dikast.core.scale import Scale
from dikast.core.verdict import Hashes, Question, Status, Verdict

SCALES = {"r" * 32: Scale.parse("1-10")}


def verdict(key: int = 0, **more: Any) -> Verdict:
    given: dict[str, Any] = {
        "key": f"{key:032x}",
        "question": Question(f"item {key}", "kind"),
        "status": Status.OK,
        "label": "10",
        "score": 10.0,
        "feedback": "größer, and a \N{SNOWMAN}",
        "distribution": {"2": 1e-05, "10": 0.99999},
        "hashes": Hashes("j", "f", "r" * 32, "i"),
    }
    return Verdict(**(given | more))


def failure(key: int = 0) -> Verdict:
    return verdict(key, status=Status.ENGINE_ERROR, label=None, score=None, distribution=None)


def opened(raw: bytes) -> tuple[dict[str, Any], str]:
    return open_line(raw, path="verdicts.jsonl", line=7, scales=SCALES)


def test_a_sealed_line_is_json_with_its_checksum_at_the_end() -> None:
    line, plain = seal(verdict()), orjson.dumps(verdict().record())
    assert line.endswith(b"\n")
    assert orjson.loads(line) == {**orjson.loads(plain), "crc": f"{zlib.crc32(plain):08x}"}
    assert opened(line) == (orjson.loads(plain), "verified")


@pytest.mark.parametrize(
    "again",
    [
        json.dumps,
        lambda value: json.dumps(value, separators=(",", ":")),
        lambda value: json.dumps(value, ensure_ascii=False),
        lambda value: json.dumps(value, sort_keys=True, indent=None),
    ],
)
def test_lines_of_another_json_writer_are_understood(again: Any) -> None:
    line = seal(verdict())
    record, state = opened(again(orjson.loads(line)).encode() + b"\n")
    assert record == orjson.loads(orjson.dumps(verdict().record()))
    assert state == ("rewritten" if list(record) == sorted(record) else "verified")


def test_every_changed_bit_of_a_sealed_line_is_found() -> None:
    line = seal(verdict())
    for at in range(len(line) - 1):  # the line break is another test's
        for bit in range(8):
            flipped = bytearray(line)
            flipped[at] ^= 1 << bit
            with pytest.raises(DataError, match=r"verdicts.jsonl:7: a damaged record .* --repair"):
                opened(bytes(flipped))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"score": "5"}, "score is not a number: '5'"),
        ({"score": True}, "score is not a number: True"),
        ({"label": "77", "score": 77.0}, "'77' is not on the scale 1-10"),
        ({"label": "9"}, "the score 10.0 is not that of the label '9'"),
        ({"label": 10}, "label is not text: 10"),
        ({"label": None}, "either a label or a status"),
        ({"status": "unparsed"}, "either a label or a status"),
        ({"status": "fine"}, "status is not one of ok, .*: 'fine'"),
        ({"key": "x"}, "32 characters of text"),
        ({"question": {"item": 3, "criterion": "c", "responses": [0]}}, "question.item is not text: 3"),
        ({"question": {"item": "a", "criterion": "c", "responses": []}}, "which response or pair"),
        ({"question": {"item": "a", "criterion": "c", "responses": [-1]}}, r"responses\[0\] is not a whole number of"),
        (
            {"question": {"item": "a", "criterion": "c", "responses": [2**64 - 1]}},
            r"responses\[0\] is not a whole number of",
        ),
        ({"question": {"item": "a", "criterion": "c", "responses": [0, 1]}}, "none of a, b, tie"),
        ({"distribution": [1]}, r"distribution is not an object: \[1\]"),
        ({"distribution": {"1": 7}}, "hold probabilities"),
        ({"usage": [1]}, r"usage is not an object: \[1\]"),
        ({"usage": {"tokens_in": -5}}, "usage.tokens_in is not a whole number of at least 0: -5"),
        ({"usage": {"tokens_out": 1.5}}, "usage.tokens_out is not a whole number of at least 0: 1.5"),
        ({"usage": {"cost": -0.5}}, "usage.cost is not an amount: -0.5"),
        (
            {"attempts": [{"how": "ask", "raw": "", "status": "ok", "usage": {"tokens_cached": -1}}]},
            r"attempts\[0\].usage.tokens_cached is not a whole number of at least 0: -1",
        ),
        ({"mood": "good"}, "does not know: mood; is Dikast out of date"),
    ],
)
def test_impossible_records_without_a_checksum_are_told(change: dict[str, Any], told: str) -> None:
    record = orjson.loads(orjson.dumps(verdict().record()))
    assert opened(orjson.dumps(record) + b"\n")[1] == "unsealed"  # as versions before checksums wrote it
    with pytest.raises(DataError, match=told):
        opened(orjson.dumps(record | change) + b"\n")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"choice": None}, "has the choice None and the status 'ok'"),
        ({"status": "unparsed"}, "has the choice 'a' and the status 'unparsed'"),
        ({"outcome": "b"}, "has the outcome 'b', where its choice and its orders give 'a'"),
        ({"consistent": False}, "has the outcome 'a', where its choice and its orders give 'disagree'"),
    ],
)
def test_preferences_that_contradict_themselves_are_told(change: dict[str, Any], told: str) -> None:
    line = {
        "item": "x", "criterion": "c", "pair": [0, 1], "choice": "a", "status": "ok", "orders": [], "reason": "",
        "consistent": True, "outcome": "a",
    }  # fmt: skip
    said = misfit(PreferenceLine)
    assert said(line) == said({key: value for key, value in line.items() if key != "outcome"}) == ""
    assert told in said(line | change)


def run_of(folder: Path, *lines: bytes) -> Path:
    (folder / "verdicts.jsonl").write_bytes(b"".join(lines))
    return folder


def test_a_question_counts_once_whatever_stands_twice(tmp_path: Path) -> None:
    good, other, failed = seal(verdict(1)), seal(verdict(1, label="2", score=2.0)), seal(failure(1))
    for lines in ([good, good], [failed, failed, good], [good, failed], [failed, good, other, good]):
        reader = RunReader(run_of(tmp_path, *lines, seal(failure(2)), seal(failure(2))))
        found = [(record["key"][-1], record["status"], record["label"]) for record, _ in reader]
        assert found == [("1", "ok", "10"), ("2", "engine_error", None)]
        assert reader.repeated == len(lines)  # one of these counts, and one of the two failures does not


def test_with_keys_repeated_lines_count_once_and_others_are_stale(tmp_path: Path) -> None:
    run_of(tmp_path, *(seal(verdict(k)) for k in (3, 1, 2, 1, 3, 9)))
    (tmp_path / "keys.txt").write_text("".join(f"{k:032x}\n" for k in (1, 2, 3)))
    reader = RunReader(tmp_path)
    assert [line for _, line in reader] == [1, 2, 3]
    assert (reader.repeated, reader.stale) == (2, 1)


def test_checksums_of_files_name_what_has_changed(tmp_path: Path) -> None:
    write_checked(tmp_path / "gold.jsonl", b"gold\n")
    write_checked(tmp_path / "summary.json", b"{}\n")
    assert changed_files(tmp_path) == {}
    (tmp_path / "gold.jsonl").write_bytes(b"golf\n")
    (tmp_path / "summary.json").unlink()
    assert list(changed_files(tmp_path)) == ["gold.jsonl", "summary.json"]
    with pytest.raises(DataError, match=r"gold.jsonl: the file has changed .* run the command that made it again"):
        check(tmp_path, "gold.jsonl")
    (tmp_path / CHECKSUMS).write_bytes(b"{")
    with pytest.raises(DataError, match=r"checksums.json: the file is damaged; remove it"):
        check(tmp_path, "gold.jsonl")
    (tmp_path / CHECKSUMS).unlink()
    check(tmp_path, "gold.jsonl")  # a folder of before checksums


def test_a_run_killed_before_its_file_is_renamed_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_checked(tmp_path / "gold.jsonl", b"old\n")
    part = tmp_path / "gold.jsonl.part"
    part.write_bytes(b"new\n")

    def killed(made: str | Path, target: str | Path) -> None:
        if Path(made) == part:
            raise KeyboardInterrupt
        Path(made).rename(target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        put_in_place({part: tmp_path / "gold.jsonl"})
    monkeypatch.undo()
    check(tmp_path, "gold.jsonl")
    put_in_place({part: tmp_path / "gold.jsonl"})
    check(tmp_path, "gold.jsonl")
    assert (tmp_path / "gold.jsonl").read_bytes() == b"new\n"


def test_two_kills_before_the_rename_leave_a_whole_folder(tmp_path: Path) -> None:
    write_checked(tmp_path / "summary.json", b"first\n")
    for content in (b"second\n", b"third\n"):
        record(tmp_path, {"summary.json": f"{zlib.crc32(content):08x}"})  # and then it is killed
        check(tmp_path, "summary.json")
    write_checked(tmp_path / "summary.json", b"third\n")
    check(tmp_path, "summary.json")


def test_any_record_can_be_sealed_and_every_changed_bit_is_found() -> None:
    line = seal_record({"step": 3, "loss": 0.25})
    assert open_record(line) == {"step": 3, "loss": 0.25}
    assert open_record(b'{"step":3}\n') == {"step": 3}  # as versions before checksums wrote it
    assert open_record(json.dumps(orjson.loads(line)).encode() + b"\n") == {"step": 3, "loss": 0.25}
    for at in range(len(line) - 1):
        for bit in range(8):
            flipped = bytearray(line)
            flipped[at] ^= 1 << bit
            with pytest.raises(ValueError, match=r"checksum|JSON|str is not valid|object"):
                open_record(bytes(flipped))


def test_examine_and_repair_lose_nothing(tmp_path: Path) -> None:
    lines = [seal(verdict(k)) for k in range(6)]
    lines[2] = lines[2].replace(b"snow", b"blow").replace(b'"10"', b'"11"')
    lines[4] = json.dumps(orjson.loads(lines[4]), sort_keys=True).encode() + b"\n"
    lines.insert(5, b"not json\n")
    run_of(tmp_path, *lines)
    write_checked(tmp_path / "judge.lock.json", b"{}")
    health = examine_run(tmp_path)
    assert [problem.line for problem in health.problems] == [3, 6]
    assert (health.lines, health.verified, health.rewritten) == (7, 4, 1)
    with pytest.raises(DataError, match=r"verdicts.jsonl:3"):
        list(current_records(tmp_path))
    assert repair_run(tmp_path) == 2
    assert (tmp_path / DAMAGED).read_bytes() == lines[2] + lines[5]
    assert examine_run(tmp_path).sound
    assert [record["key"][-1] for record in current_records(tmp_path)] == ["0", "1", "3", "4", "5"]
    assert repair_run(tmp_path) == 0
    assert (tmp_path / DAMAGED).read_bytes() == lines[2] + lines[5]


def test_a_run_that_is_being_written_is_not_repaired(tmp_path: Path) -> None:
    from dikast.judging.ledger import Ledger

    with Ledger(tmp_path) as ledger:
        ledger.append(verdict())
        with pytest.raises(RunError, match="another process is writing"):
            repair_run(tmp_path)


def test_random_damage_to_a_line_never_raises_anything_else() -> None:
    rng, line = random.Random(5), seal(verdict())
    for _ in range(3000):
        raw = bytearray(line)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(raw) - 1)
            raw[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3)).replace(b"\n", b" ")
        raw = bytearray(bytes(raw).rstrip(b"\n") + b"\n")
        with suppress(DataError):
            assert opened(bytes(raw)) == opened(line)  # a space more between two members


def test_a_conflict_stands_in_a_sealed_line_only_where_there_is_one() -> None:
    assert b"conflict" not in seal(verdict())
    torn = verdict(conflict=True)
    record, how = open_line(seal(torn), path="v", line=1)
    assert (record["conflict"], how) == (True, "verified")
    again = json.dumps(record | {"crc": orjson.loads(seal(torn))["crc"]}).encode() + b"\n"
    assert open_line(again, path="v", line=1)[1] == "verified"
    damaged = orjson.dumps(record | {"conflict": "yes"}) + b"\n"
    with pytest.raises(DataError, match="conflict"):
        open_line(damaged, path="v", line=1)
