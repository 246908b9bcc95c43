"""A test case with a database of trained jobs. They are trained once for all tests of a file; each
test gets a copy."""

import atexit
import pathlib
import shutil

from pelab_harness import Case, tiny_sweep, wait_until

_trained = {}  # sweep -> folder


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
    """The test's folder has the database COPY with the jobs of SWEEP, which succeeded, and one job
    that failed."""

    SWEEP = tiny_sweep() + "analyses: [head_ablation, layer_ablation]\n"  # four jobs
    COPY = "pelab.db"

    @classmethod
    def setUpClass(cls):
        if cls.SWEEP not in _trained:
            _trained[cls.SWEEP] = _train(cls.SWEEP)

    def setUp(self):
        super().setUp()
        shutil.copy(_trained[self.SWEEP] / "pelab.db", self.folder / self.COPY)
        shutil.copytree(_trained[self.SWEEP] / "pelab.db.artifacts", self.folder / f"{self.COPY}.artifacts")
