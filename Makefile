# Two commands: `make demo` and `make test`. Both make .venv on their first run.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint types contract pytest docs bench torture versions format clean

demo: .venv/installed
	$(BIN)/deeplfm demo

test: lint types contract pytest docs

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/installed-dev
	$(BIN)/mypy

contract: .venv/installed-dev
	$(BIN)/lint-imports

pytest: .venv/installed-dev
	$(BIN)/pytest

# Tutorials are run as the pages are built; a warning is an error.
docs: .venv/installed-dev
	$(BIN)/sphinx-build -j 2 -W --keep-going -q -b html docs build/docs

# Tables on the screen, the numbers in build/bench; `make bench SMOKE=--smoke` is a quick look.
bench: .venv/installed
	mkdir -p build/bench
	$(BIN)/python benchmarks/closed_forms.py $(SMOKE)
	$(BIN)/python benchmarks/start.py $(SMOKE) --out build/bench/start.json
	$(BIN)/python benchmarks/steps.py $(SMOKE) --out build/bench/steps.json
	$(BIN)/python benchmarks/sums.py $(SMOKE) --out build/bench/sums.json
	$(BIN)/python benchmarks/long_series.py $(SMOKE) --out build/bench/long_series.json
	$(BIN)/python benchmarks/scaling.py $(SMOKE) --out build/bench/scaling.json --figure build/bench/scaling.svg

# All of the attacks: what users hand in, and on files (flipped bits, ends before every operation,
# kills, two at once). `make test` has a small part of each.
torture: .venv/installed-dev
	$(BIN)/pytest -n 0 --large tests/torture
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m torture.attacks \
		flips 400 crashes 1000 kills 60 pairs 20

# A part of the suite with the lowest and with the newest versions that pyproject.toml declares.
SMOKE_TESTS := tests/data tests/regressor/test_scikit_learn.py tests/regressor/test_settings.py \
	tests/app/test_endings.py tests/app/test_run_tables.py
versions:
	for which in lowest newest; do \
		$(PYTHON) -m venv build/versions/$$which && \
		$(PYTHON) tests/declared_versions.py $$which > build/versions/$$which.txt && \
		build/versions/$$which/bin/python -m pip --disable-pip-version-check --quiet install \
			-r build/versions/$$which.txt && \
		PYTHONPATH=src build/versions/$$which/bin/python -m pytest -n 0 -W default $(SMOKE_TESTS) \
		|| exit 1; \
	done

format: .venv/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist

# torch comes first and pinned: otherwise pip may take a build with gigabytes of accelerator libraries.
.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "deeplfm needs Python 3.11 or newer; set PYTHON=python3.11")'
	$(PYTHON) -m venv .venv

KERNELS := $(wildcard src/deeplfm/sums/c/*.[ch]) src/deeplfm/sums/constants.py
.venv/installed: pyproject.toml constraints.txt hatch_build.py $(KERNELS) | .venv/bin/python
	$(PIP) install --constraint constraints.txt torch
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

.venv/installed-dev: .venv/installed
	$(PIP) install --constraint constraints.txt --editable '.[dev]'
	touch $@
