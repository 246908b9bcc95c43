"""NumPy archives of data, as the safetensors files that pelab makes of them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pelab._names import refuse
from pelab._task_file import TYPES, Array

MOST_SPLITS = 32
# By NumPy's type. Those that TYPES lacks may only be in tensors that pelab does not read.
CODES = {np.dtype(code): name for name, code in
         {**TYPES, "BOOL": "?", "U64": "<u8", "F16": "<f2", "F32": "<f4", "F64": "<f8"}.items()}


def safetensors(metadata: Mapping[str, str], tensors: Mapping[str, Array]) -> bytes:
    """The bytes of the file, with its tensors in the order of their names."""
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = dict(sorted(metadata.items()))
    offset = 0
    for name, array in sorted(tensors.items()):
        header[name] = {"dtype": CODES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text,
                     *(array.tobytes() for _, array in sorted(tensors.items()))])


def _texts(array: Array) -> list[str]:
    return [text.decode(errors="replace") if isinstance(text, bytes) else str(text)
            for text in array.ravel().tolist()]


def _compact(texts: Sequence[str]) -> str:
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def from_npz(data: bytes, path: str) -> bytes:
    """The safetensors file that pelab makes of numpy.savez's: the same bytes."""
    metadata: dict[str, str] = {}
    tensors: dict[str, Array] = {}
    try:
        arrays = dict(np.load(io.BytesIO(data), allow_pickle=False))
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise refuse(f"{path} is no NumPy archive: {error}") from None
    for key, array in arrays.items():
        if key == "split" and array.dtype.kind in "US":
            texts = _texts(array)
            names = list(dict.fromkeys(texts))  # in the order of first use
            if len(names) > MOST_SPLITS:
                raise refuse(f"{path}: split has more than {MOST_SPLITS} different names")
            places = {name: place for place, name in enumerate(names)}
            tensors[key] = np.array([places[name] for name in texts], dtype=np.uint8)
            metadata["splits"] = _compact(names)
        elif array.dtype.kind in "US":
            metadata[key] = _compact(_texts(array)) if array.ndim else _texts(array)[0]
        elif array.dtype not in CODES:
            raise refuse(f"{path}: the array {key} has the type {array.dtype}; allowed: integers "
                         "and texts")
        elif array.ndim == 0:
            metadata[key] = str(int(array) if array.dtype == bool else array.item())
        else:
            tensors[key] = np.ascontiguousarray(array)
    return safetensors(metadata, tensors)
