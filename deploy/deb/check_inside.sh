#!/bin/bash
# The parts of check.sh that run inside the fresh Debian. `install` needs the network. `try` starts
# the programs as the units do, with the options of the conffiles, but without systemd. `services`
# runs under systemd.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root
packages=(pelab pelab-server pelab-worker pelab-scale pelab-trainer python3-pelab)

fail() { echo "check_inside.sh: $*" >&2; exit 1; }

quietly() {
  "$@" >/root/log 2>&1 || { tail -n 40 /root/log >&2; fail "\"$*\" failed"; }
}

# start ROLE USER STATE: the program in the background, as its unit starts it. Its pid is in $pid.
start() {
  # shellcheck disable=SC2016
  setpriv --reuid "$2" --regid "$2" --init-groups --no-new-privs env -i PATH=/usr/bin:/bin \
    sh -c 'cd "$2" && umask 077 && set -a && . "/etc/pelab/$1.conf" && exec "pelab-$1" $OPTIONS' \
    sh "$1" "$3" 2>>"/root/$1.log" >/dev/null &
  pid=$!
}

start_both() {
  start server pelab /var/lib/pelab; server=$pid
  start worker pelab-worker /var/lib/pelab-worker; worker=$pid
}

stop() {
  kill "$2"
  wait "$2" || fail "the $1 ended with $?: $(tail -n 5 "/root/$1.log")"
}

stop_both() {
  stop worker "$worker"
  stop server "$server"
}

# wait_until SECONDS WHAT COMMAND…
wait_until() {
  local seconds=$1 what=$2
  shift 2
  for _ in $(seq $((seconds * 5))); do
    "$@" && return
    sleep 0.2
  done
  fail "gave up after $seconds s waiting for $what; $(tail -n 5 /root/*.log)$(journalctl -n 20)"
}

pelab_answers() { pelab status >/dev/null 2>&1; }

versions() { dpkg-query -W -f '${Package} ${Version}\n' "${packages[@]}"; }

do_install() {
  quietly apt-get update
  quietly apt-get install -y --no-install-recommends /root/previous/*.deb libopenblas0-openmp \
    bash-completion
  for program in pelab pelab-server pelab-worker pelab-scale pelab-trainer; do
    quietly "$program" --version
    [ -e "/usr/share/man/man1/$program.1.gz" ] || fail "$program has no man page"
    quietly bash -c "set +u; . /usr/share/bash-completion/bash_completion
      _completion_loader $program; complete -p $program"
  done
  quietly systemd-analyze verify --man=no \
    /usr/lib/systemd/system/pelab-{server,worker,scale@}.service
}

do_sweep() {
  cat >/root/sweep.yaml <<'END'
name: packages
protocol: clean
pe: [nope, rope]
task: {name: distance, train_examples: 99, test_examples: 97}
seed: 0..1
model: {d_model: 8, d_ff: 16, heads: 2, layers: 2}
train: {epochs: 2}
analyses: [head_ablation]
END
  quietly pelab submit /root/sweep.yaml --watch
  quietly pelab report packages --force --out /root/report.html
  pelab results packages --output jsonl >"$1"
  [ "$(wc -l <"$1")" -eq 2 ] || fail "the sweep has no two results: $(cat "$1")"
}

do_upgrade() {
  echo '# changed by the administrator' >>/etc/pelab/server.conf
  quietly apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-confold \
    /root/new/*.deb
  versions | grep previous && fail "these packages were not upgraded"
  grep -q 'changed by the administrator' /etc/pelab/server.conf || fail "server.conf was replaced"
  kill -0 "$server" "$worker" || fail "the upgrade ended a program that systemd does not know"
}

do_purge() {
  quietly apt-get purge -y "${packages[@]}"
  [ -e /var/lib/pelab/pelab.db ] || fail "purge deleted the database"
  rm -rf /var/lib/pelab
  local left
  left=$(find / -xdev -iname '*pelab*' -not -path '/proc/*' -not -path '/root/*' \
    -not -path '/var/log/*')
  [ -z "$left" ] || fail "purge left $left"
}

do_try() {
  export PELAB_SERVER=127.0.0.1:7470
  # What StateDirectory= does.
  install -d -o pelab -g pelab -m 750 /var/lib/pelab
  install -d -o pelab-worker -g pelab-worker -m 700 /var/lib/pelab-worker
  start_both
  wait_until 20 "the server's answer" pelab_answers
  do_sweep /root/before
  do_upgrade
  stop_both
  start_both
  wait_until 20 "the server's answer" pelab_answers
  pelab results packages --output jsonl | cmp - /root/before || fail "the upgrade changed results"
  quietly python3 -c \
    'import pelab; assert len(pelab.connect("127.0.0.1:7470").summary("packages")) == 2'
  stop_both
  do_purge
}

main_pid() { systemctl show -P MainPID "pelab-$1"; }

is_another() { [ "$(main_pid server)" != "$1" ] && systemctl -q is-active pelab-server; }

do_services() {
  export PELAB_SERVER=127.0.0.1:7470
  local before
  quietly apt-get install -y --no-install-recommends /root/previous/*.deb
  systemctl -q is-enabled pelab-server pelab-worker && fail "a service was enabled by itself"
  systemctl -q is-active pelab-server pelab-worker && fail "a service was started by itself"
  quietly systemctl enable --now pelab-server pelab-worker pelab-scale@pelab
  do_sweep /root/under-systemd
  [ "$(stat -c '%U %a' /var/lib/pelab /var/lib/pelab-worker | paste -s -d ' ')" = \
    "pelab 750 pelab-worker 700" ] || fail "the state: $(ls -l /var/lib)"
  before=$(main_pid server)
  kill -STOP "$before"
  wait_until 60 "systemd to replace a server that hangs" is_another "$before"
  wait_until 20 "the server's answer" pelab_answers
  before=$(main_pid server)
  quietly apt-get install -y --no-install-recommends /root/new/*.deb
  wait_until 20 "the upgrade to restart the server" is_another "$before"
  wait_until 20 "the server's answer" pelab_answers
  # Without Slurm and without queues, it waits for both.
  wait_until 20 "pelab-scale to go on" systemctl -q is-active pelab-scale@pelab
  quietly apt-get remove -y pelab-server pelab-worker pelab-scale
  local program
  for program in /proc/[0-9]*/exe; do
    case $(readlink "$program") in
      /usr/bin/pelab*) fail "$program outlived its package: $(readlink "$program")" ;;
    esac
  done
  quietly apt-get purge -y "${packages[@]}"
  find /etc -name '*pelab*' | grep . && fail "purge left these files"
  touch /root/services.ok
}

case ${1-} in
  install) do_install ;;
  try) do_try ;;
  services) do_services ;;
  *) echo "check_inside.sh: unknown part \"${1-}\"; known: install, try, services" >&2; exit 2 ;;
esac
