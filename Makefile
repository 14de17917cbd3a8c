# Needs Python 3.11 or later, pip, make and gcc. `make` alone prints this list of targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
# Where the code is that ruff looks at; folders that do not exist yet are left out.
CODE   := $(wildcard src tests tools bench fuzz)
ARGS   ?=
# Scenarios of many packets: `make recordings` keeps them shorter than the others.
HEAVY := c01.faulty,c23_network_congestion_incast.faulty,c35.faulty,c20_tp_straggler_vllm.faulty
# A folder to find torch in, where .venv has none (pip install --target FOLDER torch).
BED_TORCH ?=

.PHONY: help setup demo test coverage check lint format types imports sizes mirror docs-check bench fuzz results bed record-all recordings bed-healthy docs lock changelog acceptance clean

help:  ## print the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.warmed  ## create or update .venv with all that development and tests need

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "Python 3.11 or later is needed, found " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.locked: requirements.lock $(VENV)/.created
	$(PY) -m pip install --disable-pip-version-check --quiet -r requirements.lock
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.locked
	$(PY) -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
	@touch $@

# Compiles the kernels into Numba's cache: without it the first run takes half a minute longer.
$(VENV)/.warmed: $(VENV)/.installed
	$(PY) -m skewscope.app.warm
	@touch $@

demo: setup  ## explain a recorded fault: prints the incident and the path of the HTML report
	$(BIN)/skewscope demo $(ARGS)

test: setup  ## run the tests (ARGS="-k name" is passed on to pytest)
	$(PY) -m pytest -m "not bench" -n 2 --dist loadfile $(ARGS)

coverage: setup  ## run the tests with the compiler off and report line and branch coverage
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest -m "not bench and not slow" --cov --cov-report=term $(ARGS)

check: lint types imports sizes mirror docs-check  ## lint, format, types, import rules, sizes, mirrors, docs (-k: all of them)

lint: setup
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)

format: setup  ## apply ruff's fixes and format
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

types: setup
	$(BIN)/mypy

imports: setup
	$(BIN)/lint-imports --no-logo

sizes: setup
	$(PY) -m tools.check_sizes

mirror: setup
	$(PY) -m tools.check_mirror

docs-check: setup
	$(PY) -m tools.check_docs

bench: setup  ## run the benchmarks; each fails under its floor
	$(PY) -m pytest -m bench --override-ini=testpaths=bench -s $(ARGS)

fuzz: setup  ## fuzz the readers, 5 minutes for each target (ARGS="stream --seconds 60")
	@$(PY) -m pip install --disable-pip-version-check --quiet -r requirements-fuzz.lock
	$(PY) -m fuzz $(ARGS)

results: setup  ## judge the recorded faults (needs SKEWSCOPE_SAMPLES) and write their pages in docs/results
	$(PY) -m tools.score_testbed --page docs/results/testbed.md
	$(PY) -m tools.score_baseline --page docs/results/baseline.md

bed: setup  ## record and judge the smoke suite of the live test bed (needs root and torch; docs/bed.md)
	$(if $(BED_TORCH),PYTHONPATH=$(BED_TORCH)) $(BIN)/skewscope lab bed smoke -o out/bed $(ARGS)

record-all: setup  ## record and judge every variant of every scenario; goes on where it was interrupted
	$(if $(BED_TORCH),PYTHONPATH=$(BED_TORCH)) $(BIN)/skewscope lab bed smoke --all -o out/bed-all $(ARGS)

recordings: setup  ## record a faulty case of every scenario, small, and pack them: out/recordings.tar, at most 40 MB
	$(if $(BED_TORCH),PYTHONPATH=$(BED_TORCH)) $(BIN)/skewscope lab bed smoke --only $(HEAVY) --length 0.4 --calm 3 -o out/recordings $(ARGS)
	$(if $(BED_TORCH),PYTHONPATH=$(BED_TORCH)) $(BIN)/skewscope lab bed smoke --variant faulty --length 0.5 --calm 1.5 -o out/recordings $(ARGS)
	$(PY) -m tools.recordings out/recordings out/recordings.tar

bed-healthy: setup  ## an hour more of healthy and control traffic for the ledger in docs/results (ARGS="--minutes 300")
	$(if $(BED_TORCH),PYTHONPATH=$(BED_TORCH)) $(BIN)/skewscope lab bed healthy --ledger docs/results/healthy_ledger.tsv $(ARGS)
	$(PY) -m tools.score_healthy docs/results/healthy_ledger.tsv --page docs/results/healthy_ledger.md

docs: setup  ## write the pages of conditions, features and commands under docs/, and README's table
	$(PY) -m tools.gen_docs

acceptance: setup  ## run the commands of docs/acceptance and print a table
	$(PY) -m tools.check_acceptance $(ARGS)

lock: $(VENV)/.created  ## resolve the dependencies anew and write requirements.lock
	$(PY) -m pip install --disable-pip-version-check --quiet 'pip-tools>=7.4'
	$(PY) -m tools.lock

changelog: setup  ## turn news/ into CHANGELOG.md for a release
	$(BIN)/towncrier build --yes

clean:  ## remove what the other targets made, .venv included
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage out skewscope-demo
	find docs/conditions docs/reference -name '*.md' ! -name README.md -delete
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
