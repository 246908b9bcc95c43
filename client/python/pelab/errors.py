"""Everything that this package raises on purpose is a PelabError whose text is a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong in a sweep document. `line` and `column` count from 1; 0: it has no place there."""

    file: str
    line: int
    column: int
    path: str
    value: str
    allowed: str
    message: str

    def __str__(self) -> str:
        if self.line > 0:
            return f"{self.file}:{self.line}:{self.column}: {self.message}"
        return f"{self.path}: {self.message}" if self.path.startswith("--set") else f"{self.file}: {self.message}"


class PelabError(Exception):
    """What went wrong, in words."""


class NotFound(PelabError, ValueError):
    """There is no such sweep, job or file."""


class InvalidInput(PelabError, ValueError):
    """What was asked cannot be. Of a sweep document `violations` says what and where."""

    def __init__(self, message: str, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.violations: tuple[Violation, ...] = tuple(violations)


class Refused(PelabError):
    """It makes sense, but not as things stand."""


class Unauthenticated(PelabError):
    """The coordinator needs a token, or another one."""


class NoCoordinator(PelabError, ConnectionError):
    """Nobody answers at that address, or not any more."""
