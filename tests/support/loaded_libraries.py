"""The shared libraries that a program would load, as the dynamic loader finds them."""

import os
import subprocess


def ldd(file, *options, environment=None):
    """What ldd says, on both outputs. It also ends with 1 if it has something to say."""
    done = subprocess.run(["ldd", *options, file], check=False, capture_output=True, text=True,
                          env={**(environment or os.environ), "LC_ALL": "C"})
    return done.stdout + done.stderr


def loaded(file, environment=None):
    """Name of each library -> the file that is loaded for it."""
    said = ldd(file, environment=environment)
    return dict(line.split()[:3:2] for line in said.splitlines() if "=>" in line)
