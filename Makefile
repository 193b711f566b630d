# Every target sets up what it needs; nothing but Python 3.11, make and the package registry is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
# Together they use every library, in about three minutes.
FAST := $(addprefix tests/test_,accounting.py charts.py config.py formats.py queries.py python.py \
	printing.py records.py ruled.py unchanged.py shell.py statistics.py values.py what_if.py)
RESOLVE := $(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 \
	--generate-hashes --no-annotate --custom-compile-command "make lock"

.PHONY: demo test test-all test-part test-lowest fuzz check fix kernels docs bench bench-scale lock wheel clean

# Only files whose hashes are in the lock are installed; the project itself is built from them.
define install
	@echo "Installing $$(grep -c '==' $(2)) packages into $(1), about a minute on a fast line"
	$(PYTHON) -m venv $(1)
	$(1)/bin/python -m pip install --require-hashes --requirement $(2)
	$(1)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
endef

$(VENV)/.ready: pyproject.toml requirements.lock
	$(call install,$(VENV),requirements.lock)

$(LOWEST)/.ready: pyproject.toml requirements-lowest.lock
	$(call install,$(LOWEST),requirements-lowest.lock)

demo: $(VENV)/.ready  ## ingest sample_data/, print the verdict, write the report
	$(BIN)/fabricobs demo

test: $(VENV)/.ready  ## the tests of daily work, in parallel, in about twelve minutes on two cores
	$(BIN)/pytest -n auto -m "not slow"

test-all: $(VENV)/.ready  ## all tests: kills, hostile inputs, simulated clusters and browsers too
	$(BIN)/pytest -n auto

PART ?= 1/4
test-part: $(VENV)/.ready  ## the fast tests and one part of the slow ones, PART=2/4
	$(BIN)/pytest -n auto --slow-part $(PART)

test-lowest: $(LOWEST)/.ready  ## tests of every library, with the lowest versions that pyproject.toml allows
	$(LOWEST)/bin/pytest -n auto -m "not slow" $(FAST)

lock: $(VENV)/.ready  ## renew both lock files: the newest versions, and the lowest allowed ones
	$(RESOLVE) --upgrade --group dev --output-file requirements.lock
	lowest=$$(mktemp) && trap 'rm -f "$$lowest"' EXIT && \
	$(RESOLVE) --upgrade --resolution lowest-direct --output-file "$$lowest" && \
	$(RESOLVE) --upgrade --group dev --constraint "$$lowest" --output-file requirements-lowest.lock

fuzz: $(VENV)/.ready  ## 10,000 damaged inputs of all formats; FUZZ=123:1 reads one again
	FABRICOBS_FUZZ=$(or $(FUZZ),0:10000) $(BIN)/pytest -n auto tests/test_fuzz.py

check: $(VENV)/.ready  ## format, lint, types, import contracts, definitions, docs; never writes
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/fabricobs check
	$(BIN)/python -m fabricobs.docs --check

fix: $(VENV)/.ready  ## what check complains about and a machine can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python -m fabricobs.docs

kernels: $(VENV)/.ready  ## LLVM code of the compiled readers whose sources have changed
	$(BIN)/python -m fabricobs.formats.compiled

docs: $(VENV)/.ready  ## the manual in docs/, from the content and the code
	$(BIN)/python -m fabricobs.docs

bench: $(VENV)/.ready  ## speed of reading against named baselines; writes 5 GB to the temporary directory; BENCH=--quick for a smoke test
	$(BIN)/python -m fabricobs.bench.reading $(BENCH)

bench-scale: $(VENV)/.ready  ## commits, workers of a cluster, and diagnosis as a cluster grows
	$(BIN)/python -m fabricobs.bench.scale

wheel: $(VENV)/.ready  ## build the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) $(LOWEST) dist fabric-store fabricobs-demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
