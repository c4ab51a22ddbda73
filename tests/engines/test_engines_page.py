"""What docs/engines.md and docs/mocks.md say of specs, mocks and the kit is so."""

import re
from pathlib import Path

from dikast.engines.mock import MOCKS
from dikast.testing import RULES, conformance

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("engines.md", "mocks.md"))


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_examples_run() -> None:
    for title in ("Specs", "Mock judges", "Replay", "A fault-injecting server", "The conformance kit"):
        blocks = re.findall(r"```python\n(.*?)```", section(title), re.S)
        assert blocks
        for block in blocks:
            exec(compile(block, title, "exec"), {"__name__": "page"})


def test_every_mock_stands_in_the_table_with_its_settings() -> None:
    told = {row[0].strip("`"): row[2] for row in rows("Mock judges")}
    assert told.keys() == MOCKS.keys()
    for name, (_, settings) in MOCKS.items():
        if name not in ("oracle", "failing"):
            stated = dict(part.strip("` ").split("=") for part in told[name].split(",") if "=" in part)
            assert stated == {key: f"{value:g}" if value != str(value) else value for key, value in settings.items()}


def test_every_rule_stands_in_the_table_in_order() -> None:
    assert [row[0].strip("`") for row in rows("The conformance kit")] == list(RULES)
    assert f"{conformance.WINDOW:,}" in section("The conformance kit")
