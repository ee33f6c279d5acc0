# Needs Python 3.11 or newer and make; everything else is installed into .venv, from the lock files.

# The first interpreter that is new enough; to choose another: make run PYTHON=/path/to/python3.11
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-deps

# Dagster accepts an absolute path only. Its history goes to data/dagster, as dagster.yaml says.
DAGSTER_HOME ?= $(CURDIR)
export DAGSTER_HOME

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev dev-postgres test bench lock

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

run: $(VENV)/.runtime ## Set up and collect today's run, from the emulator unless .env names a source
	@exec $(BIN)/collect run

dev: $(VENV)/.runtime ## Set up and open Dagster's UI on http://127.0.0.1:3000; the history survives a restart
	@$(BIN)/python -m collection_pipeline.cli.instance
	@exec $(BIN)/dagster dev

# Without a server, one is started to try things out, which the development set-up brings.
dev-postgres: $(VENV)/.$(if $(COLLECTION_DATABASE_URL),runtime,dev) ## The same with everything in PostgreSQL; see deploy/README.md
	@exec $(BIN)/python -m deploy.postgres $(BIN)/dagster dev

test: $(VENV)/.dev ## Set up and run linter, format check, type checker, import contracts and tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses=auto --dist=loadgroup

bench: $(VENV)/.dev ## Set up and measure speed and memory; BENCH=--quick for a first look
	@exec $(BIN)/python -m benchmarks $(BENCH)

LOCK = $(BIN)/uv pip compile --quiet --universal --python-version=3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command='make lock' --group=setup pyproject.toml

lock: $(VENV)/.dev ## Resolve the lock files anew, within the bounds of pyproject.toml
	$(LOCK) --upgrade --output-file=requirements.lock
	$(LOCK) --upgrade --extra=dev --constraints=requirements.lock --output-file=requirements-dev.lock

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed and was not found. Install it, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# A stamp is written when its set-up is complete and is out of date when what it was made from changes.
$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing the locked packages; the first time takes one to two minutes." >&2
	@$(INSTALL) --require-hashes --requirement=requirements.lock
	@$(INSTALL) --no-build-isolation --editable=.
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@$(INSTALL) --require-hashes --requirement=requirements-dev.lock
	@touch $@
