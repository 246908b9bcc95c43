"""Sending the files that a document names."""

from __future__ import annotations

import hashlib
import os
import pathlib
from typing import Any

from pelab import _encoding, _task
from pelab.errors import NotFound

PIECE = 256 << 10  # bytes of one message


def sent(path: str | os.PathLike[str]) -> tuple[dict[str, Any], list[Any]]:
    """What the file declares, with its hash and size, and the messages that send it."""
    from pelab.v1 import sweeps_pb2

    data = _read(path)
    if data[:4] == b"PK\3\4" and str(path).endswith(".npz"):
        data = _task.from_npz(data, str(path))
    declared = (_encoding if data[:4] == b"PK\3\4" else _task).declared(data, str(path))
    declared |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    header = sweeps_pb2.FileHeader(sha256=declared["sha256"], bytes=len(data))
    parts = [sweeps_pb2.PutFileRequest(header=header)]
    parts += [sweeps_pb2.PutFileRequest(chunk=data[at:at + PIECE])
              for at in range(0, len(data), PIECE)]
    return declared, parts


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None
