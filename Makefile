# make demo, make test, make check: each installs what it needs into .venv by itself.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
PEERS := $(VENV)/.peers
SEEDS ?= 1000
SEED ?=
SIM_ARGS ?=
BENCH_ARGS ?=
MODEL_ARGS ?=

.PHONY: help demo test check bench format model sim soak clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

demo: $(READY) ## five nodes, contending workers; a node restarts empty, a holder is killed: watch the lock hold
	@$(PY) -m holdfast.demo

test: $(READY) ## all tests, on real servers and in the simulated world
	@$(PY) -m pytest -n 4 --dist worksteal

check: $(READY) ## format, lint, types, and the purity of core/
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(PY) tools/check_core.py

format: $(READY) ## format the code and mend what the linter can
	@$(VENV)/bin/ruff check --fix-only .
	@$(VENV)/bin/ruff format .

sim: $(READY) ## simulate SEEDS=1000 worlds, or one: SEED=42 SIM_ARGS=--trace
	@$(PY) -m holdfast.testing $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) $(SIM_ARGS)

model: $(READY) ## every state of small models of the protocol: MODEL_ARGS=--quick
	@$(PY) -m model $(MODEL_ARGS)

bench: $(PEERS) ## ratios against a raw floor and the peers, in one run: BENCH_ARGS=--quick
	@$(PY) -m bench $(BENCH_ARGS)

soak: $(READY) ## what takes too long for make test
	@$(PY) -m holdfast.testing --seeds 20000
	@$(PY) -m model

clean: ## remove what was installed and cached
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11")'
	@echo "installing into $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

$(PEERS): $(READY)
	@echo "installing the peers to compare with into $(VENV) (once) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@
