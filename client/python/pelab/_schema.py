"""Whether the tables and views of a file are those that pelab makes: the rules of
migrations/objects.cc."""

from __future__ import annotations

import re
import sqlite3
from functools import lru_cache
from typing import NamedTuple

from pelab._build import SCHEMA_SQL

# A comment, or a token: a text, a quoted name, a word or another character.
_TOKEN = re.compile(r"""
    --[^\n]* | /\*.*?(?:\*/|\Z)
    | ( '(?:[^']|'')*'? | "(?:[^"]|"")*"? | `(?:[^`]|``)*`? | \[[^]]*\]? | \w+ | \S )
    """, re.DOTALL | re.VERBOSE)


class _Object(NamedTuple):
    kind: str  # table, view, index or trigger
    table: str
    sql: tuple[str, ...]  # its tokens; none for an index that belongs to a constraint


def _tokens(sql: str) -> tuple[str, ...]:
    """The tokens of a statement, without comments and without the quotes around names."""
    tokens = [found.group(1) for found in _TOKEN.finditer(sql) if found.group(1)]
    return tuple(token[1:-1] if token[0] in '"`[' and re.fullmatch(r"\w+", token[1:-1]) else token
                 for token in tokens)


def _objects(db: sqlite3.Connection) -> dict[str, _Object]:
    rows = db.execute("SELECT name, type, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {name: _Object(kind, table, _tokens(sql)) for name, kind, table, sql in rows}


@lru_cache(maxsize=1)
def _expected() -> dict[str, _Object]:
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(SCHEMA_SQL)
        return _objects(db)
    finally:
        db.close()


def difference(db: sqlite3.Connection) -> str | None:
    """In which object the newest schema and that of the file differ; None if they agree.

    Further tables and views are allowed.
    """
    expected, found = _expected(), _objects(db)
    for name, (kind, table, sql) in found.items():
        if name in expected:
            continue
        if kind == "trigger":
            return f"it has a trigger {name[:80]!a}, and pelab makes none"
        if kind == "index" and sql and table.lower() in expected:
            return f"its table {table!a} has an index {name[:80]!a} that pelab does not make"
    for name, wanted in expected.items():
        if name not in found:
            return f'its {wanted.kind} "{name}" is missing'
        if found[name] != wanted:
            return f'its {found[name].kind} "{name}" is not the {wanted.kind} that pelab makes'
    return None
