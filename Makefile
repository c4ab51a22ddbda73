# The commands of the project. Each one makes `.venv` first when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo check test slow vllm gpu bench clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dedup,hf,lora,parquet,train,video,dev]'
	touch $@

demo: .venv/ready
	rm -rf runs/demo
	$(BIN)/dikast world make -n 400 --seed 7 --scales 1-5 --out runs/demo/items
	$(BIN)/dikast grade runs/demo/items/items-00000.jsonl --judge mock:oracle,r=.8 --out runs/demo/graded
	$(BIN)/dikast audit runs/demo/graded
	$(BIN)/dikast world make -n 200 --seed 8 --scales 1-5 --pairs --out runs/demo/pairs
	$(BIN)/dikast compare runs/demo/pairs/items-00000.jsonl --judge mock:oracle,r=.8,nats=1 --out runs/demo/compared
	$(BIN)/dikast audit runs/demo/compared

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

test: .venv/ready
	$(BIN)/python -m pytest

slow: .venv/ready
	$(BIN)/python -m pytest -m slow

.vllm/ready: scripts/vllm_environment scripts/torchvision_on_cpu.py
	PYTHON=$(PYTHON) scripts/vllm_environment .vllm

vllm: .vllm/ready
	.vllm/bin/python -m pytest -m slow tests/engines/vllm

gpu: .venv/ready
	$(BIN)/python -m pytest -m gpu

bench: .venv/ready
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv .vllm .mypy_cache .ruff_cache .pytest_cache
