#!/usr/bin/env python3
"""Writes the inputs of tests/fuzz/corpus that nobody can write by hand: messages, frames, files.
Run it after such a format has changed. It needs protoc, and leaves all other inputs alone.

    tests/fuzz/make_corpus.py"""

import json
import pathlib
import struct
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parents[1] / "proto"

HELLO = """hello { protocol: 1 worker_id: "w" host: "h" version: "1"
  slots { device: "cpu" device_kind: "cpu" pack: 2 }
  capabilities_json: "{\\"pes\\":[{\\"name\\":\\"rope\\",\\"version\\":1}]}" %s }"""
ATTEMPT = "attempt_id: 1 token: 1 sequence: %d time_ms: 5 "
STARTED = """started { start_epoch: 0 epochs: 2 environment_json: "{\\"device\\":\\"cpu\\"}"
  execution { threads: 1 packing: 1 } }"""
EPOCH = """epoch { epoch: %d train_loss: 0.5 train_correct: 40 train_total: 99 test_loss: 0.75
  test_correct: 41 test_total: 97 learning_rate: 0.001 seconds: 0.1 }"""
MATRIX = """head_ablation { version: 2 layers: 2 heads: 2 total: 97 intact_correct: 42
  intact_nll: 1.25 chance: 0.0125 seconds: 0.5 correct: [10, 42, 40, 0] lost: [35, 2, 3, 0]
  gained: [3, 2, 1, 0] nll: [2.5, 1.25, 1.5, 0] nll_standard_error: [0.125, 0, 0, 0]
  missing: [false, false, false, true]
  parameters_json: "{\\"data\\":\\"test\\",\\"hygiene\\":\\"clean\\",\\"max_examples\\":0,\
\\"method\\":\\"zero\\",\\"target\\":\\"head\\"}" }"""
SHA256 = "ab" * 32
FILE = f'artifact {{ name: "weights.safetensors" sha256: "{SHA256}" bytes: 12 }}'
CHECKPOINT = f'checkpoint {{ epoch: 1 sha256: "{SHA256}" bytes: 100 }}'
SUCCEEDED = "finished { outcome: ATTEMPT_OUTCOME_SUCCEEDED wall_seconds: 1.5 }"
FAILED = """finished { outcome: ATTEMPT_OUTCOME_FAILED error_kind: ERROR_KIND_TRAINER_DIED
  error: "it broke" wall_seconds: 1.5 }"""
PREEMPTED = "finished { outcome: ATTEMPT_OUTCOME_PREEMPTED wall_seconds: 1 }"
RESULT = """analysis { name: "layer_ablation" version: 1 parameters_json: "{}"
  result_json: "{\\"lost\\":[1,2]}" seconds: 0.5 }"""
HELD = "held { attempt_id: 1 token: 1 slot: 0 }"

DOCUMENT = """name: %s
pe: [nope, rope]
task: {name: distance, train_examples: 99, test_examples: 97}
seed: [0, 1]
model: {d_model: 8, d_ff: 16, heads: 2, layers: 2}
train: {epochs: 3}
analyses: [head_ablation]
"""
# In the order in which request_fuzz.cc counts them.
METHODS = ["Preview", "Submit", "ListSweeps", "GetSweep", "Cancel", "Pause", "Resume",
           "SetPriority", "Rename", "SetNote", "Delete", "Retry", "Extend", "Analyze",
           "RegisterSheet", "Advance", "ListSheets", "GetSheet", "ListSheetClaims", "PutQueue",
           "RemoveQueue", "PauseQueue", "ResumeQueue", "ListQueues", "ReportQueues", "WorkerGone"]
SETTINGS = '{"time_limit":"4h","workdir":"/w","worker":["--pack","8"],"slots":2}'
SHEET = """name: s
sweep: small.yaml
claims:
  - {id: a, above: {metric: test_accuracy, a: pe=rope, b: pe=nope}}
  - {id: b, most: {metric: deposit, cell: pe=rope}}
"""


def encoded(message: str, text: str) -> bytes:
    files = sorted(PROTO.glob("pelab/v1/*.proto"))
    return subprocess.run(["protoc", f"--encode=pelab.v1.{message}", f"-I{PROTO}", *files],
                          input=text.encode(), stdout=subprocess.PIPE, check=True).stdout


def varint(number: int) -> bytes:
    low = number & 0x7f
    return bytes([low]) if number < 0x80 else bytes([low | 0x80]) + varint(number >> 7)


def crc32c(data: bytes) -> int:
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def events(*bodies: str, first: int = 1) -> str:
    return "events { " + " ".join(f"events {{ {ATTEMPT % number} {body} }}"
                                  for number, body in enumerate(bodies, first)) + " }"


def session(*messages: str, begun: bool = True, seconds: int = 0) -> bytes:
    """An input of event_fuzz.cc."""
    parts = [encoded("WorkerMessage", text) for text in messages]
    return bytes([2 * seconds + (0 if begun else 1)]) + b"".join(
        varint(len(part)) + part for part in parts)


def requests(*calls: tuple[str, str]) -> bytes:
    """An input of request_fuzz.cc."""
    out = b""
    for method, text in calls:
        body = encoded(f"{method}Request", text)
        out += bytes([METHODS.index(method)]) + struct.pack("<H", len(body)) + body
    return out


def submit(name: str, token: str, more: str = "") -> tuple[str, str]:
    return "Submit", f"document: {json.dumps(DOCUMENT % name)} client_token: \"{token}\" {more}"


def frames(*bodies: tuple[int, bytes]) -> bytes:
    """An input of spool_fuzz.cc, whose frames get their headers there."""
    return b"\1" + b"".join(
        bytes([kind]) + struct.pack("<H", len(payload)) + payload for kind, payload in bodies)


def spooled(*bodies: str, first: int = 1) -> list[tuple[int, bytes]]:
    return [(1, encoded("Event", ATTEMPT % number + body))
            for number, body in enumerate(bodies, first)]


def base(sequence: int) -> tuple[int, bytes]:
    return 2, struct.pack("<Q", sequence)


def raw_spool(parts: list[tuple[int, bytes]]) -> bytes:
    out = b"\0"
    for kind, payload in parts:
        body = bytes([kind]) + payload
        out += struct.pack("<II", len(payload), crc32c(body)) + body
    return out


def tensors(header: object, data: bytes, whole: bool = False) -> bytes:
    """An input of safetensors_fuzz.cc: a whole file, or one whose length is filled in there."""
    text = header.encode() if isinstance(header, str) else json.dumps(header).encode()
    if whole:
        return b"\0" + struct.pack("<Q", len(text)) + text + data
    return b"\1" + struct.pack("<H", len(text)) + text + data


def entry(shape: object, offsets: object, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


WHOLE = [STARTED, EPOCH % 0, CHECKPOINT, EPOCH % 1, MATRIX, FILE, SUCCEEDED]
META = {"__metadata__": {"spec": '{"seed":1}', "epoch": "3"}}
CORPUS = {
    "event": {
        "whole": session(events(*WHOLE)),
        "one_by_one": session(*(events(body, first=i) for i, body in enumerate(WHOLE, 1))),
        "failed": session(events(STARTED, EPOCH % 0, FAILED), seconds=10),
        "preempted": session(events(STARTED, EPOCH % 0, CHECKPOINT, PREEMPTED), seconds=10),
        "lost": session(events(STARTED, EPOCH % 0), seconds=60),
        "silent": session(seconds=100),
        "gap": session(events(STARTED), events(EPOCH % 1, first=3)),
        "other_result": session(events(STARTED, EPOCH % 0, EPOCH % 1, RESULT)),
        "not_all": session(events(STARTED, EPOCH % 0, SUCCEEDED)),
        "repeated": session(events(STARTED, EPOCH % 0), events(STARTED, EPOCH % 0, EPOCH % 1)),
        "held": session(HELLO % HELD, events(*WHOLE), begun=False),
        "hello_loads": session(
            HELLO % "", "heartbeat { sequence: 1 %s loads { device: \"cuda:0\" busy_percent: 50 "
            "memory_used: 5 memory_total: 10 energy_joules: 5.5 } gpu_errors { device: \"cuda:0\" "
            "xid: 79 times: 1 } }" % HELD, "goodbye {}", begun=False),
        "log": session(events(STARTED), 'log { attempt_id: 1 token: 1 data: "line\\n\\377" }',
                       'log { attempt_id: 1 token: 1 offset: 400000 data: "later" }'),
        "first_is_no_hello": session(events(*WHOLE), begun=False),
    },
    "request": {
        "submit": requests(submit("new", "t1"), submit("new", "t1"), submit("new", "t2"),
                           submit("small", "t3"), submit("new", "t4", "new_sweep: true")),
        "overrides": requests(submit(
            "o", "t", 'overrides { field: "model.layers" value: "1" } priority: 5 fresh: true')),
        "preview": requests(("Preview", f"document: {json.dumps(DOCUMENT % 'small')} max_jobs: 9")),
        "read": requests(("ListSweeps", "page { limit: 1 }"), ("GetSweep", 'sweep { sweep: "1" }'),
                         ("GetSweep", 'sweep { sweep: "small" }'),
                         ("ListSweeps", 'page { after: "1" }')),
        "cancel": requests(("Cancel", 'sweep { sweep: "small" }'), ("Cancel", 'job: "3"'),
                           ("Retry", 'sweep { sweep: "1" }'), ("Delete", 'sweep { sweep: "1" }')),
        "control": requests(("Pause", 'sweep { sweep: "1" }'), ("Resume", 'sweep { sweep: "1" }'),
                            ("SetPriority", 'sweep { sweep: "1" } priority: -7'),
                            ("Rename", 'sweep { sweep: "1" } name: "other"'),
                            ("SetNote", 'sweep { sweep: "other" } note: "two\\nlines"')),
        "retry": requests(("Retry", 'sweep { sweep: "small" }'), ("Retry", 'job: "4"'),
                          ("Retry", 'job: "4" failed_only: true after: "2"')),
        "extend": requests(("Extend", 'sweep { sweep: "small" } seeds: "5..6" dry_run: true'),
                           ("Extend", 'sweep { sweep: "small" } seeds: "3..6,9"'),
                           ("Cancel", 'job: "2"')),
        "analyze": requests(("Analyze", """sweep { sweep: "1" } analyses { name: "layer_ablation"
            version: 1 parameters_json: "{\\"data\\":\\"test\\",\\"max_examples\\":5}" }"""),
                            ("Analyze", 'jobs { jobs: "1" jobs: "2" } analyses { name: "x" }')),
        "settle": requests(("RegisterSheet", f"document: {json.dumps(SHEET)} sweep_document: "
                            f"{json.dumps(DOCUMENT % 'small')} any_seeds: true slots: 2"),
                           ("Advance", 'sheet { sheet: "1" } begin_round: 1'),
                           ("Advance", 'sheet { sheet: "s" } begin_round: 2 again: true'),
                           ("Cancel", 'sweep { sweep: "s" }'),
                           ("Advance", 'sheet { sheet: "s" } again: true'),
                           ("ListSheets", "page { limit: 1 }"),
                           ("GetSheet", 'sheet { sheet: "s" }'),
                           ("ListSheetClaims", 'sheet { sheet: "1" } last_round: true')),
        "queues": requests(("PutQueue", f'name: "gpu" settings_json: {json.dumps(SETTINGS)}'),
                           ("ReportQueues", 'queues { name: "gpu" allocations { id: "1" phase: '
                            '"waiting" state: "PENDING" } pause_reason: "3 never connected" }'),
                           ("PauseQueue", 'name: "gpu" reason: "maintenance"'),
                           ("RemoveQueue", 'name: "gpu" cancel_waiting: true'),
                           ("ListQueues", ""), ("WorkerGone", 'worker: "gpu1" reason: "over"'),
                           ("ReportQueues", 'queues { name: "gpu" }'),
                           ("ResumeQueue", 'name: "gpu"')),
        "delete": requests(("Delete", 'sweep { sweep: "1" } dry_run: true'),
                           submit("small", "t"), ("Delete", 'sweep { sweep: "1" }')),
    },
    "spool": {
        "whole": frames(*spooled(*WHOLE)),
        "compacted": frames(base(4), *spooled(EPOCH % 1, SUCCEEDED, first=5)),
        "continued": frames(*spooled(STARTED, EPOCH % 0), base(9), *spooled(EPOCH % 1, first=10)),
        "last_number": frames(base(2**64 - 1), *spooled(STARTED, first=0)),
        "backwards": frames(*spooled(STARTED, EPOCH % 0), base(0), *spooled(STARTED)),
        "other_kind": frames(*spooled(STARTED), (3, b"x"), *spooled(EPOCH % 0, first=2)),
        "raw": raw_spool(spooled(STARTED, EPOCH % 0)),
        "torn": raw_spool(spooled(STARTED, EPOCH % 0))[:-5],
    },
    "safetensors": {
        "checkpoint": tensors({**META, "w": entry([2, 3], [0, 24]), "b": entry([], [24, 28]),
                               "n": entry([0, 5], [28, 28], "I64"),
                               "m": entry([3], [28, 31], "U8")}, bytes(31)),
        "file": tensors({**META, "w": entry([2], [0, 8], "I32")}, bytes(8), whole=True),
        "float_size": tensors({"w": entry([2.0], [0, 8])}, bytes(8)),
        "negative_offset": tensors({"w": entry([2], [-8, 0])}, bytes(8)),
        "huge_offset": tensors('{"w":{"dtype":"F32","shape":[2],'
                               '"data_offsets":[0,18446744073709551616]}}', bytes(8)),
        "overflowing_shape": tensors({"w": entry([2**62], [0, 0])}, bytes(8)),
        "long_name": tensors({"n" * 3000: entry([-1], [0, 0])}, b""),
        "no_objects": tensors('{"__metadata__":[],"w":8}', bytes(8)),
        "cut": tensors({**META, "w": entry([2], [0, 8])}, bytes(8), whole=True)[:30],
    },
    "import": {
        # The header's version, then the first pages, where the schema is.
        "other_version": b"." + struct.pack("<I", 60)[:3] + b"\4\0\0\0\0\x7f",
        "page_1": b"." + struct.pack("<I", 100)[:3] + b"\6\0" + b"\x0d\0\0\xff\xff\x01",
        "page_9": b"." + struct.pack("<I", 8 * 4096)[:3] + b"\6\0" + b"\x0d\0\x01\x00\x7f\x01",
        "no_file": b"F",
        "no_database": b"FSQLite format 3\0" + bytes(84),
    },
}


def main() -> None:
    for target, inputs in CORPUS.items():
        folder = HERE / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in inputs.items():
            (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()
