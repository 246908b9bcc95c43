#!/usr/bin/env bash
# The benchmarks: each prints a ratio, both sides measured in one run. A speed is never asserted in
# a test.
#
#   tests/bench/run.sh BUILD_DIR
set -euo pipefail
build=${1:?a configured build folder}
targets=$(cmake --build "$build" --target help | grep -oE '(store|ablation)_bench' | sort -u)
cmake --build "$build" --target $targets
for target in $targets; do
  echo "== $target"
  "$build/bench/$target"
done
if cmake --build "$build" --target help | grep 'pelab-populate:' >/dev/null; then
  cmake --build "$build" --target pelab pelab-populate
  echo "== report"
  tests/bench/report.sh "$build"
fi
