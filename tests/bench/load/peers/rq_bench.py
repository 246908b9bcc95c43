"""RQ with Redis (append-only file, always synced): no-op jobs, two workers that do not fork."""

import pathlib
import os
import time

from common import PYTHON, Bench, report, skip, wait_until

JOBS = 2000


try:
    import redis
    import rq
except ImportError as missing:
    skip("RQ + Redis", f"{missing}")
with Bench() as bench:
    path = bench.redis("--appendonly", "yes", "--appendfsync", "always")
    queue = rq.Queue(connection=redis.Redis(unix_socket_path=str(path)))
    for _ in range(2):
        bench.spawn(PYTHON, "-m", "rq.cli", "worker", "-q", "--worker-class", "rq.SimpleWorker",
                    "--url", f"unix://{path}",
                    env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent)})
    queue.enqueue("math.sqrt", 4)
    wait_until(lambda: queue.finished_job_registry.count == 1, 60, "the workers")
    began = time.monotonic()
    for _ in range(JOBS):
        queue.enqueue("math.sqrt", 4)
    wait_until(lambda: queue.finished_job_registry.count == JOBS + 1, 300, "the jobs")
    report("RQ + Redis, appendfsync always", "dispatch to result",
           JOBS / (time.monotonic() - began), "jobs/s", "every write synced")
