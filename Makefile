# make demo: compile a shipped model, check and measure it, beside others' figures.
# make test: lint, and tests of some minutes.
# make docs: the documentation, as pages in build/docs.
# make full: all tests, those too that show on many rows, examples and large models what others show on few.
# Both create .venv and install what they need from this project's own files.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP := $(VENV)/.installed
TESTS := $(VENV)/.tests
DEMO := $(VENV)/.demo
WORKERS ?= 2

.PHONY: demo firmware-demo test quick lint types types-elsewhere docs environment rest full figures bench fuzz clean \
  figures-check

demo: $(DEMO)
	$(BIN)/python examples/demo.py build/demo

# A firmware image for a Cortex-M3, run in qemu; needs arm-none-eabi-gcc and qemu-system-arm.
firmware-demo: $(STAMP)
	$(BIN)/python examples/firmware_qemu/demo.py build/firmware

# One case of each test that takes no seconds, with what pip's extra `test` holds; other tools are used where they are.
test: $(TESTS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# While one works: lint, types, and the tests of both IRs, lowering, the simulator, options, the contract of backends,
# and of the contract of frontends the kinds of XGBoost.
QUICK := tests/forest tests/netlist tests/lowering tests/hw_sim tests/fields tests/contract tests/test_python_results.py \
  tests/backends/test_backend_contract.py
quick: lint types
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -k "not equal_the_library or xgboost" $(QUICK)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache

types: $(STAMP)
	$(BIN)/mypy

# As on Windows and on macOS: a call that they lack stands in forestc/system/calls.py, with its counterpart.
types-elsewhere: $(STAMP)
	$(BIN)/mypy --platform win32
	$(BIN)/mypy --platform darwin

# Warnings are errors: a link to nowhere, a name in the text that the code does not have.
# Runs the examples that draw plots, but those that docs/gallery has already: `make clean` forgets them.
docs: $(STAMP)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --nitpicky --builder html docs build/docs

# The smallest tutorial, in an environment of its own install line; `full` has all of them, and README, on two Pythons.
environment: $(STAMP)
	$(BIN)/python -m pytest -m long -k "amaranth and 3.11" tests/first_hour

# What CI runs behind `test`: the other cases, but those that are long.
rest: types docs
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cases rest -m "not long"

full: lint types types-elsewhere docs
	FORESTC_EXAMPLES=5 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --cases all -m "" -o timeout=3600

# Measured figures, into docs/benchmarks: `figures` what README and docs/benchmarks/index.md show, `bench` all. A row that
# is made again as it was is not measured again, and a run that was ended goes on where it stopped. PEERS names a folder
# of NAME.json with NAME.npz (hardware), DATA one of NAME.csv.gz, MODELS one of model files; what needs them is left out
# without.
FOLDERS := $(if $(DATA),--data $(DATA)) $(if $(PEERS),--peers $(PEERS)) $(if $(MODELS),--models $(MODELS))

figures: $(STAMP)
	$(BIN)/python benchmarks/figures.py $(FOLDERS)

bench: $(STAMP)
	$(BIN)/python benchmarks/figures.py --all $(FOLDERS)

# Names the results that are of an older forestc or that a hand has changed, and the pages that show other figures than
# the results; status 1 if there are any.
figures-check: $(STAMP)
	$(BIN)/python docs/_generate.py --check; pages=$$?; $(BIN)/python benchmarks/golden.py && exit $$pages

# Coverage-guided fuzzing of the readers, MINUTES each.
MINUTES ?= 4
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	for reader in json ubj lightgbm onnx; do \
	  $(BIN)/python tests/fuzz/readers.py $$reader -max_total_time=$$(($(MINUTES) * 60)) || exit 1; \
	done

# The demo takes less than the tests, and the tests less than all else.
$(DEMO): pyproject.toml | $(VENV)
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[demo]"
	@touch $@

$(TESTS): pyproject.toml | $(VENV)
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test]"
	@touch $@

$(STAMP): pyproject.toml | $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

$(VENV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or later is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) build docs/gallery dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
