"""Reading a CSV of any size as items: `python -m benchmarks.big_table GIGABYTES [KILOBYTES_A_ROW] [FOLDER]`.

The memory is the process's peak (resident), the time that of the CPU; the file is written first and removed at the end.
"""

import csv
import resource
import sys
import tempfile
import time
from pathlib import Path

from dikast.core.records import read_items


def main(gigabytes: float = 1.0, kilobytes: float = 10.0, folder: str | None = None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as here:
        path, text, rows = Path(here, "big.csv"), "word, " * int(kilobytes * 1000 / 6), 0
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["question", "answer", "human_score"])
            while file.tell() < gigabytes * 1e9:
                writer.writerow([f"Question {rows}?", text, rows % 5 + 1])
                rows += 1
        began = time.process_time()
        assert sum(1 for _ in read_items(path)) == rows
        spent, size = time.process_time() - began, path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{size / 1e9:.2f} GB, {rows:,} rows: {spent:.1f} s of CPU, {size / 1e6 / spent:.0f} MB/s, peak {peak:.0f} MiB"
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    main(*map(float, given[:2]), *given[2:])  # type: ignore[arg-type]  # a folder comes last
