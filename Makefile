# Every target makes the environment it needs first. PYTHON may name the interpreter to build it with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all lint bench clean

demo: $(READY)
	$(BIN)/eagle3-remote demo

test: $(READY)
	$(BIN)/python -m pytest -m "not slow" tests

test-all: $(READY)
	$(BIN)/python -m pytest tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m mypy

bench: $(READY)
	$(BIN)/python -m benchmarks

# constraints.txt pins what the project is developed with; the published ranges in pyproject.toml stay wide.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) dist build
