"""Sending a document and the files that it names."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pelab import _encoding, _npz, _task
from pelab.errors import InvalidInput, NotFound
from pelab.v1 import sweeps_pb2

PIECE = 256 << 10  # bytes of one message


def document(sweep: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[str, str]:
    """The document's text, and its name for messages."""
    if isinstance(sweep, Mapping):
        return json.dumps(sweep, indent=1), "document"
    if isinstance(sweep, str) and "\n" in sweep:
        return sweep, "document"
    path = _path(sweep, "the sweep", "a path, the text of a document, or a mapping")
    try:
        return path.read_text(encoding="utf-8"), str(path)
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None


class OwnFile:
    """A file with what it declares, and the messages that send it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        data = _read(path)
        if data[:4] == b"PK\3\4" and str(path).endswith(".npz"):
            data = _npz.from_npz(data, str(path))
        declared = (_encoding if data[:4] == b"PK\3\4" else _task).declared(data, str(path))
        self._data = data
        self.declared: dict[str, Any] = declared | {
            "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

    def declaration(self, said: Iterable[str]) -> str:
        """What the file declares, for a document with these texts.

        The chance without class 0 is only asked if a field or a protocol leaves that class out.
        Other documents go without, so that their texts stay those of earlier versions, by which
        sweeps are known again.
        """
        declared = dict(self.declared)
        if "splits" in declared and not any(word in text for text in said
                                            for word in ("nonzero", "published")):
            declared["splits"] = [{key: value for key, value in split.items()
                                   if key != "chance_nonzero"} for split in declared["splits"]]
        return json.dumps(declared)

    def question(self) -> Iterator[Any]:
        """Asks what of the file is there."""
        yield self._header(ask=True)

    def parts(self, kept: int) -> Iterator[Any]:
        """Sends what comes after the bytes that a broken upload has left."""
        yield self._header(offset=kept)
        for at in range(kept, len(self._data), PIECE):
            yield sweeps_pb2.PutFileRequest(chunk=self._data[at:at + PIECE])

    def _header(self, **more: Any) -> Any:
        return sweeps_pb2.PutFileRequest(header=sweeps_pb2.FileHeader(
            sha256=self.declared["sha256"], bytes=len(self._data), **more))


def _path(given: object, what: str, rule: str) -> pathlib.Path:
    """`given` as a path; InvalidInput if it is something else, or empty."""
    text = os.fspath(given) if isinstance(given, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InvalidInput(f"{what} is {given!r:.100}; it must be {rule}")
    return pathlib.Path(text)


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return _path(path, "an own file", "a path").read_bytes()
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None
