"""A test case with a database of trained jobs. They are trained once for all tests of a file; each
test gets a copy."""

import atexit
import pathlib
import shutil

from pelab_harness import Case, tiny_sweep, wait_until

_trained = {}  # (way, sweep) -> folder


def _train(case):
    maker = Case("setUp")
    maker.setUp()
    try:
        case.train(maker)
        folder = pathlib.Path(str(maker.folder) + "-trained")
        shutil.copytree(maker.folder, folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    finally:
        maker.doCleanups()


class TrainedCase(Case):
    """The test's folder has the database COPY with the jobs of SWEEP, which succeeded, and one job
    that failed."""

    SWEEP = tiny_sweep() + "analyses: [head_ablation, layer_ablation]\n"  # four jobs
    COPY = "pelab.db"

    @classmethod
    def train(cls, maker):
        """Fills the database of `maker`, and ends every program that it starts."""
        maker.server()
        maker.worker(slots=2)
        maker.submit(cls.SWEEP)
        maker.submit(tiny_sweep(name="failing", seeds="[7]", pes="[nope]", epochs=2), "--set",
                     "train.lr=1000", "--set", "train.weight_decay=1")
        wait_until(lambda: maker.states() == {"succeeded": 4, "failed": 1}, 60, "the jobs")
        maker.stop_all()

    @classmethod
    def trained(cls):
        """The folder of the trained database, which no test may change."""
        key = cls.train.__func__, cls.SWEEP
        if key not in _trained:
            _trained[key] = _train(cls)
        return _trained[key]

    @classmethod
    def setUpClass(cls):
        cls.trained()

    def setUp(self):
        super().setUp()
        shutil.copy(self.trained() / "pelab.db", self.folder / self.COPY)
        shutil.copytree(self.trained() / "pelab.db.artifacts",
                        self.folder / f"{self.COPY}.artifacts")


class RunCase(TrainedCase):
    """The same with the jobs that `pelab run` has trained from the file tiny.yaml, and no other."""

    @classmethod
    def train(cls, maker):
        maker.ok(maker.run_sweep(maker.write("tiny.yaml", cls.SWEEP)))

    def setUp(self):
        super().setUp()
        self.sweep = self.write("tiny.yaml", self.SWEEP)
