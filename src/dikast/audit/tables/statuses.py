"""The status of each row: whether it has a verdict, and why not; of two orders, both together."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dikast.audit.tables.columns import Words

Codes = NDArray[np.int64]
Masks = NDArray[np.bool_]
OK = "ok"
FORCED = "forced"  # the verdict marker was added for the model
_FINE = frozenset({OK, "stop", "success"})


def failed_before(status: Words | None, n: int) -> Masks:
    """Rows (n,) whose status names a failure; a missing status says nothing."""
    if status is None:
        return np.zeros(n, bool)
    bad = np.array([name.casefold() not in _FINE for name in status.names] or [False])
    return np.asarray((status.codes >= 0) & bad[status.codes])


def statuses(ok: Masks, told: Words | None, more: Mapping[str, Masks]) -> Words:
    """One status a row (n,): `ok`, what its status column says, or the first of `more` that holds."""
    codes = np.where(ok, 0, -1)
    names = {OK: 0}
    if told is not None:
        failed = failed_before(told, len(ok)) & ~ok
        place = np.array([names.setdefault(name, len(names)) for name in told.names] or [0])
        codes[failed] = place[told.codes[failed]]
    for name, mask in more.items():
        if (mask & (codes < 0)).any():
            codes[mask & (codes < 0)] = names.setdefault(name, len(names))
    return Words(codes, list(names))


def joined_status(one: Words, two: Words) -> Words:
    """One status (n,) for two verdicts: `ok` if both are, else that of the first that is not."""
    names = {name: code for code, name in enumerate(one.names)}
    place = np.array([names.setdefault(name, len(names)) for name in two.names] or [0])
    return Words(np.where(one.codes == names[OK], place[two.codes], one.codes), list(names))


def joined_marker(one: Words, two: Words) -> Words:
    """One marker (n,) for two verdicts: `forced` if either was, else that of the first that has one."""
    names = {name: code for code, name in enumerate(one.names)}
    place = np.array([names.setdefault(name, len(names)) for name in two.names] or [0])
    second = np.where(two.codes < 0, -1, place[two.codes])
    forced = names.get(FORCED, -2)
    return Words(np.where((one.codes < 0) | (second == forced), second, one.codes), list(names))


def joined_conflict(one: Words, two: Words) -> Words:
    """One mark (n,) for two verdicts: there if the reply of either contradicts it."""
    return Words(np.where((one.codes >= 0) | (two.codes >= 0), 0, -1), one.names or two.names)
