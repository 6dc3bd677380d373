# Everything here happens in .venv, build/, dist/ and target/, and nothing is done twice: a target that installs or
# builds leaves a stamp file in .venv and is repeated when something it was made from is newer.
#
#   make demo PYTHON=python3.12    chooses the interpreter (the first time: it is the one that .venv is made with)
#   make demo TEXT=my.txt          shows the demo on your own text
#   make test ARGS="-k decode"     hands options to pytest
#   make bench ARGS=--quick        hands options to benchmarks/run.py

PYTHON ?= python3
ARGS ?=
TEXT ?=

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
RUST := Cargo.toml $(wildcard Cargo.lock) $(shell find crates -type f \( -name '*.rs' -o -name 'Cargo.toml' \))
SOURCES := $(shell find src -type f \( -name '*.py' -o -name '*.pyi' \))
PYTHON_FILES := src tests benchmarks docs examples
HAS_CARGO := command -v cargo >/dev/null 2>&1
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help build demo test test-rust test-pythons lint lint-python lint-types lint-rust format bench docs wheel clean
.DELETE_ON_ERROR:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: $(VENV)/.built ## compile the core and install the package into .venv

demo: $(VENV)/.built ## train, check and show a tokenizer, on TEXT=path or what is at hand
	@TEXT="$(TEXT)" $(BIN)/python examples/demo.py

test: $(VENV)/.built $(VENV)/.test test-rust ## run the tests of the core and of the package
	$(BIN)/python -m pytest -q -n auto $(ARGS)

test-rust:
	@if $(HAS_CARGO); then cargo test --quiet -p subword-core; \
	else echo "cargo is not installed: the core's own tests are NOT run (see CONTRIBUTING.md)"; fi

test-pythons: wheel ## test one wheel on every Python 3.10-3.13 found here
	.ci/test_pythons.sh $(VENV)/.wheel

lint: lint-python lint-types lint-rust ## ruff, mypy --strict, stubtest, rustfmt, clippy: without a word of complaint

lint-python: $(VENV)/.lint
	$(BIN)/ruff check $(PYTHON_FILES)
	$(BIN)/ruff format --check $(PYTHON_FILES)

lint-types: $(VENV)/.built $(VENV)/.lint
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest --ignore-missing-stub subword._core

lint-rust: $(VENV)/.built
	@if $(HAS_CARGO); then set -x; cargo fmt --all --check && \
	cargo clippy --quiet --workspace --all-targets -- -D warnings; \
	else echo "cargo is not installed: rustfmt and clippy are NOT run (see CONTRIBUTING.md)"; fi

format: $(VENV)/.lint ## rewrite Python and Rust files the one agreed way
	$(BIN)/ruff check --fix-only --quiet $(PYTHON_FILES)
	$(BIN)/ruff format $(PYTHON_FILES)
	@if $(HAS_CARGO); then cargo fmt --all; else echo "cargo is not installed: Rust files are left as they are"; fi

bench: $(VENV)/.built $(VENV)/.bench ## measure against other libraries; writes benchmarks/results and REPORT.md
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: $(VENV)/.built $(VENV)/.docs ## write the documentation to build/docs
	$(BIN)/python docs/generate_cli.py
	$(BIN)/mkdocs build --strict --quiet
	@echo "build/docs/index.html"

wheel: $(VENV)/.wheel ## build the wheel into dist/

clean: ## remove everything that make has made
	rm -rf $(VENV) build dist target .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f src/subword/_core*.so src/subword/_core*.pyd
	find src tests benchmarks docs examples -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- stamps ----

# A pip that knows dependency groups; the one that comes with Python 3.10 does not.
$(VENV)/.pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	echo "subword needs Python 3.10 or newer, and $(PYTHON) is not one. Choose another: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

# Through pip's standard build interface: where there is no cargo, maturin's build back end brings one along.
$(VENV)/.built: $(VENV)/.pip pyproject.toml $(RUST)
	@echo "building (about a minute the first time) ..."
	$(PIP) install --editable .
	@touch $@

$(VENV)/.test $(VENV)/.lint $(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: $(VENV)/.pip pyproject.toml
	$(PIP) install --group $*
	@touch $@

# The stamp holds the wheel's name.
$(VENV)/.wheel: $(VENV)/.pip pyproject.toml README.md LICENSE $(RUST) $(SOURCES)
	rm -f dist/subword-*.whl
	$(PIP) wheel --no-deps --wheel-dir dist .
	@ls dist/subword-*.whl | tee $@
