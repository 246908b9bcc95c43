#!/usr/bin/env python3
"""Turns finished sweeps into the tables and verdicts of docs/reproduction.md.

Reads the public views of a pelab database (docs/formats.md) and nothing else; Python's standard
library is enough. How each claim is decided is in verdict/claims.json and claims.py, how intervals
are computed in verdict/statistics.py.
"""
import argparse
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from verdict import results, tables  # noqa: E402

EXAMPLES = """examples:
  # print the tables of a sweep
  python3 docs/sweeps/verdicts.py --db pelab.db small-table1

  # put them between the markers <!-- begin small/table1 --> and <!-- end small/table1 -->
  python3 docs/sweeps/verdicts.py --db pelab.db small-table1 --write docs/reproduction.md

  # several sweeps as one section
  python3 docs/sweeps/verdicts.py --db pelab.db small-switches_rope small-switches_task \\
      --section small/switches --write docs/reproduction.md
"""


def replace_section(text, section, body):
    """`text` with what stands between the section's markers replaced."""
    begin, end = f"<!-- begin {section} -->", f"<!-- end {section} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise results.Problem(f"the document must have {begin} and, after it, {end}, each once")
    head, tail = text.split(begin)[0], text.split(end)[1]
    return f"{head}{begin}\n{body}{end}{tail}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLES,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", nargs="+", help="name of a sweep in the database")
    parser.add_argument("--db", default="pelab.db", metavar="FILE",
                        help="database file [default: pelab.db]")
    parser.add_argument(
        "--section", metavar="NAME",
        help="name in the markers [default: the first sweep's name, its first - as /]")
    parser.add_argument("--write", metavar="FILE",
                        help="the document to put the section in [default: print it]")
    options = parser.parse_args(arguments)
    try:
        connection = results.open_database(options.db)
        try:
            body = tables.document(options.sweep, results.load(connection, options.sweep))
        finally:
            connection.close()
        if not options.write:
            print(body, end="")
            return 0
        path = pathlib.Path(options.write)
        section = options.section or options.sweep[0].replace("-", "/", 1)
        path.write_text(replace_section(path.read_text(encoding="utf-8"), section, body),
                        encoding="utf-8")
        print(f"{path}: section {section} written")
        return 0
    except (results.Problem, OSError) as problem:
        print(f"verdicts.py: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
