"""Writing data of one's own as a file that sweeps can name: a safetensors file with tokens and
targets (docs/own-data.md)."""

from __future__ import annotations

import io
import json
import os
import pathlib
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pelab._names import NAME, NAME_RULE, refuse

TRAIN = "train"
SMALLEST_VOCABULARY = 8
TYPES = {"I8": "i1", "U8": "u1", "BOOL": "u1", "I16": "<i2", "U16": "<u2", "I32": "<i4",
         "U32": "<u4", "I64": "<i8"}


def _integers(name: str, values: Any) -> np.ndarray:
    """An array of integers, also from a tensor of PyTorch or from nested lists."""
    for method in ("detach", "cpu", "numpy"):  # of a tensor, which need not be on the CPU
        values = getattr(values, method)() if hasattr(values, method) else values
    array = np.asarray(values)
    if array.dtype == bool:
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iu":
        raise refuse(f"{name} has the type {array.dtype}; allowed: integers")
    return array


def _smallest(array: np.ndarray) -> np.ndarray:
    """The same numbers in the smallest type, so that equal numbers give equal files."""
    for code in ("u1", "i1", "<u2", "<i2", "<i4", "<i8"):
        limits = np.iinfo(code)
        if array.size == 0 or limits.min <= array.min() and array.max() <= limits.max:
            return np.ascontiguousarray(array, dtype=code)
    raise refuse("a number is too large; allowed: 64 bits with a sign")


def _split_numbers(split: Any, examples: int) -> tuple[np.ndarray, list[str]]:
    names = [str(name) for name in (split if isinstance(split, (list, tuple)) else list(split))]
    if len(names) != examples:
        raise refuse(f"split has {len(names)} names; allowed: {examples}, one for each example")
    order = sorted(set(names), key=lambda name: (name != TRAIN, name != "test", name))
    for name in order:
        if not NAME.fullmatch(name):
            raise refuse(f"the split {name!r} must be {NAME_RULE}")
    if TRAIN not in order or len(order) < 2:
        raise refuse(f"the splits are {', '.join(order)}; allowed: {TRAIN} and at least one more")
    places = {name: place for place, name in enumerate(order)}
    return np.array([places[name] for name in names], dtype=np.uint8), order


def _safetensors(metadata: Mapping[str, str], tensors: Mapping[str, np.ndarray]) -> bytes:
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    offset = 0
    codes = {np.dtype(code): name for name, code in TYPES.items() if name != "BOOL"}
    for name, array in sorted(tensors.items()):
        header[name] = {"dtype": codes[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text,
                     *(array.tobytes() for _, array in sorted(tensors.items()))])


def save_task(path: str | os.PathLike[str], tokens: Any, targets: Any, split: Sequence[str], *,
              name: str, lengths: Any = None, vocabulary: int | None = None,
              classes: int | None = None, first_label: int = 0, chance: float | None = None,
              class_names: Sequence[str] | None = None, words: Mapping[int, str] | None = None,
              repeats_allowed: bool = False, help: str = "") -> None:
    """Writes data as a file that sweeps can name: `task: {name: own, file: mine.safetensors}`.

    tokens (N, T): token ids from 0 on; targets (N), or (N, T) with -1 at positions without one;
    split: N names, with "train" among them; lengths (N): tokens before the padding. Arrays of
    numpy, tensors of PyTorch or lists. The same numbers give the same bytes. `pelab check FILE`
    says what pelab makes of it; docs/own-data.md describes every argument.

    InvalidInput says what is wrong.
    """
    rows = _integers("tokens", tokens)
    if rows.ndim != 2:
        raise refuse(f"tokens has the shape {rows.shape}; allowed: (N, T), a row for each example")
    tensors = {"tokens": rows, "targets": _integers("targets", targets)}
    if lengths is not None:
        tensors["lengths"] = _integers("lengths", lengths)
    tensors["split"], names = _split_numbers(split, len(rows))
    metadata = {"name": name, "splits": json.dumps(names), "first_label": str(int(first_label)),
                "repeats": "allowed" if repeats_allowed else "refused"}
    for key, number in (("vocabulary", vocabulary), ("classes", classes)):
        if number is not None:
            metadata[key] = str(int(number))
    if chance is not None:
        metadata["chance"] = repr(float(chance))
    if class_names is not None:
        metadata["class_names"] = json.dumps([str(one) for one in class_names])
    if words is not None:
        metadata["words"] = json.dumps({str(int(id)): str(word) for id, word in words.items()})
    if help:
        metadata["help"] = help
    data = _safetensors(metadata, {key: _smallest(array) for key, array in tensors.items()})
    declared(data, str(path))
    pathlib.Path(path).write_bytes(data)


def from_npz(data: bytes, path: str) -> bytes:
    """The safetensors file that pelab makes of numpy.savez's."""
    metadata: dict[str, str] = {}
    tensors: dict[str, np.ndarray] = {}
    try:
        arrays = dict(np.load(io.BytesIO(data), allow_pickle=False))
    except (ValueError, OSError) as error:
        raise refuse(f"{path} is no NumPy archive: {error}") from None
    for key, array in arrays.items():
        if key == "split" and array.dtype.kind in "US":
            names = list(dict.fromkeys(str(name) for name in array))  # in the order of first use
            tensors[key] = np.array([names.index(str(name)) for name in array], dtype=np.uint8)
            metadata["splits"] = json.dumps(names, ensure_ascii=False)
        elif array.dtype.kind in "US":
            texts = [str(text) for text in np.atleast_1d(array)]
            metadata[key] = json.dumps(texts, ensure_ascii=False) if array.ndim else texts[0]
        elif array.ndim == 0:
            metadata[key] = str(array.item())
        else:
            tensors[key] = np.ascontiguousarray(array)
    return _safetensors(metadata, tensors)


def _parse(data: bytes, path: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    try:
        size, = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + size])
        start = 8 + size
        tensors = {}
        for key, entry in header.items():
            if key == "__metadata__":
                continue
            begin, end = entry["data_offsets"]
            if entry["dtype"] in TYPES:
                tensors[key] = np.frombuffer(data[start + begin:start + end],
                                             dtype=TYPES[entry["dtype"]]).reshape(entry["shape"])
        return dict(header.get("__metadata__", {})), tensors
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise refuse(f"{path} is no file of data (safetensors), and none of an encoding "
                     f"({error})") from None


def _sizes(metadata: Mapping[str, str], tensors: Mapping[str, np.ndarray],
           lengths: np.ndarray, targets: np.ma.MaskedArray) -> dict[str, int]:
    tokens = tensors["tokens"]
    within = np.arange(tokens.shape[1]) < lengths[:, None]
    first = int(metadata.get("first_label", 0))
    largest = int(tokens[within].max())
    return {"length": tokens.shape[1],
            "vocabulary": int(metadata.get("vocabulary", max(SMALLEST_VOCABULARY, largest + 1))),
            "classes": int(metadata.get("classes", int(targets.max()) - first + 1)),
            "first_label": first}


def _repeats(tokens: np.ndarray, lengths: np.ndarray, split: np.ndarray,
             train: int) -> np.ndarray:
    """Which examples have the tokens of a training example."""
    rows = [row[:length].astype(np.int64).tobytes() for row, length in zip(tokens, lengths)]
    trained = {row for row, place in zip(rows, split) if place == train}
    return np.array([row in trained and place != train for row, place in zip(rows, split)])


def declared(data: bytes, path: str) -> dict[str, Any]:
    """What the file declares, as pelab's own reader finds it. It checks less than that one."""
    metadata, tensors = _parse(data, path)
    for key in ("tokens", "targets", "split"):
        if key not in tensors:
            raise refuse(f"{path}: the file has no tensor {key} of integers")
    tokens, split = tensors["tokens"], tensors["split"]
    examples, length = tokens.shape
    shapes = {"targets": [(examples,), (examples, length)], "split": [(examples,)],
              "lengths": [(examples,)]}
    for key, allowed in shapes.items():
        if key in tensors and tensors[key].shape not in allowed:
            raise refuse(f"{path}: {key} has the shape {tensors[key].shape}; allowed: "
                         f"{' or '.join(map(str, allowed))}")
    lengths = tensors.get("lengths", np.full(examples, length))
    by_position = tensors["targets"].ndim == 2
    hidden = np.zeros(tensors["targets"].shape, dtype=bool)
    if by_position:
        hidden = (tensors["targets"] == -1) | (np.arange(length) >= lengths[:, None])
    targets = np.ma.masked_array(tensors["targets"].astype(np.int64), hidden)
    if targets.count() == 0 or lengths.min() < 1:
        raise refuse(f"{path}: there is no target, or an example without tokens")
    names = json.loads(metadata.get("splits", '["train", "test"]'))
    if split.max() >= len(names) or split.min() < 0 or TRAIN not in names:
        raise refuse(f"{path}: split has numbers beyond metadata splits, {', '.join(names)}")
    train = names.index(TRAIN)
    repeats = _repeats(tokens, lengths, split, train)
    if repeats.any() and metadata.get("repeats") != "allowed":
        raise refuse(f"{path}: {int(repeats.sum())} examples of other splits are in {TRAIN}, too; "
                     "allowed: none, or any number with repeats_allowed=True")
    sizes = _sizes(metadata, tensors, lengths, targets)
    of_train = targets[split == train].compressed()
    values, counts = np.unique(of_train, return_counts=True)
    frequent = values[counts.argmax()]
    splits = []
    for place in [train, *(place for place in range(len(names)) if place != train)]:
        there = targets[split == place].compressed()
        if not there.size:
            raise refuse(f"{path}: the split {names[place]} has no target")
        chance = int((there == frequent).sum()) / there.size
        if "chance" in metadata and place != train:
            chance = float(metadata["chance"])
        splits.append({"name": names[place], "examples": int((split == place).sum()),
                       "targets": int(there.size), "chance": chance,
                       "repeats": int(repeats[split == place].sum())})
    declaration = {"format": 1, "kind": "task", "name": metadata.get("name", "data"), **sizes,
                   "targets": "position" if by_position else "sequence",
                   "padded": bool((lengths < length).any()), "splits": splits}
    if not NAME.fullmatch(declaration["name"]):
        raise refuse(f"{path}: the name {declaration['name']!r} must be {NAME_RULE}")
    if metadata.get("help"):
        declaration["help"] = metadata["help"][:300]
    return declaration
