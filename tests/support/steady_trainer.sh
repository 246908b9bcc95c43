#!/bin/sh
# Stands in for pelab-trainer where pages are tested and measured: an epoch every
# PELAB_EPOCH_SECONDS (0.2), with made-up counts that level off, and a line of log for each that a
# terminal or a browser must not obey.
set -u

# One line on standard output, from parts.
say() {
  said=
  for part; do said=$said$part; done
  echo "$said"
}

if [ "$1" = capabilities ]; then
  # PELAB_STEADY_DEVICE=cuda:0: it takes slots on GPUs.
  say "{\"protocol\":1,\"trainer\":\"steady\",\"libtorch\":\"none\"," \
      "\"devices\":[\"${PELAB_STEADY_DEVICE:-cpu}\"]}"
  exit 0
fi

parent= device= threads=1 specs=
while [ $# -gt 0 ]; do
  case "$1" in
    --spec) specs="$specs $2"; shift ;;
    --parent-fd) parent=$2; shift ;;
    --device) device=$2; shift ;;
    --threads) threads=$2; shift ;;
  esac
  shift
done

# Ends with the agent, as the trainer does.
( while read -r _; do :; done; kill -KILL $$ ) <&"$parent" >/dev/null 2>&1 &

# The job of the document $1, to its end.
train() {
  job=$(sed -n 's/.*"job":"\([^"]*\)".*/\1/p' "$1")
  epochs=$(sed -n 's/.*"epochs":\([0-9]*\).*/\1/p' "$1")
  pe=$(sed -n 's/.*"pe":{[^}]*"name":"\([a-z_]*\)".*/\1/p' "$1")
  train_examples=$(sed -n 's/.*"train_examples":\([0-9]*\).*/\1/p' "$1")
  test_examples=$(sed -n 's/.*"test_examples":\([0-9]*\).*/\1/p' "$1")
  seed=$(sed -n 's/.*"seed":\([0-9]*\),"task".*/\1/p' "$1")
  case "$pe" in
    rope*) top=930 ;; mla) top=885 ;; absolute) top=620 ;; alibi) top=410 ;; *) top=250 ;;
  esac
  trap 'exit 75' TERM

  say "{\"event\":\"hello\",\"job\":\"$job\",\"protocol\":1,\"device\":\"$device\"," \
      "\"threads\":$threads,\"micro_batch\":0,\"packing\":1,\"start_epoch\":0,\"epochs\":$epochs}"
  at=0
  while [ "$at" -lt "$epochs" ]; do
    sleep "${PELAB_EPOCH_SECONDS:-0.2}"
    noise=$(( (at * 7919 + ${seed:-0} * 104729) % 300 ))
    correct=$(( top * 30 * at * 10 / (at * 10 + epochs * 2) + noise ))
    loss=$(( 3000 - correct / 12 ))
    loss_text=$(printf '%d.%03d' $((loss / 1000)) $((loss % 1000)))
    say "{\"event\":\"epoch\",\"job\":\"$job\",\"epoch\":$at,\"train_loss\":$loss_text," \
        "\"train_correct\":$(((correct + 400) * train_examples / 30000))," \
        "\"train_total\":$train_examples,\"test_loss\":$loss_text," \
        "\"test_correct\":$((correct * test_examples / 30000)),\"test_total\":$test_examples," \
        "\"learning_rate\":1e-4,\"seconds\":0.5}"
    printf '\033[31mepoch %d\033[0m <img src=x onerror=injected()> of seed %s\n' \
      "$at" "${seed:-?}" >&2
    at=$((at + 1))
  done
  echo "{\"event\":\"done\",\"job\":\"$job\",\"wall_seconds\":1.5}"
}

# Several beside each other.
trap : TERM
trainers=
for spec in $specs; do
  ( train "$spec" ) &
  trainers="$trainers $!"
done
status=0
for trainer in $trainers; do
  wait "$trainer"; code=$?
  while [ "$code" -ge 128 ] && kill -0 "$trainer" 2>/dev/null; do wait "$trainer"; code=$?; done
  [ "$code" = 0 ] || status=75
done
exit "$status"
