# Everything a developer does here. `make help` lists it.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
# The backend of `pip install .` is packaging/build_backend.py, which calls maturin.
export MATURIN_NO_MISSING_BUILD_BACKEND_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help setup build lint format test needs-test test-rust test-python test-pythons models simulate mutants shape fuzz demo bench bench-quick soak soak-simulation soak-faults soak-memory audit histories wheel test-wheel wheels sdist docs console pictures console-assets changelog-check clean

help: ## List what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 17

# The system's OpenSSL, where its headers are: to build one takes minutes. Wheels always have their own (VENDORED=1).
ifeq ($(VENDORED)$(shell pkg-config --atleast-version=3.0 openssl 2>/dev/null && echo found),found)
OF_BRIDGE := --no-default-features
OF_CRATES := --no-default-features --features awoke-kafka/librdkafka,awoke-engine/librdkafka
endif
CRATES := -p awoke-wake -p awoke-embedded -p awoke-kafka -p awoke-engine
MODELS := -p awoke-wake -p awoke-engine --no-default-features --features awoke-wake/model,awoke-engine/model

SIMULATED := -p awoke-engine --no-default-features --features simulated
# The simulated client against the statement that librdkafka's is tested against, too.
OF_SEAM := -p awoke-kafka --no-default-features --features simulated

.venv/made:
	@sh packaging/needs.sh python rust c
	$(PYTHON) -m venv .venv || $(PYTHON) -m virtualenv .venv
	$(BIN)/pip install --disable-pip-version-check 'maturin==1.16.0'
	touch $@

# What cargo has built stays built, and pip leaves what is installed.
build: .venv/made ## Build the extension, and install it with all that the tests need
	$(BIN)/maturin develop --release $(OF_BRIDGE) --extras dev
	@touch .venv/dev

# The stamp of `build`, for what needs no new extension.
.venv/dev: pyproject.toml
	$(MAKE) build

setup: build ## Make the virtual environment and build the extension

lint: build ## Check format, lints and types of Rust and Python
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets $(OF_CRATES) --locked -- -D warnings
	cargo clippy --release $(MODELS) --all-targets --locked -- -D warnings
	cargo clippy --release $(SIMULATED) --lib --test simulation --locked -- -D warnings
	cargo clippy --release $(OF_SEAM) --all-targets --locked -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev ## Format Rust and Python
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: needs-test test-rust models simulate test-python ## Run every test: Rust, models, simulation, Python; embedded brokers and real Kafka

# What will be skipped is said here too: at the end of the run nobody looks for it.
needs-test:
	@sh packaging/needs.sh python rust c java maven
	@sh packaging/needs.sh --skipped

test-rust: ## Run the engine's own tests
	cargo test --release $(CRATES) $(OF_CRATES) --locked

models: ## Try every interleaving of the waiting primitives
	cargo test --release $(MODELS) --lib --locked models

# SEED=7 runs a single seed and prints its steps.
simulate: ## Run the engine before a simulated cluster, with an order and faults that each seed decides (SEEDS=10000)
	cargo test --release $(OF_SEAM) --lib --locked
	SEEDS=$${SEEDS:-10000} cargo test --release $(SIMULATED) --test simulation --locked -- --nocapture

mutants: .venv/dev ## Change one line of the engine after another, and see that the simulation notices (SEEDS=10000 each)
	$(BIN)/python -m tests.mutants

shape: .venv/dev ## Print the shape of the code in numbers, with their goals
	$(BIN)/python -m tests.shape

# Six at a time (TEST_WORKERS): most of them wait for brokers most of the time. What fails is run again, alone.
test-python: build console-assets ## Run the Python tests, on embedded brokers and on real Kafka
	$(BIN)/python -m tests.support.kafka_broker fetch
	$(BIN)/python -m tests.support.apicurio fetch
	$(BIN)/python -m pytest -n $${TEST_WORKERS:-6} --dist loadfile --no-loadscope-reorder --again --durations 15

# ARGS are pytest's: `make test-pythons ARGS="--only 3.13 tests/unit"`.
test-pythons: ## Run the Python tests on each supported Python of this machine (PYTHONS=folder with more of them)
	BUILD_ARGS='$(OF_BRIDGE)' $(PYTHON) packaging/test_pythons.py $(ARGS)

fuzz: build ## Give random input to each decoder of the engine and of the package (FUZZ_SECONDS=60 each)
	CARGO_FEATURES='$(OF_CRATES)' .ci/fuzz $${FUZZ_SECONDS:-60}

# A wheel in dist/ saves the build.
demo: ## Join a year of flights on embedded brokers and show the delays by route
ifneq ($(wildcard dist/awoke-*.whl),)
	sh packaging/install_wheel.sh demo
	.venvs/wheel/bin/python -m examples.flights.demo
else
	$(MAKE) .venv/made
	$(BIN)/maturin develop --release $(OF_BRIDGE) --extras demo
	$(BIN)/python -m examples.flights.demo
endif

console: .venv/dev console-assets ## Open the console of a swarm that has a failing key, a slow job, dead letters and a service (ARGS="--bootstrap-servers …")
	$(BIN)/python -m examples.flights.console $(ARGS)

pictures: build console-assets ## Make the pictures of docs/console.md anew, as the tests in a browser see the pages
	AWOKE_PICTURES=docs/images $(BIN)/pytest -q tests/unit/console/web/test_in_browser.py \
		tests/unit/console/web/test_starting_in_browser.py -k "every_link or phone or just_begun"

# Without npm the pages have plain charts, and the tests in a browser do not ask axe.
console-assets: ## Fetch the console's script for charts, and axe for its tests, from npm, with checksums
	$(PYTHON) packaging/console_assets.py --axe

bench: build ## Measure awoke beside its rivals on a real broker
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench

bench-quick: build ## Print eight ratios to native programs beside those that were committed, in three minutes
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m bench.quick

soak: histories soak-simulation soak-faults fuzz soak-memory ## Run everything that takes hours; `.ci/long` runs more by night

soak-simulation: mutants ## Run a million seeds of the simulation, and its mutants
	$(MAKE) simulate SEEDS=1000000

soak-faults: build ## Run what is marked `soak`, then repeat the restart, rebalance, copy, swarm and rpc scenarios on real Kafka (TIMES=20): 100 kills, 50,000 calls each
	$(BIN)/python -m pytest -q -m soak
	AWOKE_REBALANCES=100 AWOKE_FREEZES=3 AWOKE_KILLS=6 $(BIN)/python -m pytest -q --timeout 900 \
	  tests/scenarios/test_many_rebalances.py tests/scenarios/test_frozen_members.py tests/scenarios/test_offsets_outside_kafka.py
	for run in $$(seq $${TIMES:-20}); do \
	  AWOKE_COPIED=100000 $(BIN)/python -m pytest -q -m "" tests/scenarios/test_restart.py tests/scenarios/test_rebalance.py \
	    tests/scenarios/test_lanes_killed.py tests/scenarios/test_lanes_rebalance.py \
	    tests/scenarios/test_copy.py tests/scenarios/test_transactor_faults.py || exit 1; \
	  AWOKE_KILLS=100 $(BIN)/python -m pytest -q --timeout 900 -k killed \
	    tests/scenarios/test_swarm_node_control.py tests/scenarios/test_swarm_health.py || exit 1; \
	  AWOKE_CALLS=50000 AWOKE_KILLS=25 AWOKE_CALLERS=500 $(BIN)/python -m pytest -q --timeout 900 \
	    tests/scenarios/test_rpc_faults.py || exit 1; \
	done

# What the C library and Python read beyond the end of a string is a known false alarm of valgrind's; what is reported is a fault of ours.
VALGRIND := valgrind --quiet --error-exitcode=9 --undef-value-errors=no --suppressions=$(CURDIR)/tests/support/valgrind.supp

# Contract tests of embedded brokers that lend, copy and free memory in all ways that the extension has.
# The registry of the tests, which is Python, answers too late under valgrind.
LENT_MEMORY := $(patsubst %,tests/contract/test_%.py,consume lanes outputs owned produce recovery skip tombstones undecodable) \
  tests/contract/rpc --ignore=tests/contract/rpc/test_formats.py

soak-memory: build ## Look for wrong use of memory: the engine's tests and the extension's lent memory under valgrind, and Miri where it runs
	@command -v valgrind || { echo "could not run: valgrind is not installed"; exit 1; }
	cargo --config 'target."cfg(all())".runner = "$(VALGRIND)"' test --release $(CRATES) $(OF_CRATES) --locked
	PYTHONMALLOC=malloc $(VALGRIND) --soname-synonyms=somalloc='_native*' \
	  $(BIN)/python -m pytest -q --timeout 900 tests/security/test_native_arguments.py tests/unit/test_sequencer.py \
	  $(LENT_MEMORY) -k 'mock or native or sequencer'
	PYTHONMALLOC=malloc $(VALGRIND) --soname-synonyms=somalloc='_native*' --trace-children=yes \
	  $(BIN)/python -m pytest -q --timeout 900 tests/security/test_signal_handlers.py
	@if cargo +nightly miri --version >/dev/null 2>&1; then cargo +nightly miri test -p awoke-wake --locked; \
	else echo "could not run Miri: it needs a nightly compiler with its component"; fi

audit: .venv/dev ## Ask about known weaknesses of all dependencies, as they are locked
	@failed=0; \
	if cargo deny --version >/dev/null 2>&1; then cargo deny --locked check advisories sources || failed=1; \
	elif cargo audit --version >/dev/null 2>&1; then cargo audit || failed=1; \
	else echo "could not run for Rust: install cargo-deny or cargo-audit"; failed=1; fi; \
	$(BIN)/python packaging/openssl_advisories.py || failed=1; \
	if command -v pip-audit >/dev/null; then pip-audit --path "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" || failed=1; \
	else echo "could not run for Python: install pip-audit"; failed=1; fi; exit $$failed

# 15 runs: about an hour and a half where each lasts for 300 seconds.
histories: build ## Copy a topic under faults and compare the logs, for each mode and protocol (SECONDS_EACH=300, SEED=1)
	for mode in plain lanes lanes-async batch exactly-once; do \
	  for protocol in classic cooperative kip848; do \
	    $(BIN)/python -m tests.history --mode $$mode --protocol $$protocol \
	      --seconds $${SECONDS_EACH:-300} --seed $${SEED:-1} || exit 1; \
	  done; \
	done

wheel: docs console-assets ## Build the wheel for this machine into dist/, and send a message through it in a bare virtual environment
	$(PYTHON) packaging/wheels.py --here

test-wheel: wheel ## Run the tests of security against the wheel for this machine, with its own OpenSSL
	sh packaging/install_wheel.sh dev
	.venvs/wheel/bin/python -m pytest -q -n 2 tests/security

wheels: docs console-assets ## Build all wheels that can be built here into dist/, try them, and print a table of them
	$(PYTHON) packaging/wheels.py

sdist: docs console-assets ## Make the source distribution in dist/, install it in a bare virtual environment, and send a message through it
	$(PYTHON) packaging/sdist.py --try

docs: .venv/dev ## Build the documentation into target/docs/site and for `awoke docs`, and check its links
	$(BIN)/python packaging/docs_site.py

changelog-check: ## Refuse a release that CHANGELOG.md does not describe (VERSION=0.2.0)
	$(PYTHON) packaging/changelog.py $(VERSION)

clean: ## Remove what was built; keeps the fetched Kafka
	rm -rf target .venv dist
