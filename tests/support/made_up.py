"""Databases with results that nobody trained (pelab-populate), made once for a file of tests."""

import atexit
import functools
import pathlib
import shutil
import subprocess
import tempfile

from pelab_harness import BIN

POPULATE = BIN.parent / "tests" / "pelab-populate"


@functools.cache
def made_up(sweep, document, *options):
    """A database with results of the sweep `document`, which is in the file `sweep`. Tests get
    copies: nobody may change it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pelab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / sweep).write_text(document)
    subprocess.run([POPULATE, sweep, "--db", "pelab.db", *options], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, timeout=120)
    return folder / "pelab.db"
