"""The counter of code lines and syntax nodes, on a module counted by hand."""

from benchmarks.house import size_of

MODULE = '''"""About."""

# a comment
X = 1


@wraps
class One:
    """Say."""

    def two(self):
        """Say
        more."""
        return """a
        b"""
'''


def test_lines_and_nodes_by_hand() -> None:
    # lines: X = 1; @wraps; class; def; return over two lines
    # nodes: Module; Assign Name Store Constant; ClassDef, decorator Name Load;
    # FunctionDef arguments arg Return Constant
    assert size_of(MODULE) == (6, 1 + 4 + 3 + 5)
    assert size_of(MODULE, "One") == (5, 3 + 5)
    assert size_of(MODULE, "One.two") == (3, 5)
    assert size_of(MODULE, "Nobody") == (0, 0)
    assert size_of(MODULE.replace("X = 1", "X = (\n    1\n)")).nodes == size_of(MODULE).nodes
