#!/usr/bin/env bash
# Writes what a Debian package contains besides its program into STAGE/PACKAGE, as under /usr.
#
#   deploy/deb/stage.sh BUILD STAGE VERSION MAINTAINER PACKAGE…
#
# Man pages and completions come from the programs of BUILD/bin, which must be built. Needs
# help2man; SOURCE_DATE_EPOCH, or the time of the last commit, is the time of every file.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
build=$1 stage=$2 version=$3 maintainer=$4
shift 4

if ! command -v help2man >/dev/null; then
  echo "stage.sh: help2man is missing; deploy/install-deps.sh --deb installs it" >&2
  exit 1
fi
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH=$epoch LC_ALL=C.UTF-8 COLUMNS=100
umask 022

# help2man would fill the lines of examples into paragraphs.
keep_lines() {
  awk '/^\./ && open { print ".fi"; open = 0 } { print } /^\.IP$/ { print ".nf"; open = 1 }
       END { if (open) print ".fi" }'
}

# man_page PACKAGE NAME SYNOPSIS [COMMAND]: NAME(1) from `PROGRAM [COMMAND] --help`.
man_page() {
  local package=$1 name=$2 synopsis=$3 command=${4-}
  local folder=$stage/$package/share/man/man1
  mkdir -p "$folder"
  help2man --no-info --locale=C.UTF-8 --section=1 --name="$synopsis" --manual=pelab \
    --version-string="$name ${version%-*}" --source="pelab ${version%-*}" \
    "$build/bin/$package${command:+ $command}" |
    keep_lines | gzip -9n >"$folder/$name.1.gz"
}

# The commands of `pelab` with a line about each, as its --help lists them: "run<TAB>run a sweep…".
commands() {
  COLUMNS=1000 "$build/bin/pelab" --help |
    sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]\+\)  \+\(.*\)/\1\t\2/p'
}

stage_pelab() {
  local share=$stage/pelab/share name synopsis
  man_page pelab pelab "sweeps of positional encodings, and their results"
  while IFS=$'\t' read -r name synopsis; do
    man_page pelab "pelab-$name" "$synopsis" "$name"
  done < <(commands)
  mkdir -p "$share/bash-completion/completions" "$share/zsh/vendor-completions"
  "$build/bin/pelab" completion bash >"$share/bash-completion/completions/pelab"
  "$build/bin/pelab" completion zsh >"$share/zsh/vendor-completions/_pelab"
}

# bash-completion's own function reads the options from --help when they are needed.
complete_options() {
  local folder=$stage/$1/share/bash-completion/completions
  mkdir -p "$folder"
  echo "complete -F _longopt $1" >"$folder/$1"
}

stage_service() {  # server or worker
  local lib=$stage/pelab-$1/lib
  install -D -m 644 "$source/deploy/systemd/pelab-$1.service" \
    "$lib/systemd/system/pelab-$1.service"
  install -D -m 644 "$source/deploy/systemd/pelab-$1.sysusers" "$lib/sysusers.d/pelab-$1.conf"
  complete_options "pelab-$1"
}

stage_scale() {
  install -D -m 644 "$source/deploy/systemd/pelab-scale@.service" \
    "$stage/pelab-scale/lib/systemd/system/pelab-scale@.service"
  complete_options pelab-scale
}

stage_python() {
  local folder=$stage/python3-pelab/lib/python3/dist-packages
  mkdir -p "$folder"
  python3 -m zipfile -e "$build"/wheel/pelab-*.whl "$folder"
  # A package manager's list of files is dpkg's own.
  rm -f "$folder"/pelab-*.dist-info/RECORD
}

# The documents that every package has.
stage_documents() {
  local folder=$stage/$1/share/doc/$1
  mkdir -p "$folder"
  cat "$source/deploy/deb/copyright" >"$folder/copyright"
  case $1 in
    pelab | pelab-server)
      printf '\nThe pages contain these works:\n\n' >>"$folder/copyright"
      cat "$build/core/pages/dist/licences.txt" >>"$folder/copyright" ;;
  esac
  gzip -9n <"$source/CHANGELOG.md" >"$folder/changelog.gz"
  printf 'pelab (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(date -u -R -d "@$epoch")" | gzip -9n >"$folder/changelog.Debian.gz"
}

rm -rf "$stage"
for package in "$@"; do
  case $package in
    pelab) stage_pelab ;;
    pelab-server)
      stage_service server
      man_page "$package" "$package" "coordinator: keeps sweeps, gives their jobs to workers" ;;
    pelab-worker)
      stage_service worker
      man_page "$package" "$package" "daemon that trains a coordinator's jobs on a host" ;;
    pelab-scale)
      stage_scale
      man_page "$package" "$package" "starts workers on a Slurm cluster when jobs wait" ;;
    pelab-trainer)
      complete_options "$package"
      man_page "$package" "$package" "trains one job, or several that differ in their seed" ;;
    python3-pelab) stage_python ;;
    *)
      echo "stage.sh: unknown package \"$package\"; known: pelab, pelab-server, pelab-worker," \
        "pelab-scale, pelab-trainer, python3-pelab" >&2
      exit 2 ;;
  esac
  stage_documents "$package"
done
find "$stage" -exec touch --no-dereference --date="@$epoch" {} +
