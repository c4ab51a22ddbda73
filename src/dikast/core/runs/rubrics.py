"""The rubrics that a run judged by, as its folder holds them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dikast.core.errors import DataError, UserError
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.runs.run_files import RUBRICS, SHEETS, cure_of
from dikast.core.runs.schema import RubricLine, SheetLine, derived_lines
from dikast.core.scale import Scale


def load_rubrics(folder: Path) -> dict[str, Rubric]:
    """The rubrics that the verdicts of a run folder were judged by, by their hashes."""
    path, found = folder / RUBRICS, {}
    if not path.is_file():
        raise DataError(f"the rubrics of the run are missing: {cure_of(folder)}", path=str(path))
    for record, line in derived_lines(folder, RUBRICS, RubricLine):
        try:
            rubric = load_rubric(record["rubric"])
        except (UserError, ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"a rubric that cannot be read ({error}): {cure_of(folder)}", path=str(path), line=line
            ) from error
        if not isinstance(rubric, Rubric):
            told = f"a sheet in the place of a rubric: {cure_of(folder)}"
            raise DataError(told, path=str(path), line=line)
        found[record["hash"]] = rubric
    return found


def written_rubrics(folder: Path) -> dict[str, Rubric]:
    """As `load_rubrics`; none where the run has not written any."""
    return load_rubrics(folder) if (folder / RUBRICS).exists() else {}


def readable_rubrics(folder: Path) -> dict[str, Rubric]:
    """As `load_rubrics`; none where they cannot be read (the next run writes them again)."""
    try:
        return load_rubrics(folder)
    except UserError:
        return {}


def load_sheets(folder: Path, rubrics: Mapping[str, Rubric]) -> dict[str, Sheet]:
    """The sheets that items of a run brought themselves, by the items' ids; `rubrics` as `load_rubrics` gives them."""
    path, found = folder / SHEETS, {}
    for record, line in derived_lines(folder, SHEETS, SheetLine):
        try:
            criteria = (replace(rubrics[each["hash"]], weight=each["weight"]) for each in record["criteria"])
            found[record["item"]] = Sheet(record["name"], tuple(criteria))
        except (UserError, ValueError, KeyError, TypeError) as error:
            told = f"a sheet that cannot be read ({error!r}): {cure_of(folder)}"
            raise DataError(told, path=str(path), line=line) from error
    return found


def scales_of(folder: Path) -> dict[str, Scale]:
    """The scales of a run's rubrics by hash; none where they cannot be read."""
    return {name: rubric.scale for name, rubric in readable_rubrics(folder).items()}
