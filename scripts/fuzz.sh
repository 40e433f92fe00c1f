#!/usr/bin/env bash
# libFuzzer on every parser, each for so many seconds, beginning with the texts in tests/fuzz/corpus and what earlier runs
# found (build-fuzz/corpus), and damaged files of each format for as long, under the same sanitizers; then so many random graphs of
# every family, lowered and interpreted, every fiftieth compiled for the CPU as well, and tile kernels, all compared with the oracles;
# and programs over the user's API, compared with PyTorch.
# Usage: scripts/fuzz.sh SECONDS GRAPHS KERNELS [SEED]       a million graphs alone: scripts/fuzz.sh 0 1000000 0
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
graphs=$2
kernels=$3
seed=${4:-100000} # beyond those of the tests
jobs=${JOBS:-$(nproc)}

# All shards of one program side by side.
in_shards() {
  local running=() failed=0
  for ((i = 0; i < jobs; ++i)); do
    "$@" --seed "$seed" --shard "$i/$jobs" &
    running+=($!)
  done
  for pid in "${running[@]}"; do wait "$pid" || failed=1; done
  return $failed
}

fuzz_parsers() {
  local parsers=() seeds source parser
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
}

fuzz_files() {
  cmake --build build-fuzz -j "$jobs" --target formats_fuzz
  in_shards build-fuzz/formats_fuzz --seconds "$seconds"
}
if [ "$seconds" -gt 0 ]; then
  fuzz_parsers
  fuzz_files
fi

cmake --build build -j "$jobs" --target graph_fuzz kernel_fuzz run_programs
in_shards build/graph_fuzz --device reference --family any --count "$graphs"
in_shards build/graph_fuzz --device cpu --family any --count $((graphs / 50))
in_shards build/kernel_fuzz --device cpu --count "$kernels"
in_shards tests/judge/judge.py --device reference --count $((graphs / 1000))
in_shards tests/judge/judge.py --device cpu --count $((graphs / 10000))
