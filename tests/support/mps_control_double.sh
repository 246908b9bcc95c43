#!/bin/sh
# Stands in for nvidia-cuda-mps-control: a daemon that does nothing but be there, and a front end
# that reads a command. PELAB_MPS_DOUBLE: fails (it does not start), dies (it starts and is gone),
# deaf (it never answers).
set -u
pipe=$CUDA_MPS_PIPE_DIRECTORY

if [ "${1-}" = -d ]; then
  [ "${PELAB_MPS_DOUBLE-}" != fails ] || exit 1
  [ -d "$pipe" ] && [ -d "$CUDA_MPS_LOG_DIRECTORY" ] || exit 2
  # A socket that is there already, with or without a daemon: a new one refuses.
  [ ! -e "$pipe/control" ] || exit 3
  echo "visible [${CUDA_VISIBLE_DEVICES-unset}]" > "$CUDA_MPS_LOG_DIRECTORY/control.log"
  setsid sh -c 'echo $$ > "$1/pid"; : > "$1/control"; exec sleep 600' sh "$pipe" \
    </dev/null >/dev/null 2>&1 &
  while [ ! -e "$pipe/control" ]; do sleep 0.01; done
  [ "${PELAB_MPS_DOUBLE-}" != dies ] || { kill -KILL "$(cat "$pipe/pid")"; rm "$pipe/pid"; }
  exit 0
fi

[ "${PELAB_MPS_DOUBLE-}" != deaf ] || exec sleep 600
read -r command
kill -0 "$(cat "$pipe/pid")" || exit 1
case "$command" in
  get_server_list) echo "no servers" ;;
  quit) kill "$(cat "$pipe/pid")"; rm "$pipe/control" ;;
  *) exit 1 ;;
esac
