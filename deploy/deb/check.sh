#!/usr/bin/env bash
# Tries the packages of `make deb` in a fresh Debian: lintian, installation, a sweep, an upgrade
# over the previous packages while the programs run, purge, and the services under a systemd of
# their own. Takes a few minutes, the network and root; changes nothing on this machine.
#
#   deploy/deb/check.sh [DEBS] [--previous DEBS] [--suite SUITE] [--mirror URL]
#
# DEBS is a folder with the six packages [build/release/deb]. Without --previous, the packages
# themselves under a lower version stand for the previous ones.
set -euo pipefail

source=$(cd "$(dirname "$0")/../.." && pwd)
debs=$source/build/release/deb previous='' suite=bookworm mirror=http://deb.debian.org/debian
while [ $# -gt 0 ]; do
  case $1 in
    --previous | --suite | --mirror)
      [ $# -gt 1 ] || { echo "check.sh: $1 needs a value" >&2; exit 2; }
      printf -v "${1#--}" %s "$2"; shift 2 ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*)
      echo "check.sh: unknown option \"$1\"; known: --previous, --suite, --mirror" >&2
      exit 2 ;;
    *) debs=$1; shift ;;
  esac
done
for program in lintian mmdebstrap unshare ip; do
  if ! command -v "$program" >/dev/null; then
    echo "check.sh: $program is missing; apt-get install lintian mmdebstrap util-linux iproute2" >&2
    exit 1
  fi
done
if [ "$(id -u)" -ne 0 ]; then
  echo "check.sh: user $(id -un) cannot make a root to install into; run it as root" >&2
  exit 1
fi
if ! compgen -G "$debs/pelab_*.deb" >/dev/null; then
  echo "check.sh: $debs has no pelab_*.deb; run make deb, or name the folder" >&2
  exit 1
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/pelab-deb.XXXXXX")
root=$work/root
trap 'rm -rf --one-file-system "$work"' EXIT
step() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

# The packages once more, under a version that sorts before theirs.
repack_as_previous() {
  local deb unpacked=$work/unpacked
  mkdir -p "$work/previous"
  for deb in "$debs"/*.deb; do
    dpkg-deb -R "$deb" "$unpacked"
    sed -i 's/^Version: .*/&~previous/' "$unpacked/DEBIAN/control"
    dpkg-deb -Znone -b "$unpacked" "$work/previous" >/dev/null
    rm -rf "$unpacked"
  done
  previous=$work/previous
}

# In mount and process namespaces of its own; with "offline" also without the network, so that the
# ports of this machine are not those of the root.
inside() {
  local namespaces=(--mount --pid --fork --kill-child) loopback=:
  if [ "$1" = offline ]; then
    namespaces+=(--net) loopback='ip link set lo up'
  fi
  unshare "${namespaces[@]}" sh -c "
    mount -t proc proc '$root/proc' && mount -t tmpfs tmpfs '$root/run' && $loopback &&
    exec chroot '$root' /root/inside.sh $2"
}

# With systemd as the first process of namespaces of its own.
boot() {
  local status=0
  timeout --kill-after=5 300 unshare --mount --pid --net --ipc --uts --cgroup --fork --kill-child \
    "$source/deploy/deb/check_boot.sh" "$root" || status=$?
  if [ "$status" -eq 77 ]; then
    step "left out: this machine does not let root mount what systemd needs"
  elif [ ! -e "$root/root/services.ok" ]; then
    cat "$root/root/services.log" >&2
    echo "check.sh: the services under systemd failed ($status)" >&2
    exit 1
  fi
}

step "lintian"
lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$debs"/*.deb
[ -n "$previous" ] || repack_as_previous
step "a fresh Debian $suite"
mmdebstrap --quiet --variant=minbase "$suite" "$root" "$mirror"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mkdir "$root/root/new" "$root/root/previous"
cp "$debs"/*.deb "$root/root/new"
cp "$previous"/*.deb "$root/root/previous"
install -m 755 "$source/deploy/deb/check_inside.sh" "$root/root/inside.sh"
step "installation of the previous packages, with what they depend on"
inside online install
step "a sweep, an upgrade while it is served, purge"
inside offline try
step "the services under systemd"
boot
step "the packages install, work, upgrade and go"
