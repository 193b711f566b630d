# Every target sets up what it needs; nothing but Python 3.11, make and the package registry is assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check fix docs bench wheel clean

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

demo: $(VENV)/.ready  ## ingest sample_data/, print the verdict, write the report
	$(BIN)/fabricobs demo

test: $(VENV)/.ready  ## all tests, in parallel
	$(BIN)/pytest -n auto

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

docs: $(VENV)/.ready  ## the manual in docs/ and the lists in README.md, from the content and the code
	$(BIN)/python -m fabricobs.docs

bench: $(VENV)/.ready  ## speed of reading against named baselines; writes 3 GB to the temporary directory
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python -m fabricobs.bench.reading $(BENCH)

wheel: $(VENV)/.ready  ## build the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) dist fabric-store fabricobs-demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
