# Two commands for everyone: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Pinned versions of the heavy peers, so that a new release of theirs never breaks this build.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow test-torch check bench docs torture clean

demo: $(VENV)/.run
	$(BIN)/palrnn demo -o demo/

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

test-torch: $(VENV)/.bench
	$(BIN)/python -m pytest -m torch

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

# Faults, bad input and damaged files, for up to 20 minutes; `make test` runs a short version.
torture: $(VENV)/.test
	$(BIN)/python torture/run.py

docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs site

$(BIN)/python:
	@echo "creating $(VENV)"
	$(PYTHON) -m venv $(VENV)

# One stamp per set of dependencies; a changed pyproject.toml installs again.
$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing palrnn into $(VENV) (once, about a minute)"
	$(PIP) -e .
	@touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt
	@echo "installing palrnn and its test tools into $(VENV) (once, about a minute)"
	$(PIP) -e '.[test]'
	@touch $@

$(VENV)/.dev: $(VENV)/.test
	$(PIP) -e '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) -e '.[bench]'
	@touch $@

$(VENV)/.docs: $(VENV)/.run
	$(PIP) -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) demo build site
