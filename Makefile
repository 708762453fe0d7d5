# Everything lives in .venv; nothing is installed outside this folder except what CI's browser needs.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help serve test chaos conformance check bench bench-retrieval docs lock clean

help:  ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

.venv/base: requirements/base.txt pyproject.toml scripts/install
	scripts/install $(PYTHON) base

.venv/dev: requirements/dev.txt pyproject.toml scripts/install
	scripts/install $(PYTHON) dev

serve: .venv/base  ## install, and serve the demo at http://127.0.0.1:8420
	$(BIN)/toolyard serve --demo

test: .venv/dev  ## install, and pass all tests
	$(BIN)/python -m scripts.browser
	$(BIN)/pytest

chaos: .venv/dev  ## long runs of kills and pauses on both engines; MINUTES=10, SEEDS="1 2 3"
	$(BIN)/python -m tests.durable.chaos --minutes $(or $(MINUTES),10) $(if $(SEEDS),--seeds "$(SEEDS)")

conformance: .venv/dev  ## the official MCP suite in all era pairs, on our own fixtures and through us
	$(BIN)/python -m tests.conformance $(if $(ONLY),--only "$(ONLY)") $(if $(JSON),--json "$(JSON)")

check: .venv/dev  ## lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: .venv/dev  ## every benchmark; JSON and tables in benchmarks/results
	$(BIN)/python -m benchmarks

bench-retrieval: .venv/dev  ## how well search and RESOLVE_ACTIONS find tools, on ../shared/data; JSON=out.json
	$(BIN)/python -m benchmarks.retrieval $(if $(JSON),--json "$(JSON)")

docs: .venv/dev  ## write the HTTP API's OpenAPI document and the manifest's JSON Schema into docs/
	$(BIN)/python -m scripts.docs

lock: .venv/base  ## resolve the dependencies again
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url -q --upgrade pyproject.toml -o requirements/base.txt
	$(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url -q --upgrade pyproject.toml --group dev -o requirements/dev.txt
	echo "uv>=0.10" | $(BIN)/uv pip compile --universal --generate-hashes --no-emit-index-url -q --upgrade --no-header - -o requirements/uv.txt

clean:  ## remove everything that was installed or made here
	rm -rf .venv .toolyard dist .pytest_cache .ruff_cache .hypothesis
