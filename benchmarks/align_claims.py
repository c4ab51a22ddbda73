"""What a judge that writes findings makes of the policy's claims, beside what is true of the picture."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.align_figures import Rows
from dikast.alignment.round_report import BOUNDS
from dikast.core.item import Item
from dikast.core.part import text_of
from dikast.core.records import read_items
from dikast.core.runs.run import Run
from dikast.worlds.domains.scenes import Scenes
from dikast.worlds.replies import claims_of_sentences, reply_gold, scene_of, sentences_of

_SPOKEN_OF = {"colour": "shape", "size": "shape", "shape": "colour"}  # kind of claim: what names the thing


class Kind(NamedTuple):
    """A claim that the rubric weighs: is the thing that it speaks of in the picture, and is the claim wrong?"""

    there: bool
    wrong: bool


KINDS = (Kind(True, False), Kind(True, True), Kind(False, True))


def claims_table(rounds: Iterable[Path], prompts: Mapping[str, Item]) -> list[str]:
    """Claims of rounds by kind, and the share of each that the judge found right, wrong, and wrong at no cost.

    Of a judge whose feedback has `Claim:` and `Finding:` lines. prompts: by id, with the scenes that they show.
    """
    found: Counter[tuple[Kind, str]] = Counter()
    for folder in rounds:
        items = {item.id: item for item in read_items(str(folder / "samples.jsonl"))}
        for verdict in Run(folder / "judge").combined:
            item = items[verdict.question.item]
            findings = _findings(verdict.feedback)
            for sentence in sentences_of(text_of(item.responses[verdict.question.responses[0]])):
                kind = _kind(sentence, prompts[item.id])
                if kind is not None and sentence.casefold() in findings:
                    found[kind, findings[sentence.casefold()]] += 1
    whole = sum(found.values())
    columns = ("the thing spoken of", "the claim", "share of claims", "found right", "wrong", "wrong, at no cost")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for kind in KINDS:
        n = sum(found[kind, finding] for finding in ("right", "wrong", "free"))
        shares = [found[kind, finding] / n if n else float("nan") for finding in ("right", "wrong", "free")]
        lines.append(f"| {'in the picture' if kind.there else 'not there'} | {'wrong' if kind.wrong else 'right'} | "
                     f"{n / max(whole, 1):.2f} | {' | '.join(f'{share:.2f}' for share in shares)} |")  # fmt: skip
    return [
        *lines,
        "",
        f"n = {whole:,} claims in the replies of round 1, of a colour, a size or a shape that the prompt's "
        "rubric weighs.",
    ]


def stages_table(stages: Mapping[str, Iterable[Path]], prompts: Mapping[str, Item]) -> list[str]:
    """What a policy says after each stage of its training. stages: by name, files of replies to `prompts` by id."""
    columns = ("after the stage", "replies", "gold", "words", "sentences unreadable", "claims", "right",
               "wrong, of a thing in the picture", "wrong, of one that is not there")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for name, files in stages.items():
        items = [item for file in files for item in read_items(str(file))]
        texts = [(prompts[item.id], text_of(item.responses[0])) for item in items]
        golds = [gold for prompt, told in texts if (gold := reply_gold(told, prompt.meta)) is not None]
        good = Rows([item.id for item in items], [gold.goodness for gold in golds]).mean(BOUNDS["gold"])
        words = sum(len(told.split()) for _, told in texts) / len(texts)
        unreadable = sum(gold.unreadable for gold in golds) / max(sum(gold.sentences for gold in golds), 1)
        kinds = Counter(_kind(sentence, prompt) for prompt, told in texts for sentence in sentences_of(told))
        claims = sum(kinds[kind] for kind in KINDS)
        shares = " | ".join(f"{kinds[kind] / max(claims, 1):.2f}" for kind in KINDS)
        lines.append(f"| {name} | {len(texts)} | {good:.3f} | {words:.1f} | {unreadable:.3f} | {claims:,} | {shares} |")
    return lines


def _kind(sentence: str, prompt: Item) -> Kind | None:
    claim, scene = claims_of_sentences().get(sentence.casefold()), scene_of(prompt.meta)
    weighed = prompt.meta["spec"]["weights"]
    if claim is None or scene is None or claim.kind not in _SPOKEN_OF or claim.aspect not in weighed:
        return None
    there = any(getattr(thing, _SPOKEN_OF[claim.kind]) == claim.args[0] for thing in scene.things)
    return Kind(there, Scenes().measure(claim, scene).metric > 0)


def _findings(feedback: str) -> dict[str, str]:
    """By claim in lower case: `right`, `wrong`, or `free`, wrong in what the rubric does not weigh."""
    found, claim = dict[str, str](), ""
    for line in feedback.splitlines():
        name, _, told = line.partition(":")
        if name == "Claim":
            claim = told.strip().casefold()
        elif name == "Finding" and claim:
            right = told.strip().startswith("right")
            found[claim] = "right" if right else "free" if "not weighed" in told else "wrong"
    return found
