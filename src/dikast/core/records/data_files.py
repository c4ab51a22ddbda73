"""Which files of a folder or a data set hold data: by their names, and never a program."""

from pathlib import Path

from dikast.core.errors import UserError

DATA = (".parquet", ".jsonl", ".ndjson", ".csv", ".tsv", ".json")
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
TABLES = tuple(
    f"{stem}{end}" for stem in ("metadata", "captions") for end in (".jsonl", ".json", ".csv", ".tsv", ".parquet")
)
TEXT_TABLE = "captions.txt"  # a table only where nothing else can be meant: such a file may hold any text


def pictures_of(folder: Path) -> list[Path]:
    """Every image file in a folder and those in it, in order; hidden ones are left out."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def refuse_scripts(source: str, names: list[str]) -> None:
    """UserError if a data set is a script, since foreign code is never run."""
    if scripts := [name for name in names if name.endswith(".py")]:
        raise UserError(
            f"{source}: a data set with a script ({scripts[0]}), and Dikast runs no foreign code: name a data file, or "
            "on the Hub the Parquet files made of it (`hf://datasets/ORG/NAME@~parquet`)"
        )
