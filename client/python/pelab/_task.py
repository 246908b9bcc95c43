"""Writing data of one's own as a file that sweeps can name: a safetensors file with tokens and
targets (docs/own-data.md)."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pelab._names import NAME, NAME_RULE, refuse, write_file
from pelab._npz import safetensors
from pelab._task_file import TRAIN, Array, TaskFile
from pelab.errors import InvalidInput, NotFound


def _integers(name: str, values: Any) -> Array:
    """An array of integers, also from a tensor of PyTorch or from nested lists."""
    for method in ("detach", "cpu", "numpy"):  # of a tensor, which need not be on the CPU
        values = getattr(values, method)() if hasattr(values, method) else values
    try:
        array = np.asarray(values)
    except ValueError:  # NumPy's sentence is about its own terms
        raise refuse(f"the rows of {name} have different lengths; allowed: rows of one length, "
                     "with lengths= for what is padding") from None
    if array.dtype == bool:
        array = array.astype(np.uint8)
    if array.dtype.kind not in "iu":
        raise refuse(f"{name} has the type {array.dtype}; allowed: integers, such as "
                     f"{name}.astype(int) if all of them are whole")
    if array.size and int(array.max()) >= 2**63:
        raise refuse(f"{name} has the number {array.max()}; allowed: less than 2^63")
    return array


def _smallest(array: Array) -> Array:
    """The same numbers in the smallest type, so that equal numbers give equal files."""
    for code in ("u1", "i1", "<u2", "<i2", "<i4"):
        limits = np.iinfo(code)
        if array.size == 0 or limits.min <= array.min() and array.max() <= limits.max:
            return np.ascontiguousarray(array, dtype=code)
    return np.ascontiguousarray(array, dtype="<i8")


def _split_numbers(split: Any, examples: int) -> tuple[Array, list[str]]:
    if isinstance(split, (str, bytes)) or not hasattr(split, "__iter__"):
        raise refuse(f"split is {split!r}; allowed: a name for each example, such as "
                     "['train'] * 800 + ['test'] * 200")
    names = list(split)
    if len(names) != examples:
        raise refuse(f"split has {len(names)} names; allowed: {examples}, one for each example")
    for name in names:
        if not isinstance(name, str):
            raise refuse(f"split has {name!r}; allowed: names, such as 'train' and 'test'")
    order = sorted(set(names), key=lambda name: (name != TRAIN, name != "test", name))
    for name in order:
        if not NAME.fullmatch(name):
            raise refuse(f"the split {name!r} must be {NAME_RULE}")
    if TRAIN not in order or len(order) < 2:
        raise refuse(f"the splits are {', '.join(order) or 'none'}; allowed: {TRAIN} and at least "
                     "one more")
    places = {name: place for place, name in enumerate(order)}
    return np.array([places[name] for name in names], dtype=np.uint8), order


def _texts(name: str, values: Any, kind: type) -> Any:
    if isinstance(values, (str, bytes)) or not isinstance(values, kind):
        wanted = ("a mapping from token ids to texts, {5: 'open'}" if kind is Mapping
                  else "a list of texts")
        raise refuse(f"{name} is {values!r}; allowed: {wanted}")
    return values


def save_task(path: str | os.PathLike[str], tokens: Any, targets: Any, split: Sequence[str], *,
              name: str, lengths: Any = None, vocabulary: int | None = None,
              classes: int | None = None, first_label: int = 0, chance: float | None = None,
              class_names: Sequence[str] | None = None, words: Mapping[int, str] | None = None,
              repeats_allowed: bool = False, help: str = "") -> None:
    """Writes data as a file that sweeps can name: `task: {name: own, file: mine.safetensors}`.

    tokens (N, T): token ids from 0 on; targets (N), or (N, T) with -1 at positions without one;
    split: N names, with "train" among them; lengths (N): tokens before the padding. Arrays of
    numpy, tensors of PyTorch or lists. The same numbers give the same bytes, whatever stands in the
    padding. docs/own-data.md describes every argument, and `pelab check FILE` shows what is there.

    Everything is checked as pelab will check it. InvalidInput says what is wrong.
    """
    if str(path).endswith((".npz", ".pt")):
        raise refuse(f"the file is to be named {path}; allowed: a name such as mine.safetensors, "
                     "since .npz and .pt are other formats")
    rows = _integers("tokens", tokens)
    if rows.ndim != 2:
        raise refuse(f"tokens has the shape {rows.shape}; allowed: (N, T), a row for each example")
    tensors = {"tokens": rows, "targets": _integers("targets", targets)}
    if lengths is not None:
        tensors["lengths"] = _integers("lengths", lengths)
        _clear_padding(tensors)
    tensors["split"], names = _split_numbers(split, len(rows))
    metadata = {"name": name, "splits": json.dumps(names), "first_label": str(int(first_label)),
                "repeats": "allowed" if repeats_allowed else "refused"}
    for key, number in (("vocabulary", vocabulary), ("classes", classes)):
        if number is not None:
            metadata[key] = str(int(number))
    if chance is not None:
        metadata["chance"] = repr(float(chance))
    if class_names is not None:
        metadata["class_names"] = json.dumps(
            [str(one) for one in _texts("class_names", class_names, Sequence)])
    if words is not None:
        metadata["words"] = json.dumps({str(int(id)): str(word) for id, word
                                        in _texts("words", words, Mapping).items()})
    if help:
        metadata["help"] = help
    data = safetensors(metadata, {key: _smallest(array) for key, array in tensors.items()})
    TaskFile(data).repeats()
    write_file(path, data)


def _clear_padding(tensors: dict[str, Array]) -> None:
    tokens, targets, lengths = tensors["tokens"], tensors["targets"], tensors["lengths"]
    if lengths.shape != tokens.shape[:1]:
        return  # which is refused later
    padding = np.arange(tokens.shape[1]) >= lengths[:, None]
    tensors["tokens"] = np.where(padding, 0, tokens)
    if targets.shape == tokens.shape:
        tensors["targets"] = np.where(padding, -1, targets.astype(np.int64))


def load_task(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads a file of data as the arguments of save_task, to change some of them:

        data = pelab.load_task("data.safetensors")
        labels = data["targets"]  # one for each example
        data["targets"] = labels.min() + labels.max() - labels
        pelab.save_task("turned.safetensors", **data | {"name": "turned"})
    """
    try:
        data = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from None
    try:
        file = TaskFile(data)
    except InvalidInput as error:
        raise refuse(f"{path}: {error}") from None
    arguments: dict[str, Any] = {
        "tokens": file.tokens, "targets": file.tensors["targets"].astype(np.int64),
        "split": [file.names[place] for place in file.tensors["split"]], "name": file.name,
        "first_label": file.first_label,
        "repeats_allowed": file.metadata.get("repeats") == "allowed"}
    if "lengths" in file.tensors:
        arguments["lengths"] = file.lengths
    for key in ("vocabulary", "classes"):
        if key in file.metadata:
            arguments[key] = int(file.metadata[key])
    if file.chance is not None:
        arguments["chance"] = file.chance
    if "class_names" in file.metadata:
        arguments["class_names"] = json.loads(file.metadata["class_names"])
    if "words" in file.metadata:
        arguments["words"] = {int(id): word for id, word
                              in json.loads(file.metadata["words"]).items()}
    if file.metadata.get("help"):
        arguments["help"] = file.metadata["help"]
    return arguments


def declared(data: bytes, path: str) -> dict[str, Any]:
    """What the file declares, as pelab's own reader finds it."""
    try:
        return TaskFile(data).declared()
    except InvalidInput as error:
        raise refuse(f"{path}: {error}") from None
