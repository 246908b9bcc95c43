"""The scripts for GPU hosts, where there is no GPU: what they say of a host that lacks something,
with stand-ins for its tools, and that they train, stop and go on, on the CPU."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["PELAB_BIN"]).resolve().parent
HERE = SOURCE / "tests/gpu"
PLAIN_TOOLS = ("bash", "head", "grep", "sort", "cut", "dirname", "realpath", "sed", "awk", "tail",
               "cat", "mkdir")
TORCH = """
class version:
    cuda = {cuda!r}
class cuda:
    is_available = staticmethod(lambda: {sees})
__version__ = "2.11.0"
"""


class HostCase(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tools = self.folder / "tools"
        self.tools.mkdir()
        for tool in PLAIN_TOOLS:
            (self.tools / tool).symlink_to(shutil.which(tool))
        # -S: importing a site's packages takes longer than the scripts' questions.
        self.stand_in("python3", f"exec {sys.executable} -S \"$@\"")
        self.stand_in("nvidia-smi", "echo 'NVIDIA H200, 580.159.04, 143771 MiB'")
        self.stand_in("nvcc", "true")
        self.stand_in("cmake", "echo 'cmake version 3.25.1'")
        self.stand_in("g++", "echo 12")
        self.torch(cuda="13.0", sees=True)
        self.environment = {"PATH": str(self.tools), "PYTHONPATH": str(self.folder / "site"),
                            "PYTHONDONTWRITEBYTECODE": "1", "CUDA_HOME": "/nowhere"}

    def stand_in(self, tool, script):
        path = self.tools / tool
        path.unlink(missing_ok=True)
        path.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        path.chmod(0o755)

    def torch(self, cuda, sees):
        site = self.folder / "site/torch"
        site.mkdir(parents=True, exist_ok=True)
        (site / "__init__.py").write_text(TORCH.format(cuda=cuda, sees=sees))

    def requires(self, what="require_gpu_host"):
        return subprocess.run(
            ["bash", "-c", f"program=try; source {SOURCE}/deploy/gpu-host.sh; {what}"], check=False,
            env=self.environment, capture_output=True, text=True)

    def expect_lacks(self, sentence, what="require_gpu_host"):
        done = self.requires(what)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("try: "), done.stderr)
        self.assertIn(sentence, done.stderr)


class Hosts(HostCase):
    def test_a_host_with_everything(self):
        done = self.requires()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines(),
                         ["GPU: NVIDIA H200, 580.159.04, 143771 MiB", "torch 2.11.0, CUDA 13.0"])

    def test_each_tool_that_is_missing_is_named(self):
        for tool, sentence in (("nvidia-smi", "no NVIDIA driver here"),
                               ("cmake", "cmake is not installed"),
                               ("g++", "g++ is not installed"),
                               ("python3", "python3 is not installed"),
                               ("nvcc", "nvcc is neither in PATH nor in /nowhere/bin")):
            with self.subTest(tool):
                kept = (self.tools / tool).rename(self.folder / "kept")
                self.expect_lacks(sentence)
                kept.rename(self.tools / tool)

    def test_tools_that_are_too_old(self):
        self.stand_in("cmake", "echo 'cmake version 3.22.1'")  # Ubuntu 22.04
        self.expect_lacks("CMake 3.22 is too old; 3.25 is needed")
        self.stand_in("cmake", "echo 'cmake version 4.4.3'")
        self.stand_in("g++", "echo 11")
        self.expect_lacks("g++ 11 is too old; 12 is needed")

    def test_a_driver_without_a_gpu(self):
        self.stand_in("nvidia-smi", "echo 'No devices were found'; exit 6")
        self.expect_lacks("nvidia-smi finds no GPU: No devices were found")

    def test_a_torch_that_does_not_fit(self):
        self.torch(cuda=None, sees=False)  # pip's index of CPU builds
        self.expect_lacks("python3's torch 2.11.0 is a CPU build")
        self.torch(cuda="13.0", sees=False)
        self.expect_lacks("too old or too new for the driver")

    def test_a_build_needs_no_gpu(self):
        (self.tools / "nvidia-smi").unlink()
        self.torch(cuda="13.0", sees=False)
        self.assertEqual(self.requires("require_cuda_build").returncode, 0)

    def test_a_libtorch_that_is_named(self):  # conda, or an unpacked archive
        shutil.rmtree(self.folder / "site")
        self.environment["CMAKE_PREFIX_PATH"] = "/opt/libtorch"
        self.assertEqual(self.requires().returncode, 0)


# A build that makes the trainer below, which says that it has these devices.
BUILDS = """
case $1 in
  --version) echo 'cmake version 3.25.1' ;;
  --build) mkdir -p "$2/bin" && cp {trainer} "$2/bin/pelab-trainer" ;;
esac
"""
TRAINER = """
if [ "$1" = capabilities ]; then echo '{devices}'; exit; fi
echo '{{"event": "hello", "trainer": "1", "libtorch": "2", "device_name": "H200", "parameters": 9,
        "train_examples": 7, "test_examples": 3}}' | tr -d '\n'; echo
for epoch in 0 1 2; do
  echo '{{"event": "epoch", "epoch": '$epoch', "seconds": 2.5, "train_loss": 1, "test_correct": 1,'\
    '"test_total": 2}}'
done
{last}
"""


class Check(HostCase):
    """deploy/cuda-check.sh, with stand-ins for the build and for the trainer."""

    def check(self, devices, last="echo '{\"event\": \"done\"}'"):
        for tool in ("mktemp", "rm", "cp", "nproc", "tr"):
            if not (self.tools / tool).exists():
                (self.tools / tool).symlink_to(shutil.which(tool))
        self.stand_in("trainer", TRAINER.format(devices=devices, last=last))
        self.stand_in("cmake", BUILDS.format(trainer=self.tools / "trainer"))
        return subprocess.run(["bash", SOURCE / "deploy/cuda-check.sh", self.folder / "build"],
                              check=False, env=self.environment, capture_output=True, text=True)

    def test_a_host_with_a_gpu(self):
        done = self.check('{"devices": ["cpu", "cuda:0"]}')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("epoch 2: 2.50 s", done.stdout)
        self.assertIn("a whole job of 100 epochs with its ablation: about 250 s", done.stdout)

    def test_a_libtorch_that_sees_none(self):
        done = self.check('{"devices": ["cpu"]}')
        self.assertEqual((done.returncode, done.stderr),
                         (2, "cuda-check: pelab-trainer was built, but its LibTorch sees no CUDA "
                             'device: {"devices": ["cpu"]}\n'))

    def test_a_training_that_fails(self):
        done = self.check('{"devices": ["cuda:0"]}', "exit 1")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.endswith("cuda-check: training failed\n"), done.stderr)


EPOCHS = "12"  # of a cell that is cut off after three


class Days(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def run_script(self, *command):
        # python3 may be a wrapper that takes longer than what it starts.
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run([str(word) for word in command], check=False, capture_output=True,
                              text=True, timeout=240, env={**os.environ, "PATH": path})

    def test_the_dry_run_lists_stages_minutes_and_files(self):
        done = self.run_script(SOURCE / "deploy/gpu-day.sh", "--dry-run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual({line.split()[0] for line in done.stdout.splitlines()},
                         {"stage", "build", "correct", "speed", "table", "seeds"})

    def test_wrong_arguments_are_told(self):
        for arguments, sentence in ((["--minutes", "ten"], '--minutes is "ten"'),
                                    (["--minutes"], "--minutes needs a value"),
                                    (["sped"], '"sped" is neither a stage nor an option')):
            done = self.run_script(SOURCE / "deploy/gpu-day.sh", *arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(sentence, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_without_a_gpu_every_stage_says_so(self):
        seen = self.run_script(BUILD / "bin/pelab-trainer", "capabilities").stdout
        stand_in = self.folder / "build/bin/pelab-trainer"  # says it without loading LibTorch
        stand_in.parent.mkdir(parents=True)
        stand_in.write_text(f"#!/bin/sh\necho '{seen}'\n")
        stand_in.chmod(0o755)
        for build, stage in ((BUILD, "correct"), *((self.folder / "build", stage) for stage in
                                                   ("correct", "speed", "table", "seeds"))):
            done = self.run_script(SOURCE / "deploy/gpu-day.sh", "--build", build, "--out",
                                   self.folder, "--device", "cuda:7", stage)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertRegex(done.stderr, r"^gpu-day: no CUDA device: pelab-trainer with LibTorch "
                                          r"\S+ sees cpu.*, not cuda:7\n$")

    def test_jobs_are_compared(self):
        found = self.folder / "jobs.json"
        done = self.run_script(sys.executable, HERE / "check_jobs.py", BUILD, "--device", "cpu",
                               "--few", "--pe", "rope", "positions", "--protocol", "clean",
                               "--json", found)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rope, positions = (job["checks"] for job in json.loads(found.read_text()))
        self.assertEqual(set(rope), {"graphs", "again", "forked", "cpu float32", "cpu bf16"})
        self.assertEqual(set(rope) - set(positions), {"forked"})  # the first job alone
        for checks in (rope, positions):
            self.assertEqual(checks["cpu float32"]["figure"], 0)  # the CPU against itself
            self.assertGreater(checks["cpu bf16"]["figure"], 0)

    def table(self, *options):
        return [sys.executable, HERE / "table1.py", BUILD, "--device", "cpu", "--small", "--out",
                self.folder, "--pe", "rope", "--task", "distance", "--precision", "float32",
                "--protocol", "clean", *options]

    def test_a_cell_that_was_cut_off_goes_on(self):
        events = self.folder / "float32-clean-distance-rope-0/events.jsonl"
        with subprocess.Popen([str(word) for word in self.table("--epochs", EPOCHS)],
                              stdout=subprocess.DEVNULL, start_new_session=True) as first:
            for _ in range(3000):
                if events.exists() and events.read_text().count('"epoch"') > 5:
                    break
                time.sleep(0.02)
            os.killpg(first.pid, signal.SIGTERM)  # the trainer writes a checkpoint
            first.wait(60)
        before = max(json.loads(line)["epoch"] for line in events.read_text().splitlines()
                     if '"epoch"' in line and json.loads(line)["event"] == "epoch")
        self.assertLess(before, int(EPOCHS) - 1)
        done = self.run_script(*self.table("--epochs", EPOCHS))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        starts = [json.loads(line)["start_epoch"] for line in events.read_text().splitlines()
                  if json.loads(line)["event"] == "hello"]
        self.assertEqual(len(starts), 2)
        self.assertGreater(starts[1], 0)
        row = json.loads((self.folder / "table1.json").read_text())[0]
        self.assertEqual((row["epochs"], row["done"]), (int(EPOCHS), True))
        self.assertIn(f"{EPOCHS} epochs", done.stdout)
        imported = self.run_script(BUILD / "bin/pelab", "import", self.folder, "--db",
                                   self.folder / "pelab.db", "--output", "json")
        self.assertEqual(imported.returncode, 0, imported.stderr)
        self.assertEqual(json.loads(imported.stdout)["imported"], 1)
        again = self.run_script(*self.table("--epochs", EPOCHS))
        self.assertEqual((again.returncode, again.stdout), (0, done.stdout))

    def test_time_that_is_up_is_no_failure(self):
        done = self.run_script(*self.table("--minutes", "0"))
        self.assertEqual((done.returncode, done.stdout), (75, ""))


if __name__ == "__main__":
    unittest.main()
