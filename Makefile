# The commands of the project. Each one makes `.venv` first when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: check test slow gpu bench clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[hf,parquet,dev]'
	touch $@

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

test: .venv/ready
	$(BIN)/python -m pytest

slow: .venv/ready
	$(BIN)/python -m pytest -m slow

gpu: .venv/ready
	$(BIN)/python -m pytest -m gpu

bench: .venv/ready
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
