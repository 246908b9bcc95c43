#!/usr/bin/env bash
# Installs what pelab is built with, on Debian 12 and 13. Silent when nothing is missing.
#
#   deploy/install-deps.sh             everything, LibTorch included (CPU; Debian's own package)
#   deploy/install-deps.sh --programs  what the four programs are built with, and nothing for tests
#   deploy/install-deps.sh --compiled  what the programs and the tests are built with, and nothing
#                                      that tests only run or import
#   deploy/install-deps.sh --no-torch  without LibTorch, or for a host with its own
#   deploy/install-deps.sh --lint      also what `make lint` runs
#   deploy/install-deps.sh --fuzz      also clang with libFuzzer, for `make fuzz`
#   deploy/install-deps.sh --deb       also what `make deb` makes packages with
#   deploy/install-deps.sh --oci       also what `make oci` makes images with, and their check
#   deploy/install-deps.sh --slurm     also Slurm, for `make slurm`
#   deploy/install-deps.sh --bench     also PyTorch, against which `make bench-train` measures
#   deploy/install-deps.sh --check     installs nothing; exit status 1 if something is missing
#
# On other systems it prints what to install, and which versions, and exits 1.
set -euo pipefail

packages=(
  g++ make cmake ninja-build ccache mold python3
  libcpp-httplib-dev pkg-config zlib1g-dev  # the coordinator's pages
  prometheus-cpp-dev  # metrics
  libcairo2-dev fonts-dejavu-core  # figures as SVG and PDF
  libgrpc++-dev libgrpc-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev
  libabsl-dev libspdlog-dev libyaml-cpp-dev libtomlplusplus-dev nlohmann-json3-dev libcli11-dev
  libsqlite3-dev libsqlitecpp-dev libssl-dev libboost-dev libutf8proc-dev libzip-dev
)
compiled_tests=(libgtest-dev libgmock-dev)
tests=(
  python3-numpy python3-yaml faketime iproute2 openssl
  chromium  # pages are opened by their tests
  python3-grpcio python3-pandas python3-protobuf python3-scipy  # the Python package and its tests
  python3-pip python3-setuptools python3-venv python3-wheel     # its wheel
  # SciPy asks for the development files of some BLAS. apt-get would take those of an OpenBLAS with
  # threads of its own, which Debian then prefers to the one below: trainers could not be forked.
  libblas-dev
)
# The pages' scripts are bundled at build time. Node from elsewhere does as well, and Debian's would
# clash with it. npm, which is 330 packages in Debian, gets what tests and lint need alone.
command -v npm >/dev/null || tests+=(npm)
if ! command -v node >/dev/null; then
  packages+=(nodejs)
elif [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 18 ]; then
  echo "install-deps.sh: $(command -v node) is Node.js $(node --version); 18 or newer is needed" >&2
  exit 1
fi
# Without OpenBLAS LibTorch may get the slow reference BLAS.
torch=(libtorch-dev libopenblas0-openmp)
torch_tests=(python3-torch)  # tests write encodings of their own with it
check=no
for argument in "$@"; do
  case $argument in
    --programs) compiled_tests=() tests=() torch_tests=() ;;
    --compiled) tests=() torch_tests=() ;;
    --no-torch) torch=() torch_tests=() ;;
    --lint) packages+=(clang-tidy clang-format flake8 mypy shellcheck) ;;
    --fuzz) packages+=(clang libclang-rt-dev) ;;
    --deb) packages+=(dpkg-dev help2man) ;;
    --oci) packages+=(mmdebstrap umoci skopeo uidmap) ;;
    --bench) packages+=(python3-torch) ;;
    --check) check=yes ;;
    --slurm) packages+=(slurmctld slurmd slurm-client munge procps) ;;
    -h | --help) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *)
      echo "install-deps.sh: unknown argument \"$argument\";" \
        "known: --programs, --compiled, --no-torch, --lint, --fuzz, --deb, --oci, --slurm," \
        "--bench, --check" >&2
      exit 2 ;;
  esac
done
packages+=("${compiled_tests[@]}" "${tests[@]}" "${torch[@]}" "${torch_tests[@]}")

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  cat >&2 <<'END'
install-deps.sh: this is not Debian. Please install:
  GCC 12 or newer (C++20), CMake 3.25, Ninja, Python 3.9, pkg-config, cpp-httplib 0.11, zlib, cairo
    1.16 with a font (DejaVu), prometheus-cpp 1.0 (its core); optionally ccache and mold
  gRPC 1.51 with its C++ plug-in, Protobuf 3.21, Abseil 20220623, OpenSSL 3, Boost 1.74 (headers),
    utf8proc 2.8, libzip 1.7
  SQLite 3.40, SQLiteCpp 3.2, spdlog 1.10, yaml-cpp 0.7, nlohmann-json 3.11,
    CLI11 2.1, toml++ 3.3
  Node.js 18 (for the charts of reports and pages); npm (for tests and lint)
  GoogleTest 1.12, numpy 1.21, PyYAML 5.4; optionally libfaketime, iproute2 and chromium (for the
    tests)
  for Python 3.11: grpcio 1.51, protobuf 4.21, pandas 1.5, scipy 1.10, pip, setuptools, wheel,
    PyTorch 1.13 (its package and the tests)
  LibTorch 1.13 to 2.11 (for pelab-trainer; set Torch_DIR or CMAKE_PREFIX_PATH)
(each: this version or newer)
END
  exit 1
fi

missing=()
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null |
  sed -n 's/^installed //p' || true)
for package in "${packages[@]}"; do
  [[ $'\n'$installed$'\n' == *$'\n'$package$'\n'* ]] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
[ "$check" = no ] || exit 1

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install-deps.sh: need root or sudo to install: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { "${as_root[@]}" apt-get update -q &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
         apt-get install -qy --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  echo "install-deps.sh: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
