"""The columns of a run's table (`run_table.RunTable`), by whose names its exports are known when they are read."""

from collections.abc import Collection

CONTENT = ("instruction", "response", "response_a", "response_b", "reference", "context")
ITEM = ("id", *CONTENT, "gold")
TOLD = (
    "judge", "criterion", "response_index", "index_a", "index_b", "label", "score", "expected", "choice", "status",
    "reason", "total", "mass", "marker", "conflict", "logit_a", "position_bias", "distribution", "feedback", "claims",
    "samples", "tokens_in", "tokens_out", "cost",
)  # fmt: skip
OF_AN_ORDER = ("label", "score", "status", "distribution", "feedback")
JOINT = ("mean", "median", "spread", "majority")  # of a panel
ORDERS = ("shown", "swapped")
SIDES = ("a", "b")


def is_own(name: str) -> bool:
    """Whether a column of this name, with any number of a judge or name of an order behind it, is one of ours."""
    stem, _, end = name.rpartition("_")
    if end.isdigit():
        return is_own(stem)
    ours = (*ITEM, *TOLD, *JOINT)
    return name in ours or (end in (*ORDERS, *SIDES) and stem in OF_AN_ORDER)


def told_by_a_judge(columns: Collection[str]) -> set[str]:
    """The columns that hold verdicts, where `columns` are those of an exported run; empty for any other table."""
    stems = {name.rstrip("0123456789").rstrip("_") for name in columns}
    if not ({"criterion", "status"} <= stems and {"judge", "score", "choice"} & stems):
        return set()
    return {name for name in columns if name not in ITEM and is_own(name)}
