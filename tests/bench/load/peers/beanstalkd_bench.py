"""beanstalkd -f0: put, reserve, delete, over eight connections with one job at a time each."""

import shutil
import socket
import threading
import time

from common import Bench, free_port, report, skip, wait_until

JOBS = 20000
CONNECTIONS = 8
BODY = b"x" * 900  # as long as a job's spec


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection.makefile("rwb")


def say(stream, command, body=None):
    stream.write(command + b"\r\n" + (body + b"\r\n" if body is not None else b""))
    stream.flush()
    return stream.readline().split()


def is_up(port):
    try:
        connect(port).close()
        return True
    except ConnectionRefusedError:
        return False


def put(port, count):
    stream = connect(port)
    for _ in range(count):
        assert say(stream, b"put 0 0 60 %d" % len(BODY), BODY)[0] == b"INSERTED"


def work(port, count):
    stream = connect(port)
    for _ in range(count):
        word, job, size = say(stream, b"reserve")
        stream.read(int(size) + 2)
        assert say(stream, b"delete " + job)[0] == b"DELETED"


if not shutil.which("beanstalkd"):
    skip("beanstalkd -f0", "beanstalkd is not installed")
with Bench() as bench:
    port = free_port()
    bench.spawn("beanstalkd", "-l", "127.0.0.1", "-p", port, "-b", bench.folder, "-f0")
    wait_until(lambda: is_up(port), 10, "beanstalkd")
    began = time.monotonic()
    for step in (put, work):
        threads = [threading.Thread(target=step, args=(port, JOBS // CONNECTIONS))
                   for _ in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    report("beanstalkd -f0", "put, reserve, delete", JOBS / (time.monotonic() - began), "jobs/s",
           "every write synced", "a queue alone: no attempts, no results; its client is Python")
