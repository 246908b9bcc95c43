#!/bin/bash
# The fault tests with the programs that were built with a sanitizer, and those of BUILD in place of
# what was not: the trainer always.
#   sanitized.sh SANITIZED_BUILD BUILD [TEST…]      e.g. build/tsan build/release kill
# Fails where a test does, or where a program has reported anything, also one that was killed later.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) plain=$2
shift 2
tests=("$@")
[[ ${#tests[@]} -gt 0 ]] || tests=(kill kill_loops silence full_disk damage clock checkpoints)
work=$(mktemp -d "$build/fault.XXXXXX")
trap 'rm -rf "$work"' EXIT
reports=$work/reports output=$work/output programs=$work/bin
mkdir "$reports" "$output" "$programs"
# Links: a program looks for the others beside itself, and is 150 MB under AddressSanitizer.
cp -lf "$plain"/bin/pelab* "$programs/"
cp -lf "$build"/bin/pelab* "$programs/"
cp -lf "$plain/bin/pelab-trainer" "$programs/"
export ASAN_OPTIONS="log_path=$reports/asan:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="log_path=$reports/ubsan:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="log_path=$reports/tsan:${TSAN_OPTIONS:-}"
export PELAB_BIN=$programs PYTHONDONTWRITEBYTECODE=1

# One test; its output in one piece, when it has ended.
run_test() {
  local status=0 begin=$SECONDS
  python3 "$here/test_$1.py" >"$output/$1" 2>&1 || status=1
  echo "$1, $(basename "$build"), $((SECONDS - begin)) s" | cat - "$output/$1"
  return $status
}

status=0
export -f run_test
export here build output
printf '%s\n' "${tests[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run_test {}' || status=1
if compgen -G "$reports/*" >/dev/null; then
  cat "$reports"/*
  exit 1
fi
exit $status
