# Every target makes the environment it needs first. PYTHON may name the interpreter to build it with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SGLANG_VENV := .sglang-venv
SGLANG_READY := $(SGLANG_VENV)/.ready
# Half of a test over SSH is waiting, so two processes share the tests; each calculates with one thread.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

.PHONY: demo test test-infra test-sglang test-all lint bench clean

demo: $(READY)
	$(BIN)/eagle3-remote demo

test: $(READY)
	$(PYTEST) -m "not slow and not infra and not sglang" tests

# Everything, the slow ones too, one process after the other where servers or clusters are started.
test-all: $(READY) $(SGLANG_READY)
	$(PYTEST) -m "not infra and not sglang" tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadgroup -m "infra" tests
	$(BIN)/python -m pytest -m sglang tests/sglang

# Hosts in network namespaces, a real cron, a real Slurm: needs root and their packages, see .ci/run.
test-infra: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadgroup -m "infra and not slow" tests

# The real SGLang on this machine's CPU, in an environment of its own (2.5 GB): see tests/sglang/.
test-sglang: $(READY) $(SGLANG_READY)
	$(BIN)/python -m pytest -m "sglang and not slow" tests/sglang

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

# constraints.txt pins what the project is developed with; the published ranges in pyproject.toml stay wide.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "expected Python 3.11 or newer, found: " \
		+ sys.version.split()[0] + "; name another one: make demo PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	@echo "making $(VENV): torch and what the tests need; minutes, where torch comes with its CUDA packages (nearly 3 GB)"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

# The published wheel, unchanged and without the CUDA packages it would bring; beside it what it imports on a CPU.
$(SGLANG_READY): tests/sglang/requirements.txt
	$(PYTHON) -m venv $(SGLANG_VENV)
	$(SGLANG_VENV)/bin/python -m pip install --quiet --requirement tests/sglang/requirements.txt
	$(SGLANG_VENV)/bin/python -m pip install --quiet --no-deps sglang==0.5.23
	touch $(SGLANG_READY)

clean:
	rm -rf $(VENV) $(SGLANG_VENV) dist build
