#!/bin/sh
# Stands in for pelab-trainer in the tests of the worker: the same command line and the same JSON
# Lines, without any training. What it does is the word after "mode": in the spec that it is given;
# see the case below. Several jobs run beside each other in one process group.
set -u

# One line on standard output, from parts.
say() {
  said=
  for part; do said=$said$part; done
  echo "$said"
}

if [ "$1" = capabilities ]; then
  say "{\"trainer\":\"double\",\"devices\":[\"${PELAB_DOUBLE_DEVICE-cpu}\"]," \
      "\"environment\":{\"PELAB_DOUBLE_TOLD\":\"so\"},\"pe\":{\"rope\":1}${PELAB_DOUBLE_PES-}}"
  exit 0
fi

command=$1
options=$*
parent= device= weights= threads=1 micro_batch=0 packing= jobs=0
while [ $# -gt 0 ]; do
  case "$1" in
    --spec) jobs=$((jobs + 1)); eval "spec_$jobs=\$2 max_start_$jobs=0"; shift ;;
    --workdir) eval "workdir_$jobs=\$2"; shift ;;
    --max-start-epoch) eval "max_start_$jobs=\$2"; shift ;;
    --parent-fd) parent=$2; shift ;;
    --device) device=$2; shift ;;
    --threads) threads=$2; shift ;;
    --micro-batch) micro_batch=$2; shift ;;
    --packing) packing=$2; shift ;;
    --weights) weights=$2; shift ;;
  esac
  shift
done
[ "$micro_batch" != auto ] || micro_batch=12
# On a CPU it changes nothing.
case "$device,$packing" in
  cpu,* | *,off | *,) batch=1 ;;
  *,auto) batch=$jobs ;;
  *) batch=$packing ;;
esac

# Ends with the agent, as the trainer does.
( while read -r _; do :; done; kill -KILL $$ ) <&"$parent" >/dev/null 2>&1 &

hello() {
  say "{\"event\":\"hello\",\"job\":\"$job\",\"protocol\":1,\"device\":\"$device\"," \
      "\"threads\":$threads,\"micro_batch\":$micro_batch,\"packing\":$batch," \
      "\"start_epoch\":$1,\"epochs\":$epochs}"
}
epoch() {
  say "{\"event\":\"epoch\",\"job\":\"$job\",\"epoch\":$1,\"train_loss\":0.1," \
      "\"train_correct\":$1,\"train_total\":10000,\"test_loss\":0.30000000000000004," \
      "\"test_correct\":$1,\"test_total\":20000,\"learning_rate\":1e-8,\"seconds\":0.01}"
}
done_event() {
  printf 'weights of job %s' "$job" > "$workdir/weights.safetensors"
  sum=$(sha256sum "$workdir/weights.safetensors" | cut -d' ' -f1)
  size=$(wc -c < "$workdir/weights.safetensors")
  say "{\"event\":\"done\",\"job\":\"$job\",\"weights\":{\"file\":\"weights.safetensors\"," \
      "\"sha256\":\"$sum\",\"bytes\":$size},\"wall_seconds\":1.5}"
}
# Done with weights that are not what is said of them.
without_weights() {
  say "{\"event\":\"done\",\"job\":\"$job\",\"weights\":{\"file\":\"${1##*/}\"," \
      "\"sha256\":\"$(printf '%064d' 7)\",\"bytes\":6},\"wall_seconds\":1.5}"
}
ablation() {
  say "{\"event\":\"head_ablation\",\"job\":\"$job\",\"version\":2," \
      "\"parameters\":{\"method\":\"zero\"},\"total\":2000,\"intact_correct\":900," \
      "\"intact_nll\":0.5,\"chance\":0.01,\"correct\":[[1,2],[3,null]]," \
      "\"lost\":[[899,898],[897,null]],\"gained\":[[0,0],[0,null]],\"nll\":[[1,2],[3,null]]," \
      "\"nll_standard_error\":[[0.1,0.2],[0.3,null]],\"seconds\":0.5}"
}
# A checkpoint's metadata, as the trainer writes it, and "state of epoch N" in place of tensors.
# Fails where a program in it was hit by the SIGTERM that the whole process group gets.
write_checkpoint() {
  header="{\"__metadata__\":{\"epoch\":\"$1\",\"spec\":\"$quoted_spec\"}}"
  body="${header}state of epoch $1"
  length=$(printf '%03o' "${#header}") || return 1
  printf "\\$length\\0\\0\\0\\0\\0\\0\\0%s" "$body" > "$workdir/checkpoint.tmp"
  sum=$(sha256sum "$workdir/checkpoint.tmp") || return 1
  mv "$workdir/checkpoint.tmp" "$workdir/checkpoint.safetensors" || return 1
  say "{\"event\":\"checkpoint\",\"job\":\"$job\",\"epoch\":$1," \
      "\"file\":\"checkpoint.safetensors\",\"sha256\":\"${sum%% *}\",\"bytes\":$((8 + ${#body}))}"
}
# The next epoch of the checkpoint that is there.
checkpoint_epoch() {
  sed -n 's/.*state of epoch \([0-9]*\)$/\1/p' "$workdir/checkpoint.safetensors"
}
# Epochs $1 … with $2 seconds before each; keeps a checkpoint after each, and obeys SIGTERM after
# that, as the trainer does. With $3 the checkpoints are the real files.
train() {
  at=$1
  stop=
  trap 'stop=1' TERM
  while [ "$at" -lt "$epochs" ]; do
    [ "$2" = 0 ] || sleep "$2"
    epoch "$at"
    at=$((at + 1))
    if [ -n "${3-}" ]; then
      write_checkpoint "$at" || write_checkpoint "$at"
    else
      echo "$at" > "$workdir/checkpoint"
    fi
    [ -z "$stop" ] || exit 75
  done
  trap 'exit 75' TERM
  [ -z "$stop" ] || exit 75
}

# Analyses on kept weights say what they were given, and train nothing.
analyze() {
  hello "$epochs"
  echo "analyzes [$(cat "$weights")] with $threads threads" >&2
  case "$mode" in
    ok) ablation ;;
    slow) trap 'exit 75' TERM; while :; do sleep 0.05; done ;;
  esac
  echo "{\"event\":\"done\",\"job\":\"$job\",\"wall_seconds\":0.5}"
}

run_job() {
  case "$mode" in
    ok)
      hello 0; train 0 0
      ablation
      echo "{\"event\":\"something_new\",\"job\":\"$job\"}"
      done_event ;;
    plain) hello 0; train 0 0; done_event ;;
    slow)  # resumes where a checkpoint allows it
      start=0
      if [ -f "$workdir/checkpoint" ] && [ "$(cat "$workdir/checkpoint")" -le "$max_start" ]; then
        start=$(cat "$workdir/checkpoint")
      fi
      hello "$start"; train "$start" 0.05; done_event ;;
    keeps)  # as slow, with real checkpoints
      quoted_spec=$(sed -n 's/.*"spec":\({.*}\)}.*/\1/p' "$spec" | sed 's/"/\\"/g')
      start=0
      if [ -f "$workdir/checkpoint.safetensors" ] &&
          [ "$(checkpoint_epoch)" -le "$max_start" ]; then
        start=$(checkpoint_epoch)
      fi
      hello "$start"; train "$start" 0.05 real; done_event ;;
    flood) hello 0; train 0 0; sleep 60 ;;
    alone) batch=1; hello 0; train 0 0; done_event ;;
    lingers) trap 'sleep 1.5; exit 75' TERM; hello 0; epoch 0; while :; do sleep 0.1; done ;;
    stubborn) trap '' TERM; hello 0; epoch 0; while :; do sleep 0.2; done ;;
    garbage) hello 0; echo 'Segmentation fault'; sleep 60 ;;
    not_utf8) hello 0; printf 'half \303\n'; sleep 60 ;;
    long_error) hello 0; say "{\"event\":\"error\",\"job\":\"$job\",\"kind\":\"internal\"," \
        "\"message\":\"$(head -c 16383 /dev/zero | tr '\0' x)é and more\"}"; exit 1 ;;
    long_line) hello 0; head -c 1200000 /dev/zero | tr '\0' x; sleep 60 ;;
    killed) hello 0; epoch 0; kill -KILL $$ ;;
    silent) hello 0; exit 0 ;;
    exit_3) hello 0; echo 'terminate called after throwing' >&2; exit 3 ;;
    oom) hello 0; say "{\"event\":\"error\",\"job\":\"$job\",\"kind\":\"out_of_memory\"," \
        "\"message\":\"no room for 3 GiB\"}"; exit 1 ;;
    fails) hello 0; epoch 0; say "{\"event\":\"error\",\"job\":\"$job\"," \
        "\"kind\":\"non_finite_loss\",\"message\":\"the loss is nan\"}"; exit 1 ;;
    stranger) hello 0; job=nobody; epoch 0; sleep 60 ;;
    skips) hello 0; epoch 0; epoch 2; sleep 60 ;;
    too_late) hello 5; sleep 60 ;;
    hangs_at_once) sleep 600 ;;
    hangs_after_epoch) hello 0; epoch 0; sleep 600 ;;
    closes_stdout) hello 0; epoch 0; exec >&-; sleep 600 ;;
    leaves_child)  # in a session of its own, where no signal to the process group reaches it
      hello 0; train 0 0
      setsid sleep 600 & echo $! > "$workdir/child"
      setsid sh -c 'sleep 600 & wait' >/dev/null 2>&1 & echo $! > "$workdir/grandparent"
      while [ ! -e "$workdir/go_on" ]; do sleep 0.02; done
      done_event ;;
    weights_missing) hello 0; train 0 0; without_weights "$workdir/nothing.here" ;;
    weights_fifo) hello 0; train 0 0; mkfifo "$workdir/pipe"; without_weights "$workdir/pipe" ;;
    weights_wrong)
      hello 0; train 0 0; echo other > "$workdir/other"; without_weights "$workdir/other" ;;
    analysis_fifo)
      hello 0; train 0 0; mkfifo "$workdir/pipe"
      say "{\"event\":\"analysis\",\"job\":\"$job\",\"name\":\"latents\",\"version\":1," \
          "\"parameters\":{},\"file\":\"pipe\"}"
      sleep 600 ;;
    chatters)
      hello 0; train 0 0
      at=0
      while [ "$at" -lt 500 ]; do
        at=$((at + 1)); echo "{\"event\":\"weather_$at\",\"job\":\"$job\"}"
      done
      done_event ;;
    *) echo "trainer_double: unknown mode '$mode'" >&2; exit 2 ;;
  esac
}

# The job of number $1, to its end.
job() {
  eval "spec=\$spec_$1 workdir=\$workdir_$1 max_start=\$max_start_$1"
  mode=$(sed -n 's/.*"mode":"\([a-z_0-9]*\)".*/\1/p' "$spec")
  job=$(sed -n 's/.*"job":"\([^"]*\)".*/\1/p' "$spec")
  epochs=$(sed -n 's/.*"epochs":\([0-9]*\).*/\1/p' "$spec")
  echo $$ > "$workdir/pid"
  say "$mode on $device, visible [${CUDA_VISIBLE_DEVICES-unset}], " \
      "told [${PELAB_DOUBLE_TOLD-nothing}]" >&2
  if [ "$command" = analyze ]; then analyze; else run_job; fi
}

echo "$options" >&2
echo "token [${PELAB_TOKEN-unset}]" >&2
echo "memory [${PELAB_DEVICE_MEMORY_BYTES-unset}], MPS [${CUDA_MPS_PIPE_DIRECTORY-unset}]" >&2
if [ "$jobs" = 1 ]; then
  job 1
  exit 0
fi

# The jobs obey; this waits for them.
trap : TERM
children= at=0
while [ "$at" -lt "$jobs" ]; do
  at=$((at + 1))
  ( job "$at" ) &
  children="$children $!"
done
failed= stopped=
for child in $children; do
  wait "$child"; code=$?
  while [ "$code" -ge 128 ] && kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
  case "$code" in 0) ;; 75 | 143) stopped=1 ;; 1) failed=1 ;; *) exit "$code" ;; esac
done
[ -z "$stopped" ] || exit 75
[ -z "$failed" ] || exit 1
