"""A test with a database of trained jobs: they are trained once for all tests of a file, and each test has a copy."""

import atexit
import pathlib
import shutil

from pelab_harness import Case, tiny_sweep, wait_until

_trained = {}  # the folder, by sweep


def _train(sweep):
    maker = Case("setUp")
    maker.setUp()
    try:
        maker.server()
        maker.worker(slots=2)
        maker.submit(sweep)
        maker.submit(tiny_sweep(name="failing", seeds="[7]", pes="[nope]", epochs=2), "--set", "train.lr=1000", "--set",
                     "train.weight_decay=1")
        wait_until(lambda: maker.states() == {"succeeded": 4, "failed": 1}, 60, "the jobs")
        for process in reversed(maker.started):
            process.terminate()
            process.wait(10)
        folder = pathlib.Path(str(maker.folder) + "-trained")
        shutil.copytree(maker.folder, folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    finally:
        maker.doCleanups()


class TrainedCase(Case):
    """The jobs of SWEEP, which succeed, and one that fails, in the database COPY of the test's folder."""

    SWEEP = tiny_sweep() + "analyses: [head_ablation, layer_ablation]\n"  # of four jobs
    COPY = "pelab.db"

    @classmethod
    def setUpClass(cls):
        if cls.SWEEP not in _trained:
            _trained[cls.SWEEP] = _train(cls.SWEEP)

    def setUp(self):
        super().setUp()
        shutil.copy(_trained[self.SWEEP] / "pelab.db", self.folder / self.COPY)
        shutil.copytree(_trained[self.SWEEP] / "pelab.db.artifacts", self.folder / f"{self.COPY}.artifacts")
