import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "core.md"
FILE = re.compile(r"^`([\w.-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text("utf-8")
    files = FILE.findall(page)
    assert [name for name, _ in files] == ["kind.yaml", "answer.yaml", "items.jsonl", "pairs.csv"]
    for name, text in files:
        Path(name).write_text(text, encoding="utf-8")
    blocks = CODE.findall(page)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)


def test_the_page_lists_the_built_in_rubrics_and_the_limits() -> None:
    from dikast import builtin_rubrics
    from dikast.core.media import decoding
    from dikast.core.media import media_files as media
    from dikast.core.records.files import MOST_LINE_BYTES

    page = PAGE.read_text("utf-8")
    assert ", ".join(f"`{name}`" for name in builtin_rubrics()) in page
    assert f"{decoding.MOST_PIXELS:,} pixels" in page
    assert f"a side under {decoding.LEAST_SIDE} pixels" in page
    assert f"{media.MOST_FILE_BYTES // 2**20} MiB" in page
    assert f"at most {media.MOST_FETCHED_BYTES // 2**20} MiB" in page
    assert f"{media.FETCH_TIMEOUT:.0f} seconds" in page
    assert f"more than {MOST_LINE_BYTES // 2**20} MiB" in page


def test_every_test_that_the_docs_name_exists() -> None:
    home = Path(__file__).parents[2]
    named = {
        each
        for page in (home / "docs").rglob("*.md")
        for each in re.findall(r"tests/[a-z_/]+\.py", page.read_text("utf-8"))
    }
    assert len(named) > 20
    assert not [each for each in sorted(named) if not (home / each).is_file()]
