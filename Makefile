# Everything needs only Python 3.11 with pip and venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PROMPT
# Or each of the processes that the tests start, hundreds of them, would compile all of our modules for itself.
unexport PYTHONDONTWRITEBYTECODE
CASES ?= 100000
SEED ?= 1
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
export ROBOTA_TEST_LONG = $(LONG)
# Plugins that pytest finds by itself have it rewrite the assertions of their whole packages, ours among them.
PYTEST := $(BIN)/python -m pytest --disable-plugin-autoload \
	$(addprefix -p ,xdist.plugin anyio.pytest_plugin pytest_timeout _hypothesis_pytestplugin)

RUNS ?= 500

# The engine, the rules and the assembly whole; of the other areas what is quick.
FAST ?= tests/core tests/permissions tests/sdk tests/test_public_api.py \
	$(patsubst %,tests/tools/test_%.py,bash edit files function_tool read signature write) \
	$(patsubst %,tests/sessions/test_%.py,compaction permission_enforcer questions session_abort session_run) \
	$(patsubst %,tests/providers/test_%.py,anthropic_wire gemini_wire openai_responses_wire)

.PHONY: help run test test-fast test-system screens check format static fuzz fuzz-http oracle kills signals printed flips real-model soak bench bench-search bench-sessions stubs package-page pins clean

help: ## Show the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

$(VENV)/.run: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.run

run: $(VENV)/.run ## Start robota; with PROMPT=… or without a terminal, run one turn
	@if [ -n "$$PROMPT" ] || [ ! -t 0 ]; then \
	  $(BIN)/robota setup --local --if-needed; \
	  $(BIN)/robota -p "$${PROMPT:-What is this project?}" < /dev/null; \
	else $(BIN)/robota; fi

test: $(VENV)/.dev ## Run the tests that need nothing but pip; with LONG=1 all cases of generated ones
	$(PYTEST) -m "not system" -n 4 --dist loadfile --no-loadscope-reorder

test-fast: $(VENV)/.dev ## Run a part of every area in half a minute, or what FAST names
	$(PYTEST) $(FAST) -m "not system and not slow" -n 2 --dist loadfile

screens: $(VENV)/.dev ## Record the tour anew for the README
	$(BIN)/python -m tests.e2e.recording docs/images

test-system: $(VENV)/.dev ## Install Debian packages and run the tests that need them
	sh tests/system/install.sh
	$(PYTEST) -m system

format: $(VENV)/.dev ## Rewrite the code in the house format
	$(BIN)/ruff format src tests bench fuzz
	$(BIN)/ruff check --fix src tests bench fuzz

static: $(VENV)/.dev ## Format, lint, types (of the programs in docs too), import contracts
	$(BIN)/ruff format --check src tests bench fuzz
	$(BIN)/ruff check src tests bench fuzz
	$(BIN)/mypy
	$(BIN)/python -m tests.support.documented .mypy_cache/documented
	$(BIN)/mypy .mypy_cache/documented
	$(BIN)/lint-imports --no-cache

check: static test ## Everything a change must pass

fuzz: $(VENV)/.dev ## CASES generated inputs to the permission evaluator
	$(BIN)/python fuzz/permissions.py --cases $(CASES) --seed $(SEED)

oracle: $(VENV)/.dev ## CASES shell texts (20,000) run by bash, which starts and writes nothing that was not named
	$(BIN)/python fuzz/oracle.py --cases $(if $(filter file,$(origin CASES)),20000,$(CASES)) --seed $(SEED)

fuzz-http: $(VENV)/.dev ## CASES generated replies to the HTTP client, which h11 has to read alike
	$(BIN)/python fuzz/http_replies.py --cases $(CASES) --seed $(SEED)

kills: $(VENV)/.dev ## Kill RUNS writing processes with -9 and look for what is missing
	$(BIN)/python fuzz/kills.py --program journal --runs $(RUNS) --seed $(SEED)
	$(BIN)/python fuzz/kills.py --program session --runs $(RUNS) --seed $(SEED)

signals: $(VENV)/.dev ## Send the command a signal at every 5 ms of its life
	$(BIN)/python fuzz/signals.py

printed: $(VENV)/.dev ## Compare what a user saw with the session, after RUNS ends at random moments
	$(BIN)/python fuzz/printed.py --runs $(RUNS) --seed $(SEED)

flips: $(VENV)/.dev ## Damage RUNS stored sessions, resume them and look for what is missing or mixed up
	$(BIN)/python fuzz/flips.py --cases $(RUNS) --seed $(SEED)

bench: $(VENV)/.dev ## Measure the engine and sessions beside a hand-written httpx2 loop
	$(BIN)/python bench/run.py
	$(BIN)/python bench/sdk.py
	$(BIN)/python bench/plugins.py
	$(BIN)/python bench/cli.py
	$(BIN)/python bench/terminal.py
	$(BIN)/python bench/serve.py
	$(BIN)/python bench/mcp_servers.py
	$(BIN)/python bench/undo.py --quick
	$(BIN)/python bench/sandbox.py --quick

bench-search: $(VENV)/.dev ## Measure Grep and Glob beside ripgrep on 50,000 files
	$(BIN)/python bench/search.py

bench-sessions: $(VENV)/.dev ## Measure the list of sessions, redaction and opening a long journal
	$(BIN)/python bench/sessions_list.py
	$(BIN)/python bench/redaction.py
	$(BIN)/python bench/open_journal.py

real-model: $(VENV)/.dev ## A real small model calls tools, in this process and behind a llama.cpp server
	$(BIN)/python fuzz/real_model.py $(MODELS)

soak: $(VENV)/.dev ## Many turns in one process, and typed into a terminal: memory and descriptors must stay flat
	$(BIN)/python bench/soak.py
	$(BIN)/python bench/soak_terminal.py

stubs: $(VENV)/.dev ## Write the type stubs of the lazily loaded packages
	$(BIN)/python -m robota._stubs

package-page: ## Write PACKAGE.md, what a package index shows, from the README
	$(PYTHON) -m tests.support.package_page

pins: $(VENV)/.dev ## Refresh constraints.txt from what is installed
	@{ echo "# Pinned versions that \`make\` installs with; refresh with \`make pins\`."; \
	   $(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable; } > constraints.txt

clean: ## Remove what make made
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist
	find src tests bench fuzz -name __pycache__ -prune -exec rm -r {} +
