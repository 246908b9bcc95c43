# shellcheck shell=bash
# For scripts of a GPU host, to be sourced: what such a host needs, and a build
# there without network.
#
#   program=cuda-check                        whose messages these are
#   require_cuda_build                        exits 2 with a sentence where a build lacks something
#   require_gpu_host                          the same where a build or a run does
#   build_for_gpu BUILD_DIR [CMAKE_OPTION …] -- TARGET …
#
# Where nlohmann-json or CLI11 is not installed, PELAB_JSON_INCLUDE and PELAB_CLI11_INCLUDE name the
# folders that hold nlohmann/json.hpp and CLI/CLI.hpp. GTEST_ROOT names a folder with
# include/gtest/gtest.h and lib/libgtest.a, where GoogleTest is not installed.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

lacks() { echo "$program: $1" >&2; exit 2; }

require_cuda_build() {
  for tool in cmake g++ python3; do
    command -v "$tool" >/dev/null || lacks "$tool is not installed"
  done
  local version
  version=$(cmake --version | head -n 1 | grep -oE '[0-9]+\.[0-9]+')
  [ "$(printf '3.25\n%s\n' "$version" | sort -V | head -n 1)" = 3.25 ] ||
    lacks "CMake $version is too old; 3.25 is needed (pip install cmake brings a newer one)"
  version=$(g++ -dumpversion | cut -d. -f1)
  [ "$version" -ge 12 ] || lacks "g++ $version is too old; 12 is needed (CXX names another)"

  if ! command -v nvcc >/dev/null; then
    toolkit=${CUDA_HOME:-/usr/local/cuda}
    [ -x "$toolkit/bin/nvcc" ] ||
      lacks "no CUDA toolkit: nvcc is neither in PATH nor in $toolkit/bin; CUDA_HOME names another"
    export PATH=$toolkit/bin:$PATH
  fi
  require_torch
}

# A LibTorch that is named, that of python3's torch, or a package of the system.
require_torch() {
  if [ -n "${Torch_DIR:-}${CMAKE_PREFIX_PATH:-}" ]; then return; fi
  if python3 -c 'import torch' 2>/dev/null; then
    local version
    version=$(python3 -c 'import torch; print(torch.__version__)')
    python3 -c 'import sys, torch; sys.exit(torch.version.cuda is None)' ||
      lacks "python3's torch $version is a CPU build; install one with CUDA, or name a LibTorch by \
Torch_DIR or CMAKE_PREFIX_PATH"
  elif ! compgen -G '/usr/share/cmake/Torch' >/dev/null &&
      ! compgen -G '/usr/lib/*/cmake/Torch' >/dev/null; then
    lacks "python3 has no torch; install one with CUDA, or name a LibTorch by Torch_DIR or \
CMAKE_PREFIX_PATH"
  fi
}

require_gpu_host() {
  command -v nvidia-smi >/dev/null || lacks "no NVIDIA driver here: nvidia-smi is not installed"
  gpus=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1) ||
    lacks "nvidia-smi finds no GPU: $gpus"
  echo "GPU: $(head -n 1 <<<"$gpus")"
  require_cuda_build
  if [ -z "${Torch_DIR:-}${CMAKE_PREFIX_PATH:-}" ] && python3 -c 'import torch' 2>/dev/null; then
    blind="python3's torch sees no CUDA device: it is too old or too new for the driver"
    python3 - <<'END' || lacks "$blind"
import sys
import torch
print(f"torch {torch.__version__}, CUDA {torch.version.cuda}")
sys.exit(0 if torch.cuda.is_available() else 1)
END
  fi
}

# header_only PACKAGE TARGET FOLDER FILE: a package of headers alone, from where they lie.
header_only() {
  [ -e "$3/$4" ] || lacks "no $3/$4"
  mkdir -p "$build/packages"
  cat >"$build/packages/$1Config.cmake" <<END
add_library($2 INTERFACE IMPORTED)
set_target_properties($2 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "$(realpath "$3")")
END
  options+=("-D$1_DIR=$build/packages")
}

build_for_gpu() {
  build=$1
  shift
  local options=(-DCMAKE_BUILD_TYPE=Release -DPELAB_WITH_SERVICE=OFF -DPELAB_WITH_TESTS=OFF)
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  mkdir -p "$build"
  if command -v ninja >/dev/null; then options+=(-G Ninja); fi
  if [ -n "${Torch_DIR:-}" ]; then options+=("-DTorch_DIR=$Torch_DIR"); fi
  if [ -n "${GTEST_ROOT:-}" ]; then options+=("-DGTEST_ROOT=$GTEST_ROOT"); fi
  if [ -n "${PELAB_JSON_INCLUDE:-}" ]; then
    header_only nlohmann_json nlohmann_json::nlohmann_json "$PELAB_JSON_INCLUDE" nlohmann/json.hpp
  fi
  if [ -n "${PELAB_CLI11_INCLUDE:-}" ]; then
    header_only CLI11 CLI11::CLI11 "$PELAB_CLI11_INCLUDE" CLI/CLI.hpp
  fi
  if ! cmake -S "$root" -B "$build" "${options[@]}" >"$build/build.log" 2>&1 ||
      ! cmake --build "$build" --target "$@" -j "$(nproc)" >>"$build/build.log" 2>&1; then
    tail -n 30 "$build/build.log" >&2
    echo "$program: the build failed; the whole log is $build/build.log" >&2
    exit 1
  fi
}
