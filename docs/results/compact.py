#!/usr/bin/env python3
"""Writes a compact copy of a database without weights, checkpoints and logs: enough to make every
table and figure again, and to settle its claim sheets further. With the names of sheets, the copy
has these alone, with their sweeps. Epochs have their times in steps of 1/1024 s.

    python3 docs/results/compact.py small.db docs/results/counting.db.xz small-counting
"""

import lzma
import pathlib
import sqlite3
import sys
import tempfile


def keep_sheets(connection, names):
    known = [name for name, in connection.execute("SELECT name FROM sheets")]
    if unknown := set(names) - set(known):
        sys.exit(f"no sheet {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    marks = ", ".join("?" * len(names))
    connection.execute(f"DELETE FROM sheets WHERE name NOT IN ({marks})", names)
    connection.execute("DELETE FROM sweeps WHERE sweep_id NOT IN (SELECT sweep_id FROM sheets)")
    drop_orphans(connection)
    connection.execute("DELETE FROM jobs WHERE job_id NOT IN (SELECT job_id FROM sweep_jobs)")
    drop_orphans(connection)
    for table, column in (("configurations", "jobs"), ("workers", "attempts")):
        key = f"{table[:-1]}_id"
        connection.execute(f"DELETE FROM {table} WHERE {key} NOT IN (SELECT {key} FROM {column})")


def drop_orphans(connection):
    """Rows that refer to one that is gone, and those that refer to these."""
    tables = [name for name, in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
    while sum(connection.execute(
            f"DELETE FROM {table} WHERE {column} NOT IN (SELECT {column} FROM {parent})").rowcount
              for table in tables for parent, column in connection.execute(
                  'SELECT "table", "from" FROM pragma_foreign_key_list(?)', (table,)).fetchall()):
        pass


def compact(source, target, sheets):
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.db"
        with sqlite3.connect(f"file:{source}?mode=ro", uri=True) as connection:
            connection.execute("VACUUM INTO ?", (str(copy),))
        connection.close()
        connection = sqlite3.connect(copy)
        for table in ("logs", "artifacts", "uploads", "checkpoints"):
            connection.execute(f"DELETE FROM {table}")
        if sheets:
            keep_sheets(connection, sheets)
        # Finer times are noise, which cannot be compressed.
        connection.execute("UPDATE curves SET seconds = round(seconds * 1024) / 1024")
        connection.commit()
        connection.execute("VACUUM")
        connection.close()
        target.write_bytes(lzma.compress(copy.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    source, target = map(pathlib.Path, sys.argv[1:3])
    if not source.exists():
        sys.exit(f"{sys.argv[0]}: no file {source}")
    compact(source, target, sys.argv[3:])
    print(f"wrote {target}: {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
