"""One row for each question of a run: samples joined, the retest beside them, items as clusters."""

import numpy as np
from numpy.typing import NDArray

from dikast.audit.tables.columns import Words, group_codes
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import taken_again
from dikast.audit.tables.refs import NAMED
from dikast.audit.tables.run_rows import JOINT
from dikast.core.text import counted, in_shell


def one_row_each(data: Data) -> Data:
    """One row for each question that a run asked several times: the samples joined, where there is a joint verdict.

    Otherwise (a run of single responses that is still going) the first answers. The second against the first are the
    test-retest.
    """
    sample = data.numbers.get("sample")
    if sample is None or not (sample != 0).any():
        return data
    asked = ("item", "criterion", *(("pair first", "pair second") if data.plan.pairwise else ("response",)))
    codes, _ = group_codes([data.words[name] for name in asked])

    def rows_of(number: int) -> NDArray[np.int64]:
        """The row of each question's sample with that number, -1 without one."""
        at = np.full(int(codes.max(initial=-1)) + 1, -1, np.int64)
        at[codes[sample == number]] = np.flatnonzero(sample == number)
        return at

    first, second, joint = rows_of(0), rows_of(1), rows_of(JOINT)
    whole = bool((joint >= 0).all())
    data.notes.append(
        f"each question was asked {counted(int(sample.max()) + 1, 'time')}: "
        + ("the samples joined are the judge" if whole else "the first answers count")
        + "; the second against the first are the retest"
    )
    kept = data.rows(sample == (JOINT if whole else 0))
    place = codes[sample == (JOINT if whole else 0)]
    if data.plan.pairwise and "retest" not in kept.words:
        kept.words["retest"] = taken_again(data, second[place])
        kept.words["retested"] = taken_again(data, first[place])
    elif not data.plan.pairwise and "retest" not in kept.numbers and "score" in data.numbers:
        for role, rows in (("retest", second[place]), ("retested", first[place])):
            kept.numbers[role] = np.where(rows < 0, np.nan, data.numbers["score"][rows])
    return kept


def clustered(data: Data) -> Data:
    """Rows of one item of a run, or of one id of a table, drawn together, where nothing else was asked for."""
    for role in [each for each in data.words if each.startswith(NAMED)]:
        _note_repeats(data, role.removeprefix(NAMED), data.words.pop(role).codes)
    if data.plan.cluster:
        return data
    name = "item" if "item" in data.words else "id"
    groups = data.words.get("item") or _by_id(data.keys)
    if groups is None or (among := len(np.unique(groups.codes))) == len(groups.codes):
        return data
    data.words["cluster"] = groups
    column = name if name == "item" or not data.plan.key else ",".join(data.plan.key)
    same = "" if "," in column else f" (as with --cluster {column})"
    data.notes.append(
        f"{counted(len(groups.codes), 'row')} of {counted(among, name)}: rows of an {name} are drawn together"
        f"{same}; --cluster none resamples each by itself"
    )
    return data


def _note_repeats(data: Data, column: str, codes: NDArray[np.int64]) -> None:
    """Note that rows share values of a column that seems to name the items, and say what to do if they are the same."""
    known = codes[codes >= 0]
    if (among := len(np.unique(known))) < len(known):
        data.repeats = column, among
        data.notes.append(
            f"{counted(len(known), 'row')} share {among:,} values of {column!r}, and intervals take rows as "
            f"independent: if rows of one value belong together, --cluster {in_shell(column)} draws them together"
        )


def _by_id(keys: list[str]) -> Words | None:
    """The ids of rows as groups, None where no id stands twice; a row without an id is a group of its own."""
    named = list(filter(None, keys))
    if len(set(named)) == len(named):
        return None
    names: dict[object, int] = {}
    codes = [names.setdefault(key or i, len(names)) for i, key in enumerate(keys)]
    return Words(np.array(codes, np.int64), [str(name) for name in names])
