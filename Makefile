# `make demo` and `make test` prepare everything they need; running them again reinstalls nothing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test verify lint types clean help

help:
	@echo "make demo    train the three networks of Figure 1 and draw them"
	@echo "make test    lint, types and all tests"
	@echo "make verify  the science at full scale: known answers that take minutes"
	@echo "make clean   remove the virtual environment and caches"

demo: .venv/installed
	$(BIN)/grokscope demo

test: lint types
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

verify: .venv/installed-dev
	$(BIN)/python -m pytest -n 2 --dist worksteal -q -m verify

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-dev
	$(BIN)/mypy

.venv/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "grokscope needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/installed: .venv/created pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

.venv/installed-dev: .venv/installed
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build src/*.egg-info
