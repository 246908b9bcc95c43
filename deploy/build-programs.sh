#!/usr/bin/env bash
# Builds the four programs, on a machine that may have nothing that they are built with: for
# `make demo`. LibTorch and what it needs are more than half of what is installed, so they come
# while the programs compile that do without.
#
#   deploy/build-programs.sh FOLDER PRESET JOBS
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: deploy/build-programs.sh FOLDER PRESET JOBS" >&2; exit 2; }
folder=$1 preset=$2 jobs=$3
install=$(dirname "$0")/install-deps.sh

configure() {
  cmake --preset "$preset" -B "$folder" -DPELAB_WITH_TESTS=OFF "$@"
}
build() {
  cmake --build "$folder" -j "$jobs" --target "$@"
}
# Without the trainer the folder is unfinished: the next call begins with a new configuration.
unfinished() {
  wait
  rm -f "$folder/CMakeCache.txt" "$folder/build.ninja"
}
# A question for a password would get lost among the compiler's lines.
asks_for_nothing() {
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null
}

"$install" --programs --no-torch
if [ -e "$folder/build.ninja" ]; then
  "$install" --programs
elif ! "$install" --programs --check && asks_for_nothing; then
  "$install" --programs &
  trap unfinished EXIT
  configure -DPELAB_WITH_TRAINER=OFF
  build pelab-server pelab-worker
  wait $!
  configure -DPELAB_WITH_TRAINER=ON
  trap - EXIT
else
  "$install" --programs
  configure
fi
build pelab pelab-server pelab-worker pelab-trainer
