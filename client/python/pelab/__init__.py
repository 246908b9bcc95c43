"""What pelab has stored, as pandas DataFrames.

    import pelab
    source = pelab.open("pelab.db")              # the file itself, read-only; nothing has to run
    source = pelab.connect("gpu01:7470")         # a coordinator, which can also be asked to do something

Both give the same frames: the same rows in the same order, the same columns and types, every number bit for bit.
"""

from __future__ import annotations

from pelab._build import SCHEMA_VERSION, VERSION as __version__
from pelab._file import File, open_file as open
from pelab._remote import Cancelled, Coordinator, JobCounts, RunningJob, Snapshot, Submission, connect
from pelab._source import Source
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
    "Cancelled",
    "Coordinator",
    "File",
    "InvalidInput",
    "JobCounts",
    "NoCoordinator",
    "NotFound",
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
    "connect",
    "open",
]
