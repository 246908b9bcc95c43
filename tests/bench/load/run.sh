#!/bin/bash
# The load bench: every scenario at its full size, then others at the same work. Needs a quiet
# machine for half an hour.
#   run.sh BUILD DIR    figures as JSON in DIR, databases in DIR too: on the disk to be measured
# PELAB_LOAD_PEERS=0 leaves the others out; PELAB_LOAD_INSTALL=1 installs them first.
set -euo pipefail
build=$1 dir=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$dir"
status=0
load() { # NAME SCENARIO OPTIONS…
  "$build/bench/pelab-load" "${@:2}" --dir "$dir" --json "$dir/$1.json" || status=1
}
load dispatch dispatch --workers 250 --slots 4 --jobs 200000
load dispatch-1000 dispatch --workers 1000 --slots 1 --jobs 100000
load events events --workers 1000 --rate 25000 --channels 16 --seconds 60
load events-own-connections events --workers 1000 --rate 25000 --seconds 60
load sessions events --workers 10000 --rate 10000 --seconds 60
load scrapes scrapes --workers 1000 --rate 2000 --channels 16 --seconds 6
load million million --workers 500 --slots 2 --rate 5000 --jobs 1000000
load results results --jobs 10000 --epochs 150
if [[ "${PELAB_LOAD_PEERS:-1}" == 1 ]]; then
  install=()
  [[ "${PELAB_LOAD_INSTALL:-0}" == 1 ]] && install=(--install)
  PELAB_LOAD_DIR=$dir "$here/peers.sh" "${install[@]}" | tee "$dir/peers.jsonl"
  python3 "$here/compare.py" "$dir"
fi
exit $status
