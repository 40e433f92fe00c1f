#!/usr/bin/env bash
# libFuzzer on every parser, each for so many seconds, beginning with the texts in tests/fuzz/corpus and what earlier runs
# found (build-fuzz/corpus); then so many random graphs and tile kernels, compiled for the CPU and compared with the oracles.
# Usage: scripts/fuzz.sh SECONDS GRAPHS KERNELS
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
graphs=$2
kernels=$3
jobs=${JOBS:-$(nproc)}

parsers=()
for source in tests/fuzz/*_fuzz.cpp; do parsers+=("$(basename "$source" _fuzz.cpp)"); done
cmake --preset fuzz >/dev/null
cmake --build build-fuzz -j "$jobs" --target "${parsers[@]/#/fuzz_}"
for parser in "${parsers[@]}"; do
  mkdir -p "build-fuzz/corpus/$parser"
  seeds=()
  if [ -d "tests/fuzz/corpus/$parser" ]; then seeds=("../tests/fuzz/corpus/$parser"); fi
  (cd build-fuzz && "./fuzz_$parser" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 -jobs="$jobs" -workers="$jobs" \
    "corpus/$parser" "${seeds[@]}")
done

cmake --build build -j "$jobs" --target graph_fuzz kernel_fuzz
# All shards of one program side by side; seeds beyond those of the tests.
in_shards() {
  local program=$1 count=$2 running=()
  for ((i = 0; i < jobs; ++i)); do
    "build/$program" --device cpu --count "$count" --seed 100000 --shard "$i/$jobs" &
    running+=($!)
  done
  for pid in "${running[@]}"; do wait "$pid"; done
}
in_shards graph_fuzz "$graphs"
in_shards kernel_fuzz "$kernels"
