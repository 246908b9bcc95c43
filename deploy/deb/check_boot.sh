#!/usr/bin/env bash
# Boots systemd in the folder ROOT and runs `/root/inside.sh services` there as a service; then all
# ends. Part of check.sh, which starts it in namespaces of its own, so that it sees neither the
# processes nor the network nor the devices of this machine. Exits with 77 if that is not allowed.
set -euo pipefail
root=$1

prepare() {
  mount --make-rprivate /
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  for folder in run tmp dev; do mount -t tmpfs tmpfs "$root/$folder"; done
  mkdir "$root"/dev/{pts,shm,mqueue,hugepages}
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
  ln -s pts/ptmx "$root/dev/ptmx"
  ln -s /proc/self/fd "$root/dev/fd"
  for device in null zero full random urandom tty console; do
    touch "$root/dev/$device"
    mount --bind "/dev/${device/console/null}" "$root/dev/$device"
  done
  if [ "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
  else  # an older layout: systemd needs a hierarchy by its name
    mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
    mkdir "$root"/sys/fs/cgroup/{systemd,unified}
    mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
  fi
  ip link set lo up
}

prepare || exit 77
cat >"$root/etc/systemd/system/check.target" <<'END'
[Unit]
Requires=basic.target
After=basic.target
Wants=check.service
END
cat >"$root/etc/systemd/system/check.service" <<'END'
[Service]
Type=oneshot
ExecStart=/root/inside.sh services
ExecStopPost=systemctl --force --force poweroff
StandardOutput=file:/root/services.log
StandardError=inherit
END
cd "$root"
mkdir -p old
pivot_root . old
umount -l /old
export container=check
exec /lib/systemd/systemd --system --unit=check.target --show-status=0 </dev/null >/dev/null 2>&1
