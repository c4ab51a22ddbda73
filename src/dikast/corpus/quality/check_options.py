"""What can be said about a check of feedback data: one definition for flags, for `--config` and for Python."""

from dataclasses import dataclass

from dikast.core.checking import option


@dataclass(frozen=True, kw_only=True)
class SchemaOptions:
    """In which form feedback data is."""

    from_: str = option("", "--from", help="The schema of the file; by default guessed from its columns.")


@dataclass(frozen=True, kw_only=True)
class CheckOptions(SchemaOptions):
    """What feedback data is checked for."""

    against: tuple[str, ...] = option(
        (), help="A benchmark to check the data for contamination with: a file, or bench:NAME (`dikast bench list`)."
    )
    names: tuple[tuple[str, str], ...] = option((), internal=True)  # of files of `against`: what they are called
    near: bool = option(True, "--near/--exact", help="Look for near duplicates too (extra `dedup`).")
    draws: int = option(200, least=20, help="Shuffles of the scores.")
    seed: int = option(0, help="Seed of the shuffles.")
    language: str = option("", help="Count texts in a language other than this.")
