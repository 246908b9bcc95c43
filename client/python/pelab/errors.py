"""The package's errors. All are PelabErrors, and their text is a message for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """One mistake in a sweep document.

    `line` and `column` count from 1; they are 0 if the mistake has no place in the document.
    """

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
        return (f"{self.path}: {self.message}" if self.path.startswith("--set")
                else f"{self.file}: {self.message}")


class PelabError(Exception):
    """The base class; its text says what went wrong."""


class NotFound(PelabError, ValueError):
    """The sweep, sheet, job or file does not exist."""


class InvalidInput(PelabError, ValueError):
    """The request is wrong. For a sweep document, `violations` lists each mistake and its place."""

    def __init__(self, message: str, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.violations: tuple[Violation, ...] = tuple(violations)


class Refused(PelabError):
    """The request is valid, but the current state does not allow it."""


class Unauthenticated(PelabError):
    """The token is missing, or it does not give permission."""


class NoCoordinator(PelabError, ConnectionError):
    """Nobody answers at the address, or the connection was lost or closed."""
