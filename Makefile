# From a fresh clone, python3 (3.11 or newer) and make are enough.
# Another interpreter: make setup PYTHON=python3.12

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
WORKERS ?= 2
# A file's tests run in one process, so that what they share (trainings, servers, clusters, browsers) is made once.
PYTEST = $(PY) -m pytest -n $(WORKERS) --dist loadfile

export PIP_DISABLE_PIP_VERSION_CHECK := 1
PIP_INSTALL := $(PY) -m pip install --quiet -c constraints.txt

# A stamp per layer, so that a second call does nothing and a demo needs no linters. Editing a pin renews all of them.
CORE := $(VENV)/.core
CHECK := $(VENV)/.check
DEV  := $(VENV)/.dev
DOCS := $(VENV)/.docs
BENCH := $(VENV)/.bench
DIST := $(VENV)/.dist
PINS := pyproject.toml constraints.txt

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:  # two pips must not work on one .venv
.PHONY: help setup setup-dev demo paper frontier check test test-slow lint format docs bench dist outside flower clean distclean

help: ## this list
	@echo "usage: make TARGET [PYTHON=python3.12]"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' Makefile

setup: $(CORE) ## make .venv with the package and what README and quickstart show

setup-dev: $(DEV) ## the same with what the tests need

demo: $(CORE) ## train six algorithms on MovieLens-100K, five folds, and print the table
	@$(VENV)/bin/fedrecplus demo

# The paper as a page and as the tables of docs/paper*.md. benchmarks/paper.py has the commands: the paper's own claims,
# figure, heterogeneity and theory, and our presets apart from them. The claims on the paper's second data set too, where
# it can be had: make paper PAPER_SETS="ml-100k ml-1m" (hours on two cores; on a card: PAPER_FLAGS="--engine cuda").
PAPER       := runs/paper
PAPER_SETS  ?= ml-100k
PAPER_FLAGS ?=
FEDRECPLUS  := $(VENV)/bin/fedrecplus
paper: $(CORE) ## the paper's claims, figure, heterogeneity and theory as runs/paper/report.html (40 minutes on two cores)
	rm -rf $(PAPER)
	$(PY) -m benchmarks.paper --sets "$(PAPER_SETS)" --out $(PAPER) $(PAPER_FLAGS)
	$(FEDRECPLUS) report $(PAPER) --out $(PAPER)/report.html --title "The paper, measured" \
	  --into docs/paper.md --into docs/paper-family.md --into docs/paper-family-models.md \
	  --into docs/paper-heterogeneity.md --into docs/paper-theory.md

# Every protection beside the others: error, lists, bytes, seconds, budgets and attacks, as a page and as the tables of
# the README. benchmarks/frontier.py has the commands, and runs as many at a time as there are cores.
FRONTIER := runs/frontier
frontier: $(DEV) ## every protection against every attack as runs/frontier/report.html and frontier.md (an hour on two cores)
	$(PY) -m benchmarks.frontier --out $(FRONTIER)
	$(FEDRECPLUS) report $(FRONTIER) --out $(FRONTIER)/report.html --markdown $(FRONTIER)/frontier.md

.PHONY: page
page: ## build the person's page from page/ into the package (needs node and npm; users of the package don't)
	cd page && npm ci --ignore-scripts --no-audit --no-fund && npm run check && npm run build

# What a change breaks first: the core, which needs neither torch, ray, tenseal, playwright nor mlflow. A test that
# wants an extra is skipped here where it isn't installed; `make test` installs all of them.
CORE_TESTS := tests/config tests/contracts tests/rounds tests/secure tests/training tests/outside tests/data \
  tests/test_architecture.py tests/test_files.py tests/test_provenance.py tests/test_randomness.py tests/test_rates.py
check: $(CHECK) ## ruff and the core's tests, in a minute on two cores, without torch, Ray and their like
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PYTEST) -q -m "not slow and not whole" $(CORE_TESTS)

test: lint ## ruff, mypy and every test that isn't slow
	$(PYTEST) -m "not slow"

test-slow: $(DEV) $(DOCS) ## the slow tests, one of which builds the documentation
	$(PYTEST) -m slow

lint: $(DEV) ## ruff check, ruff format --check, mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(DEV) ## let ruff put right what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: $(DOCS) ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

# Another largest size of a cluster: make bench FEDRECPLUS_BENCH_CLIENTS=1000000 (10^7 write 1.3 GB and want 9 GB of memory)
FEDRECPLUS_BENCH_CLIENTS ?= 10000000
bench: $(BENCH) ## speed and memory, as ratios: a table, and runs/bench.json (some forty minutes)
	@FEDRECPLUS_BENCH_CLIENTS=$(FEDRECPLUS_BENCH_CLIENTS) $(PY) -m benchmarks --json runs/bench.json

# Wheel and sdist, as somebody gets them: metadata checked, installed into a clean environment, a small demo run there.
CHECKED := build/clean-venv
dist: $(DIST) ## build wheel and sdist into dist/, check them, and try the wheel in a clean environment
	rm -rf dist $(CHECKED)
	$(PY) -m build --outdir dist .
	$(PY) -m twine check --strict dist/*
	$(PYTHON) -m venv $(CHECKED)
	$(CHECKED)/bin/python -m pip install --quiet -c constraints.txt dist/*.whl
	cd build && clean-venv/bin/fedrecplus demo --folds 2 --out clean-demo \
	  --dataset synthetic:clients=60,items=40,ratings_per_client=10

# W&B is 60 MB, Surprise may want a C compiler, and LensKit brings a stack of its own: none of them is in the extra dev.
OUTSIDE := build/outside-venv
outside: ## W&B's callback and the examples of Surprise and LensKit against the real libraries, in an environment of their own
	$(PYTHON) -m venv $(OUTSIDE)
	$(OUTSIDE)/bin/python -m pip install --quiet -c constraints.txt -e . pytest
	$(OUTSIDE)/bin/python -m pip install --quiet wandb scikit-surprise lenskit
	$(OUTSIDE)/bin/python -m pytest -q -W default examples/check_outside.py

# flwr pins FastAPI, typer and others, so that it wants an environment of its own. Another version: make flower FLWR=flwr==1.20.0
FLOWER := build/flower-venv
FLWR   ?= flwr
flower: ## the Flower app in Flower's own simulation and deployment, in an environment of its own
	$(PYTHON) -m venv $(FLOWER)
	$(FLOWER)/bin/python -m pip install --quiet "$(FLWR)[simulation]" pytest
	$(FLOWER)/bin/python -m pip install --quiet -e . -e flower
	cd flower && $(CURDIR)/$(FLOWER)/bin/python -m pytest -q

clean: ## remove build products and caches, keep .venv
	rm -rf build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove .venv too
	rm -rf $(VENV)

$(CORE): $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "fedrecplus needs Python 3.11 or newer; '$(PYTHON)' is missing or older." >&2; \
	  echo "  -> name another one: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "'$(PYTHON)' can't make virtual environments: its venv module is missing." >&2; \
	  echo "  -> on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing fedrecplus into $(VENV) (a minute or two) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) -e '.[desk]'
	@touch $@

$(CHECK): $(CORE)
	@echo "Installing what the core's tests need ..."
	@$(PIP_INSTALL) -e '.[check]'
	@touch $@

$(DEV): $(CHECK)
	@echo "Installing what the tests need ..."
	@$(PIP_INSTALL) -e '.[dev,he]'
	@touch $@

$(DOCS): $(CORE)
	@echo "Installing what the documentation needs ..."
	@$(PIP_INSTALL) -e '.[docs]'
	@touch $@

# Surprise and implicit may need a C compiler; where there is none, the bench says what it left out
$(BENCH): $(DEV)
	@echo "Installing what the bench compares with ..."
	@$(PIP_INSTALL) -e '.[bench]' || echo "no scikit-surprise or implicit: the bench goes without them" >&2
	@touch $@

$(DIST): $(CORE)
	@echo "Installing what builds the distributions ..."
	@$(PIP_INSTALL) -e '.[dist]'
	@touch $@
