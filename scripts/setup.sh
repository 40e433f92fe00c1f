#!/usr/bin/env bash
# Installs what this project needs and the machine lacks: Debian packages (as root or through sudo), and for the tests
# from PyPI NVRTC into .cache/nvrtc, where no CUDA is installed, and the judges of tokenizers into .cache/tokenizers. Does
# nothing, quickly, where all is there.
# Usage: scripts/setup.sh [build] [test] [lint] [clang] [docs] [peers]      (default: build)
# `docs` is what `make docs` makes the site with: Sphinx and its theme from PyPI into .cache/docs, as Debian 12's furo has a broken script.
# `peers` is wanted by no build and no test: PyTorch with its compiler in .cache/peers (1.7 GB), which
# `tw bench run --peers` finds before any other.
set -euo pipefail
cd "$(dirname "$0")/.."

build=(clang-19 g++ cmake make ninja-build ccache git
  libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libzip-dev libpcre2-dev libopenblas0
  llvm-19-dev libclang-19-dev libclang-cpp19-dev # the CPU backend's compiler, in the process
  gnuplot-nox                 # plots, at run time
  libgtest-dev libgmock-dev python3)
test=(python3-pip librapidcheck-dev pkg-config
  python3-torch    # PyTorch judges random programs: tests/judge
  python3-clang-19 # reads the public headers: scripts/site
  groff-base       # reads the page of the manual
)
lint=(clang-tidy-19 clang-format-19 python3)
clang=(libclang-rt-19-dev) # what the sanitizers and libFuzzer link
docs=(python3-venv python3-clang-19)
peers=(g++ python3-venv python3-dev) # torch.compile prints C++ for the CPU, and includes Python's headers

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() {
  local installed missing=()
  # It exits 1 when it does not know a package, which is what we ask about.
  installed=$({ dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null || [ $? = 1 ]; } | sed -n 's/^ii *//p')
  for package; do
    grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  echo "setup: installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Where src/backends/cuda/host/library_search.cpp looks on a machine with CUDA, and where we put it.
find_nvrtc() {
  [ -n "${TILEWRIGHT_NVRTC:-}" ] && return
  compgen -G ".cache/nvrtc/nvidia/*/lib/libnvrtc.so.13" >/dev/null && return
  for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/cuda/lib64; do
    [ ! -e "$folder/libnvrtc.so.13" ] || return 0
  done
  /sbin/ldconfig -p | grep -q 'libnvrtc\.so\.13'
}

# The compiler of CUDA kernels: the tests compile every kernel for the GPU, with no GPU in the machine.
install_nvrtc() {
  find_nvrtc && return
  echo "setup: installing NVRTC into .cache/nvrtc"
  # A folder that was left half done is no NVRTC: it gets its name when it is complete.
  rm -rf .cache/nvrtc .cache/nvrtc.part
  python3 -m pip install --quiet --no-deps --only-binary=:all: --root-user-action=ignore \
    --target .cache/nvrtc.part 'nvidia-cuda-nvrtc==13.0.*'
  mv .cache/nvrtc.part .cache/nvrtc
}

# Debian's python3 runs the test. --no-deps: what they download vocabularies with is left out.
install_tokenizers() {
  local into=.cache/tokenizers
  [ ! -d "$into" ] || return 0
  echo "setup: installing tokenizers and tiktoken into $into"
  rm -rf "$into.part"
  /usr/bin/python3 -m pip install --quiet --no-deps --only-binary=:all: --root-user-action=ignore \
    --target "$into.part" tokenizers==0.23.3 tiktoken==0.14.0 regex
  mv "$into.part" "$into"
}

# The newest PyTorch that the lab is known to run with. --no-deps leaves out 3 GB of CUDA: what the wheel cannot
# be imported without is named here, and a machine with a GPU has the rest (CUDA 13, cuDNN 9) or a PyTorch of its own.
install_peers() {
  local into=.cache/peers
  [ ! -x "$into/bin/python" ] || return 0
  echo "setup: installing PyTorch into $into"
  rm -rf "$into.part"
  python3 -m venv "$into.part"
  local pip=("$into.part/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all:)
  "${pip[@]}" typing_extensions sympy networkx jinja2 fsspec filelock 'setuptools<82' numpy
  "${pip[@]}" --no-deps torch==2.11.0 nvidia-cufile nvidia-cusparselt-cu13==0.8.0 nvidia-nvshmem-cu13==3.4.5
  # An import that fails must not leave a folder that looks complete.
  "$into.part/bin/python" -c 'import torch; print("setup: PyTorch", torch.__version__)'
  mv "$into.part" "$into"
}

# Debian's python3, for which libclang's binding is installed. Versions are pinned: what Sphinx warns of is an error.
install_docs() {
  local into=.cache/docs versions='sphinx==8.2.3 furo==2025.12.19 myst-parser==4.0.1'
  if [ -e "$into/versions" ] && [ "$(cat "$into/versions")" = "$versions" ]; then return 0; fi
  echo "setup: installing $versions into $into"
  rm -rf "$into"
  /usr/bin/python3 -m venv --system-site-packages "$into"
  # shellcheck disable=SC2086
  "$into/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary=:all: $versions
  echo "$versions" >"$into/versions"
}

[ $# -gt 0 ] || set -- build
packages=()
for part; do
  case $part in
    build) packages+=("${build[@]}") ;;
    test) packages+=("${test[@]}") ;;
    lint) packages+=("${lint[@]}") ;;
    clang) packages+=("${clang[@]}") ;;
    docs) packages+=("${docs[@]}") ;;
    peers) packages+=("${peers[@]}") ;;
    *)
      echo "setup: no part '$part'; there are build, test, lint, clang, docs, peers" >&2
      exit 2
      ;;
  esac
done
install_packages "${packages[@]}"
for part; do
  if [ "$part" = test ]; then
    install_nvrtc
    install_tokenizers
  fi
  if [ "$part" = docs ]; then install_docs; fi
  if [ "$part" = peers ]; then install_peers; fi
done
