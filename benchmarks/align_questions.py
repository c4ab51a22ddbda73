"""`python -m benchmarks.align_questions`, by `make align-questions`: the side questions of `make align`.

Each arm differs from the `scout` arm of the first seed in one thing; policy, prompts, held-out prompts and seed are the
same. One seed: intervals are over held-out prompts, paired with the `scout` arm, and say nothing of other seeds. It
goes on from what `make align` left under `--out` and makes what is missing; finished arms are kept.
"""

import argparse
import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.align import (
    BUDGETS,
    MOST_KL,
    Budget,
    aligned,
    chosen_rate,
    finished,
    policy_of,
    prompts_of,
    run,
    training_of,
    world,
    write,
)  # fmt: skip
from benchmarks.align_best_of import SIZES, curve
from benchmarks.align_clips import SHOWN, asked, claims_table, clips_of, clips_table
from benchmarks.align_figures import HOW, Arm, Rows, pairs_table, spent, states_table
from dikast.alignment.align_options import AlignOptions
from dikast.alignment.round_pairs import grades_of
from dikast.audit.statistics.intervals import mean_estimate
from dikast.core.item import Item
from dikast.core.runs.run import Run
from dikast.core.verdict import Verdict
from dikast.engines.base import Completion, Engine, Request
from dikast.engines.scout import Scout
from dikast.engines.wrapper import Wrapper
from dikast.worlds.scoring.penalty import level_of
from dikast.worlds.settings import Settings

BEGIN = "<!-- figures: python -m benchmarks.align_questions --budget {} --write -->"
_LOST = re.compile(r", (\d+) lost, \d+ in all$", re.M)
_NOTHING = -60.0  # the logarithm of a probability that is none


def points_lost(findings: str) -> int:
    """What the rubric takes off for all that was found: the costs that stand beside the findings, added up here.

    Neither the judge's running total nor its own sum nor its verdict is read.
    """
    return sum(map(int, _LOST.findall(findings)))


class ByClaims(Wrapper):
    """`scout`, with a grade that its findings alone decide: 1 / (1 + points lost) of the scale's length.

    It orders replies by the points that they lose. Questions and replies are those of `scout`; what it says after its
    findings is not read.
    """

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The replies, with another distribution over the labels."""
        open_ = dict[str, Request]()

        def sent() -> Iterator[Request]:
            for request in requests:
                open_[request.key] = request
                yield request

        for done in self.engine.stream(sent()):
            request = open_.pop(done.key)
            yield (
                done
                if done.label_logprobs is None
                else dataclasses.replace(done, label_logprobs=_graded(1 / (1 + points_lost(done.text)), request))
            )

    def identity(self) -> Mapping[str, Any]:
        """The engine's own, and what its grades come from."""
        return {**self.engine.identity(), "reward": "points lost by findings"}


def _graded(goodness: float, request: Request) -> dict[str, float]:
    """Log-probabilities of the labels, on the worst and the best alone, whose mean has this goodness (0 to 1)."""
    assert request.readout is not None
    labels = request.readout.labels  # the lowest value first
    worst, best = labels[0], labels[-1]
    if request.about["lower_is_better"]:
        worst, best = best, worst
    shares = {worst: 1 - goodness, best: goodness}
    return {label: math.log(share) if (share := shares.get(label, 0.0)) > 0 else _NOTHING for label in labels}


class BeforeClaims(Wrapper):
    """`scout`, made to grade the response as a whole before it has looked at any claim."""

    def stream(self, requests: Iterable[Request]) -> Iterator[Completion]:
        """The grades; what falls on the labels is made to sum to 1, since `scout` would rather begin with a claim."""
        for done in self.engine.stream(map(self._at_once, requests)):
            told = done.label_logprobs
            if told is not None:
                whole = math.log(math.fsum(map(math.exp, told.values())) or 1.0)
                told = {label: max(value - whole, _NOTHING) for label, value in told.items()}
            yield dataclasses.replace(done, label_logprobs=told)

    def identity(self) -> Mapping[str, Any]:
        """The engine's own, and when it grades."""
        return {**self.engine.identity(), "reward": "before claims"}

    def _at_once(self, request: Request) -> Request:
        return dataclasses.replace(
            request, readout=request.readout and dataclasses.replace(request.readout, generate=False)
        )


@dataclass(frozen=True)
class Change:
    """What an arm does otherwise than `scout`: another judge, other settings of the training, another budget."""

    told: str
    engine: Callable[[Engine], Engine] | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    budget: Callable[[Budget], Budget] = lambda usual: usual


def _rounds(usual: Budget, *, times: float) -> Budget:
    """As many times the rounds, with as many steps in all: the learning rate's schedule is that of each round."""
    rounds = round(usual.rounds * times) or 1
    return dataclasses.replace(usual, rounds=rounds, epochs=usual.epochs * usual.rounds / rounds)


QUESTIONS = {
    "claims": Change("reward: points lost by the findings, in the same replies of the judge", ByClaims),
    "beta-.5": Change("beta .5 instead of .1", training={"beta": 0.5}),
    "beta-.02": Change("beta .02", training={"beta": 0.02}),
    "samples-2": Change("2 replies a prompt instead of 5", budget=partial(dataclasses.replace, samples=2)),
    "one-round": Change("1 round instead of 3, as many steps", budget=partial(_rounds, times=1 / 3)),
    "samples-10": Change("10 replies a prompt", budget=partial(dataclasses.replace, samples=10)),
    "six-rounds": Change("6 rounds, as many steps", budget=partial(_rounds, times=2)),
    "before-claims": Change("reward: a grade before any finding", BeforeClaims),
}
PAIRS, CLIPS = "scout-pairs", "clips"  # an arm of `benchmarks.align`; replies of policies that others have taught
ALL = (PAIRS, *list(QUESTIONS)[:1], CLIPS, *list(QUESTIONS)[1:])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is missing of the questions, write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/align"), help="the folder of `make align`")
    parser.add_argument("--questions", default=",".join(ALL), help="those to run, in this order")
    parser.add_argument("--budget", choices=tuple(BUDGETS), default="full")
    parser.add_argument("--rate", type=float, default=0.0, help="0: the one that `make align` used")
    parser.add_argument("--tables", action="store_true", help="run nothing: only the tables of what is finished")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/measurements/alignment.md")
    given = parser.parse_args(arguments)
    budget, out = BUDGETS[given.budget], given.out / given.budget
    rate = given.rate or chosen_rate(out)
    names = [] if given.tables else given.questions.split(",")
    if unknown := sorted({*names} - {*ALL}):
        parser.error(f"--questions: there is no {', '.join(unknown)}; there are {', '.join(ALL)}")
    for name in ("scout", *names) if names else ():
        if name == CLIPS:
            ask_about_clips(out, budget, rate)
        elif name in ("scout", PAIRS):
            run(out, budget, policy_of(out, budget, 0), name, 0, rate)
        else:
            answer(out, budget, name, rate)
    table = "\n".join(tables(out, rate, given.budget))
    print(table)
    if given.write:
        write(table, BEGIN.format(given.budget))


def answer(out: Path, budget: Budget, name: str, rate: float) -> dict[str, Any]:
    """The report of one arm, which is run if it is not finished."""
    change = QUESTIONS[name]
    now = change.budget(budget)
    options = AlignOptions(
        policy=str(policy_of(out, budget, 0)), judge="scout", prompts=world(out, "prompts", budget.prompts, budget),
        held_out=world(out, "held", budget.held, budget), out=out / "questions" / name, rounds=now.rounds,
        samples=now.samples, schedule="pointwise", max_tokens=budget.max_tokens, most_kl=MOST_KL,
        training=out / "questions" / f"{name}.yaml",
    )  # fmt: skip
    judge = change.engine(Scout()) if change.engine else None
    return aligned(options, {**training_of(now, rate), **change.training}, judge)


def ask_about_clips(out: Path, budget: Budget, rate: float) -> None:
    """Replies about clips of every seed of the start and of the arms that are finished."""
    prompts, size = prompts_of(out, "held"), int(dict(budget.shape).get("size", Settings().size))
    for shown in SHOWN:
        clips = clips_of(prompts, out / CLIPS / shown / "data", shown, size)
        for seed in range(100):
            ends = {
                arm.name: Path(arm.reports[seed]["model"]) for arm in clip_arms(out, rate) if seed < len(arm.folders)
            }
            if not ends:
                break
            policies = {"start": policy_of(out, budget, seed), **ends}
            asked(policies, clips, budget.max_tokens, seed, out / CLIPS / shown)


def clip_arms(out: Path, rate: float) -> list[Arm]:
    """The finished arms whose ends are asked about clips: of gold and of `scout`, as many seeds of each."""
    known = [arm for arm in finished(out, rate) if arm.name in ("gold", "scout")]
    count = min((len(arm.folders) for arm in known), default=0)
    return [Arm(arm.name, arm.folders[:count]) for arm in known]


def tables(out: Path, rate: float, budget: str) -> list[str]:
    """All figures of what is finished, as lines of Markdown."""
    plain = out / f"rate-{rate:g}"
    lines = [f"Budget `{budget}`, rate {rate:g}, the first seed alone, but for best of N and clips."]
    parts: list[tuple[str, list[str]]] = []
    if (plain / "scout-0/report.json").is_file():
        usual = Arm("scout", [plain / "scout-0"])
        folders = {PAIRS: plain / f"{PAIRS}-0", **{name: out / "questions" / name for name in QUESTIONS}}
        arms = [Arm(name, [folder]) for name, folder in folders.items() if (folder / "report.json").is_file()]
        told = {PAIRS: "every two replies compared in both orders"}
        told |= {name: change.told for name, change in QUESTIONS.items()}
        parts += [
            ("What each change does", changes_table(usual, arms, told)),
            ("Every state", states_table([usual, *arms])),
            ("What rounds were taught from", pairs_table([usual, *arms])),
        ]
    graded = [out / f"best-of-{seed}" for seed in range(100)]
    if found := [folder for folder in graded if (folder / "scout/summary.json").is_file()]:
        title = f"Gold of the best of N replies of the start, by the reward that is read ({len(found)} seed(s))"
        parts.append((title, rewards_table(found, prompts_of(out, "held"))))
    if (out / CLIPS).is_dir():
        given = clip_arms(out, rate), out / CLIPS, prompts_of(out, "held")
        parts.append(("Replies about clips of the held-out things", clips_table(*given)))
        parts.append(("What these replies claim", claims_table(*given)))
    for title, rows in parts:
        lines += ["", f"**{title}**", "", *rows]
    return lines


def changes_table(usual: Arm, arms: Sequence[Arm], told: Mapping[str, str]) -> list[str]:
    """Each arm beside the usual one: gold at the end and at equal KL, and what it took."""
    columns = ("arm", "what is different", "gold gained, paired", f"less that of `{usual.name}`, paired",
               "KL, nats a reply", "gold at equal KL less that of `scout`, paired", "words", "questions to the judge",
               "tokens", "CPU seconds")  # fmt: skip
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    base = usual.gains(0)
    for arm in (usual, *arms):
        gained = arm.gains(0)
        less, equal = "", ""
        if arm is not usual:
            less = _difference(gained, base)
            near = min(_kls(usual)[-1], _kls(arm)[-1])
            equal = f"{_difference(at_kl(arm, near), at_kl(usual, near))} at {near:.1f}" if near > 0 else "undefined"
        kept, gold = arm.kept(0), mean_estimate(list(gained.values()), HOW.level)
        kl, words = arm.column(kept, "kl").mean(), arm.column(kept, "words").mean()
        seconds, (calls, tokens) = spent(arm)
        cells = [arm.name, told.get(arm.name, ""), f"{gold:.3f}", less, f"{kl:.1f}", equal, f"{words:.1f}"]
        cells += [f"{value:,.0f}" for value in (calls, tokens, sum(seconds))]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _kls(arm: Arm) -> list[float]:
    """Mean KL of the states up to the model that was kept, the start first."""
    return [arm.column(number, "kl").mean().value for number in range(arm.kept(0) + 1)]


def at_kl(arm: Arm, kl: float) -> dict[str, float]:
    """Gold by prompt on the straight line between the two states of an arm that lie about this mean KL."""
    kls = _kls(arm)
    after = next((i for i, each in enumerate(kls) if each >= kl - 1e-9), len(kls) - 1)
    before = max(after - 1, 0)
    share = 1.0 if after == before else (kl - kls[before]) / (kls[after] - kls[before])
    then, now = (
        dict(zip(arm.column(i, "gold").ids, arm.column(i, "gold").values, strict=True)) for i in (before, after)
    )
    return {key: value * share + then[key] * (1 - share) for key, value in now.items() if key in then}


def _difference(mine: Mapping[str, float], theirs: Mapping[str, float]) -> str:
    both = [value - theirs[key] for key, value in mine.items() if key in theirs]
    return f"{mean_estimate(both, HOW.level):+.3f}"


def rewards_table(folders: Sequence[Path], prompts: Mapping[str, Item]) -> list[str]:
    """Best of N by four rewards of the same replies of the judge, and the difference of claims and whole response."""
    spec = {key: item.meta["spec"] for key, item in prompts.items()}

    def grade(verdict: Verdict) -> float:
        return -float(level_of(points_lost(verdict.feedback), spec[verdict.question.item]["cuts"]))

    def label(verdict: Verdict) -> float:
        return (verdict.score or 0.0) * (-1 if spec[verdict.question.item]["lower_is_better"] else 1)

    def points(verdict: Verdict) -> float:
        return -float(points_lost(verdict.feedback))

    def whole(folder: Path) -> Mapping[str, Sequence[float | None]]:
        return grades_of(folder / "scout")

    rewards: dict[str, Callable[[Path], Mapping[str, Sequence[float | None]]]] = {
        "whole response: expected grade": whole, "whole response: its label": partial(_rewards, label),
        "claims: points lost": partial(_rewards, points), "claims: the grade of the points": partial(_rewards, grade),
    }  # fmt: skip
    columns = ("N", *rewards, "points lost less expected grade, paired", "grade of the points less label, paired")
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for n in SIZES:
        found = [curve(folders, each, n) for each in rewards.values()]
        less = [_less(found[2], found[0]), _less(found[3], found[1])]
        cells = [f"{each.mean():.3f}" for each in found] + [f"{each.mean():+.3f}" for each in less]
        lines.append(f"| {n} | {' | '.join(cells)} |")
    verdicts = [
        verdict for folder in folders for verdict in Run(folder / "scout").combined if verdict.score is not None
    ]
    same = sum(_position(verdict, spec[verdict.question.item]) == -grade(verdict) for verdict in verdicts)
    share = same / len(verdicts)
    told = f"The grade of the points is the label that `scout` gave in {share:.3f} of {len(verdicts):,} replies."
    return [*lines, "", told]


def _position(verdict: Verdict, spec: Mapping[str, Any]) -> int:
    """The level of a verdict, 0 the best."""
    assert verdict.distribution is not None
    labels = list(verdict.distribution)
    place = labels.index(str(verdict.label))
    return place if spec["lower_is_better"] else len(labels) - 1 - place


def _rewards(value: Callable[[Verdict], float], folder: Path) -> Mapping[str, Sequence[float | None]]:
    """A reward of every reply that `scout` has graded, by prompt; None without a verdict."""
    found: dict[str, dict[int, float | None]] = {}
    for verdict in Run(folder / "scout").combined:
        place = verdict.question.responses[0]
        found.setdefault(verdict.question.item, {})[place] = None if verdict.score is None else value(verdict)
    return {key: [by[place] for place in sorted(by)] for key, by in found.items()}


def _less(mine: Rows, theirs: Rows) -> Rows:
    """Differences row by row: both are of the same prompts and seeds in the same order."""
    assert mine.ids == theirs.ids
    return Rows(mine.ids, [one - other for one, other in zip(mine.values, theirs.values, strict=True)])


if __name__ == "__main__":
    main()
