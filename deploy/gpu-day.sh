#!/usr/bin/env bash
# Everything that pelab asks of a GPU, in stages, for a host that is lent for minutes or hours.
# Needs no network.
#
#   deploy/gpu-day.sh [--minutes N] [--build DIR] [--out DIR] [--device cuda:N] [STAGE …]
#   deploy/gpu-day.sh --dry-run
#
#   build     the trainer, its bench and the kernels' tests, against this host's LibTorch; once
#   correct   kernels against float64, jobs against the CPU's, compute-sanitizer
#   speed     steps, evaluation and ablation against PyTorch, and the time of each kernel
#   table     Table 1's cells at the paper's size, with checkpoints; `pelab import OUT/table`
#             stores those that are done
#   seeds     the same with five seeds and every encoding of the table
#
# Without STAGE: all of them. Each stage prints its results and keeps them in OUT (default:
# BUILD/results) as JSON. A later call with the same BUILD and OUT goes on: what is done is not done
# again. --minutes ends the whole call in time. --dry-run lists the stages, the minutes that they
# took on an H200, and their files.
#
# Needs what gpu-bench.sh needs. The kernels' tests also need GoogleTest (GTEST_ROOT names it) and a
# python3 with numpy, yaml, torch, grpc and pandas; without these they are left out.
#
# Exit status: 0 all well, 1 something failed, 2 this host lacks something, 75 time ended before.
set -euo pipefail
program=gpu-day
source "$(dirname "$0")/gpu-host.sh"
usage() { sed -n '2,27p' "$0" | sed 's/^# \{0,1\}//'; }

minutes=10000
device=cuda:0
build=$root/build/gpu-day
out=
stages=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --dry-run) exec python3 "$root/tests/gpu/day.py" --list ;;
    --minutes | --build | --out | --device)
      [ $# -gt 1 ] || { echo "$program: $1 needs a value" >&2; exit 2; }
      declare "${1#--}=$2"
      shift ;;
    build | correct | speed | table | seeds) stages+=("$1") ;;
    *) echo "$program: \"$1\" is neither a stage nor an option; --help lists both" >&2; exit 2 ;;
  esac
  shift
done
[[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]] ||
  { echo "$program: --minutes is \"$minutes\"; allowed: a number from 0" >&2; exit 2; }
[ ${#stages[@]} -gt 0 ] || stages=(build correct speed table seeds)
build=$(realpath -m "$build")
out=$(realpath -m "${out:-$build/results}")
began=$SECONDS

build_all() {
  require_cuda_build
  local tests=OFF targets=(pelab-trainer train_bench)
  if python3 -c 'import numpy, yaml, torch, grpc, pandas' 2>/dev/null &&
      [ -e "${GTEST_ROOT:-/usr}/include/gtest/gtest.h" ]; then
    tests=ON
    targets+=(trainer_model_test)
  else
    echo "build: without the kernels' tests: no GoogleTest, or no python3 with numpy, yaml," \
      "torch, grpc and pandas"
  fi
  build_for_gpu "$build" -DPELAB_WITH_BENCH=ON -DPELAB_WITH_TESTS=$tests -- "${targets[@]}"
  "$build/bin/pelab-trainer" capabilities >"$build/capabilities.json" ||
    { echo "$program: the trainer was built but does not start" >&2; exit 1; }
  echo "build: well, $((SECONDS - began)) s"
}

later=()
for stage in "${stages[@]}"; do
  if [ "$stage" = build ]; then build_all; else later+=("$stage"); fi
done
[ ${#later[@]} -gt 0 ] || exit 0
left=$(awk "BEGIN { print $minutes - ($SECONDS - $began) / 60 }")
exec python3 "$root/tests/gpu/day.py" "$build" "${later[@]}" --out "$out" --device "$device" \
  --minutes "$left"
