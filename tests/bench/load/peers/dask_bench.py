"""Dask distributed: no-op tasks, two worker processes."""

import time

from common import report, skip

TASKS = 10000


def nothing(i):
    return i


if __name__ == "__main__":
    try:
        from distributed import Client, LocalCluster
    except ImportError as missing:
        skip("Dask distributed", f"{missing}")
    with LocalCluster(n_workers=2, threads_per_worker=1,
                      dashboard_address=None) as cluster, Client(cluster) as client:
        client.submit(nothing, -1).result()
        began = time.monotonic()
        client.gather(client.map(nothing, range(TASKS)))
        report("Dask distributed", "dispatch to result", TASKS / (time.monotonic() - began),
               "jobs/s", "none: all in memory")
