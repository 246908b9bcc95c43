#!/usr/bin/env bash
# Builds pelab-trainer on a GPU host and trains one paper-size job for a few epochs on its first GPU. Needs no network.
#
#   deploy/cuda-check.sh [BUILD_DIR]      default: build/cuda-check
#
# Needs an NVIDIA GPU with its driver, the CUDA toolkit (LibTorch's own CMake files ask for it), g++ 12 or newer, CMake 3.25,
# nlohmann-json 3.11, and a LibTorch with CUDA: that of python3's torch, or one named by Torch_DIR or CMAKE_PREFIX_PATH.
# Where nlohmann-json is not installed, set PELAB_JSON_INCLUDE to the folder that holds nlohmann/json.hpp.
#
# Prints the seconds of each epoch, the test accuracy, the ablation's time, and what a whole job of 100 epochs would take.
# Exit status: 0 all well, 1 something failed, 2 this host lacks something.
set -euo pipefail
case ${1:-} in
  -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(realpath -m "${1:-$root/build/cuda-check}")
job=$root/deploy/cuda-check-job.json

lacks() { echo "cuda-check: $1" >&2; exit 2; }

for tool in cmake g++ python3; do
  command -v "$tool" >/dev/null || lacks "$tool is not installed"
done
command -v nvidia-smi >/dev/null || lacks "no NVIDIA driver here: nvidia-smi is not installed"
gpus=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1) ||
  lacks "nvidia-smi finds no GPU: $gpus"
echo "GPU: $(head -n 1 <<<"$gpus")"

if ! command -v nvcc >/dev/null; then
  toolkit=${CUDA_HOME:-/usr/local/cuda}
  [ -x "$toolkit/bin/nvcc" ] || lacks "no CUDA toolkit: nvcc is neither in PATH nor in $toolkit/bin; CUDA_HOME names another"
  export PATH=$toolkit/bin:$PATH
fi

if [ -z "${Torch_DIR:-}${CMAKE_PREFIX_PATH:-}" ]; then
  python3 -c 'import torch' 2>/dev/null ||
    lacks "python3 has no torch; install one with CUDA, or name a LibTorch by Torch_DIR or CMAKE_PREFIX_PATH"
  python3 - <<'END' || lacks "python3's torch sees no CUDA device: it is a CPU build, or too old or new for the driver"
import sys
import torch
print(f"torch {torch.__version__}, CUDA {torch.version.cuda}")
sys.exit(0 if torch.cuda.is_available() else 1)
END
fi

mkdir -p "$build"
options=(-DCMAKE_BUILD_TYPE=Release -DPELAB_WITH_SERVICE=OFF -DPELAB_WITH_TESTS=OFF)
if command -v ninja >/dev/null; then options+=(-G Ninja); fi
if [ -n "${Torch_DIR:-}" ]; then options+=("-DTorch_DIR=$Torch_DIR"); fi
if [ -n "${PELAB_JSON_INCLUDE:-}" ]; then
  [ -e "$PELAB_JSON_INCLUDE/nlohmann/json.hpp" ] || lacks "PELAB_JSON_INCLUDE: no $PELAB_JSON_INCLUDE/nlohmann/json.hpp"
  mkdir -p "$build/json"
  cat >"$build/json/nlohmann_jsonConfig.cmake" <<END
add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
set_target_properties(nlohmann_json::nlohmann_json PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "$(realpath "$PELAB_JSON_INCLUDE")")
END
  options+=("-Dnlohmann_json_DIR=$build/json")
fi
if ! cmake -S "$root" -B "$build" "${options[@]}" >"$build/check.log" 2>&1 ||
    ! cmake --build "$build" --target pelab-trainer -j "$(nproc)" >>"$build/check.log" 2>&1; then
  tail -n 30 "$build/check.log" >&2
  echo "cuda-check: the build failed; the whole log is $build/check.log" >&2
  exit 1
fi

trainer=$build/bin/pelab-trainer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$trainer" capabilities >"$work/capabilities.json"
grep -q '"cuda:0"' "$work/capabilities.json" ||
  lacks "pelab-trainer was built, but its LibTorch sees no CUDA device: $(cat "$work/capabilities.json")"

"$trainer" run --spec "$job" --workdir "$work/run" --device cuda:0 --threads 1 |
  python3 "$root/deploy/cuda-check.py" ||
  { echo "cuda-check: training failed" >&2; exit 1; }
