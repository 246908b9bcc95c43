"""The common rules for files of one's own, of encodings and of data."""

import os
import pathlib
import re

from pelab.errors import InvalidInput, NotFound

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
NAME_RULE = "a lower-case letter, then up to 39 lower-case letters, digits or underscores"


def refuse(message: str) -> InvalidInput:
    return InvalidInput(message)


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    try:
        pathlib.Path(path).write_bytes(data)
    except OSError as error:
        raise NotFound(f"cannot write {path}: {error.strerror}") from None
