# make setup | demo | demo-all | test | test-long | test-slow | test-laws | bench | kit | deb | clean       (docs/install.md, docs/kit.md say more)
PYTHON ?= python3
GPU ?=
# Named on the command line only: a variable of this name in the environment means something else.
KIT =
KEY =
OUT =
MAINTAINER =
TESTS = not slow and not long
# Tests wait for jails more than they compute.
TEST_WORKERS ?= 3
# Compiled tests are kept: to rewrite their assertions anew in every worker takes longer than many a room of them.
test test-long test-slow test-laws: export PYTHONDONTWRITEBYTECODE =

.PHONY: help setup lint types test test-long test-slow test-laws demo demo-all bench kit deb clean

help:
	@echo "make setup [GPU=cuda|vulkan|none] [PYTHON=python3.12]   build .venv, everything pinned by hash; seconds when it stands"
	@echo "make setup KIT=DIR KEY=KEY   the same from a kit: no index, no compiler, no network"
	@echo "make demo       repair a real buggy example repository, every stage shown"
	@echo "make demo-all   repair the other examples too"
	@echo "make test       linters, types, layers, the ordinary tests: some three minutes"
	@echo "make test-long  the tests that take about a second or more each: whole repairs, daemons, attacks"
	@echo "make test-slow  the tests that take minutes"
	@echo "make test-laws  the property tests on new random examples"
	@echo "make bench      the project's own repair cases; BENCH_ARGS='--every 5' for a part"
	@echo "make kit [OUT=DIR] [KEY=FILE]   a kit that installs without a network (docs/kit.md)"
	@echo "make deb KIT=DIR KEY=KEY [OUT=DIR]   a Debian package of the system install, made of a kit"
	@echo "make clean      remove .venv and everything built; models stay"

setup:
	@sh scripts/prerequisites.sh "$(PYTHON)" "$(or $(GPU),$(if $(KIT)$(wildcard .venv/localagent-setup.json),kit,none))"
	@"$(PYTHON)" -I scripts/bootstrap.py --gpu "$(GPU)" $(if $(KIT),--kit "$(KIT)" --key "$(KEY)")

lint:
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports
	.venv/bin/python -m compileall -q localagent

types:
	.venv/bin/mypy

# Types are checked beside the linters and the tests: they take one core for as long as a third of the ordinary tests.
test: setup
	@$(MAKE) --no-print-directory types >.build/types.log 2>&1 & types=$$!; \
	trap 'kill $$types' INT TERM; \
	$(MAKE) --no-print-directory lint && \
	.venv/bin/python -m pytest -m "$(TESTS)" -n $(TEST_WORKERS) --dist worksteal $(PYTEST_ARGS); tests=$$?; \
	wait $$types; types=$$?; cat .build/types.log; exit $$((tests ? tests : types))

test-long: setup
	.venv/bin/python -m pytest -m "long and not slow" -n $(TEST_WORKERS) --dist worksteal $(PYTEST_ARGS)

test-slow: setup
	.venv/bin/python -m pytest -m slow $(PYTEST_ARGS)

test-laws: setup
	HYPOTHESIS_PROFILE=explore .venv/bin/python -m pytest -m "not slow" -n $(TEST_WORKERS) --dist worksteal $(PYTEST_ARGS) \
		$$(grep -rl "hypothesis import" tests --include='test_*.py')

demo: setup
	@sh scripts/demo.sh ledger

demo-all: setup
	@sh scripts/demo.sh ledger wordcount inventory

bench: setup
	.venv/bin/python bench/run.py $(BENCH_ARGS)

kit: setup
	.venv/bin/python scripts/make_kit.py --out "$(or $(OUT),dist)" $(if $(KEY),--key "$(KEY)")

deb:
	@test -n "$(KIT)" -a -n "$(KEY)" || { echo "make deb KIT=DIR KEY=KEY [OUT=DIR] [MAINTAINER='NAME <ADDRESS>']" >&2; exit 2; }
	"$(PYTHON)" -I scripts/make_deb.py "$(KIT)" --key "$(KEY)" --out "$(or $(OUT),dist)" $(if $(MAINTAINER),--maintainer "$(MAINTAINER)")

clean:
	rm -rf .venv .build build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
