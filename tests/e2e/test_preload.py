"""Trainers that are forked from one that has loaded LibTorch: the same results as those that load
it themselves, processes that look the same, and no job that suffers if one of them is killed."""

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

    def test_results_are_those_of_trainers_that_load_libtorch(self):
        results = {}
        for mode in ("off", "on"):
            self.db = self.folder / f"{mode}.db"
            self.socket = f"unix:{self.folder}/{mode}.s"
            self.server()
            worker = self.worker(mode, 2, "--preload", mode)
            self.submit(tiny_sweep())
            self.wait_finished(4)
            # It would be gone if a fork had failed and its trainer had been spawned.
            self.assertEqual(len(self.preloaded(worker)), 1 if mode == "on" else 0)
            results[mode] = self.results()
        self.assertEqual(results["on"], results["off"])

    def test_capabilities_are_those_of_a_trainer_that_loads_libtorch(self):
        self.server()
        agents = [self.worker(mode, 1, "--preload", mode) for mode in ("off", "on")]
        told = wait_until(lambda: (rows := self.query("SELECT capabilities_json FROM workers"))[1:]
                          and rows, 30, "both workers")
        self.assertEqual(told[0], told[1])
        self.assertEqual([len(self.preloaded(agent)) for agent in agents], [0, 1])

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

    def test_trainers_go_on_if_it_is_killed_and_later_ones_start(self):
        agent = self.begin(epochs=30, seeds="0..3")
        (first,) = self.preloaded(agent)
        trainers = self.trainers()
        os.kill(first, signal.SIGKILL)
        self.assertTrue(all(alive(pid) for pid in trainers))
        self.wait_finished(4)
        self.assert_complete(4, 30)
        (second,) = self.preloaded(agent)
        self.assertNotEqual(first, second)
        self.assertEqual(self.query("SELECT DISTINCT outcome FROM v_attempts"), [("succeeded",)])

    def test_everything_ends_with_the_worker(self):
        agent = self.begin()
        pids = [*self.preloaded(agent), *self.trainers()]
        self.assertEqual(len(pids), 3)
        agent.kill()
        wait_until(lambda: not any(alive(pid) for pid in pids), 10, "the trainers' end")

    def test_a_trainer_that_is_replaced_is_loaded_anew(self):
        trainer = self.folder / "bin" / "pelab-trainer"
        trainer.parent.mkdir()
        shutil.copy2(BIN / "pelab-trainer", trainer)
        agent = self.begin("--trainer", trainer, epochs=12, seeds="0..1")
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

    def test_it_can_be_turned_off(self):
        agent = self.begin("--preload", "off")
        self.assertEqual(self.preloaded(agent), [])
        for pid in self.trainers():
            self.assertEqual(parent(pid), agent.pid)


if __name__ == "__main__":
    unittest.main()
