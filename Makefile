# make demo: compile two shipped models and check what was written.   make test: lint, types, documentation, tests.
# make docs: the documentation, as pages in out/docs.
# make slow: all tests, those too that show on many rows, examples and large models what others show on few.
# Both create .venv and install what they need from this project's own files.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
WORKERS ?= 2

.PHONY: demo firmware-demo test quick lint types types-elsewhere docs unit environment slow bench fuzz clean

demo: $(DEMO)
	$(BIN)/python examples/demo.py out

# A firmware image for a Cortex-M3, run in qemu; needs arm-none-eabi-gcc and qemu-system-arm.
firmware-demo: $(STAMP)
	$(BIN)/python examples/firmware_qemu/demo.py out/firmware

test: lint types docs unit

# While one works: lint, types, and the tests of both IRs, lowering, the simulator, options, texts, the contract of backends,
# and of the contract of frontends the kinds of XGBoost.
QUICK := tests/forest tests/netlist tests/lowering tests/hw_sim tests/options tests/contract tests/test_python_results.py \
  tests/backends/test_backend_contract.py tests/docs/test_words.py
quick: lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -k "not equal_the_library or xgboost" $(QUICK)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(STAMP)
	$(BIN)/mypy

# As on Windows and on macOS: a call that they lack stands in forestc/system.py, with its counterpart.
types-elsewhere: $(STAMP)
	$(BIN)/mypy --platform win32
	$(BIN)/mypy --platform darwin

# Warnings are errors: a link to nowhere, a name in the text that the code does not have.
docs: $(STAMP)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky --builder html docs out/docs

unit: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# The smallest tutorial, in an environment of its own install line; `slow` has all of them, and README.
environment: $(STAMP)
	$(BIN)/python -m pytest -m slow -k amaranth tests/docs/test_environments.py

slow: types-elsewhere $(STAMP)
	FORESTC_EXAMPLES=5 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "slow or not slow" -o timeout=3600

# The measured comparisons; PEERS names a folder of NAME.json with NAME.npz to add, DATA one of NAME.csv.gz, CONIFER an
# interpreter that has conifer. A few hours.
bench: $(STAMP) slow
	mkdir -p out
	$(BIN)/python benchmarks/compile_scale.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/streams.py
	$(BIN)/python benchmarks/vhdl.py
	$(BIN)/python benchmarks/frontends.py
	$(BIN)/python benchmarks/estimates.py --cache out/estimates.json
	$(BIN)/python benchmarks/shipped_models.py
	$(BIN)/python benchmarks/exactness.py $(if $(PEERS),--peers $(PEERS))
	$(BIN)/python benchmarks/c_exactness.py
	$(BIN)/python benchmarks/firmware_costs.py
	$(BIN)/python benchmarks/firmware.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/firmware_boosted.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/word_costs.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/neighbors.py $(if $(DATA),--data $(DATA))
	$(if $(DATA),$(if $(PEERS),$(BIN)/python benchmarks/regrown.py --data $(DATA) --peers $(PEERS)))
	$(BIN)/python benchmarks/lowering.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/exploration.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/study_workers.py
	$(BIN)/python benchmarks/sharing_speed.py
	$(BIN)/python benchmarks/prune_speed.py $(if $(DATA),--data $(DATA))
	$(if $(DATA),$(BIN)/python benchmarks/bounded_treewidth.py --data $(DATA))
	$(BIN)/python benchmarks/input_model.py $(if $(DATA),--data $(DATA))
	$(if $(DATA),$(BIN)/python benchmarks/exact_pruning.py --data $(DATA))
	$(if $(DATA),$(BIN)/python benchmarks/forest_pruning.py --data $(DATA))
	$(if $(DATA),$(BIN)/python benchmarks/overlapping.py --data $(DATA))
	$(if $(DATA),$(BIN)/python benchmarks/overlapping.py --data $(DATA) --large)
	$(if $(DATA),$(BIN)/python benchmarks/ensemble_pruning.py --data $(DATA))
	$(BIN)/python benchmarks/threshold_sharing.py $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/threshold_sharing.py --fronts --plot out/fronts.png $(if $(DATA),--data $(DATA))
	$(if $(PEERS),$(BIN)/python benchmarks/sharing_peers.py --peers $(PEERS))
	$(BIN)/python benchmarks/hardware.py --plot out/hardware.png $(if $(PEERS),--peers $(PEERS)) $(if $(DATA),--data $(DATA)) \
	  $(if $(CONIFER),--conifer $(CONIFER))

# Coverage-guided fuzzing of the readers, MINUTES each.
MINUTES ?= 4
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	for reader in json ubj lightgbm onnx; do \
	  $(BIN)/python tests/fuzz/readers.py $$reader -max_total_time=$$(($(MINUTES) * 60)) || exit 1; \
	done

# The demo takes a tenth of what the tests need.
$(DEMO): pyproject.toml | $(VENV)
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo]"
	@touch $@

$(STAMP): pyproject.toml | $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
