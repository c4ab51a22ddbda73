"""Splits by rubric: rubrics that share wording go to the same split."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dikast.core.errors import RunError
from dikast.corpus.dedup.shared_wording import alike, components

_NAME = re.compile(r"[a-z][a-z0-9_]*")


def wrong_splits(splits: Mapping[str, float]) -> str:
    """The mistake in the `splits` of a recipe, "" if there is none."""
    if not splits:
        return ""
    bad = [name for name in splits if not _NAME.fullmatch(name)]
    if bad:
        return f"the name of a split consists of lower-case letters, digits and _, got {bad[0]!r}"
    if len(splits) < 2 or not (min(splits.values()) > 0 and abs(sum(splits.values()) - 1) <= 1e-6):  # NaN too
        return "write at least two splits whose shares are above 0 and sum to 1, such as {train: .9, test: .1}"
    return ""


def split(
    wordings: Sequence[str], sizes: Sequence[int], shares: Mapping[str, float], *, seed: int, likeness: float
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    """The split of each wording, as an index into `shares`; and figures for the report.

    Wordings that share at least `likeness` of their word trigrams, by an exact comparison of all pairs, are linked, and
    each connected component stays together. Components are assigned from the largest to the smallest, equal ones in
    seeded order, each to the split that lacks most rows. RunError if a split is left empty.
    """
    of = components(len(wordings), alike(wordings, likeness))
    rows = np.bincount(of, weights=sizes)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    order = order[np.argsort(-rows[order], kind="stable")]
    names, lacking = list(shares), np.array(list(shares.values())) * rows.sum()
    chosen = np.zeros(len(rows), np.int64)
    for each in order:
        chosen[each] = lacking.argmax()
        lacking[chosen[each]] -= rows[each]
    found = chosen[of]
    counts = np.bincount(found, weights=sizes, minlength=len(names))
    if not counts.all():
        empty = ", ".join(name for name, n in zip(names, counts, strict=True) if not n)
        raise RunError(
            f"splits: nothing is left for {empty}: {len(wordings)} rubrics make {len(rows)} groups that share wording,"
            f" the largest with {rows.max():.0f} of {rows.sum():.0f} rows; raise 'apart' (now {likeness:g}) or ask for"
            " more rubrics. The items are written, and running again asks nothing"
        )
    told = {
        name: {
            "rows": int(n), "share": float(n / counts.sum()), "rubrics": int((found == i).sum()),
            "components": int((chosen == i).sum()),
        }
        for i, (name, n) in enumerate(zip(names, counts, strict=True))
    }  # fmt: skip
    return found, {"apart": likeness, "largest_component": int(np.bincount(of).max()), "splits": told}
