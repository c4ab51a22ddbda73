"""Whether scores are as high as gold, which no correlation says: it is the same for scores that are all too high."""

import math

from dikast.audit.estimate import Estimate
from dikast.audit.rendering import Audit
from dikast.audit.results import Agreement, Baselines
from dikast.surface.report.conclusions.light import CLOSE, MARGIN, Conclusion, figure_told

OFF = 0.1  # the mean error, as a share of the scale, up to which scores are as high as gold


def with_levels(found: Conclusion, audit: Audit, figure: str, who: str) -> Conclusion:
    """A green conclusion on scores, amber where they rank as gold but are not shown to lie where it lies: the interval
    of the mean error reaches beyond `OFF`, or agreement by the quadratic kappa, which also falls where scores use
    less or more of the scale than gold, is not as high as correlation has to be.

    `who` ranks ("gold", "people"). Where score and gold have no scale in common, only ranks are spoken of.
    """
    agreement = audit.result(Agreement)
    if agreement is None:
        return found
    ranks = f"Ranks closely as {who} does" if who == "gold" else f"Ranks as {who} do"
    if agreement.ends is None:
        if "exact" not in agreement.statistics and not audit.plan.get("unscaled"):
            told = f"{ranks}; whether scores are as high is not known, since no scale is named. {figure}"
            return Conclusion("amber", told, "name their scale with --scale, or say --scale none")
        told = f"{ranks}; how high scores are is not compared, since they are not given on the scale of gold. {figure}"
        return Conclusion("green", told, found.why)
    if told := _height(agreement.statistics["bias"].value, agreement.ends):
        return Conclusion("amber", f"{ranks}, but {told}. {figure}", f"the interval of the mean error reaches beyond "
                          f"{OFF:.0%} of the scale")  # fmt: skip
    if told := _spread(audit, agreement):
        return Conclusion("amber", f"{ranks}, but {told}. {figure}", _why_spread(audit))
    return found


def _height(error: Estimate, ends: tuple[float, float]) -> str:
    """How much higher or lower than gold scores are; "" where the whole interval lies within the bound."""
    most = OFF * (ends[1] - ends[0])
    low, high = (error.value, error.value) if math.isnan(error.low) else (error.low, error.high)
    if -most <= low and high <= most:
        return ""
    scale = f"on a scale from {ends[0]:g} to {ends[1]:g}"
    if low <= 0 <= high:
        return f"whether scores are as high cannot be told: mean error {figure_told(error)} {scale}"
    size = error if error.value > 0 else Estimate(-error.value, error.n, -error.high, -error.low)
    return f"scores {figure_told(size)} {'higher' if error.value > 0 else 'lower'} {scale}"


def _spread(audit: Audit, agreement: Agreement) -> str:
    """What the quadratic kappa says against the levels of scores; "" where it says nothing against them."""
    people = _people(audit)
    if people is not None:
        judge, among = people
        if math.isnan(judge.low) or judge.low >= among.value - MARGIN:
            return ""
        told = f"quadratic kappa with one person {figure_told(judge)}, among people {figure_told(among)}"
        return f"by other levels: {told}" if judge.high < among.value else f"perhaps by other levels: {told}"
    kappa = agreement.statistics.get("quadratic_kappa")
    if kappa is None or math.isnan(kappa.value.value):
        return ""
    alone = math.isnan(kappa.value.low)
    low, high = (kappa.value.value,) * 2 if alone else (kappa.value.low, kappa.value.high)
    if low >= CLOSE:
        return ""
    by = "by other levels" if high < CLOSE else "perhaps by other levels"
    return f"{by}: quadratic kappa {figure_told(kappa.value)}"


def _why_spread(audit: Audit) -> str:
    if _people(audit) is not None:
        return f"the low end of its quadratic kappa lies more than {MARGIN:g} below that of one rater against another"
    return f"the interval of the quadratic kappa reaches below {CLOSE:g}"


def _people(audit: Audit) -> tuple[Estimate, Estimate] | None:
    beside = audit.result(Baselines)
    return beside.people("quadratic_kappa") if beside is not None else None
