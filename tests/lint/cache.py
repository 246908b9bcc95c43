"""Remembers what was found clean, by content: nothing is looked at twice.

A key is the SHA-256 of everything that a finding depends on (the tool's version, its configuration,
the file). Only clean results are kept, each as a file in the cache's folder. Not thread-safe.
"""
import hashlib
import json
import os
import pathlib
from collections.abc import Iterable


def digest(*parts: str | bytes) -> str:
    """The SHA-256 of the parts, each with its length, as hexadecimal digits."""
    made = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        made.update(b"%d:" % len(raw) + raw)
    return made.hexdigest()


class Cache:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._files: dict[str, str | None] = {}

    def file(self, path: str | os.PathLike[str]) -> str | None:
        """The SHA-256 of a file's bytes, read once; None if it cannot be read."""
        name = str(path)
        if name not in self._files:
            try:
                self._files[name] = digest(pathlib.Path(name).read_bytes())
            except OSError:
                self._files[name] = None
        return self._files[name]

    def has(self, key: str) -> bool:
        """Whether the key was found clean, and the files that it was kept with are the same."""
        try:
            kept = json.loads((self.folder / key).read_text())
        except (OSError, ValueError):
            return False
        return all(self.file(name) == value for name, value in kept.items())

    def keep(self, key: str, files: Iterable[str] = ()) -> None:
        """Marks a key as clean while these files stay as they are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        written = self.folder / f"{key}.{os.getpid()}"
        written.write_text(json.dumps({name: self.file(name) for name in files}))
        written.replace(self.folder / key)
