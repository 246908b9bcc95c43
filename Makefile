# The front door. `make demo` and `make test` work on a bare Debian 12 or 13 machine.
#
#   make demo           install what is missing, build the four programs, run docs/sweeps/quick.yaml
#                       (12 small jobs) with them
#   make test           install, build, run every test
#   make fault          the fault tests with full counts: 200 kill -9 of the coordinator, 200 of
#                       workers, 50 SIGSTOPs, 50 partitions …
#   make test-sanitize  all but LibTorch code under AddressSanitizer + UBSan, coordinator and agent
#                       under ThreadSanitizer; the fault tests under both, with programs built so
#   make releases       programs of an earlier release together with those of this one, with kill -9
#                       in between: OLD=DIR names the folder with the earlier programs
#   make slurm          workers and pelab-scale on a real Slurm cluster on this machine (as root; it
#                       installs Slurm; ten minutes)
#   make sim            100,000 simulated histories under faults (SEEDS=0..99999); `make test` runs
#                       2,000
#   make fuzz           every reader of foreign bytes against libFuzzer (clang), ten minutes each:
#                       FUZZ_SECONDS=20 for a short run, FUZZ_TARGETS='where http' for some
#   make build          build everything into build/release
#   make wheel          the Python package `pelab` as build/release/wheel/pelab-*.whl
#   make deb            six Debian packages in build/release/deb; deploy/deb/check.sh tries them in
#                       a fresh root
#   make oci            container images of the coordinator and the worker, as files in
#                       build/release/oci; deploy/oci/check.sh tries them
#   make python-install the same package into a virtual environment: VENV=DIR, which is made where
#                       it is missing [build/python-env]
#   make bench          the benchmarks of tests/bench
#   make bench-queries  how long `pelab results` and others take on 10,000 jobs of 150 epochs
#   make bench-pages    the coordinator's pages in a browser: first paint, and ten minutes of 60
#                       live jobs
#   make bench-train    a training step at paper size and a sweep of small jobs, each against
#                       PyTorch (15 minutes)
#   make bench-cells    evaluation, head ablation, epochs and whole jobs at paper size, against
#                       PyTorch (half an hour)
#   make bench-own      encodings from files against the same ones as pelab brings them
#   make bench-load     thousands of fake workers against a coordinator, then others at the same
#                       work (half an hour)
#   make bench-floods   what floods of connections, calls and messages do to honest clients
#                       (ten minutes); FLOODS=reset,unread for some of them
#   make bench-starts   a sweep of very short jobs with trainers that are forked after LibTorch is
#                       loaded, beside trainers that load it (a minute)
#   make bench-slurm    a sweep with workers that pelab-scale asks Slurm for, beside the same with
#                       workers that wait for it
#   make bench-settle   how many decisions about claims are false, whenever one looks, and how many
#                       seeds they take (simulated; seconds)
#   make lint           the form of all sources: 100 columns, clang-format, clang-tidy, flake8,
#                       mypy, ESLint, shellcheck; a second run takes seconds
#   make sbom           what is linked and bundled, as CycloneDX in build/sbom.cdx.json; also checks
#                       the lock files and the known advisories (no network)
#   make cuda-check     on a GPU host: build the trainer against its LibTorch and train at paper
#                       size (no network)
#   make gpu-bench      on a GPU host: a training step at paper size against PyTorch's ways, and the
#                       hours of Table 1 (no network)

SHELL := /bin/bash
PRESET ?= release
BUILD := build/$(PRESET)
JOBS ?= $(shell nproc)
DB ?= build/demo/pelab.db

.PHONY: demo test fault test-sanitize sim build configured wheel python-install deps bench
.PHONY: bench-load lint cuda-check gpu-bench clean
.DEFAULT_GOAL := build

deps:
	@deploy/install-deps.sh

configured:
	@deploy/build.sh configured $(BUILD) $(PRESET) $(JOBS)

build:
	@deploy/build.sh everything $(BUILD) $(PRESET) $(JOBS)

# On a new machine it leaves the tests out, and what they need to be installed.
demo:
	@deploy/build.sh programs $(BUILD) $(PRESET) $(JOBS)
	@mkdir -p $(dir $(DB))
	$(BUILD)/bin/pelab run docs/sweeps/quick.yaml --db $(DB)

test: build
	tests/run.py $(BUILD) -j $$(( $(JOBS) + 4 ))

# FAULT_ROUNDS and PELAB_FAULT_SEED may be set; a test that fails prints the seed that repeats it.
FAULT_ROUNDS ?= 200
# The Python that CMake found for the tests; any other one may lack numpy.
NUMPY_PYTHON = $$(sed -n 's/^PELAB_NUMPY_PYTHON:[^=]*=//p' $(BUILD)/CMakeCache.txt)
fault: build
	@for test in kill_loops silence full_disk damage clock settle; do \
	  echo "tests/fault/test_$$test.py"; \
	  PELAB_FAULT_ROUNDS=$(FAULT_ROUNDS) PELAB_BIN=$(BUILD)/bin PYTHONDONTWRITEBYTECODE=1 \
	    $(NUMPY_PYTHON) tests/fault/test_$$test.py || exit 1; \
	done

.PHONY: releases
releases: build
	@test -x "$(OLD)/pelab-worker" || { echo "OLD=DIR must name a folder of programs"; exit 2; }
	PELAB_OLD_BIN="$(OLD)" PELAB_BIN=$(BUILD)/bin PYTHONDONTWRITEBYTECODE=1 \
	  python3 tests/fault/test_releases.py -v

.PHONY: slurm
slurm: build
	@deploy/install-deps.sh --slurm
	PELAB_BIN=$(BUILD)/bin PYTHONDONTWRITEBYTECODE=1 python3 tests/slurm/test_scale.py -v

# Threads are the coordinator's and the agent's. A test of the store alone has one thread.
TSAN_TESTS := core_threads_test server_test worker_test coordinator_contract_test
TSAN := pelab-server pelab-worker $(TSAN_TESTS)
space := $(subst ,, )
test-sanitize: build
	cmake --preset asan && cmake --build build/asan -j $(JOBS)
	tests/run.py build/asan -j $$(( $(JOBS) + 1 ))
	tests/fault/sanitized.sh build/asan $(BUILD)
	cmake --preset tsan && cmake --build build/tsan -j $(JOBS) --target $(TSAN)
	tests/run.py build/tsan -j $$(( $(JOBS) + 1 )) \
	  -L '$(subst $(space),|,$(TSAN_TESTS))'
	tests/fault/sanitized.sh build/tsan $(BUILD)

# With clang, in a build folder of its own; without tests and LibTorch.
FUZZ_SECONDS ?= 600
.PHONY: fuzz
fuzz:
	@deploy/install-deps.sh --no-torch --fuzz
	@[ -e build/fuzz/build.ninja ] || cmake --preset fuzz
	cmake --build build/fuzz -j $(JOBS) --target fuzz_targets
	tests/fuzz/run.py --seconds $(FUZZ_SECONDS) --jobs $(JOBS) $(FUZZ_TARGETS)

wheel: configured
	cmake --build $(BUILD) -j $(JOBS) --target wheel

.PHONY: deb
deb: configured
	@deploy/install-deps.sh --deb
	cmake --build $(BUILD) -j $(JOBS) --target deb

.PHONY: oci
oci: deb
	@deploy/install-deps.sh --oci
	deploy/oci/build.sh $(BUILD)/deb --out $(BUILD)/oci

# With the python3 that the build found, which has gRPC, pandas, Protobuf and pip: nothing comes
# from a network, and copying pip would take six seconds.
VENV ?= build/python-env
python-install: wheel
	@python=$$(sed -n 's/^PELAB_PANDAS_PYTHON:[A-Z]*=//p' $(BUILD)/CMakeCache.txt); \
	[ -x "$(VENV)/bin/python3" ] || \
	  "$$python" -m venv --system-site-packages --without-pip "$(VENV)"
	@"$(VENV)/bin/python3" -m pip install --quiet --disable-pip-version-check --force-reinstall \
	  --no-deps --no-index $(BUILD)/wheel/pelab-*.whl
	@"$(VENV)/bin/python3" -c \
	  'import pelab; print("pelab", pelab.__version__, "is installed for $(VENV)/bin/python3")'

SEEDS ?= 0..99999
sim: configured
	cmake --build $(BUILD) -j $(JOBS) --target sim
	@first=$(firstword $(subst .., ,$(SEEDS))) last=$(lastword $(subst .., ,$(SEEDS))); \
	seq $$first 2500 $$last | xargs -P $(JOBS) -I{} sh -c \
	  'to=$$(({} + 2499)); [ $$to -le '$$last' ] || to='$$last'; \
	   $(BUILD)/tests/sim/sim --seeds {}..$$to || exit 255'

bench: build
	tests/bench/run.sh $(BUILD)

.PHONY: bench-queries bench-pages bench-settle
bench-settle: configured
	cmake --build $(BUILD) -j $(JOBS) --target evidence_bench
	$(BUILD)/bench/evidence_bench

bench-queries: build
	PELAB_BIN=$(BUILD)/bin python3 tests/bench/queries/measure.py

bench-pages: build
	PELAB_BIN=$(BUILD)/bin python3 tests/bench/pages/measure.py paint
	PELAB_BIN=$(BUILD)/bin python3 tests/bench/pages/measure.py live

.PHONY: bench-train
bench-train: build
	@deploy/install-deps.sh --bench
	cmake --build $(BUILD) -j $(JOBS) --target train_bench
	tests/bench/train/steps.py $(BUILD)
	tests/bench/train/jobs.py $(BUILD)
	tests/bench/train/packing.py $(BUILD)

.PHONY: bench-own
bench-own: build
	tests/bench/train/own.py $(BUILD)

.PHONY: bench-cells
bench-cells: build
	@deploy/install-deps.sh --bench
	cmake --build $(BUILD) -j $(JOBS) --target train_bench
	tests/bench/train/cells.py $(BUILD)

bench-load: build
	tests/bench/load/run.sh $(BUILD) build/load

# On a Slurm cluster of its own (deploy/slurm/try.sh), so only as root.
.PHONY: bench-starts
bench-starts: build
	PELAB_BIN=$(BUILD)/bin PYTHONDONTWRITEBYTECODE=1 python3 tests/bench/train/starts.py

.PHONY: bench-slurm
bench-slurm: build
	@deploy/install-deps.sh --slurm
	PELAB_BIN=$(BUILD)/bin PYTHONDONTWRITEBYTECODE=1 python3 tests/bench/slurm/wall.py

# FLOODS may name some of them, with commas between them.
.PHONY: bench-floods
bench-floods: build
	$(BUILD)/bench/pelab-load floods --dir build/load --json build/load/floods.json \
	  $(if $(FLOODS),--only $(FLOODS))

# LINT may have options of tests/lint/lint.py, such as --changed. Without this line it would be
# "lint", which Make sets.
LINT :=
lint:
	@deploy/install-deps.sh --lint
	@$(MAKE) --no-print-directory configured >/dev/null
	@cmake --build $(BUILD) --target pelab_proto pelab_python -j $(JOBS) >/dev/null
	python3 -B tests/lint/lint.py --build $(BUILD) $(LINT)

.PHONY: sbom
sbom: build
	python3 -B deploy/supply/sbom.py --bin $(BUILD)/bin --out build/sbom.cdx.json
	python3 -B deploy/supply/check.py --sbom build/sbom.cdx.json

cuda-check:
	deploy/cuda-check.sh

# GPU_BENCH may have options of tests/bench/train/gpu.py.
gpu-bench:
	deploy/gpu-bench.sh $(GPU_BENCH)

clean:
	rm -rf build
