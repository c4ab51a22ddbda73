"""Runs a notebook's code cells in one namespace, without Jupyter, and prints the outputs of each as JSON.

    python run_notebook.py NOTEBOOK

The last expression of a cell is its result, as in Jupyter: `text/plain` and, where the value has one, `text/html`.
"""

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of one cell, in the form of a notebook file."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _split(printed.getvalue())})
    if value is not None:
        data = {"text/html": _split(value._repr_html_())} if hasattr(value, "_repr_html_") else {}
        data["text/plain"] = _split(repr(value))
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    cells = json.loads(Path(sys.argv[1]).read_text("utf-8"))["cells"]
    shared: dict[str, Any] = {"__name__": "__main__"}
    found = [run_cell("".join(cell["source"]), shared) for cell in cells if cell["cell_type"] == "code"]
    sys.stdout.write(json.dumps(found))
