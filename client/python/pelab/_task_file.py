"""What is in a file of data (docs/own-data.md). An independent reader beside the one of the command
line: the tests hold the two together."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from pelab._names import NAME, NAME_RULE, refuse

Array = np.ndarray[Any, Any]
TRAIN = "train"
SMALLEST_VOCABULARY = 8
MOST = 1_000_000  # ids, classes and labels
MOST_LENGTH = 8192
MOST_TEXT = 100  # bytes of a name of a class or of a word
TYPES = {"I8": "i1", "U8": "u1", "BOOL": "u1", "I16": "<i2", "U16": "<u2", "I32": "<i4",
         "U32": "<u4", "I64": "<i8"}


def parse(data: bytes) -> tuple[dict[str, str], dict[str, Array]]:
    """The metadata and the tensors of integers."""
    if data[:2] == b"PK":
        raise refuse("this is a zip archive, as the files of encodings are, and no file of data "
                     "(safetensors)")
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
        raise refuse(f"this is no file of data (safetensors), and none of an encoding "
                     f"({error})") from None


def _integer(metadata: Mapping[str, str], key: str, low: int, high: int) -> int | None:
    if key not in metadata:
        return None
    try:
        number = int(metadata[key])
    except ValueError:
        raise refuse(f"metadata {key} must be an integer in decimal digits") from None
    if not low <= number <= high:
        raise refuse(f"{key} is {number}; allowed: an integer from {low} to {high}")
    return number


def _first(wrong: Array) -> str:
    """The place of the first wrong number: "3" or "3, 17"."""
    return ", ".join(str(place) for place in np.argwhere(wrong)[0])


def _require_range(name: str, array: Array, wrong: Array, allowed: str) -> None:
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise refuse(f"{name}[{_first(wrong)}] is {array[place]}; allowed: {allowed}")


class TaskFile:
    """A file of data that was read and checked."""

    def __init__(self, data: bytes) -> None:
        self.metadata, self.tensors = parse(data)
        self._shapes()
        self.by_position = self.tensors["targets"].ndim == 2
        self.names = self._split_names()
        self._lengths()
        self._tokens()
        self._targets()
        self._texts()

    def _shapes(self) -> None:
        for key in ("tokens", "targets", "split"):
            if key not in self.tensors:
                raise refuse(f"the file has no tensor {key} of integers; it has "
                             f"{', '.join(sorted(self.tensors)) or 'nothing'}")
        tokens = self.tensors["tokens"]
        if tokens.ndim != 2:
            raise refuse(f"tokens has the shape {tokens.shape}; allowed: (N, T), a row for each "
                         "example")
        examples, length = tokens.shape
        if not 2 <= length <= MOST_LENGTH:
            raise refuse(f"the length of tokens is {length}; allowed: an integer from 2 to "
                         f"{MOST_LENGTH}")
        if examples < 2:
            raise refuse(f"tokens has {examples} rows; allowed: 2 or more")
        shapes: dict[str, list[tuple[int, ...]]] = {
            "targets": [(examples,), (examples, length)], "split": [(examples,)],
            "lengths": [(examples,)]}
        for key, allowed in shapes.items():
            if key in self.tensors and self.tensors[key].shape not in allowed:
                raise refuse(f"{key} has the shape {self.tensors[key].shape}; allowed: "
                             f"{' or '.join(map(str, allowed))}, as tokens has {tokens.shape}")

    def _split_names(self) -> list[str]:
        try:
            names = json.loads(self.metadata.get("splits", '["train", "test"]'))
        except ValueError:
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise refuse('metadata splits must be a JSON list of names, ["train", "test"]')
        for name in names:
            if not NAME.fullmatch(name):
                raise refuse(f"the split {name!r} must be {NAME_RULE}")
        if TRAIN not in names or len(set(names)) != len(names) or len(names) < 2:
            raise refuse(f"the splits are {', '.join(names)}; allowed: {TRAIN} and at least one "
                         "more, each once")
        split = self.tensors["split"].astype(np.int64)
        _require_range("split", split, (split < 0) | (split >= len(names)),
                       f"0 to {len(names) - 1}, the places of {', '.join(names)}")
        for place, name in enumerate(names):
            if not (split == place).any():
                raise refuse(f"the split {name} has no example")
        return names

    def _lengths(self) -> None:
        examples, length = self.tensors["tokens"].shape
        lengths = self.tensors.get("lengths", np.full(examples, length)).astype(np.int64)
        _require_range("lengths", lengths, (lengths < 1) | (lengths > length), f"1 to {length}")
        self.lengths = lengths
        self.within = np.arange(length) < lengths[:, None]

    def _tokens(self) -> None:
        given = _integer(self.metadata, "vocabulary", 1, MOST)
        tokens = self.tensors["tokens"].astype(np.int64)
        end = given or MOST
        _require_range("tokens", tokens, self.within & ((tokens < 0) | (tokens >= end)),
                       f"0 to {end - 1}" + (" (metadata vocabulary)" if given else ""))
        self.tokens = tokens
        largest = int(tokens[self.within].max())
        self.vocabulary = max(SMALLEST_VOCABULARY, given or largest + 1)

    def _targets(self) -> None:
        first = _integer(self.metadata, "first_label", -MOST, MOST) or 0
        if self.by_position and first < 0:
            raise refuse(f"first_label is {first}; allowed: 0 or more, because the target -1 says "
                         "that a position has none")
        given = _integer(self.metadata, "classes", 1, MOST)
        targets = self.tensors["targets"].astype(np.int64)
        hidden = np.zeros(targets.shape, dtype=bool)
        if self.by_position:
            hidden = (targets == -1) | ~self.within
        end = first + (given or MOST)
        _require_range("targets", targets, ~hidden & ((targets < first) | (targets >= end)),
                       f"{first} to {end - 1}" + (" (metadata classes)" if given else "")
                       + (", or -1 for none" if self.by_position else ""))
        masked: Any = np.ma  # which has no types
        self.targets = masked.array(targets, mask=hidden)
        for place, name in enumerate(self.names):
            if not self.targets[self.tensors["split"] == place].count():
                raise refuse(f"no position of the split {name} has a target")
        self.first_label = first
        self.classes = given or int(self.targets.max()) - first + 1

    def _texts(self) -> None:
        name = self.metadata.get("name", "data")
        if not NAME.fullmatch(name):
            raise refuse(f"the name {name!r} must be {NAME_RULE}")
        self.name = name
        chance = self.metadata.get("chance")
        try:
            self.chance = None if chance is None else float(chance)
        except ValueError:
            self.chance = -1.0
        if self.chance is not None and not 0 <= self.chance <= 1:
            raise refuse("metadata chance must be a number from 0 to 1")
        if "class_names" in self.metadata:
            names = json.loads(self.metadata["class_names"])
            if (not isinstance(names, list) or len(names) != self.classes
                    or any(len(str(name).encode()) > MOST_TEXT for name in names)):
                raise refuse(f"metadata class_names must be a JSON list of {self.classes} texts of "
                             f"at most {MOST_TEXT} bytes, one for each class")
        for word in json.loads(self.metadata.get("words", "{}")):
            if not 0 <= int(word) < self.vocabulary:
                raise refuse(f"words names the token {word}; allowed: 0 to {self.vocabulary - 1}")

    def repeats(self) -> Array:
        """Which examples have the tokens of a training example. Refused unless allowed."""
        rows = [row[:length].tobytes() for row, length in zip(self.tokens, self.lengths)]
        split, train = self.tensors["split"], self.names.index(TRAIN)
        trained: dict[bytes, int] = {}
        for place, row in enumerate(rows):
            if split[place] == train:
                trained.setdefault(row, place)
        found = np.array([split[place] != train and row in trained
                          for place, row in enumerate(rows)])
        if found.any() and self.metadata.get("repeats") != "allowed":
            place = int(np.argmax(found))
            counts = ", ".join(f"{int(here.sum())} of {int((split == number).sum())} examples of "
                               f"{name}" for number, name in enumerate(self.names)
                               if (here := found & (split == number)).any())
            raise refuse(f"{counts} are in {TRAIN}, too (row {place} of the file, of "
                         f"{self.names[split[place]]}, has the tokens of row "
                         f"{trained[rows[place]]}, of {TRAIN}); allowed: none, or any number with "
                         "the metadata repeats: allowed (repeats_allowed=True)")
        return found

    def _chance(self, targets: Array, least: int) -> float | None:
        """The share of the most frequent training label, among the labels from `least` on."""
        trained = self.targets[self.tensors["split"] == self.names.index(TRAIN)].compressed()
        values, counts = np.unique(trained[trained >= least], return_counts=True)
        scored = targets[targets >= least]
        if not scored.size or self.first_label + self.classes <= least:
            return None
        frequent = values[counts.argmax()] if values.size else least
        return int((scored == frequent).sum()) / int(scored.size)

    def declared(self) -> dict[str, Any]:
        """What `pelab check FILE --output json` says of the file, in its first members."""
        split, train = self.tensors["split"], self.names.index(TRAIN)
        repeats = self.repeats()
        splits = []
        for place in [train, *(place for place in range(len(self.names)) if place != train)]:
            there = self.targets[split == place].compressed()
            stated = None if place == train else self.chance
            declared = {"name": self.names[place], "examples": int((split == place).sum()),
                        "targets": int(there.size),
                        "chance": self._chance(there, self.first_label) if stated is None
                        else stated}
            nonzero = self._chance(there, self.first_label + 1) if stated is None else None
            if nonzero is not None and nonzero != declared["chance"]:
                declared["chance_nonzero"] = nonzero
            declared["repeats"] = int(repeats[split == place].sum())
            splits.append(declared)
        length = self.tokens.shape[1]
        declaration = {"format": 1, "kind": "task", "name": self.name, "length": length,
                       "vocabulary": self.vocabulary, "classes": self.classes,
                       "first_label": self.first_label,
                       "targets": "position" if self.by_position else "sequence",
                       "padded": bool((self.lengths < length).any()), "splits": splits}
        if self.metadata.get("help"):
            declaration["help"] = self.metadata["help"].encode()[:300].decode(errors="ignore")
        return declaration
