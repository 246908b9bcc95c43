"""Celery with Redis: no-op tasks, results stored, two worker processes."""

import gc
import os
import pathlib
import sys
import time

from common import PYTHON, Bench, report, skip

TASKS = 5000


def run(name, durability, *redis_options):
    with Bench() as bench:
        path = bench.redis(*redis_options)
        os.environ["REDIS_SOCKET"] = str(path)
        sys.modules.pop("celery_tasks", None)
        import celery_tasks
        from celery import group

        bench.spawn(PYTHON, "-m", "celery", "-A", "celery_tasks", "worker", "-c", 2, "-l", "ERROR",
                    env={**os.environ, "PYTHONPATH": str(pathlib.Path(__file__).parent),
                         "C_FORCE_ROOT": "1"})
        celery_tasks.nothing.delay().get(timeout=60)  # waits until the worker is up
        began = time.monotonic()
        results = group(celery_tasks.nothing.s() for _ in range(TASKS))()
        results.join(timeout=300)
        report(name, "dispatch to result", TASKS / (time.monotonic() - began), "jobs/s", durability)
        del results  # must happen while Redis runs: it unsubscribes
        gc.collect()


try:
    import celery  # noqa: F401
    import redis  # noqa: F401
except ImportError as missing:
    skip("Celery + Redis", f"{missing}")
if sys.argv[1] == "always":
    run("Celery + Redis, appendfsync always", "every write synced", "--appendonly", "yes",
        "--appendfsync", "always")
else:
    run("Celery + Redis, default", "snapshots now and then: a crash loses minutes")
