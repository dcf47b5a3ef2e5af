# `make quickstart` and `make test` need nothing but Python 3.10 or newer: both make .venv first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: quickstart test lint format bench clean

$(STAMP): pyproject.toml setup.py
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --allow-existing --python $(PYTHON) .venv && \
		uv pip install --quiet --python $(BIN)/python --editable '.[dev]'; \
	else \
		$(PYTHON) -m venv .venv && \
		$(BIN)/python -m pip install --quiet --editable '.[dev]'; \
	fi
	@touch $(STAMP)

quickstart: $(STAMP)
	$(BIN)/albert-tf quickstart

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build dist *.egg-info runs
