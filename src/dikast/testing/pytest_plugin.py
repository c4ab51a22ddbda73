"""The pytest plugin: the fixture `dikast_judge`, whose verdicts are kept in pytest's cache between runs.

Loaded in every pytest session of an environment that has Dikast, so nothing heavy is imported until a test asks.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dikast.engines.base import Engine
    from dikast.judging.judge import Judge

_COUNTS = pytest.StashKey[list[int]]()  # asked, remembered, tokens


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--dikast-judge` and `--dikast-rubric`, also as settings of the project."""
    group = parser.getgroup("dikast", "judges of language models")
    group.addoption("--dikast-judge", metavar="SPEC", help="judge of the fixture dikast_judge, such as openai:MODEL")
    group.addoption("--dikast-rubric", metavar="RUBRIC", help="its rubric: a built-in name or a file")
    parser.addini("dikast_judge", "judge of the fixture dikast_judge where --dikast-judge is not given", default="")
    parser.addini("dikast_rubric", "its rubric where --dikast-rubric is not given", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Reset the counts."""
    config.stash[_COUNTS] = [0, 0, 0]


@pytest.fixture(scope="session")
def dikast_judge(request: pytest.FixtureRequest) -> Iterator[Callable[..., "Judge"]]:
    """Makes judges that remember their verdicts: `dikast_judge(engine=None, rubric=None, **options)`.

    Parameters as of `dikast.Judge`. By default, engine and rubric are those of the command line or of the project's
    settings. A question that was answered in an earlier session is not asked again until the judge, its prompt, the
    rubric or the item changes; `pytest --cache-clear` forgets all. Engines are shared, and closed with the session.
    """
    from dikast.engines.base import close_engine
    from dikast.engines.spec import open_engine
    from dikast.testing.remembering import RememberingJudge, VerdictMemory

    config = request.config
    cache = getattr(config, "cache", None)  # missing with -p no:cacheprovider
    memory = VerdictMemory(Path(cache.mkdir("dikast")) / "verdicts.jsonl" if cache is not None else None)
    engines: dict[str, Engine] = {}

    def judge(engine: "str | Engine | None" = None, rubric: Any = None, **options: Any) -> "Judge":
        spec = engine if engine is not None else _setting(config, "dikast_judge")
        if not spec:
            raise pytest.UsageError("no judge: give --dikast-judge SPEC, or set dikast_judge in pytest's configuration")
        if isinstance(spec, str):
            if spec not in engines:
                engines[spec] = open_engine(spec)
            opened, named = engines[spec], spec
        else:
            opened, named = spec, ""
        rubric = rubric if rubric is not None else _setting(config, "dikast_rubric") or None
        return RememberingJudge(opened, memory, named, rubric, **options)

    yield judge
    for opened in engines.values():
        close_engine(opened)
    _add(config, (memory.asked, memory.remembered, memory.tokens))


def _setting(config: pytest.Config, name: str) -> str:
    return str(config.getoption(name) or config.getini(name))


def _add(config: pytest.Config, found: Iterable[int]) -> None:
    before = config.stash[_COUNTS]
    config.stash[_COUNTS] = [a + b for a, b in zip(before, found, strict=True)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands its counts to the session that prints them."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["dikast"] = session.config.stash[_COUNTS]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the counts of a worker of pytest-xdist."""
    found = getattr(node, "workeroutput", {}).get("dikast", (0, 0, 0))
    _add(node.config, found)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The number of questions asked in this session, if any."""
    asked, remembered, tokens = config.stash[_COUNTS]
    if asked or remembered:
        from dikast.core.text import counted

        terminalreporter.write_line(
            f"dikast: {counted(asked, 'question')} asked ({tokens:,} tokens), {remembered:,} answered from the cache"
        )
