"""Plans and summaries for people (and as JSON for machines) on standard output."""

from typing import Any

from dikast.core.text import counted
from dikast.judging.label_scores import bounded_told
from dikast.surface.terminal import echo, echo_json

_MOST_CRITERIA = 12  # shown on a terminal


def show_plans(plans: dict[str, dict[str, Any]], *, as_json: bool) -> None:
    """What a run would ask; of a panel, what each judge would be asked, by its spec."""
    if as_json:
        echo_json({"plans": plans} if len(plans) > 1 else next(iter(plans.values())))
        return
    for spec, summary in plans.items():
        if len(plans) > 1:
            echo(f"== {spec}")
        _show_plan(summary["plan"])


def _show_plan(plan: dict[str, Any]) -> None:
    echo(f"{counted(plan['items'], 'item')}, {counted(plan['questions'], 'question')}")
    for note in plan["notes"]:
        echo(f"note: {note}")
    echo(f"{plan['answered']:,} answered, {plan['missing']:,} to ask")
    if plan["unaskable"]:
        first = ", the first" if plan["unaskable"] > len(plan["bad_items"]) else ""
        echo(f"{plan['unaskable']:,} of them cannot be asked and would get the status bad_item{first}:")
        for told in plan["bad_items"]:
            echo(f"  {told}")
    if plan["missing"]:
        echo(
            f"about {plan['tokens_in']:,} tokens in (text only, at 4 characters a token),"
            f" at most {plan['tokens_out']:,} tokens out"
            + (f" (including {thinking:,} a question for reasoning)" if (thinking := plan.get("thinking")) else "")
            + ("" if plan["cost"] is None else f", at most {plan['cost']:,.4f} in the currency of the price table")
            + (", at a price that is unknown (--price IN,OUT)" if plan.get("price_unknown") else "")
        )


def show_summary(summary: dict[str, Any], *, as_json: bool) -> None:
    """What a run found: failures first, then labels, preferences, cost."""
    if as_json:
        echo_json(summary)
        return
    if summary["kind"] == "panel":
        for spec, one in summary["runs"].items():
            echo(f"== {spec}")
            _show_one(one)
        echo(f"== panel of {len(summary['judges'])}")
        echo(f"unanimous   {_rate(summary['unanimous'])} of the {summary['answered_by_all']:,} questions all answered")
        if summary["mean_spread"]["n"]:
            echo(f"mean spread {_value(summary['mean_spread'])}")
        if "mean_spread_goodness" in summary:
            echo(f"mean spread {_value(summary['mean_spread_goodness'])} of goodness, 0 worst and 1 best")
        return
    _show_one(summary)


def _show_verdicts(summary: dict[str, Any]) -> None:
    """How many verdicts there are, and where they come from."""
    if "replay" in summary:
        changes = summary["replay"]
        fields = ", ".join(f"{name} {count:,}" for name, count in changes["fields"].items())
        echo(f"replayed    {counted(changes['verdicts'], 'verdict')}, {changes['changed']:,} changed")
        if fields:
            echo(f"            {fields}")
    elif "merged" in summary:
        echo(f"verdicts    {summary['verdicts']:,}, of {len(summary['merged']):,} runs")
    else:
        echo(f"verdicts    {summary['verdicts']:,} ({summary['asked']:,} asked now)")


def _show_one(summary: dict[str, Any]) -> None:
    _show_verdicts(summary)
    for note in summary.get("notes", ()):
        if note.startswith("columns: "):
            continue  # told before the first question
        echo(f"note        {note}")
    echo(f"no verdict  {_rate(summary['failure_rate'])} {_counts(summary['status'], skip='ok')}".rstrip())
    for reason, count in summary["failures"].items():
        echo(f"            {count:,} x {reason}" if count == 1 else f"            {count:,} x such as {reason}")
    if summary["forced_share"]["n"]:
        echo(f"forced      {_rate(summary['forced_share'])} of the verdicts had their marker added by Dikast")
    if (conflicts := summary.get("conflict_share")) and conflicts["value"]:
        echo(f"conflicts   {_rate(conflicts)} of the verdicts are contradicted by another in the same reply")
    for criterion, found in list(summary["criteria"].items())[:_MOST_CRITERIA]:
        echo(f"{criterion}: {_mean(found)}{_counts(found['labels'])}")
    pairwise = summary.get("kind") == "pairwise" and "ranking" not in summary
    by_pairs = (summary.get("preferences") or {}).get("criteria", {}) if pairwise else {}
    one_order = (summary.get("preferences") or {}).get("one_order", False)
    in_order = ", in one order" if one_order else ""
    for criterion, counts in list(by_pairs.items())[:_MOST_CRITERIA] if len(by_pairs) > 1 else ():
        echo(f"{criterion}: {_counts(counts)} (pairs{in_order})")
    if (more := max(len(summary["criteria"]), len(by_pairs)) - _MOST_CRITERIA) > 0:
        echo(f"and {more:,} more criteria; --json and summary.json have all")
    if "combined" in summary:
        combined = summary["combined"]
        echo(
            f"samples of each response joined: {combined['verdicts']:,},"
            f" without a verdict {_rate(combined['failure_rate'])}"
        )
        for criterion, found in combined["criteria"].items():
            echo(f"{criterion}: {_mean(found)}{_counts(found['labels'])}")
    if "totals" in summary:
        totals = summary["totals"]
        echo(
            f"total       {_value(totals['mean_total'])}, 0 worst and 1 best;"
            f" {totals['without_total']:,} without a total"
        )
    if "ranking" in summary:
        _show_ranking(summary["ranking"])
    elif "preferences" in summary:
        _show_pairs(summary["preferences"])
    graded = summary.get("ranking", {}).get("grades")
    echo(f"tokens      {_spent(summary['usage'])}")
    if graded:
        echo(f"            {_spent(graded['usage'])}, of the grades")


def _spent(usage: dict[str, Any]) -> str:
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:.4f}"
    hits = f", {usage['tokens_cached'] / usage['tokens_in']:.1%}" if usage["tokens_cached"] else ""
    cached = f"{usage['tokens_cached']:,} cached{hits}"
    return f"{usage['tokens_in']:,} in ({cached}), {usage['tokens_out']:,} out{cost}"


def _show_ranking(ranking: dict[str, Any]) -> None:
    """How many items have an order and by which comparisons; what the order of a pair does; agreement with gold."""
    schedules = _counts(ranking["schedules"])
    echo(f"ranked      {ranking['ranked']:,} of {counted(ranking['items'], 'item')}; schedule {schedules or 'none'}")
    if grades := ranking.get("grades"):
        told = f"graded      {counted(grades['verdicts'], 'response')}"
        echo(f"{told}, without a verdict {_rate(grades['failure_rate'])}")
    if ranking["missing"]:
        echo(f"            {ranking['missing']:,} of {ranking['comparisons']:,} comparisons have no value")
    for kind, bias in ranking["slot_bias"].items():
        unit = {"logit": " nats", "probability": " of probability", "verdict": " of a win"}[kind]
        sd = ranking["noise"][kind]["sd"]
        noise = "unknown" if sd is None else f"{sd:.3f}{unit}"
        echo(f"first slot  favoured by {_value(bias, unit)}; noise of a comparison {noise}")
    if ranking["cycles"]["n"]:
        echo(f"cycles      {_rate(ranking['cycles'])} of the {ranking['cycles']['n']:,} triples with three preferences")
    if gold := ranking.get("gold"):
        n = gold["first_is_best"]["n"]
        beside = f"at random {gold['at_random']:.2%}, n = {n:,} of {ranking['ranked']:,}: those that gold tells apart"
        echo(f"gold        first response is the best by gold {_rate(gold['first_is_best'])} ({beside})")
        echo(f"            kendall_tau_b, mean over items {_value(gold['kendall_tau_b'])}")


def _show_pairs(preferences: dict[str, Any]) -> None:
    """Joint outcomes, or those of the one order that was asked, and what the order does to them."""
    one_order = preferences.get("one_order", False)
    choices = _counts(preferences["choices"]) or "none has a verdict"
    echo(f"pairs       {preferences['pairs']:,}{', in one order' if one_order else ''}: {choices}")
    if failed := sum(preferences["failed"].values()):
        echo(f"            {failed:,} got no verdict")
    if one_order:
        echo("            position bias cannot be separated from a preference for a response (--one-order)")
    if preferences["order_consistency"]["n"]:
        echo(f"orders agree {_rate(preferences['order_consistency'])} of the pairs judged in both orders")
        _show_flips(preferences)
    if preferences["position_bias_nats"]["n"]:
        echo(f"first slot  favoured by {_value(preferences['position_bias_nats'], ' nats')}")
        if told := bounded_told(preferences):
            echo(f"            {told}")


def _show_flips(preferences: dict[str, Any]) -> None:
    """Where the orders disagree: which slot won both times, or a tie in one of them."""
    flips = [
        f"{told} {_rate(preferences[name])}"
        for name, told in (
            ("flips_to_first_slot", "first slot both times"),
            ("flips_to_second_slot", "second slot both times"),
            ("flips_with_a_tie", "a tie in one order"),
        )
        if preferences[name]["value"]
    ]
    if flips:
        echo(f"disagree    {'; '.join(flips)}")


def _mean(found: dict[str, Any]) -> str:
    """The mean of a criterion, of goodness where it has several scales."""
    if found["mean_score"]:
        return f"mean {_value(found['mean_score'])}; "
    return f"mean goodness {_value(found['mean_goodness'])}; " if found.get("mean_goodness") else ""


def _rate(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "undefined (n = 0)"
    return f"{rate['value']:.2%} [{rate['low']:.2%}, {rate['high']:.2%}]"


def _value(rate: dict[str, Any], unit: str = "") -> str:
    if rate["value"] is None:
        return "undefined (n = 0)"
    if rate["low"] is None:
        alone = "one value" if rate["n"] == 1 else "all alike"
        return f"{rate['value']:z.3f}{unit} (n = {rate['n']:,}; no interval: {alone})"
    return f"{rate['value']:z.3f} [{rate['low']:z.3f}, {rate['high']:z.3f}]{unit} (n = {rate['n']:,})"


def _counts(counts: dict[str, int], skip: str = "") -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if name != skip and count)
