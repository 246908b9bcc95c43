"""Trainers that are forked from one that has loaded LibTorch: the same results as those that load
it themselves, processes that look the same, and no job that suffers if one of them is killed."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sys
import unittest
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from pelab_harness import BIN, Case, alive, processes, tiny_sweep, wait_until  # noqa: E402
from preloaded import Preloaded  # noqa: E402


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def variables(pid):
    text = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode()
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


class Preload(Case):
    def preloaded(self, agent):
        return [pid for pid in processes("pelab-trainer", " preload") if parent(pid) == agent.pid]

    def begin(self, *options, epochs=400, seeds="0..1", env=None):
        """Starts a coordinator, a worker and a sweep of long jobs, and waits until both train."""
        self.server()
        agent = self.worker("w", 2, *options, env=env)
        self.submit(tiny_sweep(epochs=epochs, train_examples=256, pes="[rope]", seeds=seeds))
        wait_until(lambda: self.query("SELECT count(DISTINCT job_id) FROM v_curves")[0][0] == 2, 60,
                   "the first epochs of two jobs")
        return agent

    def test_results_and_capabilities_are_those_of_trainers_that_load_libtorch(self):
        results, told = {}, {}
        for mode in ("off", "on"):
            self.db = self.folder / f"{mode}.db"
            self.socket = f"unix:{self.folder}/{mode}.s"
            self.server()
            worker = self.worker(mode, 2, "--preload", mode)

            def parents():
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    return {parent(pid) for pid in self.trainers()}
            # Two at once, then one in the slot of another.
            self.submit(tiny_sweep(epochs=2, train_examples=256, pes="[rope]", seeds="0..2"))
            self.assertEqual(wait_until(parents, 30, "a trainer"), {worker.pid})
            self.wait_finished(3)
            # It would be gone if a fork had failed and its trainer had been spawned.
            self.assertEqual(len(self.preloaded(worker)), 1 if mode == "on" else 0)
            results[mode] = self.results()
            (told[mode],) = self.query("SELECT capabilities_json FROM workers")
        self.assertEqual(results["on"], results["off"])
        self.assertEqual(told["on"], told["off"])

    def test_kernels_that_were_chosen_at_the_load_are_told(self):
        """A trainer that was loaded with old kernels of OpenBLAS restarts itself with this
        variable, which no request has yet."""
        trainer = BIN / "pelab-trainer"
        chosen = {"OPENBLAS_CORETYPE": "Haswell"}
        with unittest.mock.patch.dict(os.environ, chosen):
            preloaded = Preloaded(trainer)
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("OPENBLAS_CORETYPE", None)
            told = json.loads(preloaded.run([trainer, "capabilities"]).stdout)
        self.assertEqual(told["environment"], chosen)

    def test_trainers_look_like_others(self):
        """And they end with the worker, also if it is killed."""
        agent = self.begin(env={"PELAB_TOKEN": "a-token-that-no-trainer-may-see"})
        self.assertIn("PELAB_TOKEN", variables(agent.pid))
        (preloaded,) = self.preloaded(agent)
        trainers = self.trainers()
        self.assertEqual(len(trainers), 2)
        ids = {variables(preloaded)["PELAB_TRAINER_ID"]}
        for pid in trainers:
            self.assertNotIn("PELAB_TOKEN", variables(pid))
            self.assertEqual(parent(pid), agent.pid)
            self.assertEqual(os.getpgid(pid), pid, "each has a process group of its own")
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            self.assertEqual(words[:2], [str(BIN / "pelab-trainer").encode(), b"run"])
            self.assertIn(b"--parent-fd", words)
            self.assertTrue(os.readlink(f"/proc/{pid}/cwd").startswith(str(self.folder / "w")))
            ids.add(variables(pid)["PELAB_TRAINER_ID"])
        self.assertEqual(len(ids), 3, "each is marked by an id of its own")
        self.assertNotIn("PELAB_TOKEN", variables(preloaded))
        agent.kill()
        wait_until(lambda: not any(alive(pid) for pid in [preloaded, *trainers]), 10,
                   "the trainers' end")

    def test_trainers_go_on_if_it_is_killed_and_later_ones_start(self):
        agent = self.begin(epochs=20, seeds="0..2")
        (first,) = self.preloaded(agent)
        trainers = self.trainers()
        os.kill(first, signal.SIGKILL)
        self.assertTrue(all(alive(pid) for pid in trainers))
        self.wait_finished(3)
        self.assert_complete(3, 20)
        # All three may have been forked before the kill.
        self.submit(tiny_sweep(epochs=2, name="second", seeds="[7]", pes="[rope]"))
        self.wait_finished(4)
        (second,) = self.preloaded(agent)
        self.assertNotEqual(first, second)
        self.assertEqual(self.query("SELECT DISTINCT outcome FROM v_attempts"), [("succeeded",)])

    def test_a_trainer_that_is_replaced_is_loaded_anew(self):
        trainer = self.folder / "bin" / "pelab-trainer"
        trainer.parent.mkdir()
        shutil.copy2(BIN / "pelab-trainer", trainer)
        agent = self.begin("--trainer", trainer, epochs=2, seeds="0..1")
        (first,) = self.preloaded(agent)
        self.wait_finished(2)
        shutil.copy2(BIN / "pelab-trainer", trainer.with_suffix(".new"))
        os.replace(trainer.with_suffix(".new"), trainer)
        self.submit(tiny_sweep(epochs=2, name="second", seeds="[7]", pes="[rope]"))
        self.wait_finished(3)
        (second,) = self.preloaded(agent)
        self.assertNotEqual(first, second)
        self.assertFalse(alive(first))

    def test_a_script_around_the_trainer_sees_every_job(self):
        script = self.write("trainer", f'#!/bin/sh\necho "$1" >> {self.folder}/seen\n'
                                       f'exec {BIN / "pelab-trainer"} "$@"\n')
        script.chmod(0o755)
        agent = self.begin("--trainer", script)
        self.assertEqual(self.preloaded(agent), [])
        self.assertEqual((self.folder / "seen").read_text().split(), ["capabilities", "run", "run"])


if __name__ == "__main__":
    unittest.main()
