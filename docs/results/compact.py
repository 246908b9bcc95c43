#!/usr/bin/env python3
"""Writes a compact copy of a database without weights, checkpoints and logs: enough to make every
table and figure again, and to settle its claim sheets further.

    python3 docs/results/compact.py small.db docs/results/small.db.xz
"""

import lzma
import pathlib
import sqlite3
import sys
import tempfile


def compact(source, target):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.db"
        with sqlite3.connect(f"file:{source}?mode=ro", uri=True) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        connection.close()
        connection = sqlite3.connect(copy)
        for table in ("logs", "artifacts", "uploads", "checkpoints"):
            connection.execute(f"DELETE FROM {table}")
        connection.commit()
        connection.execute("VACUUM")
        connection.close()
        target.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    source, target = map(pathlib.Path, sys.argv[1:])
    if not source.exists():
        sys.exit(f"{sys.argv[0]}: no file {source}")
    compact(source, target)
    print(f"wrote {target}: {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
