#!/usr/bin/env bash
# Assembles gpu-bundle/: everything a machine with an NVIDIA GPU needs to run, in one folder that can lie anywhere. Built
# here (glibc 2.36, g++ 12), it runs on newer systems such as Ubuntu 24.04. Inside: the programs, our libraries, the few
# libraries that such a machine may lack, and the peers' scripts. Not inside: LLVM, anything of CUDA.
# Usage: scripts/gpu_bundle.sh [BUNDLE_DIR [BUILD_DIR]]
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=${1:-gpu-bundle}
build=${2:-build-gpu}
limit_mib=40

# Old dynamic tags: a program's own path is where the libraries of others, such as libzip's, are looked for as well.
tags=-Wl,--disable-new-dtags
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTILEWRIGHT_CPU=OFF -DTILEWRIGHT_FOLDERS_SHARED=ON \
  -DCMAKE_EXE_LINKER_FLAGS=$tags -DCMAKE_SHARED_LINKER_FLAGS=$tags -DCMAKE_MODULE_LINKER_FLAGS=$tags \
  -DCMAKE_UNITY_BUILD=ON >/dev/null
# The backend is opened at run time: no program links it by need.
programs=(tw gpu_tests graph_fuzz kernel_fuzz op_parity product_parity sum_parity run_programs training_steps lesson_05_gemm_lesson_05)
targets=(tw_cuda_backend "${programs[@]}")
ninja -C "$build" -j "${JOBS:-2}" "${targets[@]}"

rm -rf "$bundle"
mkdir -p "$bundle"
for program in "${programs[@]}"; do cp "$build/$program" "$bundle/"; done
find "$build" -maxdepth 1 \( -name 'libtw_*.so' -o -name 'libtilewright.so.0' \) -exec cp -L {} "$bundle/" \;

# What every Linux of the last years has stays outside; the rest of what our files need comes along.
system='^(linux-vdso|ld-linux|libc\.so|libm\.so|libdl\.so|librt\.so|libpthread\.so|libstdc\+\+|libgcc_s|libtw_|libtilewright)'
ldd "$bundle"/* | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}' | sort -u |
  while read -r name path; do
    if ! [[ $name =~ $system ]]; then cp -L "$path" "$bundle/$name"; fi
  done
strip --strip-unneeded "$bundle"/*
mkdir -p "$bundle/peers"
cp lab/peers/*.py "$bundle/peers/"
# Random programs judged by that machine's PyTorch: python3 judge/judge.py --device cuda:0
mkdir -p "$bundle/judge"
cp -r tests/judge/*.py tests/judge/cases "$bundle/judge/"
cp tests/training/judge_training.py "$bundle/judge/"
# The text that the gpt2_block pair reads, where it looks for it in the folder it is started from.
mkdir -p "$bundle/lab/data"
cp lab/data/tinyshakespeare.txt "$bundle/lab/data/"

fail() {
  echo "gpu_bundle: $*" >&2
  exit 1
}
# Nothing heavy, nothing of NVIDIA's.
for file in "$bundle"/*; do
  [ -f "$file" ] || continue
  unwanted=$(readelf -d "$file" | awk '/NEEDED/ && /LLVM|clang|libcu|libnv/ {print $NF}')
  [ -z "$unwanted" ] || fail "$file needs $unwanted"
done
# Moved elsewhere, each program still finds every library, and those that we ship, inside.
moved=$(mktemp -d)
trap 'rm -rf "$moved"' EXIT
cp -r "$bundle"/. "$moved"
shipped=$(cd "$bundle" && find . -maxdepth 1 -name 'lib*' -printf '%f\n')
lost=$(find "$moved" -maxdepth 1 -type f ! -name 'lib*' -exec ldd {} + | awk -v inside="$moved/" -v shipped="$shipped" '
  BEGIN {count = split(shipped, names, "\n"); for (i = 1; i <= count; ++i) ours[names[i]] = 1}
  /not found/ {print $1 " is not found"}
  ($1 in ours) && index($3, inside) != 1 {print $1 " comes from " $3}' | sort -u)
[ -z "$lost" ] || fail "the bundle does not stand alone: $lost"
# It starts from there, with nothing said about where libraries lie.
for program in tw graph_fuzz kernel_fuzz; do  # gpu_tests starts only where there is a GPU
  env -i "$moved/$program" --help >/dev/null || fail "$program does not start"
done
env -i HOME="$moved" "$moved/tw" doctor --json >/dev/null || [ $? -eq 1 ] || fail "tw doctor does not run"
cp scripts/gpu_check.sh "$bundle/check.sh"  # after the checks of ELF files
size_kib=$(du -sk "$bundle" | cut -f1)
[ "$size_kib" -le $((limit_mib * 1024)) ] || fail "$bundle takes $size_kib KiB, more than $limit_mib MiB"
echo "gpu_bundle: $bundle, $size_kib KiB: $(cd "$bundle" && echo *)"
