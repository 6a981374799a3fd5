# Everything a contributor runs. Each target makes the environment it needs from a bare python3.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.ready

.PHONY: demo test check protocol bench growth clean

$(STAMP): pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $(STAMP)

demo: $(STAMP)
	$(VENV)/bin/python clients/python/demo.py

test: $(STAMP)
	$(VENV)/bin/python -m pytest

check: $(STAMP)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python protocol/generate.py --check

protocol: $(STAMP)
	$(VENV)/bin/python protocol/generate.py

bench: $(STAMP)
	$(VENV)/bin/python tests/bench/run.py

growth: $(STAMP)
	$(VENV)/bin/python tests/bench/growth.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
