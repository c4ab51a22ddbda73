"""Length bias on a bench: what longer responses gain beyond what gold gives them."""

import numpy as np

from dikast.audit.audit import judged_scores
from dikast.audit.estimate import Estimate
from dikast.audit.statistics.intervals import bounded_mean
from dikast.audit.statistics.length_bias import length_slope
from dikast.audit.tables.choices import FIRST, NONE, SECOND
from dikast.audit.tables.load import Data
from dikast.audit.tables.paired import paired
from dikast.benches.definition import Bench
from dikast.core.errors import UserError


def length_bias(bench: Bench, data: Data) -> tuple[str, Estimate, str]:
    """The name, the value and the rule of the length bias of an audit's rows, which hold lengths.

    Of pairs: how much oftener the judge takes the longer response than gold does (than half of the time, without
    gold). Of scores: by how much the error rises when the response is twice as long; without gold, the score.
    """
    plan, length = data.plan, data.numbers["length"]
    if bench.pairs:
        given = paired(data)
        final = given.gold if given.final is None else given.final
        known = np.isin(final, (FIRST, SECOND)) & (length != 0) & ~np.isnan(length)
        longer = np.where(length > 0, SECOND, FIRST)
        if (given.gold != NONE).any():
            known &= np.isin(given.gold, (FIRST, SECOND))
            due, than = (given.gold == longer).astype(np.float64), "than gold takes it, where both decide"
        else:
            due, than = np.full(len(data), 0.5), "than half of the time, where it decides"
        more = ((final == longer) - due)[known]
        value = bounded_mean(more, plan.level, given.clusters(known), dropped=int((~known).sum()))
        return "length bias: the longer response", value, f"how much oftener the judge takes it {than}"
    read, _ = judged_scores(data)
    if read is None:
        raise UserError(f"{plan.file}: names no column of scores")
    gold = read.gold if data.plan.gold else np.zeros(len(data))
    known = ~np.isnan(read.score) & ~np.isnan(gold) & (length > 0)
    value = length_slope(read.score[known], gold[known], length[known], plan.level, read.clusters(known))
    what = "error (score minus gold)" if data.plan.gold else "score"
    return "length bias: per doubling", value, f"by how many units the {what} rises when the response is twice as long"
