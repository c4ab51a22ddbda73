"""What docs/prompts.md says is so."""

import re
from pathlib import Path

import pytest

from dikast.core.scale import Scale
from dikast.prompts.dialects import DIALECTS
from dikast.prompts.format import builtin_formats, load_format
from dikast.prompts.parse import parse_reply

PAGE = Path(__file__).parents[2] / "docs" / "prompts.md"
TEXT = PAGE.read_text("utf-8")
ROW = re.compile(r"^\| `([\w-]+)` \| `(.+?)` \| `(.+?)` \|$", re.M)


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (yaml,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
    (tmp_path / "brief.yaml").write_text(yaml, "utf-8")
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), {})


def test_every_format_and_dialect_is_listed_as_it_is() -> None:
    for name in builtin_formats():
        form = load_format(name)
        assert f"| `{name}` | {form.kind} | `{form.dialect}` | {form.about}" in TEXT
    for dialect in DIALECTS.values():
        assert f"| `{dialect.name}` | {dialect.about} |" in TEXT


def test_the_examples_of_dialects_are_accepted_and_refused() -> None:
    rows = ROW.findall(TEXT)
    assert {row[0] for row in rows} == set(DIALECTS)
    for dialect, accepted, refused in rows:
        pairs = dialect in ("arena", "prose", "mt-bench")
        scale = None if pairs else Scale.parse("0-100") if dialect == "critic" else Scale.parse("1-5")
        assert parse_reply(dialect, accepted, scale).label is not None, accepted
        assert parse_reply(dialect, refused, scale).label is None, refused
