# `make quickstart` and `make test` need nothing but Python 3.11 to 3.13: both make .venv first.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
DEMO_STAMP := .venv/.installed-for-demo

# Without bytecode, each of the tests' processes compiles TensorFlow's sources again, for ten seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: docs lock release-check bench-peers quickstart nsmc ablations new-words test test-exhaustive test-all lint format clean fuzz fuzz-rest soak soak-serving test-cluster parity-tfa parity-google parity-peers parity-hub parity-web test-backends test-keras test-tpu test-gpu tpu-memory gpu-memory gpu-programs

# $(call install,HOW,ENVIRONMENT,WHAT): makes an environment with `HOW ENVIRONMENT` and installs there. uv takes a third
# of the time of pip, which remains for registries that only its own configuration names.
define install
	@$(1) $(2)
	@$(2)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@$(2)/bin/python -m uv pip install --quiet --compile-bytecode --python $(2) $(3) || \
		$(2)/bin/python -m pip install --quiet --disable-pip-version-check $(3)
endef

# What the quickstart needs is a fifth of what the tests need.
$(STAMP): EXTRA := dev
$(DEMO_STAMP): EXTRA := report,serve
$(STAMP) $(DEMO_STAMP): pyproject.toml setup.py constraints.txt
	@echo "installing into .venv, which takes some minutes the first time"
	$(call install,$(PYTHON) -m venv,.venv,--constraint constraints.txt --editable '.[$(EXTRA)]')
	@touch $@

# constraints.txt: the versions that are installed here and that the tests ran with, for all extras, Pythons and
# platforms. What still fits pyproject.toml stays; `make lock UPGRADE=--upgrade` takes the newest versions of all.
lock:
	$(call install,$(PYTHON) -m venv,.venv-lock,uv)
	.venv-lock/bin/uv pip compile --quiet --universal --all-extras --python-version 3.11 --no-annotate $(UPGRADE) \
		--custom-compile-command "make lock" --output-file constraints.txt pyproject.toml

quickstart: $(or $(wildcard $(STAMP)),$(DEMO_STAMP))
nsmc ablations new-words: $(STAMP)
quickstart nsmc ablations new-words:
	$(BIN)/python training/demos/$(subst -,_,$@).py

# A worker that crashes ends the run: pytest-xdist would wait for ever for its tests.
IN_PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

test: $(STAMP)
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "not exhaustive"

# What `make test` leaves out, or some files of it: `make test-exhaustive TESTS=tests/export`.
TESTS :=
test-exhaustive: $(STAMP)
	$(BIN)/python -m pytest $(IN_PARALLEL) -m "exhaustive and not cluster" $(TESTS)

test-all: test test-exhaustive test-cluster

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The site, in site/; a broken link, a missing docstring or a source on the network is an error.
docs: export NO_MKDOCS_2_WARNING := 1
docs: $(STAMP)
	$(BIN)/python -m mkdocs build --strict
	@$(BIN)/python -m tests.docs.site site
	@echo "python3 -m http.server -d site 8000 shows it at http://127.0.0.1:8000/ (opened as a file, it has no search)"

# Wheel and sdist, checked and installed into empty environments of every Python that is there; dist/ holds both.
release-check: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m tools.release.archives dist
	$(BIN)/python -m tools.release.install dist

# Side environments for parity with other libraries; tools/parity/README.md says what they are for.
.venv-parity-%/.installed: tools/parity/requirements-%.txt
	$(call install,python3.11 -m venv --clear,.venv-parity-$*,--requirement $<)
	@touch $@

parity-tfa parity-google parity-peers parity-hub parity-web: export TF_CPP_MIN_LOG_LEVEL := 3

parity-tfa: $(STAMP) .venv-parity-tfa/.installed
	$(BIN)/python tools/parity/lamb_ours.py runs/parity/lamb.npz
	.venv-parity-tfa/bin/python tools/parity/lamb_tfa.py runs/parity/lamb.npz

parity-web: $(STAMP)
	rm -rf runs/parity/web
	PYTHONPATH=. $(BIN)/python tools/parity/web_ours.py runs/parity/web
	npm install --silent --ignore-scripts --prefix runs/parity/web @huggingface/transformers@4.3.1
	cp tools/parity/transformers_js.mjs runs/parity/web
	node runs/parity/web/transformers_js.mjs runs/parity/web

parity-google: $(STAMP) .venv-parity-google/.installed
	rm -rf runs/parity/google
	$(BIN)/python tools/parity/google_ours.py runs/parity/google
	.venv-parity-google/bin/python tools/parity/google_theirs.py runs/parity/google

PEERS := transformers keras_hub model_garden
parity-peers: $(STAMP) $(PEERS:%=.venv-parity-%/.installed)
	rm -rf runs/parity/peers
	$(BIN)/python tools/parity/peer_ours.py runs/parity/peers
	@for peer in $(PEERS); do .venv-parity-$$peer/bin/python tools/parity/peer_$$peer.py runs/parity/peers || exit 1; done
	@$(BIN)/python tools/parity/peer_table.py runs/parity/peers

bench-peers: $(STAMP) .venv-parity-transformers/.installed .venv-parity-keras_hub/.installed
	$(BIN)/python tests/benchmarks/speed.py --output tests/benchmarks/results

parity-hub: $(STAMP) .venv-parity-hub/.installed
	rm -rf runs/parity/hub
	$(BIN)/python tools/parity/hub_ours.py runs/parity/hub
	.venv-parity-hub/bin/python tools/parity/hub_theirs.py runs/parity/hub

# Environments without TensorFlow, for the packages that import only Keras.
.venv-jax/.installed .venv-torch/.installed: .venv-%/.installed: tests/backends/requirements-%.txt
	$(call install,$(PYTHON) -m venv --clear,.venv-$*,--requirement $<)
	@touch $@

test-backends: $(STAMP) .venv-jax/.installed .venv-torch/.installed
	$(BIN)/python -m tests.backends.convert_weights
	for backend in jax torch; do \
		KERAS_BACKEND=$$backend .venv-$$backend/bin/python -m pytest --override-ini addopts=-ra \
			tests/backends tests/optimizers/test_golden.py tests/models/test_resize.py \
			tests/models/test_golden.py tests/models/test_golden_steps.py tests/models/test_heads_golden.py \
			tests/models/test_texts.py || exit 1; \
	done

# TensorFlow and JAX with the compilers of TPUs and of GPUs, which need neither.
.venv-tpu/.installed .venv-gpu/.installed: .venv-%/.installed: tools/accelerators/requirements-%.txt pyproject.toml
	$(call install,$(PYTHON) -m venv --clear,.venv-$*,--editable . --requirement $<)
	@touch $@

test-tpu test-gpu: test-%: .venv-%/.installed
	for backend in tensorflow jax; do \
		KERAS_BACKEND=$$backend .venv-$*/bin/python -m pytest --override-ini addopts=-ra tools/accelerators/test_$* \
			|| exit 1; \
	done

# They write tools/accelerators/tpu_memory.md, gpu_memory.md and gpu_programs.md.
tpu-memory gpu-memory: %-memory: .venv-%/.installed
	KERAS_BACKEND=tensorflow .venv-$*/bin/python -m tools.accelerators.memory $*

gpu-programs: .venv-gpu/.installed
	for backend in tensorflow jax; do KERAS_BACKEND=$$backend .venv-gpu/bin/python -m tools.accelerators.gpu_programs; done

# The oldest Keras that pyproject.toml allows, the newest, and what becomes the next; for a newer nightly, remove its
# environment.
KERAS_oldest := keras==$(shell sed -n 's/.*"keras>=\([0-9.]*\),.*/\1/p' pyproject.toml)
KERAS_current := keras
KERAS_nightly := keras-nightly
KERAS := oldest current nightly
KERAS_TESTS := tests/layers tests/models tests/optimizers tests/trainer/test_optimisation.py

# All of them are a package of the name keras, so TensorFlow's is removed first.
.venv-keras-%/.installed: pyproject.toml
	$(call install,$(PYTHON) -m venv --clear,.venv-keras-$*,--editable '.[onnx]' pytest pytest-xdist hypothesis pandas polars pydot)
	@.venv-keras-$*/bin/python -m pip uninstall --quiet --yes keras
	@.venv-keras-$*/bin/python -m pip install --quiet --disable-pip-version-check '$(KERAS_$*)'
	@touch $@

test-keras: $(KERAS:%=.venv-keras-%/.installed)
	@failed=; for keras in $(KERAS); do \
		.venv-keras-$$keras/bin/python -c 'import keras; print("Keras", keras.__version__)' 2>/dev/null; \
		.venv-keras-$$keras/bin/python -m pytest --quiet $(IN_PARALLEL) -m "not exhaustive" $(KERAS_TESTS) \
			|| failed="$$failed $$keras"; \
	done; test -z "$$failed" || { echo "failed on:$$failed"; exit 1; }

fuzz: $(STAMP)
	$(BIN)/python -m tools.fuzz.files

fuzz-rest: $(STAMP) .venv-parity-schemathesis/.installed
	$(BIN)/python -m tools.fuzz.rest .venv-parity-schemathesis/bin/schemathesis

soak: $(STAMP)
	$(BIN)/python -m tools.soak.training

soak-serving: $(STAMP)
	$(BIN)/python -m tools.soak.serving

# A scheduler and workers of Dask of which one is killed, a bucket whose server fails, workers that die five times.
test-cluster: $(STAMP)
	$(BIN)/python -m pytest tests/data/preparation/test_cluster.py tests/cli/test_buckets.py tests/trainer/test_workers.py

clean:
	rm -rf .venv .venv-* build dist site *.egg-info runs
