"""The task that celery_bench.py sends."""

import os

from celery import Celery

URL = "redis+socket://" + os.environ["REDIS_SOCKET"]
app = Celery("bench", broker=URL, backend=URL)
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=64, task_serializer="json")


@app.task
def nothing():
    return 0
