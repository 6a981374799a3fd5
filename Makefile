# Everything a contributor runs. Each target makes the environment it needs from a bare python3.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.ready
# A model server written by others, for the tests that want one; without npm they are skipped.
SERVERS := tests/servers/node_modules/.ready

.PHONY: demo test check protocol bench growth fuzz soak clean

$(STAMP): pyproject.toml
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $(STAMP)

$(SERVERS): tests/servers/package-lock.json
	cd tests/servers && { npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
		&& touch node_modules/.ready || echo "no npm, or no package: tests that need it are skipped"; }

demo: $(STAMP)
	$(VENV)/bin/python clients/python/demo.py

test: $(STAMP) $(SERVERS)
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
	$(VENV)/bin/python tests/bench/growth.py

growth: $(STAMP)
	$(VENV)/bin/python tests/bench/growth.py

# SECONDS for each target; what is found lies in fuzz-found/.
fuzz: SECONDS ?= 60
fuzz: $(STAMP)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --group fuzz
	$(VENV)/bin/python -m tests.fuzz.run --seconds $(SECONDS)

# On a disk of its own, in memory and seen by nobody else, that can really be filled.
soak: SECONDS ?= 1800
soak: $(STAMP)
	home=$$(mktemp -d) && unshare --user --map-root-user --mount sh -c \
	  "mount -t tmpfs -o size=2g soak $$home && $(VENV)/bin/python -m tests.process.soak --seconds $(SECONDS) --home $$home"; \
	status=$$?; rmdir $$home; exit $$status

clean:
	rm -rf $(VENV) tests/servers/node_modules .mypy_cache .ruff_cache .pytest_cache
