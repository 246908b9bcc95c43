"""The rules for names in files of one's own."""

import re

from pelab.errors import InvalidInput

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
NAME_RULE = "a lower-case letter, then up to 39 lower-case letters, digits or underscores"


def refuse(message: str) -> InvalidInput:
    return InvalidInput(message)
