"""How records are read and written: JSONL(.gz), JSON, CSV/TSV(.gz), Parquet and `-`, streaming, never a whole file."""

from dikast.core.records.items import ItemsReport, check_items, read_items, scan_items
from dikast.core.records.reading import Record, read_records
from dikast.core.records.writing import escaped_formula, unescaped_formula, write_file, write_items, write_records

__all__ = [
    "ItemsReport",
    "Record",
    "check_items",
    "escaped_formula",
    "read_items",
    "read_records",
    "scan_items",
    "unescaped_formula",
    "write_file",
    "write_items",
    "write_records",
]
