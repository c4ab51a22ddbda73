"""`corpus card`: a data card in Markdown; every number comes from `quality.check`."""

import math
from collections.abc import Iterable
from urllib.parse import quote

from dikast.corpus.quality.check import Check
from dikast.corpus.quality.diversity import RUN, SAMPLE, TEMPLATED, WORDS
from dikast.corpus.quality.mutual_information import Information

_FAMILIES = 10


def card(check: Check, *, title: str = "", plots: str = "") -> str:
    """The card: size, scores, information in surface features, rubrics, duplicates, leakage, contradictions.

    `plots` is the path of the plots, relative to the card; "" for none.
    """
    parts = [f"# {title or check.path}", _size(check)]
    if plots:
        parts.append(f"![Scores, mean words by score, and what surface features tell]({quote(plots)})")
    if check.scores:
        parts.append("## Scores\n\n" + _table(
            ("score", "responses", "share", "mean words"),
            ((s, f"{n:,}", f"{n / check.scored:.1%}", f"{check.words[s]:.1f}") for s, n in _sorted(check)),
        ))  # fmt: skip
    if check.preferences:
        rows = ((p, f"{n:,}", f"{n / check.pairs_n:.1%}") for p, n in sorted(check.preferences.items()))
        parts.append("## Preferences\n\n" + _table(("better", "pairs", "share"), rows))
    for name, found in (("the score", check.information), ("the preference (A minus B)", check.pairs)):
        if found:
            parts.append(
                f"## What surface features tell about {name}\n\n{_bits_note(found, check)}\n\n{_informations(found)}"
            )
    if check.rubrics:
        parts.append("## Rubrics\n\n" + _rubrics(check))
    if check.topics:
        parts.append("## Topics, families, languages\n\n" + _shares(check))
    if check.diversity:
        parts.append("## Diversity\n\n" + _diversity(check))
    rows = (
        (name, f"{each.found:,} of {each.n:,}", "; ".join(each.examples[:2]))
        for name, each in sorted(check.findings.items())
    )
    parts.append("## Duplicates, leakage, contradictions\n\n" + _table(("what", "found", "first places"), rows))
    if check.against:
        told = ", ".join(f"`{path}` ({n:,} records)" for path, n in check.against.items())
        parts.append(f"The data was checked for leakage against {told}.")
    else:
        parts.append("Leakage was not checked: no benchmark file was given (`--against`).")
    return "\n\n".join(parts) + "\n"


def _size(check: Check) -> str:
    return (
        f"{check.records:,} records, {check.responses:,} responses ({check.scored:,} with a score), {check.pairs_n:,}"
        f" pairs with a preference, {check.images:,} images."
    )


def _sorted(check: Check) -> list[tuple[str, int]]:
    return sorted(check.scores.items(), key=lambda each: float(each[0]))


def _bits_note(found: list[Information], check: Check) -> str:
    sample = f" (a sample of {check.sampled:,})" if check.sampled else ""
    return (
        f"Mutual information in bits, n = {found[0].n:,}{sample}, beside its mean and 95 % quantile over"
        f" {found[0].draws} shuffles of the scores (seed {check.seed}). Plug-in estimates are too high by about"
        " the shuffled mean."
    )


def _informations(found: list[Information]) -> str:
    def row(each: Information) -> tuple[str, ...]:
        interval = f"{_number(each.r)} [{_number(each.r_low)}, {_number(each.r_high)}]"
        return each.feature, _number(each.bits), _number(each.null), _number(each.null_high), _number(each.p), interval

    return _table(("feature", "bits", "shuffled", "95 %", "p", "Pearson r [95 %]"), map(row, found))


def _rubrics(check: Check) -> str:
    told = check.rubrics
    scales = ", ".join(f"{name} ({n})" for name, n in told["scales"].items())
    return (
        f"{told['distinct']:,} distinct rubrics over {told['records']:,} records: {told['fewest']:,} to"
        f" {told['most']:,} records each, median {told['median']:g}. Scales: {scales}."
        f" Every level described: {told['every_level_described']:,}."
        f" At least two different scores occur under {told['with_two_scores_or_more']:,} of them."
    )


def _shares(check: Check) -> str:
    told, n = check.topics, check.topics["instructions"]
    largest = "; ".join(
        f"{each['name'] or 'no words of its own'} ({each['instructions'] / n:.1%})" for each in told["largest"]
    )
    parts = [
        f"{told['n']:,} topics of {n:,} distinct instructions, as many as {told['effective']:.1f} of equal size"
        f" (exponential of the entropy); a topic is what shares rare words. The largest: {largest}."
    ]
    if check.families:
        rows = (
            (each["name"], f"{each['rows']:,}", f"{each['share']:.1%}",
             "undefined" if each["mean_score"] is None else f"{each['mean_score']:.2f}")
            for each in check.families[:_FAMILIES]
        )  # fmt: skip
        more = f" The largest {_FAMILIES} of {len(check.families):,}:" if len(check.families) > _FAMILIES else ""
        parts.append(f"Seed families, a row of several counting a part for each.{more}")
        parts.append(_table(("family", "rows", "share", "mean score"), rows))
    spoken = ", ".join(f"{name} ({n:,})" for name, n in check.languages.most_common(_FAMILIES))
    return "\n\n".join([*parts, f"Languages of the responses: {spoken}."])


def _diversity(check: Check) -> str:
    told = check.diversity
    rows = (
        (kind, f"{each.texts:,}", f"{each.words:,}", *map(_number, each.distinct), _number(each.shared),
         "yes" if each.templated else "no")
        for kind, each in told.items()
    )  # fmt: skip
    table = _table(("texts", "n", "words", "distinct-1", "distinct-2", "distinct-3", "shared", "templated"), rows)
    return (
        f"Of at most {SAMPLE:,} distinct texts of each kind: the shares of distinct words, pairs and triples of words"
        f" among the first {WORDS:,} words, and the share of runs of {RUN} words that another of these texts has too."
        f" Texts are called templated where less than {TEMPLATED:.0%} of their pairs are distinct.\n\n{table}"
    )


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )
