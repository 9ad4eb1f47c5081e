# `make demo` and `make test` prepare everything they need; running them again reinstalls nothing.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test verify sanitize bench dist test-dist smoke gallery pages notebooks docs reference lint types clean help

help:
	@echo "make demo    train the three networks of Figure 1 and draw them"
	@echo "make test    lint, types and all tests"
	@echo "make verify  the science at full scale: known answers that take minutes"
	@echo "make bench    speed: grokscope against eager PyTorch, JAX and the machine's limit"
	@echo "make sanitize the kernel's tests under the address and undefined-behaviour sanitizers"
	@echo "make gallery  draw docs/gallery, and make docs/claims.md and docs/report.md, from the runs in STORE (default grokscope-runs); SEEDS=1 takes networks with one seed too"
	@echo "make pages    make docs/claims.md, docs/report.md and build/report.pdf from what was measured before, without a store"
	@echo "make dist     build the sdist and the wheel in dist/ (Linux)"
	@echo "make test-dist install what make dist builds into empty environments, and train with it"
	@echo "make smoke    look at this installation, and train a small network"
	@echo "make notebooks execute docs/notebooks again, and keep what they show"
	@echo "make docs     the documentation as a website, in build/site"
	@echo "make reference  docs/api.md and docs/commands.md from the code"
	@echo "make clean   remove the virtual environment and caches"

demo: .venv/installed
	$(BIN)/grokscope demo

# Hundreds of tests start the program. Without cached bytecode every start would compile it again.
test: lint types browser
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal -q

# The explorer's tests drive a real browser. Where it is missing and may be installed, that is done; otherwise they skip.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  timeout 300 sh -c 'apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium' >/dev/null 2>&1; } || \
	  echo "There is no chromium: the tests of the explorer in a browser are skipped."

verify: .venv/installed-dev
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal -q -m verify

# The kernel with every access and operation watched; a copy of its own, so that the installed one stays fast.
sanitize: .venv/installed-dev
	SANITIZE=1 $(BIN)/python setup.py --quiet build --build-base build/sanitize --build-lib build/sanitize/lib
	PYTHONPATH=build/sanitize/lib ASAN_OPTIONS=detect_leaks=0 \
	  LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libubsan.so)" \
	  $(BIN)/python -m pytest -q -p no:cacheprovider tests/unit/test_native_*.py

bench: .venv/installed-dev
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.stacked
	$(BIN)/python -m benchmarks.sweeps
	$(BIN)/python -m benchmarks.cluster
	$(BIN)/python -m benchmarks.pruning
	$(BIN)/python -m benchmarks.explorer
	$(BIN)/python -m benchmarks.mnist
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m benchmarks.startup

# An sdist, and a wheel with the kernel that is built from it. auditwheel finds the oldest Linux that the wheel runs on
# and names it in the file; it refuses a wheel without a kernel.
dist: .venv/installed-dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist/built .
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m auditwheel repair --wheel-dir dist dist/built/*.whl
	mv dist/built/*.tar.gz dist/
	rm -r dist/built

# The packages as users get them: in empty environments, outside this directory, with other Pythons, without a compiler.
test-dist: .venv/installed-dev
	$(BIN)/python -m pytest -q -m verify tests/integration/test_packages.py

# The least that an installation must do, with the kernel or without: CC=false CXX=false make smoke
smoke: .venv/installed
	$(BIN)/grokscope doctor --no-speed
	$(BIN)/grokscope train --modulus 11 --width 24 --steps 30 --force --store build/smoke

STORE ?= grokscope-runs
gallery: .venv/installed-dev
	$(BIN)/python docs/gallery/make.py --store $(STORE) $(if $(SEEDS),--seeds $(SEEDS))

pages: .venv/installed-dev
	$(BIN)/python docs/gallery/make.py --pages --pdf build/report.pdf

notebooks: .venv/installed-dev
	$(BIN)/python docs/notebooks/execute.py

docs: .venv/installed-dev
	$(BIN)/python docs/website/make.py build/site

# After a change of a docstring, a public name or an option.
reference: .venv/installed-dev
	$(BIN)/python docs/make_reference.py

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

SOURCES := pyproject.toml constraints.txt setup.py $(wildcard native/*)

.venv/installed: .venv/created $(SOURCES)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

.venv/installed-dev: .venv/created $(SOURCES)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch .venv/installed $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist src/*.egg-info
