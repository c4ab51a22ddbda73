"""How records are read and written: JSONL(.gz), JSON, CSV/TSV(.gz), Parquet and `-`, streaming, never a whole file."""

from dikast.core.records.column_names import systems_of
from dikast.core.records.items import ItemsReport, check_items, item_of, read_items, scan_items
from dikast.core.records.reading import Record, read_records
from dikast.core.records.shapes.arrangement import Arrangement
from dikast.core.records.writing import escaped_formula, unescaped_formula, write_file, write_items, write_records

__all__ = [
    "Arrangement",
    "ItemsReport",
    "Record",
    "check_items",
    "escaped_formula",
    "item_of",
    "read_items",
    "read_records",
    "scan_items",
    "systems_of",
    "unescaped_formula",
    "write_file",
    "write_items",
    "write_records",
]
