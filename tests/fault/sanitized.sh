#!/bin/bash
# The fault tests with a coordinator, workers and a command line that were built with a sanitizer, and a trainer that was not.
#   sanitized.sh SANITIZED_BUILD BUILD [TEST…]      e.g. build/tsan build/release kill
# Fails where a test does, or where a program has reported anything, also one that was killed later.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd) plain=$2
shift 2
tests=("$@")
[[ ${#tests[@]} -gt 0 ]] || tests=(kill kill_loops silence full_disk damage clock checkpoints)
ln -f "$plain/bin/pelab-trainer" "$build/bin/" || cp -f "$plain/bin/pelab-trainer" "$build/bin/"
reports=$(mktemp -d)
trap 'rm -rf "$reports"' EXIT
export ASAN_OPTIONS="log_path=$reports/asan:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="log_path=$reports/ubsan:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="log_path=$reports/tsan:${TSAN_OPTIONS:-}"
status=0
for test in "${tests[@]}"; do
  echo "$test, $(basename "$build")"
  PELAB_BIN=$build/bin PYTHONDONTWRITEBYTECODE=1 python3 "$here/test_$test.py" || status=1
done
if compgen -G "$reports/*" >/dev/null; then
  cat "$reports"/*
  exit 1
fi
exit $status
