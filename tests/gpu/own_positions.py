"""A job of own data with a target at some positions of each sequence: the next word of a cycle."""

import hashlib
import json
import os
import random
import struct
import tempfile

LENGTH, WORDS = 32, 12


def tensor_file(metadata, tensors):
    """A safetensors file of 32-bit integers: name -> (shape, numbers)."""
    header, data = {"__metadata__": metadata}, b""
    for name, (shape, numbers) in tensors.items():
        packed = struct.pack(f"<{len(numbers)}i", *numbers)
        header[name] = {"dtype": "I32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def write(folder, examples):
    """Writes the file of `examples["train"]` and `examples["test"]` sequences into `folder`, under
    its SHA-256. Returns the task of a job's spec."""
    draw = random.Random(5)
    tokens, targets, split, counts = [], [], [], {name: 0 for name in examples}
    for place, (name, some) in enumerate(examples.items()):
        for _ in range(some):
            first = draw.randrange(WORDS)
            words = [1 + (first + i) % WORDS for i in range(LENGTH)]
            # About a third of the positions have no target.
            labels = [word % WORDS if draw.random() < 0.67 else -1 for word in words]
            tokens += words
            targets += labels
            split.append(place)
            counts[name] += sum(label >= 0 for label in labels)
    every = sum(examples.values())
    data = tensor_file(
        {"name": "cycle", "vocabulary": str(WORDS + 1), "classes": str(WORDS), "chance": "0.125",
         "repeats": "allowed"},
        {"tokens": ([every, LENGTH], tokens), "targets": ([every, LENGTH], targets),
         "split": ([every], split)})
    name = hashlib.sha256(data).hexdigest()
    # In one step, because other jobs may read the file.
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as made:
        made.write(data)
    os.replace(made.name, folder / name)
    return {"chance": 0.125, "classes": WORDS, "data": "cycle", "file": name, "first_label": 0,
            "label_space": "exact", "length": LENGTH, "name": "own", "padded": False,
            "scored_classes": "all", "targets": "position", "test": "test",
            "test_examples": examples["test"], "test_targets": counts["test"],
            "train_examples": examples["train"], "train_targets": counts["train"], "version": 1,
            "vocabulary": WORDS + 1}
