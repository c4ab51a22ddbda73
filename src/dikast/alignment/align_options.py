"""The options of an alignment: one definition for flags, `--config` and Python keywords."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dikast.core.checking import MOST_COUNT, MOST_NUMBER, MOST_SEED, option

Schedule = Literal["pointwise", "full", "half", "ends"]


@dataclass(frozen=True, kw_only=True)
class AlignOptions:
    """The policy, the judge, the prompts, the training settings, and when to stop."""

    policy: str = option(help="The model that learns: a folder, or hf:ORG/NAME.", complete="judges")
    judge: str = option(help="The judge, as for `dikast grade`.", complete="judges")
    prompts: Path = option(help="Items whose instructions the policy is trained on; their responses are ignored.")
    held_out: Path = option(help="Items whose instructions measure each round; the policy is never trained on them.")
    out: Path = option(help="The folder; running again resumes.")
    rubric: str | None = option(
        None, help="The rubric, as for `dikast grade`; items may have their own.", complete="rubrics"
    )
    second_judge: str | None = option(
        None, help="Another judge, which grades the held-out replies and is not used for training.", complete="judges"
    )
    rounds: int = option(3, least=1, most=MOST_COUNT, help="Rounds of sampling, judging and training.")
    samples: int = option(5, least=2, most=MOST_COUNT, help="Replies to each prompt in each round.")
    schedule: Schedule = option(
        "full", help="How replies are ordered: pointwise (graded), or compared: full, half, ends (see `dikast rank`)."
    )
    margin: float = option(
        0.0, least=0.0, most=MOST_NUMBER, help="Minimum difference of two rewards that makes a pair."
    )
    temperature: float = option(0.7, above=0.0, most=MOST_NUMBER, help="Sampling temperature of the policy.")
    top_p: float = option(0.9, least=0.0, most=1.0, help="Nucleus sampling: cumulative probability to sample from.")
    max_tokens: int = option(512, least=1, most=MOST_COUNT, help="Maximum tokens in a reply of the policy.")
    seed: int = option(0, least=0, most=MOST_SEED, help="Random seed.")
    training: Path | None = option(
        None, metavar="FILE", help="Settings of the training (YAML), as for `dikast train dpo`."
    )
    launch: str | None = option(
        None,
        metavar="COMMAND",
        help="Train in several processes: what stands before `-m dikast train dpo`, such as `accelerate launch"
        " --config_file fsdp2.yaml`.",
    )
    most_kl: float = option(
        10.0,
        above=0.0,
        most=MOST_NUMBER,
        help="Stop when the KL divergence from the start exceeds this (nats per reply).",
    )
    max_failures: str = option(
        "5%", help="How many verdicts of a round may be missing (a count or a share) before exit 3."
    )
    force: bool = option(False, help="Continue even if prompts are also in the held-out file.")
    dry_run: bool = option(False, help="Check everything and print what a run would take, without running it.")
