"""The options of probing and proving: one definition for flags, `--config` and Python keywords."""

from dataclasses import dataclass

from dikast.core.checking import option


@dataclass(frozen=True, kw_only=True)
class ProbeOptions:
    """The items and probes to ask, and when to fail a build."""

    items: str = option("", help="Your items, instead of the standard suite of generated items.")
    domain: tuple[str, ...] = option(
        (),
        commas=True,
        help="Domains of the generated items, comma-separated; if none, all that the split has.",
    )
    split: str = option("all", help="Split of the generated items, such as fresh or wordings.")
    only: tuple[str, ...] = option((), help="Run only this probe; repeat for several.")
    calls: int = option(2000, least=1, help="About how many questions to ask.")
    gate: bool = option(False, help="Exit with 4 if a probe finds a fault.")
    strict: bool = option(False, help="Like --gate, and also if a probe cannot tell or no probe could be judged.")


@dataclass(frozen=True, kw_only=True)
class ProveOptions:
    """Which items `prove` generates."""

    calls: int = option(1000, help="Maximum number of questions.")
    domain: tuple[str, ...] = option(
        (), commas=True, help="Domains of the generated items, comma-separated; if none, all that abilities are about."
    )
    split: str = option("all", help="Split of the generated items.")
    size: int = option(96, help="Side of an image in pixels.")
