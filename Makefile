# The commands of the project. Each one makes `.venv` first when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin
# Two tests at a time, each on one core: what continuous integration has. `WORKERS=8 make test` where there are more.
WORKERS ?= 2
# The tests start hundreds of processes, so sources are compiled before them. The tests themselves write no bytecode: where
# they limit the size of files, Python would keep a truncated one, which stops every later process.
COMPILE := $(BIN)/python -m compileall -q -j 2 src
# Files of tests lie in memory where there is room for them: thousands of tests wait for a disk to confirm what was written.
ROOM := $(shell df -Pk /dev/shm 2> /dev/null | awk 'NR == 2 && $$4 > 8000000 {print "PYTEST_DEBUG_TEMPROOT=/dev/shm"}')
PYTEST := PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1 $(ROOM) $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: demo check docs test slow soak vllm ray stores gpu bench lab scout scout-twins scout-twins-short scout-gpu align align-questions clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dedup,hf,lora,parquet,train,video,docs,dev]'
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt axe-playwright-python  # for its axe.min.js
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
	$(COMPILE)
	$(PYTEST) --dist worksteal

slow: .venv/ready
	$(COMPILE)
	$(PYTEST) --dist loadgroup -m slow -rs

# Every try of the tests that draw many; all other runs draw a seeded sample of about 2 %.
soak: .venv/ready .ray/ready
	DIKAST_SOAK=full $(BIN)/python -m pytest -m soak
	DIKAST_SOAK=full .ray/bin/python -m pytest -m soak tests/engines/cluster

.vllm/ready: scripts/vllm_environment scripts/torchvision_on_cpu.py
	PYTHON=$(PYTHON) scripts/vllm_environment .vllm

vllm: .vllm/ready
	.vllm/bin/python -m pytest -m slow tests/engines/vllm

# Ray in an environment of its own, like vLLM; the tests start real clusters on this machine.
.ray/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .ray
	.ray/bin/python -m pip install --quiet --upgrade pip
	.ray/bin/python -m pip install --quiet -c constraints.txt -e '.[ray]' hypothesis pytest pytest-xdist
	touch $@

# Ray gives its workers the lowest priority; beside other work they would hardly run.
ray: .ray/ready
	RAY_worker_niceness=0 .ray/bin/python -m pytest -m slow tests/engines/cluster

# Servers that speak as Amazon's and Google's stores do, in an environment of their own: they bring a web framework.
.stores/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .stores
	.stores/bin/python -m pip install --quiet --upgrade pip
	.stores/bin/python -m pip install --quiet -c constraints.txt -e '.[s3,gs]' 'moto[server]' gcp-storage-emulator hypothesis pytest
	touch $@

stores: .stores/ready
	.stores/bin/python -m pytest -m slow tests/core/records/test_core_stores.py

# Inspect, whose viewer opens our logs in a slow test, in an environment of its own: its dependencies conflict with ours.
.inspect/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .inspect
	.inspect/bin/python -m pip install --quiet --upgrade pip
	.inspect/bin/python -m pip install --quiet "$$(grep '^inspect_ai==' constraints.txt)"
	touch $@

gpu: .venv/ready
	$(BIN)/python -m pytest -m gpu

bench: .venv/ready
	$(BIN)/python -m benchmarks

# Every experiment of the lab with all its seeds, two arms at a time; again after an interrupt, it goes on.
lab: .venv/ready
	$(BIN)/python -m dikast lab run all --jobs 2 --out build/lab
	$(BIN)/python -m dikast lab report build/lab --out docs/lab.md --out build/lab.html

# The judge that ships inside, from nothing, on two cores; its card says what its own weights were trained on. What comes out
# lies in build/scout/model.
DATA := build/scout/data
scout: .venv/ready
	$(BIN)/dikast world teach --version 3 --talk -n 45000 --seed 4 --workers 2 --out $(DATA)/talk
	$(BIN)/dikast world teach --version 3 -n 60000 --seed 1 --reference 25 --workers 2 --out $(DATA)/scenes
	$(BIN)/dikast world teach --version 3 -n 20000 --seed 2 --reference 25 --domain text --workers 2 --out $(DATA)/text
	$(BIN)/dikast world teach --version 3 -n 10000 --seed 3 --reference 25 --pairs --workers 2 --out $(DATA)/pairs
	$(BIN)/dikast world teach --version 3 -n 4000 --seed 5 --reference 25 --pairs --domain text --workers 2 --out $(DATA)/text-pairs
	$(BIN)/dikast world teach --version 3 -n 15000 --seed 6 --reference 25 --padding 50 --workers 2 --out $(DATA)/scenes-padded
	$(RULED) -n 39000 --seed 11 --padding 15 --out $(DATA)/rubrics
	$(RULED) -n 9000 --seed 12 --padding 15 --domain text --out $(DATA)/rubrics-text
	$(RULED) -n 3000 --seed 13 --pairs --out $(DATA)/rubrics-pairs
	$(RULED) -n 1200 --seed 15 --pairs --domain text --out $(DATA)/rubrics-text-pairs
	$(QUOTED) -n 6000 --seed 21 --padding 15 --out $(DATA)/scenes-quoted
	$(QUOTED) -n 1500 --seed 22 --padding 15 --domain text --out $(DATA)/text-quoted
	$(QUOTED) -n 900 --seed 23 --pairs --out $(DATA)/pairs-quoted
	$(RULED) -n 30000 --seed 31 --padding 15 --out $(DATA)/rubrics-more
	$(RULED) -n 14000 --seed 32 --padding 15 --domain text --out $(DATA)/rubrics-text-more
	$(RULED) -n 3000 --seed 33 --pairs --out $(DATA)/rubrics-pairs-more
	$(RULED) -n 1200 --seed 35 --pairs --domain text --out $(DATA)/rubrics-text-pairs-more
	$(QUOTED) -n 3000 --seed 41 --padding 15 --out $(DATA)/scenes-quoted-more
	$(QUOTED) -n 1500 --seed 42 --padding 15 --domain text --out $(DATA)/text-quoted-more
	$(QUOTED) -n 900 --seed 43 --pairs --out $(DATA)/pairs-quoted-more
	$(RULED) -n 64000 --seed 51 --padding 15 --blank 4 --out $(DATA)/rubrics-many
	$(RULED) -n 32000 --seed 56 --padding 15 --form 70 --out $(DATA)/rubrics-form
	$(RULED) -n 26000 --seed 52 --padding 15 --form 40 --domain text --out $(DATA)/rubrics-text-many
	$(RULED) -n 10000 --seed 53 --pairs --out $(DATA)/rubrics-pairs-many
	$(RULED) -n 7000 --seed 55 --pairs --domain text --out $(DATA)/rubrics-text-pairs-many
	$(QUOTED) -n 8000 --seed 61 --padding 15 --blank 4 --out $(DATA)/scenes-quoted-many
	$(QUOTED) -n 6000 --seed 62 --padding 15 --domain text --out $(DATA)/text-quoted-many
	$(QUOTED) -n 6000 --seed 63 --pairs --out $(DATA)/pairs-quoted-many
	$(QUOTED) -n 6000 --seed 65 --pairs --domain text --out $(DATA)/text-pairs-quoted-many
	$(RULED) -n 3000 --seed 67 --only texture --form 0 --out $(DATA)/only-texture
	$(RULED) -n 3000 --seed 68 --only colour --form 0 --out $(DATA)/only-colour
	$(RULED) -n 4000 --seed 71 --padding 15 --blank 4 --out $(DATA)/even-scenes
	$(RULED) -n 2000 --seed 72 --padding 15 --form 70 --out $(DATA)/even-form
	$(RULED) -n 3000 --seed 73 --padding 15 --form 40 --domain text --out $(DATA)/even-text
	$(RULED) -n 2000 --seed 74 --pairs --out $(DATA)/even-pairs
	$(RULED) -n 2000 --seed 75 --pairs --domain text --out $(DATA)/even-text-pairs
	$(QUOTED) -n 1500 --seed 76 --padding 15 --out $(DATA)/even-scenes-quoted
	$(QUOTED) -n 1000 --seed 77 --padding 15 --domain text --out $(DATA)/even-text-quoted
	$(QUOTED) -n 1000 --seed 78 --pairs --out $(DATA)/even-pairs-quoted
	$(QUOTED) -n 1000 --seed 79 --pairs --domain text --out $(DATA)/even-text-pairs-quoted
	seed=80; for domain in plates clips pictures retouch; do \
	  $(RULED) -n 600 --seed $$seed --domain $$domain --out $(DATA)/even-$$domain && \
	  $(RULED) -n 400 --seed $$((seed + 1)) --pairs --domain $$domain --out $(DATA)/even-$$domain-pairs \
	  || exit 1; seed=$$((seed + 2)); done
	$(RULED) -n 3600 --seed 91 --only sum --form 0 --domain text --out $(DATA)/only-sum
	$(RULED) -n 2000 --seed 92 --only list --form 0 --domain text --out $(DATA)/only-list
	$(RULED) -n 2000 --seed 93 --only number --form 0 --domain text --out $(DATA)/only-number
	$(NAMED) -n 2400 --seed 94 --out $(DATA)/names-scenes
	$(NAMED) -n 1800 --seed 95 --domain text --out $(DATA)/names-text
	seed=96; for domain in plates clips pictures retouch; do \
	  $(NAMED) -n 400 --seed $$seed --domain $$domain --out $(DATA)/names-$$domain || exit 1; seed=$$((seed + 1)); done
	$(RULED) -n 12500 --seed 101 --padding 15 --blank 6 --out $(DATA)/again-scenes
	$(RULED) -n 3000 --seed 102 --padding 15 --form 70 --out $(DATA)/again-form
	$(RULED) -n 9000 --seed 103 --padding 15 --form 40 --domain text --out $(DATA)/again-text
	$(RULED) -n 4000 --seed 104 --pairs --out $(DATA)/again-pairs
	$(RULED) -n 4500 --seed 105 --pairs --domain text --out $(DATA)/again-text-pairs
	$(QUOTED) -n 2400 --seed 106 --padding 15 --out $(DATA)/again-scenes-quoted
	$(QUOTED) -n 3000 --seed 107 --padding 15 --domain text --out $(DATA)/again-text-quoted
	$(QUOTED) -n 1800 --seed 108 --pairs --out $(DATA)/again-pairs-quoted
	$(QUOTED) -n 3000 --seed 109 --pairs --domain text --out $(DATA)/again-text-pairs-quoted
	$(RULED) -n 600 --seed 118 --only texture --form 0 --out $(DATA)/again-texture
	$(RULED) -n 600 --seed 119 --only colour --form 0 --out $(DATA)/again-colour
	seed=110; for domain in plates clips pictures retouch; do \
	  $(RULED) -n 500 --seed $$seed --domain $$domain --out $(DATA)/again-$$domain && \
	  $(RULED) -n 300 --seed $$((seed + 1)) --pairs --domain $$domain --out $(DATA)/again-$$domain-pairs \
	  || exit 1; seed=$$((seed + 2)); done
	$(MATCHING) -n 3600 --seed 121 --out $(DATA)/matching-scenes
	$(MATCHING) -n 2400 --seed 122 --domain text --out $(DATA)/matching-text
	seed=123; for domain in plates clips pictures retouch; do \
	  $(MATCHING) -n 600 --seed $$seed --domain $$domain --out $(DATA)/matching-$$domain || exit 1; seed=$$((seed + 1)); done
	$(RULED) -n 2500 --seed 127 --pairs --domain text --out $(DATA)/match-text-pairs
	$(QUOTED) -n 2000 --seed 128 --pairs --domain text --out $(DATA)/match-text-pairs-quoted
	seed=129; for domain in plates clips pictures retouch; do \
	  $(RULED) -n 1000 --seed $$seed --domain $$domain --out $(DATA)/match-$$domain && \
	  $(RULED) -n 500 --seed $$((seed + 1)) --pairs --domain $$domain --out $(DATA)/match-$$domain-pairs \
	  || exit 1; seed=$$((seed + 2)); done
	$(NAMED) -n 3600 --seed 137 --out $(DATA)/rules-scenes
	$(NAMED) -n 1800 --seed 138 --domain text --out $(DATA)/rules-text
	seed=139; for domain in plates clips pictures retouch; do \
	  $(NAMED) -n 500 --seed $$seed --domain $$domain --out $(DATA)/rules-$$domain || exit 1; seed=$$((seed + 1)); done
	$(QUOTED) -n 2500 --seed 143 --agreement 100 --out $(DATA)/agree-scenes
	$(QUOTED) -n 2000 --seed 144 --agreement 100 --domain text --out $(DATA)/agree-text
	$(RULED) -n 1000 --seed 145 --silent 60 --out $(DATA)/silent-scenes
	$(RULED) -n 600 --seed 146 --silent 60 --domain text --out $(DATA)/silent-text
	$(QUOTED) -n 600 --seed 147 --silent 60 --out $(DATA)/silent-scenes-quoted
	$(QUOTED) -n 600 --seed 148 --silent 60 --domain text --out $(DATA)/silent-text-quoted
	$(QUOTED) -n 2000 --seed 149 --pairs --domain text --out $(DATA)/notes-pairs-quoted
	$(RULED) -n 1500 --seed 150 --pairs --domain text --out $(DATA)/notes-pairs
	$(QUOTED) -n 500 --seed 151 --pairs --out $(DATA)/notes-scene-pairs-quoted
	$(RULED) -n 500 --seed 152 --pairs --out $(DATA)/notes-scene-pairs
	seed=153; for domain in plates clips pictures retouch; do \
	  $(RULED) -n 300 --seed $$seed --domain $$domain --out $(DATA)/keep-$$domain || exit 1; seed=$$((seed + 1)); done
	$(BIN)/dikast train new --config recipes/scout-cpu/2-grade.yaml --later recipes/scout-cpu/4-rubrics.yaml --later recipes/scout-cpu/5-rules.yaml --later recipes/scout-cpu/6-more.yaml --later recipes/scout-cpu/9-names.yaml --most 1500 --out build/scout/init
	$(BIN)/dikast train look --config recipes/scout-cpu/0-look.yaml
	$(TWO) --config recipes/scout-cpu/1-talk.yaml
	$(TWO) --config recipes/scout-cpu/2-grade.yaml
	$(TWO) --config recipes/scout-cpu/3-words.yaml
	$(ONE) --config recipes/scout-cpu/4-rubrics.yaml
	$(TWO) --config recipes/scout-cpu/5-rules.yaml
	$(TWO) --config recipes/scout-cpu/6-more.yaml
	$(TWO) --config recipes/scout-cpu/7-compare.yaml
	$(TWO) --config recipes/scout-cpu/8-even.yaml
	$(TWO) --config recipes/scout-cpu/9-names.yaml
	$(TWO) --config recipes/scout-cpu/10-again.yaml
	$(TWO) --config recipes/scout-cpu/11-match.yaml
	$(TWO) --config recipes/scout-cpu/12-rules.yaml
	$(BIN)/dikast train merge build/scout/11-match/model build/scout/12-rules/model --out build/scout/merged
	$(TWO) --config recipes/scout-cpu/13-reference.yaml
	$(TWO) --config recipes/scout-cpu/14-answers.yaml
	$(BIN)/dikast train merge build/scout/merged build/scout/14-answers/model --weights .15,.85 --out build/scout/both
	$(BIN)/dikast train release build/scout/both --out build/scout/model
RULED := $(BIN)/dikast world teach --version 4 --quote --reference 25 --workers 2
QUOTED := $(BIN)/dikast world teach --version 3 --quote --reference 25 --workers 2
NAMED := $(BIN)/dikast world teach --version 4 --glossary --workers 2
MATCHING := $(BIN)/dikast world teach --version 4 --matching --workers 2
# Memory once taken is kept (glibc gives large blocks back at once), and kernels for every length of row: a third faster.
# Kernels for AMX take more of it, with 16384 two processes filled 24 GB after 490 steps: `make scout KERNELS=4096` there.
KERNELS := 16384
KEPT := MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=8589934592 ONEDNN_PRIMITIVE_CACHE_CAPACITY=$(KERNELS)
TWO := $(KEPT) OMP_NUM_THREADS=1 $(BIN)/python -m torch.distributed.run --nproc_per_node 2 -m dikast train sft
ONE := $(KEPT) OMP_NUM_THREADS=1 $(BIN)/dikast train sft

# Twins of `scout` under the same budget: taught the label alone; taught with every picture grey, without the responses,
# without the rubrics. Each takes as long as the stages of `scout` that grade; a run that was stopped goes on.
TWINS := score-only blanked response-blind rubric-blind
scout-twins: .venv/ready
	$(BIN)/python -m benchmarks.twins
	for twin in $(TWINS); do for stage in 2-grade 3-words; do \
	  $(TWO) --config build/scout/twins/$$twin/$$stage.yaml || exit 1; done; \
	  $(ONE) --config build/scout/twins/$$twin/4-rubrics.yaml || exit 1; \
	  for stage in 5-rules 6-more 7-compare 8-even 9-names 10-again 11-match 12-rules 13-reference 14-answers; do \
	  $(TWO) --config build/scout/twins/$$twin/$$stage.yaml || exit 1; done; done

# Twins that go on from the weights of `scout`, which have seen everything: each takes 300 steps of a stage with lessons of
# every kind, taught the label alone or with one input hidden. They are judged with the same input hidden (`--hide` of the
# benchmark).
scout-twins-short: .venv/ready
	$(BIN)/python -m benchmarks.twins $(TWINS) --going-on build/scout/model --stage 12-rules --steps 300 --out build/scout/twins-short
	for twin in $(TWINS); do $(TWO) --config build/scout/twins-short/$$twin/12-rules.yaml || exit 1; done

# `scout` on one GPU, larger and on every domain; never run so far. Each piece stops after eight minutes
# and the next one goes on from its checkpoint.
GPU_DATA := build/scout-gpu/data
scout-gpu: .venv/ready
	$(BIN)/dikast world teach --talk -n 200000 --seed 4 --workers 16 --out $(GPU_DATA)/talk
	for domain in scenes text plates clips pictures retouch; do \
	  $(BIN)/dikast world teach -n 200000 --seed 1 --domain $$domain --reference 25 --workers 16 --out $(GPU_DATA)/$$domain && \
	  $(BIN)/dikast world teach -n 50000 --seed 3 --domain $$domain --pairs --workers 16 --out $(GPU_DATA)/$$domain-pairs \
	  || exit 1; done
	$(BIN)/dikast world teach -n 15000 --seed 6 --reference 25 --padding 50 --workers 16 --out $(GPU_DATA)/scenes-padded
	for domain in scenes text plates clips pictures retouch; do \
	  $(RULED_GPU) -n 100000 --seed 11 --domain $$domain --padding 15 --out $(GPU_DATA)/rubrics-$$domain && \
	  $(RULED_GPU) -n 20000 --seed 13 --domain $$domain --pairs --out $(GPU_DATA)/rubrics-$$domain-pairs \
	  || exit 1; done
	$(RULED_GPU) -n 4000 --seed 14 --blank 100 --out $(GPU_DATA)/rubrics-blank
	$(BIN)/dikast train new --size small --config recipes/scout-gpu/2-grade.yaml --later recipes/scout-gpu/4-rubrics.yaml --most 3000 --out build/scout-gpu/init
	$(BIN)/dikast train look --config recipes/scout-gpu/0-look.yaml
	for stage in 1-talk 2-grade 3-words 4-rubrics; do \
	  until [ -f build/scout-gpu/$$stage/model/config.json ]; do \
	    $(BIN)/dikast train sft --config recipes/scout-gpu/$$stage.yaml || exit 1; done; done
	$(BIN)/dikast train release build/scout-gpu/4-rubrics/model --out build/scout-gpu/model
RULED_GPU := $(BIN)/dikast world teach --version 4 --quote --reference 25 --workers 16

# A judge as the only teacher: arms that differ in the judge alone, three seeds. Whatever is finished is kept, and the same
# command goes on.
align: .venv/ready
	$(KEPT) OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.align --tune

# Side questions of `align`, one seed: claims against whole responses, clips, beta, K, rounds, round robins. It goes on from what
# `make align` left.
align-questions: .venv/ready
	$(KEPT) OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.align_questions

clean:
	rm -rf .venv .vllm .ray .stores .inspect .mypy_cache .ruff_cache .pytest_cache
