"""The example of docs/report.md is run."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "report.md"


def test_the_example_passes() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    run = names["test_the_answer_is_polite"]
    assert callable(run)
    run()
