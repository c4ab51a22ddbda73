"""What shells complete: rubrics, judges, formats. Loaded only for completion, so it has to load fast."""

from collections.abc import Iterable


def rubrics(incomplete: str) -> list[str]:
    """Built-in rubrics, and YAML files here."""
    from dikast.core.rubric import builtin_rubrics

    return _fitting([*builtin_rubrics(), *_files(incomplete)], incomplete)


def formats(incomplete: str) -> list[str]:
    """Built-in formats, and YAML files here."""
    from dikast.prompts.format import builtin_formats

    return _fitting([*builtin_formats(), *_files(incomplete)], incomplete)


def judges(incomplete: str) -> list[str]:
    """Schemes of judges, and the mock judges by name."""
    from dikast.engines.mock import MOCKS
    from dikast.engines.spec import ALONE, engine_schemes

    schemes = [each if each in ALONE else f"{each}:" for each in engine_schemes()]
    return _fitting([*schemes, *(f"mock:{name}" for name in MOCKS)], incomplete)


COMPLETERS = {"rubrics": rubrics, "formats": formats, "judges": judges}


def _files(incomplete: str) -> list[str]:
    from glob import escape, glob
    from re import fullmatch

    found = (each for end in ("yaml", "yml") for each in glob(f"{escape(incomplete)}*.{end}"))
    return sorted(each for each in found if fullmatch(r"[\w./+-]+", each))  # a shell may read others as commands


def _fitting(names: Iterable[str], incomplete: str) -> list[str]:
    return [each for each in names if each.startswith(incomplete)]
