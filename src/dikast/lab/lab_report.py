"""The findings of the lab as Markdown and as JSON values; all contents come from run folders."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dikast.core.text import counted, in_shell, markdown
from dikast.lab.findings import Finding

NOTICE = (
    "These judges are tiny, and so are their worlds. A claim that fails here may hold at 7 billion parameters, and one"
    " that holds here may fail there. The same files run with a model, data and judge of your own."
)
HOW = (
    "A verdict follows from a rule that was written before the first run: the claim holds, or fails, where the whole 95"
    " % interval lies in the region named; otherwise the size is too small to decide. Intervals of trained judges"
    " combine the variance over items, which all arms and seeds share, with that over seeds. Intervals of other judges"
    " are over items alone: their seeds draw other items, and the verdict is about that one judge. A judge trained with"
    " one seed has no interval, and no verdict: what it shows may be chance alone. A claim also fails where an effect"
    " is there and smaller than its rule asks."
)


def to_markdown(found: Sequence[Finding], before: str = "") -> str:
    """The page of all experiments: a table of verdicts, then each with its arms, effects and cost.

    `before`: an earlier page, whose experiments stay as they are told there where no seed of them is done in `found`,
    unless their definition is another one there.
    """
    told = {each.experiment.name: (_row(each), "\n".join(_section(each))) for each in found}
    defined = {each.experiment.name: _defined(each) for each in found}
    done = {each.experiment.name for each in found if each.seeds}
    for name, parts in _told_before(before).items():
        if name not in done and defined.get(name, "") in parts[1]:
            told[name] = parts
    lines = [
        "# The lab",
        "",
        f"**{NOTICE}**",
        "",
        HOW,
        "",
        "Written by `dikast lab report`; nothing is edited by hand.",
    ]
    lines += ["", "| experiment | claim | effect that decides | verdict | seeds |", "|---|---|---|---|---|"]
    lines += [told[name][0] for name in sorted(told)]
    for name in sorted(told):
        lines += ["", told[name][1]]
    return "\n".join(lines) + "\n"


def _told_before(page: str) -> dict[str, tuple[str, str]]:
    """The row and the section of each experiment of a page that `to_markdown` wrote."""
    head, *sections = page.rstrip("\n").split("\n\n## ")
    rows = {row.split("]", 1)[0].removeprefix("| ["): row for row in head.splitlines() if row.startswith("| [")}
    found = {section.split("\n", 1)[0]: f"## {section}" for section in sections}
    return {name: (row, found[name]) for name, row in rows.items() if name in found}


def _defined(each: Finding) -> str:
    return f"Definition: `{each.experiment.hash[:12]}`."


def _row(each: Finding) -> str:
    told = each.experiment.written
    shown = "; ".join(f"{name}: {each.effects[name]:.3f}" for name in deciding(each) if name in each.effects)
    return (
        f"| [{each.experiment.name}](#{each.experiment.name}) | {markdown(told.claim)} | {shown} |"
        f" **{each.verdict}** | {seeds_done(each)} |"
    )


def _section(each: Finding) -> Iterator[str]:
    told = each.experiment.written
    yield f"## {each.experiment.name}"
    yield ""
    yield f"Claim: {markdown(told.claim)}"
    yield ""
    yield f"Source: {markdown(told.source)}. {seeds_named(each)}. {_defined(each)}"
    if told.note:
        yield ""
        yield markdown(told.note)
    yield ""
    why = f" ({markdown(each.why)})" if each.why else ""
    yield f"**{each.verdict[0].upper()}{each.verdict[1:]}**{why}. {markdown(rule(each))}"
    if not each.seeds:
        return
    sets = list(dict.fromkeys((held, figure) for _, held, figure in each.figures))
    yield ""
    yield "| arm | " + " | ".join(f"{figure} on {held} [95 % interval]" for held, figure in sets) + " |"
    yield "|---|" + "---|" * len(sets)
    for arm in each.experiment.arms:
        known = [each.figures.get((arm, held, figure)) for held, figure in sets]
        cells = ["" if cell is None else f"{cell:.3f}, n {cell.n:,}" for cell in known]
        yield f"| {markdown(arm)} | {' | '.join(cells)} |"
    yield ""
    yield "| effect | figure | set | difference [95 % interval] | responses | left out | how |"
    yield "|---|---|---|---|---|---|---|"
    for name, effect in told.effects.items():
        found = each.effects[name]
        how = "; ".join(filter(None, (found.method, found.note)))
        what = f"{markdown(name)}: {markdown(effect.in_words())}"
        yield (
            f"| {what} | {effect.figure} | {markdown(effect.held)} | {found:.3f} |"
            f" {found.n:,} | {found.dropped:,} | {how} |"
        )
    yield ""
    yield markdown(reversals_told(each))
    yield ""
    yield cost_told(each)
    if unasked := unasked_told(each):
        yield ""
        yield markdown(unasked)


def seeds_done(each: Finding) -> str:
    """How many seeds were done: `3`, or `2 of 3` where the experiment names more."""
    done, due = len(each.seeds), len(each.experiment.written.seeds)
    return f"{done}" if done >= due else f"{done} of {due}"


def seeds_named(each: Finding) -> str:
    """The seeds that were done, and those that are left."""
    left = [str(seed) for seed in each.experiment.written.seeds if seed not in each.seeds]
    still = f"; not done: {', '.join(left)}" if left and each.seeds else ""
    return f"Seeds: {', '.join(map(str, each.seeds)) or 'none'}{still}"


def deciding(each: Finding) -> list[str]:
    """The names of the effects that the rule is about."""
    return list(dict.fromkeys([*each.experiment.written.holds, *each.experiment.written.fails]))


def rule(each: Finding) -> str:
    """The written rule in words."""
    told = each.experiment.written
    holds = " and ".join(f"{name} lies {region.in_words()}" for name, region in told.holds.items())
    fails = " and ".join(f"{name} lies {region.in_words()}" for name, region in told.fails.items())
    return f"Holds if {holds}; fails if {fails}."


def reversals_told(each: Finding) -> str:
    """The slices in which an effect has the other sign, in one sentence; without an interval none can be told."""
    if all(math.isnan(effect.low) for effect in each.effects.values()):
        return "Reversals: not looked for, since no effect has an interval."
    told = [f"{one.effect} in {one.slice}: {one.estimate:.3f}" for one in each.reversals]
    looked = f"{counted(each.slices, 'slice')} by aspect and phrase of the rubric, intervals widened for their number"
    return f"Reversals (of {looked}): {'; '.join(told) or 'none'}."


def cost_told(each: Finding) -> str:
    """What was taught and graded, in one sentence."""
    cost = each.cost
    taught = f"taught {cost['taught_examples']:,.0f} examples of {cost['taught_tokens']:,.0f} tokens"
    graded = f"graded {cost['graded_items']:,.0f} responses in {cost['graded_tokens']:,.0f} tokens"
    return f"Cost: {f'{taught}; ' if cost['taught_examples'] else ''}{graded}."


def unasked_told(each: Finding) -> str:
    """Which questions got no reply, and why, and what to do about damaged items; "" where all did."""
    told = "; ".join(f"{why} ({n:,})" for why, n in sorted(each.unasked.items()))
    if not told:
        return ""
    folders = " ".join(map(in_shell, each.damaged))
    cure = f" To make these items and ask about them again: `rm -r {folders}`, then `lab run` as before."
    return f"No reply to {counted(sum(each.unasked.values()), 'question')}: {told}.{cure if folders else ''}"


def to_dict(each: Finding) -> dict[str, Any]:
    """A finding as JSON values, with the seconds that the page leaves out since they differ from run to run."""
    told = each.experiment.written
    return {
        "name": each.experiment.name, "hash": each.experiment.hash, "claim": told.claim, "source": told.source,
        "verdict": each.verdict, "why": each.why, "rule": rule(each),
        "seeds": list(each.seeds), "seeds_due": list(told.seeds),
        "effects": {name: estimate.to_dict() for name, estimate in each.effects.items()},
        "figures": [
            {"arm": arm, "held": held, "figure": figure, **value.to_dict()}
            for (arm, held, figure), value in each.figures.items()
        ],
        "reversals": [
            {"effect": one.effect, "slice": one.slice, **one.estimate.to_dict()} for one in each.reversals
        ],
        "slices": each.slices, "cost": dict(each.cost), "unasked": dict(each.unasked),
    }  # fmt: skip
