"""The results that pelab has stored, as pandas DataFrames.

    import pelab
    source = pelab.open("pelab.db")        # the file itself, read-only; no coordinator is needed
    source = pelab.connect("gpu01:7470")   # a coordinator, which can also submit, cancel and watch

`save_encoding` writes a positional encoding of one's own as a file that sweeps can name, and needs
PyTorch; `save_task` and `load_task` are for data of one's own.

Both give the same frames: the same rows in the same order, the same columns and types, and every
number equal bit for bit.
"""

from __future__ import annotations

from pelab._build import SCHEMA_VERSION, VERSION as __version__
from pelab._encoding import (Between, Option, between, choice, flag, integer, real,
                             save_encoding)
from pelab._file import File, open_file as open
from pelab._remote import (Cancelled, Coordinator, JobCounts, RunningJob, Snapshot, Submission,
                           connect)
from pelab._source import Source
from pelab._task import load_task, save_task
from pelab.errors import (
    InvalidInput,
    NoCoordinator,
    NotFound,
    PelabError,
    Refused,
    Unauthenticated,
    Violation,
)

__all__ = [
    "Between",
    "Cancelled",
    "Coordinator",
    "File",
    "InvalidInput",
    "JobCounts",
    "NoCoordinator",
    "NotFound",
    "Option",
    "PelabError",
    "Refused",
    "RunningJob",
    "SCHEMA_VERSION",
    "Snapshot",
    "Source",
    "Submission",
    "Unauthenticated",
    "Violation",
    "__version__",
    "between",
    "choice",
    "connect",
    "flag",
    "integer",
    "load_task",
    "open",
    "real",
    "save_encoding",
    "save_task",
]
