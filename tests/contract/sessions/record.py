#!/usr/bin/python3
"""Records what a worker and a coordinator say to each other, for the test that replays the sessions
of earlier releases (tests/contract/rpc/releases_test.cc):

    tests/contract/sessions/record.py --bin OLD/build/release/bin --proto OLD/proto \\
        --out tests/contract/sessions/protocol_1.jsonl

It starts the coordinator and the worker of --bin in a temporary folder, with this program between
them, and trains a sweep of two jobs. Each line of the output is a message with who sent it, as JSON
of Protobuf; the first line is the sweep's document. It needs python3-grpcio, python3-protobuf and
protoc.
"""

import argparse
import concurrent.futures
import importlib
import json
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

import grpc
from google.protobuf import json_format

DOCUMENT = """\
name: recorded
protocol: clean
pe: [rope]
task: {name: distance, length: 16, vocabulary: 40, max_distance: 12, train_examples: 64,
       test_examples: 64}
seed: [0, 1]
model: {d_model: 8, d_ff: 16, heads: 2, layers: 2, max_len: 16, dropout: 0}
train: {epochs: 2, batch_size: 8}
analyses: [head_ablation, layer_ablation]
"""
PATIENCE = 120  # seconds for the whole sweep


def messages(proto, folder):
    """The module of fleet.proto."""
    files = [str(path) for path in sorted(proto.glob("pelab/v1/*.proto"))]
    subprocess.run(["protoc", f"-I{proto}", f"--python_out={folder}", *files], check=True)
    sys.path.insert(0, str(folder))
    return importlib.import_module("pelab.v1.fleet_pb2")


class Tap(grpc.GenericRpcHandler):
    """Passes every call on as bytes, and notes those of Fleet."""

    def __init__(self, channel, fleet):
        self.channel, self.fleet = channel, fleet
        self.lines, self.lock = [], threading.Lock()

    def note(self, sender, message):
        with self.lock:
            self.lines.append({"from": sender, "message": json_format.MessageToDict(
                message, preserving_proto_field_name=True)})

    def service(self, details):
        method = details.method
        sent, answered = {
            "/pelab.v1.Fleet/Session": (self.fleet.WorkerMessage, self.fleet.CoordinatorMessage),
            "/pelab.v1.Fleet/PutArtifact": (self.fleet.PutArtifactRequest,
                                            self.fleet.PutArtifactResponse),
        }.get(method, (None, None))

        def noted(stream, sender, kind):
            for data in stream:
                if kind is not None:
                    self.note(sender, kind.FromString(data))
                yield data

        def call(requests, context):
            onward = self.channel.stream_stream(method)(noted(requests, "worker", sent))
            context.add_callback(onward.cancel)
            try:
                yield from noted(onward, "coordinator", answered)
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())

        return grpc.stream_stream_rpc_method_handler(call)


def wait(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"record.py: gave up waiting for {what}")
        time.sleep(0.05)


def record(programs, fleet, folder):
    (folder / "sweep.yaml").write_text(DOCUMENT)
    coordinator, tapped = f"unix:{folder}/c", f"unix:{folder}/t"
    tap = Tap(grpc.insecure_channel(coordinator), fleet)
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), handlers=(tap,))
    server.add_insecure_port(tapped)
    started = []

    def start(program, *arguments):
        log = open(folder / f"{program}.log", "w")  # noqa: SIM115: it lives as long as the program
        started.append(subprocess.Popen([programs / program, *arguments], stdout=log, stderr=log))
        return started[-1]

    try:
        start("pelab-server", "--db", str(folder / "pelab.db"), "--listen", coordinator)
        wait((folder / "c").exists, "the coordinator")
        server.start()
        worker = start("pelab-worker", "--server", tapped, "--workdir", str(folder / "work"),
                       "--cpu-slots", "1", "--threads-per-slot", "1", "--name", "recorded")
        subprocess.run([programs / "pelab", "--server", coordinator, "submit",
                        folder / "sweep.yaml"], check=True, stdout=subprocess.DEVNULL)
        database = sqlite3.connect(f"file:{folder}/pelab.db?mode=ro", uri=True)
        wait(lambda: database.execute("SELECT count(*) FROM v_jobs WHERE state <> 'succeeded'"
                                      ).fetchone() == (0,), "the jobs")
        worker.terminate()  # so that its goodbye is recorded too
        worker.wait(PATIENCE)
    finally:
        for process in started:
            process.kill()
            process.wait()
        server.stop(0)
    return [{"from": "person", "document": DOCUMENT}, *tap.lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="the release's programs")
    parser.add_argument("--proto", type=pathlib.Path, required=True, help="the release's proto")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pelab-") as folder:
        folder = pathlib.Path(folder)
        lines = record(options.bin.resolve(), messages(options.proto, folder), folder)
    options.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{options.out}: {len(lines)} lines")


if __name__ == "__main__":
    main()
