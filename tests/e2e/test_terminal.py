"""The output of every command on a terminal of 80 and of 200 columns, with and without color,
compared with the files in tests/golden/terminal. A pipe gets the same output as a terminal of 80
columns without color.

    PELAB_BIN=build/release/bin python3 tests/e2e/test_terminal.py --update

writes the files again; review the difference before you commit it. The results are made up
(pelab-populate), so they are the same on every machine. Values that `pelab run` trains here differ
between machines and appear as #."""

import difflib
import fcntl
import os
import pathlib
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from forked_program import ForkedProgram  # noqa: E402
from made_up import made_up  # noqa: E402
from pelab_harness import BIN, SOURCE, Case, tiny_sweep, wait_until  # noqa: E402

GOLDEN = SOURCE / "tests/golden/terminal"
LOOKS = [(80, False), (80, True), (200, False), (200, True)]

SWEEP = """\
name: heads
protocol: clean
pe: [nope, rope, alibi]
task:
  - {name: distance, length: 40, vocabulary: 64, max_distance: 36,
     train_examples: 5000, test_examples: 1000}
  - {name: counting, length: 40, vocabulary: 64, triggers: 8,
     train_examples: 4000, test_examples: 1000}
seed: [0, 1, 2]
model: {layers: 3, heads: 4, d_model: 64, d_ff: 128, dropout: 0, max_len: 40, readout: last}
train: {epochs: 20, batch_size: 64, lr: 3e-3}
analyses: [head_ablation, layer_ablation, cumulative_ablation]
"""
OTHER = SWEEP.replace("name: heads", "name: other").replace("seed: [0, 1, 2]", "seed: [5]").replace(
    "[nope, rope, alibi]", "[relative]")

# Its jobs differ in more than encoding, task and seed.
AXIS = """\
name: axis
protocol: clean
pe: [nope, alibi, {name: partial_rope, heads: [1, 2]}]
task: {name: distance, length: 40, vocabulary: 64, max_distance: 36,
       train_examples: 5000, test_examples: 1000}
seed: [0, 1]
model: {layers: 2, heads: 4, d_model: 64, d_ff: 128, dropout: 0, max_len: 40, readout: last}
train: {epochs: 20, batch_size: 64}
axes: {train.lr: [1e-3, 3e-3]}
analyses: [head_ablation]
"""
AXIS_READING = """
submit axis.yaml --dry-run
status axis
jobs axis
results axis
results axis --seeds
results axis --top 2
curves axis
ablation axis
ablation axis --where 'pe=nope and train.lr=0.003'
deposits axis
""".strip().splitlines()

# Commands on the file, without a coordinator.
READING = """
status
status heads
status nosuch
jobs heads
jobs heads --state failed
jobs --where 'pe=rope and seed=0'
jobs --where 'pe=rope and'
logs 2
results heads
results heads --seeds
results heads --metric 'best_test_accuracy,epochs_to(0.5),gini'
results heads --group-by pe --interval bootstrap
results heads --compare pe=rope --with pe=nope
results --metric nosuch
curves heads
curves 1
curves 1 --metric train_loss
diff 1 10
diff 1 99
ablation 1
ablation heads
ablation heads --strip
ablation 1 --metric nll_drop
deposits heads
deposits heads --by-layer
deposits 1 --seeds
analyses heads
analyses heads --name layer_ablation
analyses heads --name cumulative_ablation
results heads --metric layer_drop(0),greedy_accuracy(2)
artifacts heads
catalog
catalog pe
catalog pe rope
catalog pe nosuch
workers
db info
db check
db migrate
report heads --out report.html
report heads --out report.html
export heads --out exported
import other.db
import other.db
import nosuch.db
submit heads.yaml --dry-run
submit wrong.yaml --dry-run
workers drain w0000001
frob
--version
""".strip().splitlines()

# Of those, the commands whose output changes from run to run.
CHANGING = ("report", "export", "import")

QUEUES = """\
[queue.gpu]
time_limit = "4h"
max_allocations = 8
max_waiting = 3
worker = ["--server", "gpu-head:7470"]
workdir = "/scratch/pelab"
[queue.cpu]
time_limit = "30m"
device = "cpu"
worker = []
workdir = "/tmp"
"""

# Commands on a coordinator without workers.
STEERING = """
status heads
submit tiny.yaml
submit tiny.yaml
jobs tiny
pause tiny
status tiny
resume tiny
priority tiny 5
extend tiny --seed 7
retry heads
cancel --job 1
cancel tiny
cancel tiny
analyze heads --analysis layer_ablation
workers
workers drain w0000001
alloc list
alloc add queues.toml
alloc pause gpu --reason maintenance
alloc list
alloc list gpu
alloc dry-run
alloc resume gpu
alloc remove cpu
alloc remove gpu --cancel-waiting
alloc list
alloc resume cpu
alloc add wrong.toml
status
db info
db backup copy.db
logs 999
""".strip().splitlines()


class Terminal(Case):
    def setUp(self):
        super().setUp()
        try:
            for end in pty.openpty():
                os.close(end)
        except OSError as error:  # for example in a chroot without /dev/pts
            self.skipTest(f"there are no pseudo-terminals here: {error}")
        self.write("heads.yaml", SWEEP)
        self.write("other.yaml", OTHER)
        self.write("axis.yaml", AXIS)
        self.write("tiny.yaml", tiny_sweep())
        self.write("queues.toml", QUEUES)
        self.write("wrong.toml", QUEUES.replace("max_waiting", "max_wating"))
        self.write("wrong.yaml", SWEEP.replace("pe: [nope, rope, alibi]",
                                               "pe: [nope, rop]").replace("seed:", "seeds:"))

    def populate(self, sweep, db, *options):
        made = made_up(sweep, (self.folder / sweep).read_text(), *options)
        shutil.copy(made, self.folder / db)

    def on_terminal(self, arguments, columns, color):
        """The output of the command on a terminal, with both streams on it."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        env = {k: v
               for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "PELAB_SERVER")}
        env.update({"TERM": "xterm-256color"} if color else {"TERM": "xterm-256color",
                                                             "NO_COLOR": "1"})
        with open(os.devnull) as nothing, open(slave, "wb", buffering=0) as terminal:
            process = ForkedProgram.of(BIN / "pelab").start(
                arguments, (nothing, terminal, terminal), self.folder, env)
        self.started.append(process)
        sent = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            sent += piece
        os.close(master)
        return sent.decode(), process.wait(60)

    def piped(self, arguments):
        env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "PELAB_SERVER")}
        reading, writing = os.pipe()
        with open(os.devnull) as nothing, open(writing, "wb", buffering=0) as sink:
            process = ForkedProgram.of(BIN / "pelab").start(
                arguments, (nothing, sink, sink), self.folder, env)
        self.started.append(process)
        with open(reading, "rb") as pipe:
            return pipe.read().decode(), process.wait(60)

    def shown(self, text):
        """The output without the parts that depend on the day, the machine or the version. An
        escape is shown as ␛."""
        text = text.replace("\r\n", "\n")
        # Text that was drawn over is not visible any more.
        text = re.sub(r"(?s)^.*\x1b\[\d+A\x1b\[J", "", text)
        text = re.sub(r"[^\n]*\r\x1b\[K", "", text)
        text = text.replace(str(self.folder), "FOLDER").replace("\x1b", "␛")
        text = re.sub(r"\b\d+\.\d+\.\d+(-\w+)?\b( \(commit [^)]*\))?", "VERSION", text)
        text = re.sub(r"\d+(?= bytes\b)|(?<=bytes)( +\d+)$",
                      lambda m: re.sub(r"\d", "#", m.group()), text, flags=re.MULTILINE)
        text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "DATE TIME UTC", text)
        return text

    def transcript(self, commands, columns, color, mask=lambda text: text, check_pipe=False):
        text = ""
        for command in commands:
            arguments = shlex.split(command)
            sent, status = self.on_terminal(arguments, columns, color)
            drawn = mask(self.shown(sent))
            if check_pipe and arguments[0] not in CHANGING:
                piped, _ = self.piped(arguments)
                self.assertEqual(mask(self.shown(piped)), drawn, f"pelab {command}, in a pipe")
            text += (f"$ pelab {command}\n{drawn}" + (f"(exit status {status})\n" if status else "")
                     + "\n")
        return text

    def hold(self, name, columns, color, text):
        path = GOLDEN / f"{name}_{columns}{'_color' if color else ''}.txt"
        if "--update" in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            return
        golden = path.read_text() if path.exists() else ""
        if text != golden:
            self.fail("".join(["\n",
                               *difflib.unified_diff(golden.splitlines(True), text.splitlines(True),
                                                     str(path), "drawn", n=2)]))


class Golden(Terminal):
    """The tests are generated below, one for each combination of width and color."""


class Live(Terminal):
    def test_a_grid_while_it_is_watched_and_nothing_of_it_afterwards(self):
        self.populate("heads.yaml", "pelab.db", "--fail-every", "7", "--open-every", "5")
        self.server()
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
        watch = subprocess.Popen([BIN / "pelab", "status", "heads", "--watch", "--db", self.db],
                                 cwd=self.folder, stdin=slave, stdout=slave, stderr=slave,
                                 start_new_session=True, env={**env, "TERM": "xterm-256color"})
        self.started.append(watch)
        os.close(slave)
        os.set_blocking(master, False)
        drawn = b""

        def draws(text):
            nonlocal drawn
            try:
                drawn += os.read(master, 65536)
            except (BlockingIOError, OSError):
                pass
            return text in drawn.decode(errors="replace")

        wait_until(lambda: draws("no worker is connected"), 20, "the reason why it waits")
        wait_until(lambda: draws("test accuracy 0-1 by epoch"), 20, "the grid")
        self.assertRegex(drawn.decode(), r"rope  +\S*✕\S*✓")
        self.assertIsNone(watch.poll())
        self.ok(self.pelab("cancel", "heads"))  # the sweep that it follows ends
        self.assertEqual(watch.wait(20), 3, drawn.decode())
        wait_until(lambda: draws("16 of 18 jobs succeeded") or draws(" of 18 jobs succeeded"), 20,
                   "the end")
        self.assertIn("\x1b[J", drawn.decode().rsplit(" of 18 jobs succeeded", 1)[0][-400:],
                      "the drawing is erased")
        os.close(master)

    def test_help_fits_a_terminal_of_80_columns(self):
        helps, _ = self.on_terminal(["--help"], 80, True)
        commands = re.findall(r"(?m)^  ([a-z]+) ",
                              helps.split("Subcommands:")[1].split("Examples:")[0])
        self.assertGreater(len(commands), 20)
        for command in [[], *([name] for name in commands)]:
            for columns in (80, 200):
                text, status = self.on_terminal([*command, "--help"], columns, True)
                self.assertEqual(status, 0)
                for line in text.splitlines():
                    self.assertLessEqual(len(line), columns,
                                         f"pelab {' '.join(command)} --help: {line}")


def reading(columns, color):
    def test(self):
        self.populate("heads.yaml", "pelab.db", "--fail-every", "7", "--open-every", "5",
                      "--log", "epoch 0\nepoch 1\n\x1b[31mred\n")
        self.populate("other.yaml", "other.db")
        self.hold("reading", columns, color,
                  self.transcript(READING, columns, color,
                                  check_pipe=(columns, color) == (80, False)))
    return test


def axis(columns, color):
    def test(self):
        self.populate("axis.yaml", "pelab.db", "--open-every", "5")
        self.hold("axis", columns, color, self.transcript(AXIS_READING, columns, color))
    return test


def steering(columns, color):
    def test(self):
        self.populate("heads.yaml", "pelab.db", "--fail-every", "7")
        self.server()
        self.hold("steering", columns, color, self.transcript(STEERING, columns, color))
    return test


class Training(Terminal):
    @staticmethod
    def mask(text):
        text = re.sub(r"\d+\.\d+s?", lambda m: "#" * len(m.group()), text)
        text = re.sub(r"(?m)^(.*[┤│]).*$", r"\1 (lines)", text)
        text = re.sub(r"(?m)^layer .*$", "layer (drops)", text)
        text = re.sub(r"(?m)^0: at most .*\n", "", text)
        return re.sub(r"(?m)^(.*tiny: \d/4 jobs.*\n)+", "(progress)\n", text)

    def test_run(self):
        """The first run trains; for the later ones everything is stored."""
        for columns, color in LOOKS:
            text = self.transcript(["run tiny.yaml --db trained.db"], columns, color, self.mask)
            self.hold("run", columns, color, text)


for columns, color in LOOKS:
    for make in (reading, axis, steering):
        setattr(Golden, f"test_{make.__name__}_{columns}{'_color' if color else ''}",
                make(columns, color))


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--update"])
