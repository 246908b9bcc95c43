#!/bin/bash
# A Slurm cluster of two nodes with two processors each, on this machine alone, to try pelab on it.
#
#   deploy/slurm/try.sh [COMMAND [ARGUMENT…]]
#
# runs COMMAND (default: a shell) with SLURM_CONF set, so that sbatch, squeue and sinfo use this
# cluster, and ends the cluster when COMMAND ends. There are three partitions: jobs of `high`
# preempt those of `low`, which have 20 s of grace, and those of `plain`, which have none. It needs
# root, because slurmd starts jobs as their users, and Debian's packages slurmctld, slurmd,
# slurm-client and munge. Everything listens on the loopback interface and lives in a temporary
# folder ($PELAB_TRY_FOLDER, or a new one).
set -euo pipefail

for program in slurmctld slurmd sbatch squeue sinfo munged python3; do
  if ! command -v "$program" > /dev/null; then
    echo "try.sh: $program is missing; apt-get install slurmctld slurmd slurm-client munge" >&2
    exit 2
  fi
done
if [[ $(id -u) != 0 ]]; then
  echo "try.sh: you are $(id -un); only root can start slurmd" >&2
  exit 2
fi

made=
folder=${PELAB_TRY_FOLDER-}
if [[ -z $folder ]]; then
  folder=$(mktemp -d -t pelab-slurm-XXXXXX)
  made=$folder
fi
chmod 755 "$folder"
mkdir -p "$folder/state" "$folder/n1" "$folder/n2"

pids=()
# shellcheck disable=SC2317  # the trap below calls it
stop() {
  # Steps that jobs left behind belong to slurmd, which ends them.
  scancel --full --user=root 2> /dev/null || true
  local pid
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill "${pids[i]}" 2> /dev/null || true
  done
  for pid in "${pids[@]}"; do
    for _ in {1..100}; do
      kill -0 "$pid" 2> /dev/null || break
      sleep 0.1
    done
    kill -9 "$pid" 2> /dev/null || true
  done
  [[ -z $made ]] || rm -rf "$made"
}
trap stop EXIT
trap 'exit 130' INT TERM

read -r controller first second < <(python3 - <<'PYTHON'
import socket
sockets = [socket.socket() for _ in range(3)]
for one in sockets:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in sockets))
PYTHON
)
host=$(hostname -s)
head -c 1024 /dev/urandom > "$folder/munge.key"
chmod 600 "$folder/munge.key"
cat > "$folder/slurm.conf" <<CONFIG
ClusterName=try
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.sock
CredType=cred/munge
SlurmctldPort=$controller
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/%n.log
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2
SlurmctldTimeout=30
SlurmdTimeout=${PELAB_TRY_NODE_TIMEOUT-30}
MinJobAge=${PELAB_TRY_JOB_AGE-60}
KillWait=10
CompleteWait=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
NodeName=n[1-2] NodeHostname=$host NodeAddr=127.0.0.1 Port=$first,$second CPUs=2 RealMemory=1000
PartitionName=low Nodes=n[1-2] Default=YES PriorityTier=1 GraceTime=20 State=UP
PartitionName=plain Nodes=n[1-2] PriorityTier=1 GraceTime=0 State=UP
PartitionName=high Nodes=n[1-2] PriorityTier=10 PreemptMode=OFF State=UP
CONFIG
export SLURM_CONF=$folder/slurm.conf

start() {
  "$@" >> "$folder/daemons.log" 2>&1 < /dev/null &
  pids+=($!)
}
start munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.sock" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" \
  --seed-file="$folder/munged.seed"
for _ in {1..200}; do
  [[ ! -S $folder/munge.sock ]] || break
  sleep 0.1
done
start slurmctld -D -i
start slurmd -D -N n1
start slurmd -D -N n2
for _ in {1..300}; do
  [[ $(sinfo -h -p low -t idle -o %D 2> /dev/null || true) != 2 ]] || break
  sleep 0.1
done
if [[ $(sinfo -h -p low -t idle -o %D 2> /dev/null || true) != 2 ]]; then
  echo "try.sh: the two nodes do not come up; the last lines of $folder/daemons.log:" >&2
  tail -n 20 "$folder/daemons.log" >&2
  exit 1
fi
export PELAB_TRY_FOLDER=$folder
if (($# == 0)); then
  echo "A Slurm cluster runs on this machine; sbatch, squeue and sinfo use it. Leave with exit."
  "${SHELL-/bin/bash}" || true
  exit 0
fi
status=0
"$@" || status=$?
exit "$status"
