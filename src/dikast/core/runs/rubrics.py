"""The rubrics that a run judged by, as its folder holds them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson

from dikast.core.errors import DataError, UserError
from dikast.core.rubric import Rubric, Sheet, load_rubric
from dikast.core.runs.run_files import RUBRICS, SHEETS, check
from dikast.core.scale import Scale


def load_rubrics(folder: Path) -> dict[str, Rubric]:
    """The rubrics that the verdicts of a run folder were judged by, by their hashes."""
    path, found = folder / RUBRICS, {}
    check(folder, RUBRICS)
    try:
        with path.open("rb") as file:
            for line in file:
                record = orjson.loads(line)
                rubric = load_rubric(record["rubric"])
                assert isinstance(rubric, Rubric)
                found[record["hash"]] = rubric
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"cannot read the rubrics of the run: {error}; run it again", path=str(path)) from error
    return found


def load_sheets(folder: Path, rubrics: Mapping[str, Rubric]) -> dict[str, Sheet]:
    """The sheets that items of a run brought themselves, by the items' ids; `rubrics` as `load_rubrics` gives them."""
    path, found = folder / SHEETS, {}
    if not path.exists():
        return {}
    check(folder, SHEETS)
    try:
        with path.open("rb") as file:
            for line in file:
                record = orjson.loads(line)
                criteria = (replace(rubrics[each["hash"]], weight=each["weight"]) for each in record["criteria"])
                found[record["item"]] = Sheet(record["name"], tuple(criteria))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"cannot read the sheets of the run: {error!r}; run it again", path=str(path)) from error
    return found


def scales_of(folder: Path) -> dict[str, Scale]:
    """The scales of a run's rubrics by hash; none where they cannot be read (the next run writes them again)."""
    try:
        return {name: rubric.scale for name, rubric in load_rubrics(folder).items()}
    except UserError:
        return {}
