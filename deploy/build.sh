#!/usr/bin/env bash
# Builds the four programs, or everything, on a machine that may have nothing that they are built
# with: for `make demo` and `make test`. About half of what is installed is not needed by most of
# the compiled files, so it comes meanwhile: for the programs LibTorch, which only the trainer
# links; for everything what the tests run and import. `configured` only configures the folder, for
# targets that build a part of everything.
#
#   deploy/build.sh programs|everything|configured FOLDER PRESET JOBS
set -euo pipefail
usage() {
  echo "usage: deploy/build.sh programs|everything|configured FOLDER PRESET JOBS" >&2
  exit 2
}
[ $# -eq 4 ] || usage
what=$1 folder=$2 preset=$3 jobs=$4
install=$(dirname "$0")/install-deps.sh

case $what in
  programs)
    first=(--programs --no-torch) all=(--programs)
    tests=OFF later=PELAB_WITH_TRAINER
    without_later=(pelab-server pelab-worker)
    targets=(pelab pelab-server pelab-worker pelab-trainer)
    ;;
  everything)
    first=(--compiled) all=()
    tests=ON later=PELAB_WITH_PYTHONS
    without_later=(all)
    targets=(all)
    ;;
  configured)
    first=() all=()
    tests=ON later=PELAB_WITH_PYTHONS
    ;;
  *) usage ;;
esac

# A folder with the tests has the programs too. A call that was killed may have left one without
# what comes later.
is_configured() {
  [ -e "$folder/build.ninja" ] || return 1
  ! grep -qs "^$later:BOOL=OFF" "$folder/CMakeCache.txt" || return 1
  [ "$what" = programs ] && return 0
  grep -qs '^PELAB_WITH_TESTS:BOOL=ON' "$folder/CMakeCache.txt" &&
    [ ! CMakePresets.json -nt "$folder/build.ninja" ]
}
# Begins a folder anew that a killed call for the programs has left without the trainer: the tests
# would be built without it, too.
forget_unfinished_programs() {
  grep -qs '^PELAB_WITH_TESTS:BOOL=OFF' "$folder/CMakeCache.txt" || return 0
  grep -qs '^PELAB_WITH_TRAINER:BOOL=OFF' "$folder/CMakeCache.txt" || return 0
  forget_configuration
}
forget_configuration() {
  rm -f "$folder/CMakeCache.txt" "$folder/build.ninja"
}
# With or without what comes later: ON or OFF.
configure() {
  cmake --preset "$preset" -B "$folder" "-DPELAB_WITH_TESTS=$tests" "-D$later=$1"
}
build() {
  cmake --build "$folder" -j "$jobs" --target "$@"
}
# Without what comes later the folder is unfinished: the next call configures it again.
unfinished() {
  wait
  forget_configuration
}
# A question for a password would get lost among the compiler's lines.
asks_for_nothing() {
  [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null
}

forget_unfinished_programs
"$install" "${first[@]}"
if is_configured; then
  "$install" "${all[@]}"
elif [ "$what" != configured ] && ! "$install" "${all[@]}" --check && asks_for_nothing; then
  "$install" "${all[@]}" &
  trap unfinished EXIT
  configure OFF
  build "${without_later[@]}"
  wait $!
  configure ON
  trap - EXIT
else
  "$install" "${all[@]}"
  configure ON
fi
[ "$what" = configured ] || build "${targets[@]}"
