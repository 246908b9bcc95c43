#!/bin/bash
# Others at the same work, on this machine: no-op jobs through Celery, RQ, Dask, Slurm and
# beanstalkd, curves through Optuna.
#   peers.sh [--install] [NAME…]
# NAME: celery-always celery-default rq dask beanstalkd slurm optuna
# --install fetches what is missing with apt-get (as root). What is not there is skipped, and said
# so. Everything runs on loopback or Unix sockets in temporary folders below $PELAB_LOAD_DIR
# (build/load) and is ended by its pid.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
packages=(python3-celery python3-redis redis-server python3-rq python3-distributed slurmctld slurmd
          slurm-client munge beanstalkd python3-optuna)
if [[ "${1:-}" == --install ]]; then
  shift
  for package in "${packages[@]}"; do
    dpkg -s "$package" >/dev/null 2>&1 && continue
    DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y --no-install-recommends \
      "$package" >/dev/null ||
      echo "peers.sh: $package cannot be installed; what needs it is skipped" >&2
  done
fi
names=("$@")
((${#names[@]})) || names=(celery-always celery-default rq dask beanstalkd slurm optuna)
export PYTHONDONTWRITEBYTECODE=1
for name in "${names[@]}"; do
  case $name in
    celery-*) bench=(celery_bench.py "${name#celery-}") ;;
    *) bench=("${name}_bench.py") ;;
  esac
  timeout 900 /usr/bin/python3 "$here/peers/${bench[0]}" "${bench[@]:1}" ||
    echo "{\"peer\": \"$name\", \"what\": \"FAILED\", \"note\": \"exit status $?\"}"
done
