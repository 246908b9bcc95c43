"""What is stored: safetensors files, and a job's figures through the documented views."""
import hashlib
import json
import pathlib
import sqlite3
import struct
import subprocess
import tempfile

import numpy as np

from .ablation import Data

TYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8"}


class Wrong(Exception):
    """Something that is asked for or read is not as it must be; the message says what, where and
    what is needed."""


def read_safetensors(path):
    """({name: array}, metadata)."""
    content = pathlib.Path(path).read_bytes()
    if len(content) < 8:
        raise Wrong(f"{path}: {len(content)} bytes are no safetensors file")
    size = struct.unpack("<Q", content[:8])[0]
    try:
        header = json.loads(content[8:8 + size])
    except ValueError as error:
        raise Wrong(f"{path}: the header is not JSON: {error}") from error
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] not in TYPES:
            raise Wrong(f"{path}: {name} is {entry['dtype']}; known: {', '.join(TYPES)}")
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(content[begin:end],
                                      TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def read_weights(path, spec=None):
    """(spec, tensors). With `spec`, the file must be of that job."""
    tensors, metadata = read_safetensors(path)
    if "spec" not in metadata:
        raise Wrong(f"{path}: no spec among its metadata; kept weights have one")
    found = json.loads(metadata["spec"])
    if spec is not None and found != spec:
        raise Wrong(f"{path}: its spec is another job's")
    return found, tensors


def label_classes(task):
    """(the smallest label, how many there are)."""
    if task["name"] == "counting":
        return 0, task["max_count"] + 1
    return (0, task["max_distance"]) if task["definition"] == "clean" else (2, task["max_gap"])


def chance(task):
    """1 / the number of classes that occur and are scored."""
    smallest, count = label_classes(task)
    first = 0 if task["label_space"] == "exact" else smallest
    return 1 / (count - (first == 0 and task["scored_classes"] == "nonzero"))


def read_data(path, spec):
    """A file of `pelab-trainer dataset` as Data, and its data_sha256, which is computed anew."""
    tensors, metadata = read_safetensors(path)
    missing = {"tokens", "lengths", "targets", "split", "triggers"} - tensors.keys()
    if missing:
        raise Wrong(f"{path}: no {', '.join(sorted(missing))}; made by pelab-trainer dataset?")
    task = spec["task"]
    found = json.loads(metadata["spec"])["task"]
    if found != task:
        names = sorted(name for name in {*found, *task} if found.get(name) != task.get(name))
        raise Wrong(f"{path}: of other data than the job's: task fields {', '.join(names)} differ")
    train = int((tensors["split"] == 0).sum())
    digest = hashlib.sha256(struct.pack("<qq", tensors["tokens"].shape[1], train))
    for name in ("tokens", "lengths", "targets"):
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    if digest.hexdigest() != metadata.get("data_sha256"):
        raise Wrong(f"{path}: data_sha256 is {metadata.get('data_sha256')}, its content's is "
                    f"{digest.hexdigest()}")
    if (np.diff(tensors["split"]) < 0).any():
        raise Wrong(f"{path}: training examples must come first")
    classes = tensors["targets"].astype(np.int64)
    if task["label_space"] == "exact":
        classes = classes - label_classes(task)[0]
    scored = classes != 0 if task["scored_classes"] == "nonzero" else np.ones(len(classes), bool)
    data = Data(tensors["tokens"], tensors["lengths"].astype(np.int64), classes, train, scored,
                tuple(tensors["triggers"].tolist()))
    return data, digest.hexdigest()


def run_program(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def make_data(trainer, spec, run=run_program):
    """As read_data, of a file that `pelab-trainer dataset` writes."""
    with tempfile.TemporaryDirectory(prefix="pelab-") as folder:
        job, out = pathlib.Path(folder, "job.json"), pathlib.Path(folder, "data.safetensors")
        job.write_text(json.dumps(spec), encoding="utf-8")
        result = run([trainer, "dataset", "--spec", job, "--out", out])
        if result.returncode != 0:
            raise Wrong(
                f"{trainer} dataset ended with {result.returncode}: {result.stdout}{result.stderr}")
        return read_data(out, spec)


class Store:
    """A database, read-only."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        if not self.path.is_file():
            raise Wrong(f"{path}: no such file")
        self.connection = sqlite3.connect(f"file:{self.path.resolve()}?mode=ro", uri=True,
                                          timeout=10)
        self.connection.row_factory = sqlite3.Row

    def rows(self, sql, *values):
        return [dict(row) for row in self.connection.execute(sql, values)]

    def jobs(self):
        return [row["job_id"] for row in self.rows(
            "SELECT job_id FROM v_jobs WHERE state = 'succeeded' ORDER BY job_id")]

    def job(self, job_id):
        rows = self.rows("SELECT * FROM v_jobs WHERE job_id = ?", job_id)
        if not rows:
            raise Wrong(f"{self.path}: no job {job_id}; SELECT job_id FROM v_jobs lists them")
        return rows[0]

    def weights(self, job_id):
        """The path of a job's kept weights; its content is what its name says."""
        rows = self.rows(
            "SELECT sha256 FROM v_artifacts WHERE job_id = ? AND name = 'weights.safetensors'",
            job_id)
        if not rows:
            raise Wrong(f"{self.path}: job {job_id} has no kept weights")
        sha256 = rows[0]["sha256"]
        path = pathlib.Path(f"{self.path}.artifacts", sha256[:2], sha256)
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != sha256:
            raise Wrong(f"{path}: damaged: its SHA-256 is {found}")
        return path

    def data_sha256(self, job_id):
        """What the job's attempts say of their data."""
        rows = self.rows("SELECT DISTINCT environment_json ->> '$.data_sha256' AS found FROM "
                         "v_attempts WHERE job_id = ? AND found IS NOT NULL", job_id)
        return {row["found"] for row in rows}

    def last_test_loss(self, job_id):
        rows = self.rows(
            "SELECT test_loss FROM v_curves WHERE job_id = ? ORDER BY epoch DESC LIMIT 1", job_id)
        return rows[0]["test_loss"] if rows else None

    def ablations(self, job_id):
        """The stored head ablations: each with its parameters, rows by (layer, head) and indices by
        layer."""
        found = self.rows("SELECT * FROM v_analyses WHERE job_id = ? AND name = 'head_ablation' "
                          "ORDER BY analysis_id", job_id)
        for analysis in found:
            if analysis["version"] != 2:
                raise Wrong(f"{self.path}: job {job_id}: head_ablation version "
                            f"{analysis['version']}; known: 2")
            where = "WHERE analysis_id = ?"
            rows = self.rows(f"SELECT * FROM v_head_ablation {where}", analysis["analysis_id"])
            analysis["parameters"] = json.loads(analysis["parameters_json"])
            analysis["matrix"] = {(row["layer"], row["head"]): row for row in rows}
            analysis["deposits"] = {row["layer"]: row
                                    for row in self.rows(f"SELECT * FROM v_deposits {where}",
                                                         analysis["analysis_id"])}
        return found
