#!/usr/bin/env bash
# Builds pelab-trainer on a GPU host and trains one paper-size job for a few epochs on its first
# GPU. Needs no network.
#
#   deploy/cuda-check.sh [BUILD_DIR]      default: build/cuda-check
#
# Needs an NVIDIA GPU with its driver, the CUDA toolkit (LibTorch's own CMake files ask for it), g++
# 12 or newer, CMake 3.25, nlohmann-json 3.11, and a LibTorch with CUDA: that of python3's torch, or
# one named by Torch_DIR or CMAKE_PREFIX_PATH. Where nlohmann-json is not installed, set
# PELAB_JSON_INCLUDE to the folder that holds nlohmann/json.hpp.
#
# Prints the seconds of each epoch, the test accuracy, the ablation's time, and what a whole job of
# 100 epochs would take. Exit status: 0 all well, 1 something failed, 2 this host lacks something.
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
program=cuda-check
source "$(dirname "$0")/gpu-host.sh"
build=$(realpath -m "${1:-$root/build/cuda-check}")
job=$root/deploy/cuda-check-job.json

require_gpu_host
build_for_gpu "$build" -- pelab-trainer

trainer=$build/bin/pelab-trainer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$trainer" capabilities >"$work/capabilities.json"
if ! grep -q '"cuda:0"' "$work/capabilities.json"; then
  seen=$(cat "$work/capabilities.json")
  lacks "pelab-trainer was built, but its LibTorch sees no CUDA device: $seen"
fi

"$trainer" run --spec "$job" --workdir "$work/run" --device cuda:0 --threads 1 |
  python3 "$root/deploy/cuda-check.py" ||
  { echo "cuda-check: training failed" >&2; exit 1; }
