"""Databases with made-up results, and the report of one, for the tests of `pelab report`."""

import contextlib
import json
import pathlib
import re
import shutil
import sqlite3
import subprocess
import tempfile
import unittest

from pelab_harness import BIN

POPULATE = BIN.parent / "tests" / "pelab-populate"
SWEEP = """\
name: made-up
protocol: [published, clean]
pe: [nope, rope, mla, rope_abs, {name: partial_rope, heads: [1, 2, 4]}]
task: [distance, {name: counting, length: 16}]
exclude: [{pe: mla, task: counting}, {pe: partial_rope, task: counting},
          {protocol: published, task: counting}]
seed: 0..2
model: {d_model: 32, d_ff: 64, heads: 4, layers: 3, max_len: 128}
train: {epochs: 12}
"""
# With an axis of its own.
OWN = """\
name: own
protocol: clean
pe: [nope, rope, alibi, {name: partial_rope, heads: 2}]
task: {name: distance, length: 40, vocabulary: 64, max_distance: 36}
seed: [0, 1]
axes: {train.lr: [1e-3, 3e-3]}
model: {d_model: 32, d_ff: 64, heads: 4, layers: 2, max_len: 40, readout: last}
train: {epochs: 6}
analyses: [head_ablation]
"""


def make_database(path, sweep=SWEEP, *options):
    document = path.with_suffix(".yaml")
    document.write_text(sweep)
    subprocess.run([POPULATE, document, "--db", path, *options], check=True, timeout=60)


def report(database, out, *arguments, sweep="made-up"):
    return subprocess.run([BIN / "pelab", "report", sweep, "--db", database, "--out", out,
                           *arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)


def data_of(page):
    """The data inside the report."""
    text = re.search(r'<script type="application/json" id="report-data">(.*?)</script>',
                     page.read_text(), re.DOTALL).group(1)
    return json.loads(text)


class Made(unittest.TestCase):
    """Makes one database and its report for all tests of the class."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pelab-report-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.db = cls.folder / "pelab.db"
        make_database(cls.db, SWEEP, "--fail-every", "11", "--open-every", "13",
                      "--error", "out of memory at <epoch 6>")
        # an interval that would pass 100 %
        with contextlib.closing(sqlite3.connect(cls.db)) as connection, connection:
            connection.execute("UPDATE jobs SET best_test_correct = best_test_total * (20 - seed) "
                               "/ 20 WHERE pe = 'mla'")
        cls.page = cls.folder / "report.html"
        result = report(cls.db, cls.page)
        assert result.returncode == 0, result.stderr
        cls.data = data_of(cls.page)
        cls.connection = sqlite3.connect(f"file:{cls.db}?mode=ro", uri=True)
        cls.addClassCleanup(cls.connection.close)

    def query(self, sql, *parameters):
        return self.connection.execute(sql, parameters).fetchall()
