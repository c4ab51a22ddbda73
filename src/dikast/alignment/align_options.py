"""What can be said about an alignment: one definition for flags, for `--config` and for keywords from Python."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dikast.core.checking import option

Schedule = Literal["pointwise", "full", "half", "ends"]


@dataclass(frozen=True, kw_only=True)
class AlignOptions:
    """Which model learns from which judge, on what, how, and when it stops."""

    policy: str = option(help="The model that learns: a folder, or hf:ORG/NAME.", complete="judges")
    judge: str = option(help="The judge, as for `dikast grade`.", complete="judges")
    prompts: Path = option(help="Items whose instructions are answered and learnt from; their responses do not count.")
    held_out: Path = option(help="Items whose instructions are answered to measure each round, never learnt from.")
    out: Path = option(help="The folder; running again resumes.")
    rubric: str | None = option(
        None, help="What is judged by, as for `dikast grade`; items may have their own.", complete="rubrics"
    )
    second_judge: str | None = option(
        None, help="Another judge, which grades the held-out replies and teaches nothing.", complete="judges"
    )
    rounds: int = option(3, least=1, help="Rounds of sampling, judging and training.")
    samples: int = option(5, least=2, help="Replies to each prompt in each round.")
    schedule: Schedule = option(
        "full", help="How replies are ordered: pointwise (graded), or compared: full, half, ends (see `dikast rank`)."
    )
    margin: float = option(0.0, least=0.0, help="The least difference of two rewards that makes a pair.")
    temperature: float = option(0.7, above=0.0, help="Sampling temperature of the policy.")
    top_p: float = option(0.9, least=0.0, most=1.0, help="Nucleus sampling: cumulative probability to sample from.")
    max_tokens: int = option(512, least=1, help="Most tokens of a reply of the policy.")
    seed: int = option(0, least=0, help="Random seed.")
    training: Path | None = option(
        None, metavar="FILE", help="Settings of the training (YAML), as for `dikast train dpo`."
    )
    most_kl: float = option(10.0, above=0.0, help="Stop where the policy is further from its start, in nats a reply.")
    max_failures: str = option(
        "5%", help="How many verdicts of a round may be missing (a count or a share) before exit 3."
    )
    force: bool = option(False, help="Go on although prompts also stand in the held-out file.")
    dry_run: bool = option(False, help="Check everything and print what a run would take, without running it.")
