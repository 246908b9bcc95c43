"""Slurm with controller and node on this host: an array of no-op jobs."""

import getpass
import os
import shutil
import socket
import subprocess
import time

from common import Bench, free_port, report, skip, wait_until

JOBS = 500

CONFIG = """\
ClusterName=bench
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CryptoType=crypto/munge
SlurmctldPort={controller}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,default_queue_depth=10000
MaxArraySize=100000
MaxJobCount=100000
MinJobAge=2
NodeName={host} CPUs=64 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE
"""

NAME = "Slurm, one host"
for program in ("slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "munged"):
    if not shutil.which(program):
        skip(NAME, f"{program} is not installed")
if getpass.getuser() != "root":
    skip(NAME, "its daemons have to be started as root")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.strip()


with Bench() as bench:
    folder, host = bench.folder, socket.gethostname().split(".")[0]
    for name in ("state", "spool"):
        (folder / name).mkdir()
    folder.chmod(0o755)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o600)
    config = folder / "slurm.conf"
    config.write_text(CONFIG.format(host=host, folder=folder, controller=free_port(),
                                    node=free_port()))
    os.environ["SLURM_CONF"] = str(config)
    bench.spawn("munged", "--foreground", "--force", f"--key-file={folder}/munge.key",
                f"--socket={folder}/munge.sock", f"--pid-file={folder}/munged.pid",
                f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed")
    wait_until((folder / "munge.sock").exists, 20, "munged")
    controller = bench.spawn("slurmctld", "-D", "-i")
    node = bench.spawn("slurmd", "-D", "-N", host)
    for _ in range(300):
        if "idle" in output("sinfo", "-h", "-o", "%T"):
            break
        if controller.poll() is not None or node.poll() is not None:
            skip(NAME, "its daemons do not start here: "
                 + (folder / "log").read_text(errors="replace")[-300:].replace("\n", " "))
        time.sleep(0.1)
    else:
        skip(NAME, "its node does not come up here")
    script = folder / "job.sh"
    script.write_text("#!/bin/sh\n")
    began = time.monotonic()
    subprocess.run(["sbatch", "-Q", f"--array=0-{JOBS - 1}", "--mem=1", "-o", "/dev/null",
                    str(script)], check=True, timeout=60)
    wait_until(lambda: output("squeue", "-h", "-r", "-t", "PD,R,CG") == "", 600, "the jobs")
    report(NAME, "dispatch to end", JOBS / (time.monotonic() - began), "jobs/s",
           "state saved every few seconds", "each job is a process")
