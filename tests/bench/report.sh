#!/usr/bin/env bash
# How long `pelab report` takes for a sweep of 200 jobs of 150 epochs with two head ablations each,
# and how large the file is. The results are made up (tests/support/populate.cc).
#
#   tests/bench/report.sh BUILD_DIR
set -euo pipefail
build=$(cd "${1:?a build folder}" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/sweep.yaml" <<'END'
name: two-hundred
protocol: [published, clean]
pe: [nope, absolute, alibi, relative, random, rope, mla, rope_abs,
     {name: partial_rope, heads: [1, 2]}]
task: [distance, counting]
seed: 0..4
train: {epochs: 150}
END
"$build/tests/pelab-populate" "$folder/sweep.yaml" --db "$folder/pelab.db"
for _ in 1 2 3 4 5; do
  begin=$(date +%s%N)
  "$build/bin/pelab" report two-hundred --db "$folder/pelab.db" --out "$folder/report.html" \
    --force >"$folder/said"
  echo $((($(date +%s%N) - begin) / 1000000))
done | sort -n | sed -n 3p | sed 's/$/ ms, the median of five (asked: at most 3,000)/'
cat "$folder/said"
