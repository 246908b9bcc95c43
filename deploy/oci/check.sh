#!/usr/bin/env bash
# Tries the images of build.sh: two builds have the same digest, their labels and users are right,
# and a coordinator and a worker train a small sweep from the unpacked images, as another user than
# root and with roots that they cannot write to. Takes ten minutes, root and Debian's mirror;
# changes nothing on this machine.
#
#   deploy/oci/check.sh [DEBS] [--images DIR] [--suite SUITE] [--mirror URL]
#
# DEBS is a folder with the packages [build/release/deb]. With --images, the images in DIR stand for
# the first build.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
inside=$source/deploy/oci/check_inside.sh
debs=$source/build/release/deb images='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    --images | --suite | --mirror)
      [ $# -gt 1 ] || { echo "check.sh: $1 needs a value" >&2; exit 2; }
      if [ "$1" = --images ]; then images=$2; else options+=("$1" "$2"); fi
      shift 2 ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*)
      echo "check.sh: unknown option \"$1\"; known: --images, --suite, --mirror" >&2
      exit 2 ;;
    *) debs=$1; shift ;;
  esac
done
for program in mmdebstrap umoci skopeo python3 unshare ip; do
  if ! command -v "$program" >/dev/null; then
    echo "check.sh: $program is missing; deploy/install-deps.sh --oci installs what it needs" >&2
    exit 1
  fi
done
if [ "$(id -u)" -ne 0 ]; then
  echo "check.sh: user $(id -un) cannot run programs as another user; run it as root" >&2
  exit 1
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/pelab-oci-check.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
step() { printf '%4d s  %s\n' "$SECONDS" "$*"; }
fail() { echo "check.sh: $*" >&2; exit 1; }
digest() { skopeo inspect --format '{{.Digest}}' "oci-archive:$1"; }
# of IMAGE FORMAT: a part of its configuration.
of() { skopeo inspect --config --format "$2" "oci-archive:$images/$1.tar"; }

if [ -z "$images" ]; then
  step "the first build"
  images=$work/first
  "$source/deploy/oci/build.sh" "$debs" --out "$images" "${options[@]}"
fi
step "the second build"
"$source/deploy/oci/build.sh" "$debs" --out "$work/second" "${options[@]}"
for image in pelab-server pelab-worker; do
  first=$(digest "$images/$image.tar") second=$(digest "$work/second/$image.tar")
  [ "$first" = "$second" ] || fail "$image: two builds have the digests $first and $second"
  cmp "$images/$image.tar" "$work/second/$image.tar"
  step "$image: two builds are $first"
  [ "$(of "$image" '{{.Config.User}}')" = 10001:10001 ] || fail "$image runs as another user"
  [ "$(of "$image" '{{index .Config.Entrypoint 0}}')" = "$image" ] || fail "$image starts otherwise"
  label() { of "$image" "{{index .Config.Labels \"org.opencontainers.image.$1\"}}"; }
  [ "$(label version)" = "$(dpkg-deb -f "$debs/${image}"_*.deb Version)" ] ||
    fail "$image has the version $(label version)"
  grep -qxE '[0-9a-f]{40}(-dirty)?' <<<"$(label revision)" ||
    fail "$image has the revision \"$(label revision)\""
  grep -q pelab <<<"$(label title)" || fail "$image has the title \"$(label title)\""
  mkdir "$work/$image"
  tar -C "$work/$image" -xf "$images/$image.tar"
  umoci unpack --image "$work/$image:latest" "$work/$image/bundle"
  rm -r "$work/second/$image.tar" "$work/$image/blobs"
done
step "a sweep from the unpacked images"
unshare --mount --pid --net --ipc --fork --kill-child "$inside" \
  "$work/pelab-server/bundle/rootfs" "$work/pelab-worker/bundle/rootfs" \
  "pelab-worker@$(digest "$images/pelab-worker.tar")"
step "the images are reproducible, and train"
