# One command each. Every target sets up what it needs in .venv; nothing is installed again while that is fresh.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VIEW := build/view
# Threads of PyTorch's operators beside parallel tests would only wait for each other.
export OMP_NUM_THREADS ?= 1
JOBS ?= 2
SEED ?= 0
COUNT ?= 20000
MINUTES ?= 10
# Tests of one group run in one process, one after the other: they share what was exported.
# Random tests take a fixed seed, so that a run can be repeated; another one: make test SEED=1
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist=loadgroup --hypothesis-seed=$(SEED)

.PHONY: demo test test-all control generate check lint bench bench-cpp bench-smoke fuzz fuzz-python system clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: system $(READY)
	$(PYTEST) -m "not wide"

# Compilers and libraries that the tests use; the other targets need only python3 with venv, g++ and make.
system:
	bash .ci/system-packages

# `make test`, then the wide tests; with WIDE_MINUTES=20, as many of them as begin in that time, and a list of the rest.
test-all: test
	$(PYTEST) -m "wide and not control" $(WIDE_MINUTES:%=--wide-minutes=%)

# PyTorch's reader on the hostile set again: a quarter of an hour, as some files hang it.
control: system $(READY)
	$(PYTEST) -m control

generate: $(READY)
	$(BIN)/python -m pt2wire.codegen generate

# mypy and import-linter see files only, and one package here is three folders: so they get a view of it,
# in which modules that `generate` copies are links to what they are copied from.
check: $(READY)
	$(BIN)/python -m pt2wire.codegen check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	rm -rf $(VIEW) && mkdir -p $(VIEW)/pt2wire/generated
	ln -s $(CURDIR)/runtime/* $(CURDIR)/codegen $(VIEW)/pt2wire/
	ln -s $(CURDIR)/generated/* $(VIEW)/pt2wire/generated/
	ln -sf $(CURDIR)/codegen/library/*.py $(VIEW)/pt2wire/generated/
	$(BIN)/mypy -p pt2wire
	cd $(VIEW) && PYTHONPATH=. $(CURDIR)/$(BIN)/lint-imports $(CURDIR)/pyproject.toml

lint: $(READY)
	$(BIN)/python -m pt2wire.codegen lint

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# The C++ header beside Apache's generated code and nlohmann-json; takes minutes to compile.
bench-cpp: system $(READY)
	$(BIN)/python benchmarks/cpp/run.py

# Whether the benchmarks run at all; its figures mean nothing.
bench-smoke: $(READY)
	$(BIN)/python benchmarks/run.py --smoke

# Fuzzes the C++ headers, each target for some minutes, and goes on from what earlier runs learned.
fuzz: system $(READY)
	$(BIN)/python -m tests.helpers.fuzzing --minutes $(MINUTES)

# Changes archives at random and reads them in Python; prints the seed, and keeps what goes wrong.
fuzz-python: $(READY)
	$(BIN)/python -m tests.helpers.fuzzing_python --count $(COUNT)

# Leaves $(VENV) as it is.
clean:
	rm -rf build .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) with PyTorch and what tests and developers use: minutes, the first time"
	$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test,dev]"
	touch $@
