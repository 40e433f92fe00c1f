#!/usr/bin/env bash
# Runs a command and prints how long it took: scripts/phase.sh NAME COMMAND...
set -uo pipefail
name=$1
shift
echo "== $name"
start=$SECONDS
"$@"
status=$?
echo "== $name: $((SECONDS - start)) s$([ $status = 0 ] || echo ", failed ($status)")"
exit $status
