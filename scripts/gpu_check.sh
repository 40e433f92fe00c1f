#!/usr/bin/env bash
# Asks a machine with an NVIDIA GPU everything that cannot be asked without one, within a time: the GPU tests, long sums,
# every op, random graphs, kernels and products, random programs against that machine's PyTorch, and compute-sanitizer.
# The bundle carries it as check.sh. Prints a line for each part; ends with 1 where a part failed. Logs: OUT_DIR.
# Usage: check.sh [SECONDS [OUT_DIR [SEED]]]      (default: 300 seconds, ./check-results, seeds by the date)
set -uo pipefail
cd "$(dirname "$0")" || exit 2
seconds=${1:-300}
out=${2:-check-results}
seed=${3:-$(date +%s)}
mkdir -p "$out"
began=$(date +%s)
left() { echo $((seconds - ($(date +%s) - began))); }
failed=0

# random_part NAME SECONDS COMMAND...: a part that goes on until the time ends it, which is no failure.
random_part() {
  local name=$1 time=$2
  shift 2
  part "$name" bash -c 'timeout -s INT "$@"; rc=$?; [ $rc = 124 ] || [ $rc = 130 ] || exit $rc' random_part "$time" "$@"
}

# part NAME COMMAND...: runs it, keeps its output, prints its last line.
part() {
  local name=$1
  shift
  "$@" >"$out/$name.txt" 2>&1
  local rc=$?
  if [ $rc -ne 0 ]; then
    failed=1
    echo "FAILED ($rc) $name: $(tail -n 1 "$out/$name.txt")"
  else
    echo "ok $name: $(tail -n 1 "$out/$name.txt")"
  fi
  return $rc
}

# Most of their time goes to compiling kernels, on one core each: side by side.
pids=()
for shard in 0 1 2 3 4 5; do
  part "gpu_tests_$shard" env GTEST_TOTAL_SHARDS=6 GTEST_SHARD_INDEX="$shard" timeout 240 ./gpu_tests & pids+=($!)
done
# A thread's chain is its rounds times its rows of a tile: 177 for the columns of {3000000, 64} on an H200.
part long_sums timeout 240 ./sum_parity --device cuda:0 --chain 256 & pids+=($!)
part corpus timeout 240 python3 judge/judge.py --program ./run_programs --device cuda:0 --run judge/cases & pids+=($!)
if command -v compute-sanitizer >/dev/null; then
  part memcheck timeout 240 compute-sanitizer --tool memcheck --error-exitcode 1 ./gpu_tests --gtest_filter='*B2b*:*Dots*' & pids+=($!)
else
  echo "NOT RUN memcheck: compute-sanitizer is not on this machine"
fi
for pid in "${pids[@]}"; do
  wait "$pid" || failed=1
done

# What is random shares the rest of the time: an interrupt ends each with the count of what it did.
rest=$(left)
if [ "$rest" -gt 20 ]; then
  echo "random parts, seed $seed, $rest s"
  pids=()
  random_part tiny_graphs "$rest" ./graph_fuzz --device cuda:0 --family tiny --seed "$seed" --count 10000000 --jobs 4 & pids+=($!)
  random_part graphs "$rest" ./graph_fuzz --device cuda:0 --family any --seed "$seed" --count 10000000 --jobs 2 & pids+=($!)
  random_part kernels "$rest" ./kernel_fuzz --device cuda:0 --all-schedules --seed "$seed" --count 10000000 --jobs 3 & pids+=($!)
  random_part products "$rest" ./product_parity --device cuda:0 --seed "$seed" --count 10000000 --jobs 2 & pids+=($!)
  for shard in 0 1 2 3; do
    part "programs_$shard" python3 judge/judge.py --program ./run_programs --device cuda:0 --seed "$seed" --count 10000000 \
      --shard "$shard/4" --seconds "$rest" & pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || failed=1
  done
fi
exit $failed
