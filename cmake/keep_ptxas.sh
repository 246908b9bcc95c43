#!/usr/bin/env bash
# Compiles a CUDA file (the arguments are those of the compiler) and keeps in OBJECT.ptxas what it
# says: the registers and spills of each kernel, as ptxas -v counts them. Warnings and errors are
# printed too.
set -u
object=
previous=
for word; do
  if [ "$previous" = -o ]; then object=$word; fi
  previous=$word
done
[[ $object == *.o ]] || exec "$@"
status=0
"$@" 2>"$object.ptxas" || status=$?
grep -vE '^ptxas info|^ +[0-9]+ bytes stack frame' "$object.ptxas" >&2
exit "$status"
