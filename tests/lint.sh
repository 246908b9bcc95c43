#!/usr/bin/env bash
# clang-format and clang-tidy over the project's own sources; warnings are errors.
#
#   tests/lint.sh BUILD_DIR     (a configured build folder, for compile_commands.json)
set -euo pipefail
build=${1:?a configured build folder}
cd "$(dirname "$0")/.."
mapfile -t sources < <(git ls-files 'core/*.cc' 'server/*.cc' 'client/*.cc' 'worker/*.cc' 'tests/*.cc')
mapfile -t headers < <(git ls-files 'core/*.h' 'server/*.h' 'client/*.h' 'worker/*.h' 'tests/*.h' 'worker/*.cuh' 'worker/*.cu')
clang-format --dry-run --Werror "${sources[@]}" "${headers[@]}"
mapfile -t checked < <(printf '%s\n' "${sources[@]}" | grep -v '^tests/')
printf '%s\n' "${checked[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p "$build"
(cd "$build/python" && mypy -p pelab)  # with the configuration of client/python/pyproject.toml.in
