#!/usr/bin/env bash
# Trains a small sweep with a coordinator from the folder SERVER and a worker from WORKER, the
# unpacked images. Part of check.sh, which starts it in namespaces of its own: it sees neither the
# processes nor the network of this machine, and all that it starts ends with it. IMAGE is what the
# worker's trainers are to store as their image.
set -euo pipefail
server=$1 worker=$2 image=$3
user=10001

fail() {
  echo "check_inside.sh: $*" >&2
  tail -n 5 "$server/../"*.log "$worker/../"*.log >&2
  exit 1
}

# A root as a container has it: read-only except for its state and /tmp.
prepare() {
  local root=$1 state=$1$2 device
  mkdir -p "$root/../state"
  chown "$user:$user" "$root/../state"
  mount --bind "$root" "$root"
  mount -t proc proc "$root/proc"
  mount -t tmpfs tmpfs "$root/tmp"
  mount -t tmpfs tmpfs "$root/dev"
  for device in null zero random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
  done
  mount --bind "$root/../state" "$state"
  mount -o remount,bind,ro "$root"
}

# enter ROOT WORDS…: the words in place of this shell, as the image's user, with its environment.
enter() {
  local root=$1
  shift
  exec chroot --userspec="$user:$user" "$root" /usr/bin/env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 \
    HOME=/tmp PELAB_IMAGE="$image" PELAB_SERVER=127.0.0.1:7470 "$@"
}

run() { (enter "$@"); }

# stop NAME PID
stop() {
  kill "$2"
  wait "$2" || fail "the $1 ended with $?"
}

mount --make-rprivate /
mount -t proc proc /proc
ip link set lo up
prepare "$server" /var/lib/pelab
prepare "$worker" /var/lib/pelab-worker
if run "$server" sh -c 'echo >/etc/written' 2>/dev/null; then
  fail "the root can be written to"
fi
enter "$server" pelab-server --db /var/lib/pelab/pelab.db --http 127.0.0.1:7480 \
  --health 127.0.0.1:7479 >"$server/../server.log" 2>&1 &
server_pid=$!
enter "$worker" pelab-worker --workdir /var/lib/pelab-worker --cpu-slots 2 --threads-per-slot 1 \
  >"$worker/../worker.log" 2>&1 &
worker_pid=$!
for _ in $(seq 100); do
  ! run "$server" pelab status >/dev/null 2>&1 || break
  sleep 0.2
done
cat >"$server/tmp/sweep.yaml" <<'END'
name: images
protocol: clean
pe: [nope, rope]
task: {name: distance, length: 16, vocabulary: 40, train_examples: 512, test_examples: 128}
seed: [0, 1]
model: {d_model: 16, d_ff: 32, heads: 2, layers: 2, max_len: 16, dropout: 0.1}
train: {epochs: 3, batch_size: 64, lr: 1e-3}
END
chmod 644 "$server/tmp/sweep.yaml"
run "$server" timeout 300 pelab submit /tmp/sweep.yaml --watch >"$server/../submit.log" 2>&1 ||
  fail "the sweep failed"
stop worker "$worker_pid"
stop coordinator "$server_pid"
run "$server" pelab db check --db /var/lib/pelab/pelab.db >"$server/../check.log" ||
  fail "pelab db check found: $(grep -v '^ok' "$server/../check.log")"
python3 - "$server/../state/pelab.db" "$image" <<'END'
import json
import sqlite3
import sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT environment_json FROM v_attempts JOIN v_jobs USING (job_id) WHERE state = 'succeeded'")
found = [json.loads(text).get("image") for text, in rows]
assert found == [sys.argv[2]] * 4, f"the attempts ran in the images {found}"
print("4 jobs were trained by", sys.argv[2])
END
