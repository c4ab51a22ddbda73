"""The pytest plugin in sessions of its own: what is asked, what is remembered, and what is said."""

import importlib
import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from dikast.testing.faults import FaultServer

pytest_plugins = ["pytester"]

PLUGIN = "dikast.testing.pytest_plugin"
INSTALLED = any(each.value == PLUGIN for each in importlib.metadata.entry_points(group="pytest11"))
GRADED = """
    from dikast.testing import assert_grade

    def test_a_number(dikast_judge):
        assert_grade(dikast_judge(), instruction="Name a prime.", response="7", at_least=4)

    def test_another(dikast_judge):
        assert_grade(dikast_judge(), instruction="Name a prime.", response="11", at_least=4)
"""


def session(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """A session in its own process; `-p` stands in for an entry point that is not installed yet."""
    return pytester.runpytest_subprocess(*([] if INSTALLED else ["-p", PLUGIN]), *arguments)


def configured(server: FaultServer, *, rubric: str = "helpfulness") -> str:
    return f"[pytest]\ndikast_judge = {server.spec}\ndikast_rubric = {rubric}\n"


def test_the_entry_point_leads_to_the_plugin() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"dikast": PLUGIN}
    assert importlib.import_module(PLUGIN).dikast_judge


def test_what_was_answered_is_not_asked_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GRADED)
    with FaultServer("Right.\nVerdict: 5") as server:
        pytester.makeini(configured(server))
        first = session(pytester)
        first.assert_outcomes(passed=2)
        first.stdout.re_match_lines([r"dikast: 2 questions asked \(\d+ tokens\), 0 answered from the cache"])
        asked = sum(server.tries.values())
        again = session(pytester)
        again.assert_outcomes(passed=2)
        again.stdout.fnmatch_lines(["dikast: 0 questions asked (0 tokens), 2 answered from the cache"])
        assert sum(server.tries.values()) == asked
        session(pytester, "--cache-clear").assert_outcomes(passed=2)
        assert sum(server.tries.values()) == 2 * asked


def test_another_answer_or_rubric_is_another_question(pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(GRADED)
    with FaultServer("Right.\nVerdict: 5") as server:
        pytester.makeini(configured(server))
        session(pytester).assert_outcomes(passed=2)
        path.write_text(path.read_text().replace('"11"', '"13"'))
        session(pytester).stdout.fnmatch_lines(["dikast: 1 question asked*1 answered from the cache"])
        session(pytester, "--dikast-rubric", "correctness").stdout.fnmatch_lines(["dikast: 2 questions asked*"])


def test_a_remembered_failure_still_fails_and_shows_the_feedback(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GRADED)
    with FaultServer("Off by one.\nVerdict: 2") as server:
        pytester.makeini(configured(server))
        for asked in (2, 0):
            done = session(pytester)
            done.assert_outcomes(failed=2)
            done.stdout.fnmatch_lines(["*the judge gave 2, at least 4 was wanted*", "*feedback: Off by one.*"])
            done.stdout.fnmatch_lines([f"dikast: {asked} questions asked*"])


def test_what_nobody_answered_is_asked_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GRADED)
    with FaultServer("Right.\nVerdict: 5") as server:
        gone = server.spec
    judge = f"{gone},retries=0"
    session(pytester, "--dikast-judge", judge, "--dikast-rubric", "helpfulness").assert_outcomes(failed=2)
    done = session(pytester, "--dikast-judge", judge, "--dikast-rubric", "helpfulness")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*no verdict, where at least 4 was wanted (engine_error*"])
    done.stdout.fnmatch_lines(["dikast: 2 questions asked*"])


@pytest.mark.slow
def test_pairs_panels_of_rubrics_and_spoilt_lines(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        from dikast.testing import assert_grade, assert_prefers

        def test_a_pair(dikast_judge):
            judge = dikast_judge("mock:oracle,r=1", "helpfulness")
            assert_prefers(judge, instruction="Name a prime.", responses=["7", "9"], gold=[5, 1], winner="a")
            assert_prefers(judge, instruction="Name a prime.", responses=["7", "9"], gold=[5, 1], winner="a")

        def test_another_rubric(dikast_judge):
            first, second = dikast_judge("mock:constant", "helpfulness"), dikast_judge("mock:constant", "correctness")
            assert first.engine is second.engine
            assert_grade(second, instruction="Name a prime.", response="7", reference="7", at_least=0)
    """)
    done = session(pytester)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["dikast: 3 questions asked*2 answered from the cache"])
    (memory,) = pytester.path.rglob("verdicts.jsonl")
    lines = memory.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    memory.write_bytes(lines[0] + lines[1].replace(b'"ok"', b'"no"') + lines[2][:40])
    session(pytester).stdout.fnmatch_lines(["dikast: 2 questions asked*"])


@pytest.mark.slow
def test_it_works_without_a_cache_and_in_several_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GRADED)
    with FaultServer("Right.\nVerdict: 5") as server:
        pytester.makeini(configured(server))
        session(pytester, "-p", "no:cacheprovider").assert_outcomes(passed=2)
        assert not list(pytester.path.rglob("verdicts.jsonl"))
        done = session(pytester, "-p", "xdist", "-n", "2")
        done.assert_outcomes(passed=2)
        done.stdout.fnmatch_lines(["dikast: 2 questions asked*0 answered from the cache"])
        session(pytester, "-n", "2").stdout.fnmatch_lines(["dikast: 0 questions asked*2 answered from the cache"])


def test_without_a_judge_it_says_how_to_name_one(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GRADED)
    done = session(pytester)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*no judge: give --dikast-judge SPEC, or set dikast_judge in pytest's configuration*"])
    assert "dikast:" not in done.stdout.lines[-1]


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    heavy = {"numpy", "scipy", "PIL", "rich", "jinja2", "aiohttp"}
    code = f"import sys, {PLUGIN}; print(sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
