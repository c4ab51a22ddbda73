import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

DOCS = Path(__file__).parents[2] / "docs"
PAGE = "\n".join((DOCS / name).read_text("utf-8") for name in ("audit.md", "audit-rules.md"))


def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audit_app: typer.Typer, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"^`([\w.]+)`:\n\n```(?:csv|yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        Path(name).write_text(text, encoding="utf-8")
    consoles = re.findall(r"^```console\n\$ dikast (.*?)\n(.*?)\.\.\.\n```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(consoles) == 3
    for command, output in consoles:
        shown = CliRunner().invoke(audit_app, shlex.split(command), catch_exceptions=False).stdout
        assert shown.startswith(output)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "a page of the audit", "exec"), names)
    assert capsys.readouterr().out.startswith("r = 0.")


def test_every_table_is_on_the_page() -> None:
    room = Path(__file__).parents[2] / "src" / "dikast" / "audit"
    source = "".join(path.read_text("utf-8") for path in room.rglob("*.py"))
    made = set(re.findall(r'\btable\(\s*"([a-z -]+)"', source))
    assert len(made) > 20
    listed = PAGE.partition("## What is measured")[2].partition("Tie rules")[0]
    missing = {name for name in made if f"`{name}`" not in listed}
    assert missing <= {"means"}, missing
