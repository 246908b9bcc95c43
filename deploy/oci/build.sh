#!/usr/bin/env bash
# Makes container images of the packages of `make deb`, as files in OCI's format: a coordinator
# (pelab-server.tar) and a worker with the trainer for CPUs (pelab-worker.tar). Needs Debian's
# mirror, no registry and no daemon. Without root it needs user namespaces, newuidmap, and entries
# of the user in /etc/subuid and /etc/subgid. If something is missing, it says what, and exits with
# status 1.
#
#   deploy/oci/build.sh [DEBS] [--out DIR] [--add DIR] [--suite SUITE] [--mirror URL]
#
# DEBS is a folder with the packages [build/release/deb]; the images come into DIR
# [build/release/oci]. --add DIR makes the files of DIR a second layer of the worker's image, as
# below /: a trainer with CUDA and its LibTorch, for example.
#
# The same packages, commit and mirror give the same bytes: every time in the images is
# SOURCE_DATE_EPOCH, or the time of the last commit. A mirror that never changes is
# --mirror http://snapshot.debian.org/archive/debian/20261126T000000Z.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
debs=$source/build/release/deb out=$source/build/release/oci add='' suite=bookworm
mirror=http://deb.debian.org/debian
while [ $# -gt 0 ]; do
  case $1 in
    --out | --add | --suite | --mirror)
      [ $# -gt 1 ] || { echo "build.sh: $1 needs a value" >&2; exit 2; }
      printf -v "${1#--}" %s "$2"; shift 2 ;;
    -h | --help) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*)
      echo "build.sh: unknown option \"$1\"; known: --out, --add, --suite, --mirror" >&2
      exit 2 ;;
    *) debs=$1; shift ;;
  esac
done
for program in mmdebstrap umoci; do
  if ! command -v "$program" >/dev/null; then
    echo "build.sh: $program is missing; deploy/install-deps.sh --oci installs it" >&2
    exit 1
  fi
done
# What an ordinary user lacks to make a root in a user namespace; nothing: everything is there.
lacks() {
  local name file
  name=$(id -un)
  command -v newuidmap >/dev/null || echo "newuidmap (apt-get install uidmap)"
  for file in /etc/subuid /etc/subgid; do
    grep -qsE "^($name|$(id -u)):" "$file" ||
      echo "an entry of $name in $file (usermod --add-sub${file#/etc/sub}s 100000-165535 $name)"
  done
  unshare --user true 2>/dev/null ||
    echo "user namespaces (sysctl user.max_user_namespaces kernel.unprivileged_userns_clone)"
}
mode=root
if [ "$(id -u)" -ne 0 ]; then
  mode=unshare
  lacking=$(lacks)
  if [ -n "$lacking" ]; then
    echo "build.sh: without root this needs ${lacking//$'\n'/, and }; or run it as root" >&2
    exit 1
  fi
fi
if [ -n "$add" ] && [ ! -d "$add" ]; then
  echo "build.sh: --add $add is not a folder" >&2
  exit 1
fi
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$source" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH=$epoch LC_ALL=C.UTF-8
umask 022
# The user that the images run as. Kubernetes wants a number; 0 would be root.
user=10001

work=$(mktemp -d "${TMPDIR:-/tmp}/pelab-oci.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
chmod 755 "$work"  # another user's namespace reads the packages
step() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# deb PACKAGE: the file that has it.
deb() {
  local found=("$debs/$1"_*.deb)
  if [ "${#found[@]}" -ne 1 ] || [ ! -e "${found[0]}" ]; then
    echo "build.sh: $debs has not one $1_*.deb; run make deb, or name the folder" >&2
    return 1
  fi
  echo "${found[0]}"
}

# root_of IMAGE HOME DEBIAN_PACKAGES OUR_PACKAGE…: $work/IMAGE.root.tar, a small Debian with the
# packages, and $work/IMAGE.version, what the last of the programs says of itself.
root_of() {
  local image=$1 home=$2 include=$3 packages=$work/$1.debs package file
  shift 3
  mkdir "$packages"
  for package in "$@"; do
    file=$(deb "$package")
    cp "$file" "$packages"
  done
  # The user has the name that the packages make, so that they do not make another one. The list of
  # packages stays (dpkg); manuals do not.
  # shellcheck disable=SC2016
  mmdebstrap --mode="$mode" --quiet --variant=minbase --include="$include" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --customize-hook="echo '$image:x:$user:' >>\"\$1/etc/group\"" \
    --customize-hook="echo '$image:x:$user:$user::$home:/usr/sbin/nologin' >>\"\$1/etc/passwd\"" \
    --customize-hook='mkdir "$1/pelab-debs"' \
    --customize-hook="copy-in $(printf '%s ' "$packages"/*.deb)/pelab-debs" \
    --customize-hook='chroot "$1" sh -c "env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
      --no-install-recommends /pelab-debs/*.deb" >"$1/pelab-debs/log" 2>&1 ||
      { cat "$1/pelab-debs/log" >&2; exit 1; }' \
    --customize-hook="for program in $*; do
      chroot \"\$1\" \$program --version >\"\$1/pelab-debs/version\" || exit 1; done" \
    --customize-hook="copy-out /pelab-debs/version $packages" \
    --customize-hook='rm -r "$1/pelab-debs"' \
    --customize-hook="mkdir -p \"\$1$home\" && chown $user:$user \"\$1$home\" &&
      chmod 700 \"\$1$home\"" \
    --customize-hook='rm -rf "$1"/var/log/* "$1"/var/cache/ldconfig/* "$1"/etc/*-' \
    "$suite" "$work/$image.root.tar" "$mirror"
  mv "$packages/version" "$work/$image.version"
}

# The git commit that the programs were built from, as they say: "COMMIT" or "COMMIT-dirty".
revision_of() {
  local text commit
  text=$(<"$1")
  commit=$(sed -n 's/.*(commit \([0-9a-f]*\).*/\1/p' <<<"$text")
  [ -n "$commit" ] || { echo unknown; return; }
  commit=$(git -C "$source" rev-parse --verify --quiet "$commit^{commit}" || echo "$commit")
  case $text in *'with changes'*) commit+=-dirty ;; esac
  echo "$commit"
}

# image IMAGE HOME TITLE [LAYER]: DIR/IMAGE.tar of $work/IMAGE.root.tar.
image() {
  local image=$1 home=$2 title=$3 layer=${4-} layout=$work/$1.oci at when package_version revision
  at=$layout:latest when=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
  package_version=$(dpkg-deb -f "$(deb "$image")" Version)
  revision=$(revision_of "$work/$image.version")
  local history=(--history.created "$when" --history.created_by deploy/oci/build.sh)
  umoci init --layout "$layout"
  umoci new --image "$at"
  umoci raw add-layer "${history[@]}" --image "$at" "$work/$image.root.tar"
  if [ -n "$layer" ]; then umoci raw add-layer "${history[@]}" --image "$at" "$layer"; fi
  umoci config --no-history --image "$at" --created "$when" --os linux \
    --architecture "$(dpkg --print-architecture)" --config.user "$user:$user" \
    --config.entrypoint "$image" --config.workingdir "$home" \
    --config.env PATH=/usr/bin:/bin --config.env "HOME=$home" --config.env LC_ALL=C.UTF-8 \
    --config.stopsignal SIGTERM \
    --config.label "org.opencontainers.image.title=$title" \
    --config.label "org.opencontainers.image.version=$package_version" \
    --config.label "org.opencontainers.image.revision=$revision" \
    --config.label "org.opencontainers.image.created=$when"
  umoci gc --layout "$layout"  # the manifests and configurations of the steps before
  mkdir -p "$out"
  tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    -cf "$out/$image.tar" -C "$layout" blobs index.json oci-layout
  step "$out/$image.tar: $(($(stat -c %s "$out/$image.tar") >> 20)) MiB," \
    "$(sed -n 's/.*"digest":"\([^"]*\)".*/\1/p' "$layout/index.json"), $revision"
}

step "a Debian $suite with the coordinator"
root_of pelab-server /var/lib/pelab systemd-standalone-sysusers pelab-server pelab
image pelab-server /var/lib/pelab "pelab coordinator"
step "a Debian $suite with the worker"
root_of pelab-worker /var/lib/pelab-worker systemd-standalone-sysusers,libopenblas0-openmp \
  pelab-worker pelab-trainer
layer=''
if [ -n "$add" ]; then
  layer=$work/add.tar
  tar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner -cf "$layer" -C "$add" .
fi
image pelab-worker /var/lib/pelab-worker "pelab worker" "$layer"
