# The commands of the project; `make help` lists them. CMake and ctest do the work: presets in CMakePresets.json.
JOBS ?= $(shell nproc)
REV ?= HEAD
FUZZ_SECONDS ?= 600
FUZZ_GRAPHS ?= 1000000
FUZZ_KERNELS ?= 50000
PHASE = scripts/phase.sh
CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)

PREFIX ?= /usr/local
# Compilers, and tests that compile, ask malloc for much: in huge pages they take a tenth less time (glibc 2.35 and later).
HUGE_PAGES = GLIBC_TUNABLES=glibc.malloc.hugetlb=1

.PHONY: build install help setup demo test test-long bench golden replay fuzz asan ubsan tsan lint format docs gpu-bundle clean
.DEFAULT_GOAL := build

build: build/build.ninja ## build the command, build/tw, and the backends it opens (default)
	cmake --build build -j $(JOBS) --target tw

install: build/build.ninja ## build and install the library, its backends and headers, and tw: PREFIX=/usr/local
	cmake --build build -j $(JOBS) --target package_files
	cmake --install build --prefix $(PREFIX)

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what building and testing need and the machine lacks (root or sudo)
	scripts/setup.sh build test

build/build.ninja build/compile_commands.json &: CMakePresets.json
	cmake --preset release

demo: ## on a fresh machine: setup, build, and run the quick benchmarks
	scripts/setup.sh build
	$(MAKE) --no-print-directory build
	build/tw bench run quick

test: ## on a fresh machine: setup, build everything, run every test
	@$(PHASE) setup scripts/setup.sh build test
	@$(PHASE) configure cmake --preset release
	@$(HUGE_PAGES) $(PHASE) build cmake --build build -j $(JOBS)
	@$(HUGE_PAGES) $(PHASE) tests $(CTEST) --test-dir build

test-long: ## as test, with all cases of what is drawn at random, of which test tries a sixth
	@TILEWRIGHT_DRAWS=1 $(MAKE) --no-print-directory test

bench: build ## run every benchmark of this machine; OUTPUT=run.json keeps the figures
	build/tw bench run $(if $(OUTPUT),--output $(OUTPUT))
	build/tw bench sweep --count 20 --peers

golden: build/build.ninja ## rewrite the goldens and the outputs in docs/; read the diff
	cmake --build build -j $(JOBS)
	TILEWRIGHT_UPDATE=1 $(CTEST) --test-dir build -L golden
	git status --short

replay: build/build.ninja ## what the compiler makes of a fixed corpus now and at REV: REV=main, or REV="HEAD~3 --filter pair/"
	@tools/replay/replay.py --jobs $(JOBS) --against $(REV)

fuzz: build/build.ninja ## FUZZ_SECONDS of malformed text per parser and file format, FUZZ_GRAPHS random graphs and a part as programs for PyTorch, FUZZ_KERNELS kernels
	scripts/setup.sh build test clang
	scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_GRAPHS) $(FUZZ_KERNELS)

asan: ## the unit tests under Clang's address and undefined-behaviour sanitizers
	@scripts/setup.sh build test clang
	@cmake --preset asan >/dev/null
	@$(PHASE) "build, asan" cmake --build build-asan -j $(JOBS) --target unit_tests
	@$(PHASE) "tests, asan" $(CTEST) --test-dir build-asan -L unit

ubsan: asan

tsan: ## the unit tests under Clang's thread sanitizer
	@scripts/setup.sh build test clang
	@cmake --preset tsan >/dev/null
	@$(PHASE) "build, tsan" cmake --build build-tsan -j $(JOBS) --target unit_tests test_compile test_training tw
	@OPENBLAS_NUM_THREADS=1 $(PHASE) "tests, tsan" $(CTEST) --test-dir build-tsan -L unit  # its threads are not instrumented
	@$(PHASE) "compiled functions, tsan" build-tsan/test_compile --gtest_brief=1 --gtest_filter='*Threads*:*Contexts*:*DynamicRanges*'
	@$(PHASE) "checkpoints, tsan" build-tsan/test_training --gtest_brief=1 --gtest_filter='Checkpoint*'
	@$(PHASE) "interrupted trainings, tsan" tests/training/kills.py build-tsan/tw --kills 3 --steps 4 --signal SIGINT

lint: build/compile_commands.json ## clang-format, clang-tidy and the checks of the text over what changed since it was clean
	@scripts/setup.sh lint
	@scripts/lint.py $(if $(SINCE),--since $(SINCE))

format: ## format every source
	scripts/setup.sh lint
	git ls-files '*.h' '*.hpp' '*.cpp' '*.cuh' '*.cu' | xargs clang-format-19 -i

docs: ## the documents, the guide and a reference of the headers as one site: build/docs/index.html
	@scripts/setup.sh docs
	@scripts/site/make_site.py build/docs

gpu-bundle: ## a folder, gpu-bundle/, to copy to a machine with an NVIDIA GPU
	JOBS=$(JOBS) scripts/gpu_bundle.sh

clean: ## remove what was built here
	rm -rf build build-* gpu-bundle
