# The commands of the project. Each one makes `.venv` first when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
# Two tests at a time, each on one core: what continuous integration has. `WORKERS=8 make test` where there are more.
WORKERS ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: demo check docs test slow soak vllm gpu bench scout scout-twins scout-gpu clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dedup,hf,lora,parquet,train,video,docs,dev]'
	touch $@

demo: .venv/ready
	rm -rf runs/demo
	$(BIN)/dikast demo --out runs/demo

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

# The documentation as a site in build/site; a link that leads nowhere stops it.
docs: .venv/ready
	$(BIN)/zensical build --strict

test: .venv/ready
	$(PYTEST) --dist worksteal

slow: .venv/ready
	$(PYTEST) --dist loadgroup -m slow

# Every try of the tests that draw many; all other runs draw a seeded sample of about 2 %.
soak: .venv/ready
	DIKAST_SOAK=full $(BIN)/python -m pytest -m soak

.vllm/ready: scripts/vllm_environment scripts/torchvision_on_cpu.py
	PYTHON=$(PYTHON) scripts/vllm_environment .vllm

vllm: .vllm/ready
	.vllm/bin/python -m pytest -m slow tests/engines/vllm

gpu: .venv/ready
	$(BIN)/python -m pytest -m gpu

bench: .venv/ready
	$(BIN)/python -m benchmarks

# The judge that ships inside, from nothing, on two cores. What comes out lies in build/scout/model.
DATA := build/scout/data
scout: .venv/ready
	$(BIN)/dikast world teach --talk -n 45000 --seed 4 --workers 2 --out $(DATA)/talk
	$(BIN)/dikast world teach -n 60000 --seed 1 --reference 25 --workers 2 --out $(DATA)/scenes
	$(BIN)/dikast world teach -n 20000 --seed 2 --reference 25 --domain text --workers 2 --out $(DATA)/text
	$(BIN)/dikast world teach -n 10000 --seed 3 --reference 25 --pairs --workers 2 --out $(DATA)/pairs
	$(BIN)/dikast world teach -n 4000 --seed 5 --reference 25 --pairs --domain text --workers 2 --out $(DATA)/text-pairs
	$(BIN)/dikast world teach -n 15000 --seed 6 --reference 25 --padding 50 --workers 2 --out $(DATA)/scenes-padded
	$(BIN)/dikast train new --config recipes/scout-cpu/2-grade.yaml --most 1500 --out build/scout/init
	$(BIN)/dikast train look --config recipes/scout-cpu/0-look.yaml
	$(TWO) --config recipes/scout-cpu/1-talk.yaml
	$(TWO) --config recipes/scout-cpu/2-grade.yaml
	$(TWO) --config recipes/scout-cpu/3-words.yaml
	$(BIN)/dikast train release build/scout/3-words/model --out build/scout/model
# Memory once taken is kept (glibc gives large blocks back at once), and kernels for every length of row: a third faster.
KEPT := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8589934592 ONEDNN_PRIMITIVE_CACHE_CAPACITY=16384
TWO := $(KEPT) OMP_NUM_THREADS=1 $(BIN)/python -m torch.distributed.run --nproc_per_node 2 -m dikast train sft

# Twins of `scout` under the same budget: taught the label alone; taught with every picture grey.
scout-twins: .venv/ready
	$(BIN)/python -m benchmarks.twins
	for twin in score-only blanked; do for stage in 2-grade 3-words; do \
	  $(TWO) --config build/scout/twins/$$twin/$$stage.yaml || exit 1; done; done

# `scout` on one GPU, about 25 minutes, larger and on every domain; never run so far. Each piece stops after eight minutes
# and the next one goes on from its checkpoint.
GPU_DATA := build/scout-gpu/data
scout-gpu: .venv/ready
	$(BIN)/dikast world teach --talk -n 200000 --seed 4 --workers 16 --out $(GPU_DATA)/talk
	for domain in scenes text plates clips pictures retouch; do \
	  $(BIN)/dikast world teach -n 200000 --seed 1 --domain $$domain --reference 25 --workers 16 --out $(GPU_DATA)/$$domain && \
	  $(BIN)/dikast world teach -n 50000 --seed 3 --domain $$domain --pairs --workers 16 --out $(GPU_DATA)/$$domain-pairs \
	  || exit 1; done
	$(BIN)/dikast world teach -n 15000 --seed 6 --reference 25 --padding 50 --workers 16 --out $(GPU_DATA)/scenes-padded
	$(BIN)/dikast train new --size small --config recipes/scout-gpu/2-grade.yaml --most 3000 --out build/scout-gpu/init
	$(BIN)/dikast train look --config recipes/scout-gpu/0-look.yaml
	for stage in 1-talk 2-grade 3-words; do \
	  until [ -f build/scout-gpu/$$stage/model/config.json ]; do \
	    $(BIN)/dikast train sft --config recipes/scout-gpu/$$stage.yaml || exit 1; done; done
	$(BIN)/dikast train release build/scout-gpu/3-words/model --out build/scout-gpu/model

clean:
	rm -rf .venv .vllm .mypy_cache .ruff_cache .pytest_cache
