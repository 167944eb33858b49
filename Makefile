# Two commands for everyone: `make demo` and `make test`. Each sets up .venv by itself.
PYTHON ?= python3
# Sources that cannot be written to, such as another user's: all that is made is kept elsewhere.
ifeq ($(shell test -w . && echo yes),yes)
VENV := .venv
DEMO := demo
SOURCES := -e .
else
VENV := $(shell echo "$${XDG_CACHE_HOME:-$$HOME/.cache}/palrnn/venv")
DEMO := $(VENV)/demo
COPY := $(VENV)/sources
SOURCES := $(COPY)
export PYTHONPATH := $(CURDIR)/src
export PYTEST_ADDOPTS := -p no:cacheprovider
export HYPOTHESIS_STORAGE_DIRECTORY := $(VENV)/hypothesis
endif
BIN := $(VENV)/bin
# The lowest supported versions live in an environment of their own; their wheels are for this Python.
LOWEST := .venv-lowest
LOWEST_PYTHON ?= python3.11

# An environment that was made elsewhere, and moved or copied here, points to other sources: install again.
HOME_OF = $(shell cat $(1)/.home 2>/dev/null)
ifneq ($(call HOME_OF,$(VENV)),$(CURDIR))
$(shell rm -f $(VENV)/.run $(VENV)/.test $(VENV)/.dev $(VENV)/.bench $(VENV)/.field $(VENV)/.docs)
endif
ifneq ($(call HOME_OF,$(LOWEST)),$(CURDIR))
$(shell rm -f $(LOWEST)/.test)
endif

.PHONY: demo test test-slow test-wheel test-torch test-lowest test-narrow check bench benchmark-field docs torture clean

demo: $(VENV)/.run
	$(BIN)/python -m palrnn demo -o $(DEMO)/

test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -m slow

# the demo from a wheel, built from the source distribution, in an environment of its own and an empty folder
test-wheel: $(VENV)/.test
	$(BIN)/python -m pytest -m "slow or not slow" tests/test_distribution.py

test-torch: $(VENV)/.bench
	$(BIN)/python -m pytest -m torch

# the lowest versions that pyproject.toml allows
test-lowest: $(LOWEST)/.test
	NUMBA_CACHE_DIR="$(CURDIR)/$(LOWEST)/kernels" $(LOWEST)/bin/python -m pytest -n 2 --dist worksteal

# as on a processor without AVX-512
test-narrow: $(VENV)/.test
	$(BIN)/python torture/narrow.py -m pytest -n 2 --dist worksteal

check: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/python -c "from importlinter.cli import lint_imports_command as check; check()" --no-logo

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run.py

# the field's numbers beside ours, for hours; it goes on where it stopped
benchmark-field: $(VENV)/.field
	$(BIN)/python -m benchmarks.field --runs results/field --write docs/field.md

# Faults, bad input and damaged files, for up to 45 minutes; `make test` runs a short version. What is done for
# these sources is not done again; `make torture STAGES="races 'kill train'"` runs some of it.
torture: $(VENV)/.bench
	$(BIN)/python torture/run.py $(if $(STAGES),--only $(STAGES))

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs site

$(BIN)/python:
	@echo "creating $(VENV)"
	$(PYTHON) -m venv $(VENV)

$(LOWEST)/bin/python:
	@echo "creating $(LOWEST)"
	$(LOWEST_PYTHON) -m venv $(LOWEST)

# $(call INSTALL,environment,constraints,extras); pip may be missing from an environment that another tool made.
# Constraints pin the heavy peers, so that a new release of theirs never breaks this build. A stamp holds sums
# of what it was made from: files that have a new date only need no network.
define INSTALL
	@set -e; sums="$$(cksum < pyproject.toml; cksum < $(2))"; \
	if [ "$$sums" != "$$(cat $@ 2>/dev/null)" ]; then \
		echo "installing palrnn$(3) into $(1) (once, about a minute)"; \
		$(1)/bin/python -m pip --version >/dev/null 2>&1 || $(1)/bin/python -m ensurepip; \
		$(if $(COPY),mkdir -p $(COPY); cp -R pyproject.toml README.md LICENSE src $(COPY); chmod -R u+w $(COPY);) \
		$(1)/bin/python -m pip install --quiet --disable-pip-version-check -c $(2) $(SOURCES)"$(3)"; \
	fi; \
	echo '$(CURDIR)' > $(1)/.home; echo "$$sums" > $@
endef

# One stamp per set of dependencies; a changed pyproject.toml installs again.
$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	$(call INSTALL,$(VENV),constraints.txt,)

$(VENV)/.test: $(BIN)/python pyproject.toml constraints.txt
	$(call INSTALL,$(VENV),constraints.txt,[test])

$(VENV)/.dev: $(VENV)/.test
	$(call INSTALL,$(VENV),constraints.txt,[dev])

$(VENV)/.bench: $(VENV)/.test
	$(call INSTALL,$(VENV),constraints.txt,[bench])

$(VENV)/.field: $(VENV)/.run
	$(call INSTALL,$(VENV),constraints.txt,[field])

$(VENV)/.docs: $(VENV)/.run
	$(call INSTALL,$(VENV),constraints.txt,[docs])

$(LOWEST)/.test: $(LOWEST)/bin/python pyproject.toml constraints-lowest.txt
	$(call INSTALL,$(LOWEST),constraints-lowest.txt,[test])

clean:
	rm -rf $(VENV) $(LOWEST) $(DEMO) build site
