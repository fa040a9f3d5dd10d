# One command each; everything lands in build/. What is missing on the machine is installed first
# (scripts/setup, Debian 12).
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3

.PHONY: build build-tests setup test sanitize sanitize-units train-extras style thread-safety \
  format check chaos hygiene stress conformance bench bench-compare demo docs install wheel deb \
  clean
build: setup
	@scripts/build

setup:
	@scripts/setup

# Everything there is, tests included; installs every Debian package that a test uses.
build-tests:
	@scripts/setup test
	@scripts/build test

test: build-tests
	scripts/test

# C++ units, the simulator and tests of whole clusters under GCC's sanitizers, in build/asan and
# build/tsan (scripts/sanitize has the words for a part of it).
sanitize:
	@scripts/setup test
	scripts/sanitize

# The part of it that CI runs after `make test`: all units and the simulator with ten seeds for
# wrong accesses, leaks and undefined behaviour, and for races the programs of the worker and the
# store that have threads.
sanitize-units:
	@scripts/setup test
	SANITIZE_SEEDS=10 scripts/sanitize address units seeds
	scripts/sanitize thread worker_core_test worker_pair_test worker_service_test \
	  worker_groups_test object_store_core_test object_store_service_test

# The tests that need a newer PyTorch than Debian's, and TensorBoard, in an environment made outside
# the tree (scripts/train_extras; PICTURES=DIRECTORY keeps the pictures of docs/training.md).
train-extras: build-tests
	RAY_TEST_SCREENSHOTS="$(PICTURES)" scripts/train_extras

# Layout, lint, include directions, imports and ratchets. `make check` also looks at the generated
# documents.
style:
	@scripts/style_tools
	@scripts/style check

# Which mutex guards what, as clang verifies it (common/base/mutex.h).
thread-safety: build
	@scripts/style_tools
	@scripts/thread_safety

# Lays out every file as `make check` wants it.
format:
	@scripts/style_tools
	@scripts/style write

# Style and locks, then every test (the simulations among them).
check: style thread-safety docs
	@git diff --quiet -- docs/configuration.md docs/cli.md docs/compatibility.md || \
	  { echo "docs/ was not up to date: commit what 'make docs' made" >&2; exit 1; }
	@$(MAKE) --no-print-directory test

# A hundred rounds of random kills under load (RAY_CHAOS_ROUNDS; tests/e2e/chaos.py --help).
chaos: build
	PYTHONPATH=build/python $(PYTHON) tests/e2e/chaos.py

# A thousand sessions in one process, then an hour of churn on one cluster: nothing is left, nothing
# grows (tests/e2e/hygiene.py --help).
hygiene: build
	PYTHONPATH=build/python $(PYTHON) tests/e2e/hygiene.py

# Ten minutes of random task graphs with arguments near the size of the stores
# (tests/e2e/stress.py --help).
stress: build
	PYTHONPATH=build/python $(PYTHON) tests/e2e/stress.py

# Small programs on this project and on Ray from PyPI; prints where they differ
# (tests/conformance/run.py --help).
conformance: build
	$(PYTHON) tests/conformance/run.py

bench: build
	$(PYTHON) bench/compare.py --no-ray --programs

# Against Ray from PyPI, in a virtual environment of its own, alternating in one run; draws the
# figure of the README.
bench-compare: build
	$(PYTHON) bench/compare.py --programs
	$(PYTHON) bench/figure.py build/bench.json docs/performance.svg

demo:
	@scripts/setup demo
	@scripts/build demo
	scripts/demo

docs: build
	scripts/gen_docs

install: build
	scripts/install "$(PREFIX)"

# For $(PYTHON), from build/ when that was built for it; `pip install .` does the same
# (python/packaging).
wheel: build
	$(PYTHON) python/packaging/backend.py build/dist

# Two Debian packages and the first one's debug symbols, into build/dist (packaging/README.md).
deb: build
	@scripts/setup deb
	scripts/deb

clean:
	rm -rf build build-wheel
