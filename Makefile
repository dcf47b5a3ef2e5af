# `make quickstart` and `make test` need nothing but Python 3.10 or newer: both make .venv first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: quickstart test lint format bench clean parity-tfa

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

# Side environments for parity with other libraries; tests/parity/README.md says what they are for.
.venv-parity-%/.installed: tests/parity/requirements-%.txt
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --quiet --clear --seed --python 3.11 .venv-parity-$*; \
	else \
		python3.11 -m venv --clear .venv-parity-$*; \
	fi
	@.venv-parity-$*/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

parity-tfa: $(STAMP) .venv-parity-tfa/.installed
	$(BIN)/python tests/parity/lamb_ours.py runs/parity/lamb.npz
	.venv-parity-tfa/bin/python tests/parity/lamb_tfa.py runs/parity/lamb.npz

clean:
	rm -rf .venv .venv-parity-* build dist *.egg-info runs
