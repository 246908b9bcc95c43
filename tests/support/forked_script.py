"""Runs Python scripts in forks of this process, which has imported PyTorch and, where pelab is to
be had, pandas, which pelab imports: a test that starts a dozen of them would do little else than
import them, 3 seconds each."""

import importlib.util
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import traceback

# Read while the libraries are loaded. A process with one thread loses none when it forks.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
if importlib.util.find_spec("pelab"):
    import pandas  # noqa: F401
import torch  # noqa: E402
from forked_child import Child  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2]

torch.set_num_threads(1)


def run_script(script, *arguments, folder, alone=False, timeout=120):
    """As `python3 -B SCRIPT ARGUMENTS` in the folder. Returns a subprocess.CompletedProcess.
    `alone`: without PYTHONPATH, as for somebody who does not have pelab."""
    command = [str(script), *map(str, arguments)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become(command, folder, alone, out.fileno(), err.fileno())
        status = Child(pid, command).wait(timeout)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, status, out.read(), err.read())


def _become(command, folder, alone, out, err):
    """Makes this process the script's, to its end."""
    status = 1
    try:
        os.setpgid(0, 0)
        os.chdir(folder)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.argv = command
        sys.dont_write_bytecode = True
        if alone:
            given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
            sys.path = [path for path in sys.path
                        if path not in given and SOURCE not in pathlib.Path(path).parents]
        sys.path.insert(0, str(pathlib.Path(command[0]).resolve().parent))
        runpy.run_path(command[0], run_name="__main__")
        status = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
