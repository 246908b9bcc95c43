#!/usr/bin/env bash
# Builds the trainer and the training bench on a GPU host and times a step at paper size against
# PyTorch, in float32 and bf16, then the cells of Table 1, seeds as one batch against one after
# another, and evaluation and head ablation against eager. Needs no network.
#
#   deploy/gpu-bench.sh [OPTION of tests/bench/train/gpu.py …]
#
# Needs what cuda-check.sh needs, a python3 whose torch has torch.compile and CUDA
# (PELAB_TORCH_PYTHON names another), numpy, and CLI11 (where it is not installed, set
# PELAB_CLI11_INCLUDE to the folder that holds CLI/CLI.hpp). PELAB_GPU_BUILD names another folder to
# build in than build/gpu-bench.
#
# Exit status: 0 every bound met, 1 one is not or something failed, 2 this host lacks something.
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
program=gpu-bench
source "$(dirname "$0")/gpu-host.sh"
build=$(realpath -m "${PELAB_GPU_BUILD:-$root/build/gpu-bench}")

require_gpu_host
"${PELAB_TORCH_PYTHON:-python3}" -c 'import numpy' 2>/dev/null ||
  lacks "${PELAB_TORCH_PYTHON:-python3} has no numpy"
build_for_gpu "$build" -DPELAB_WITH_BENCH=ON -- pelab-trainer train_bench
export PELAB_TORCH_PYTHON=${PELAB_TORCH_PYTHON:-$(command -v python3)}
status=0
python3 "$root/tests/bench/train/gpu.py" "$build" "$@" || status=$?
[ "$status" -le 1 ] || exit "$status"
python3 "$root/tests/bench/train/packing.py" "$build" --device cuda:0 || status=$?
python3 "$root/tests/bench/train/cells.py" "$build" --device cuda:0 \
  --protocol published --pe rope mla --batch 512 --steps 20 \
  --warm-up 5 --examples 4096 --ablated 512 || status=$?
exit "$status"
