# `make` alone lists the targets. The two to know are `make demo` and `make test`; both do all their own set-up.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
SHELL := /bin/sh

# Scripts of the virtual environment come first: the build backend is one of them.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

venv_python := .venv/bin/python
environment := .venv/installed
# Folders of Python; one that has no Python in it yet is left out, because mypy calls that an error.
code := $(foreach folder,src module testbed tests benchmarks dev,\
          $(if $(shell find $(folder) -name '*.py' -print -quit 2>/dev/null),$(folder)))

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r target text; do \
	    printf 'make %-12s %s\n' "$$target" "$$text"; done

.PHONY: demo
demo: $(environment) ## watch a distributed training start, learn and complete on this machine, without a cluster
	@paddle-operator run examples/02-collective/job.yaml

.PHONY: test
test: ## everything that CI checks, from set-up to a real API server, with the time of each stage
	@MAKE='$(MAKE)' dev/system-python dev/stages.py environment binaries lint unit training apiserver

.PHONY: environment
environment: $(environment) ## .venv with what requirements-dev.lock pins (anew only when that or pyproject.toml changed)

$(environment): requirements-dev.lock pyproject.toml module/pyproject.toml
	@dev/system-python dev/environment.py

.PHONY: binaries
binaries: $(environment) ## kube-apiserver, etcd and friends for the tests, built once and kept in a cache
	@$(venv_python) -m testbed build

.PHONY: lint
lint: $(environment) ## format, lint, types, layers and the house rules of tests/test_tidy.py
	ruff format --check --quiet --output-format=concise .
	ruff check --quiet .
	MYPYPATH=tests $(venv_python) -m mypy $(code)
	lint-imports --no-logo
	$(venv_python) -m pytest -q tests/test_tidy.py

.PHONY: format
format: $(environment) ## repair what ruff can repair
	ruff check --fix-only --quiet .
	ruff format .

.PHONY: unit
unit: $(environment) ## tests that need nothing but Python; of the simulator a sample, another one each time; SAMPLE=word: that
	$(venv_python) -m pytest -n auto --maxprocesses=4 --dist=worksteal -m "not apiserver and not paddle and not node"

.PHONY: simulate
simulate: $(environment) ## whole jobs in memory, every fault at every step, and 100,000 random ones, others each time; SEED="a case", ONLY=group or BASE=number: that
	PYTHONPATH=tests $(venv_python) -m simulator $(if $(SEED),--seed "$(SEED)") $(if $(ONLY),--only $(ONLY)) $(if $(SCHEDULES),--schedules $(SCHEDULES)) $(if $(BASE),--base $(BASE))

.PHONY: training
training: $(environment) ## tests that train with real PaddlePaddle, on one machine
	$(venv_python) -m pytest -n 2 --dist=loadscope -m "paddle and not apiserver"

.PHONY: apiserver
apiserver: binaries ## tests against a real kube-apiserver and etcd
	$(venv_python) -m pytest -n 3 --dist=loadfile -m apiserver

.PHONY: shake
shake: binaries ## on a real API server: a manager killed at every write of ten jobs, other harm at every write of four
	SIMULATE=all $(venv_python) -m pytest -n 3 --dist=loadfile -m apiserver tests/apiserver/test_shaken.py

.PHONY: e2e
e2e: ## whole jobs in real containers: kubelet, containerd, DNS, real Paddle (needs root); all set-up included
	@MAKE='$(MAKE)' dev/system-python dev/stages.py environment binaries packages images node

.PHONY: packages
packages: $(environment) ## what a real node needs of Debian, by apt-get (needs root)
	@$(venv_python) -m testbed packages

.PHONY: images
images: packages ## the images of the tests, built once and kept in a cache
	@$(venv_python) -m testbed.images

.PHONY: node
node: images ## tests on a real node
	@$(venv_python) -m testbed build --node
	$(venv_python) -m pytest -m node tests/testbed
	$(venv_python) -m pytest -n 2 --dist=loadfile -m node tests/node

pod_template := src/paddle_operator/api/pod_template.json
kubectl_of_testbed := from testbed.controlplane import ControlPlane; print(ControlPlane("generate").kubectl)

# The testbed goes down whatever happens; a file is replaced only by a whole one.
.PHONY: generate
generate: binaries ## write again what is made from other things: pod_template.json, manifests, pages of docs, tests/golden
	@trap '$(venv_python) -m testbed down --name generate; rm -f $(pod_template).new*' EXIT; \
	trap 'exit 1' INT TERM; set -e; \
	$(venv_python) -m testbed up --name generate; \
	kubectl=$$($(venv_python) -c '$(kubectl_of_testbed)'); \
	KUBECONFIG=$$($(venv_python) -m testbed kubeconfig --name generate) \
	    "$$kubectl" get --raw /openapi/v3/api/v1 > $(pod_template).new.openapi; \
	$(venv_python) dev/pod_template.py < $(pod_template).new.openapi > $(pod_template).new; \
	mv $(pod_template).new $(pod_template)
	@mkdir -p deploy/v1
	paddle-operator crd > deploy/v1/crd.yaml.new
	@mv deploy/v1/crd.yaml.new deploy/v1/crd.yaml
	$(venv_python) -m dev.manifests
	@for page in troubleshooting api_doc; do \
	    $(venv_python) dev/$$page.py > docs/en/$$page.md.new && mv docs/en/$$page.md.new docs/en/$$page.md || exit 1; done
	PYTHONPATH=tests:. $(venv_python) dev/reliability.py
	REGENERATE=1 $(venv_python) -m pytest -q tests/test_generated.py -k golden

# Only uv itself has to be there, at any version: a lock that cannot be installed must not stop its own repair.
uv_compile = UV_CUSTOM_COMPILE_COMMAND="make lock" uv pip compile -q --universal --python-version 3.11 \
               --generate-hashes $(if $(UPGRADE),--upgrade)

# Paddle 2.6.2 wants another protobuf on Windows than we need: no lock could hold for both.
.PHONY: lock
lock: | .venv/bin/uv ## pin the dependencies of pyproject.toml; `make lock UPGRADE=1` also takes newer versions
	$(uv_compile) pyproject.toml -o requirements.lock
	$(uv_compile) pyproject.toml --extra local --group dev -o requirements-dev.lock
	$(venv_python) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["local"], sep="\n")' \
	    | $(uv_compile) --constraint requirements-dev.lock - -o requirements-paddle.lock
	$(venv_python) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	    | $(uv_compile) --constraint requirements-dev.lock - -o requirements-build.lock
	$(uv_compile) --group go -o requirements-go.lock
	$(uv_compile:--universal=--python-platform=linux) --group paddle-2-6-2 -o requirements-paddle-2.6.2.lock
	$(uv_compile) --group paddle-3-1-0 -o requirements-paddle-3.1.0.lock
	$(uv_compile) --group paddle-3-3-1 -o requirements-paddle-3.3.1.lock

.venv/bin/uv:
	@$(MAKE) --no-print-directory environment

.PHONY: versions
versions: $(environment) ## train with several releases of Paddle, each in an environment of its own; prints a table
	@$(venv_python) -m dev.versions

.PHONY: launchers
launchers: $(environment) ## start a training in every way, with several releases of Paddle, in every network; prints a table
	@PYTHONPATH=tests:. $(venv_python) -m dev.launchers $(WHAT)

.PHONY: picture
picture: $(environment) ## draw docs/run.svg anew, from a real run
	@$(venv_python) dev/picture.py examples/02-collective/job.yaml > docs/run.svg.new
	@mv docs/run.svg.new docs/run.svg

# Ninety minutes on two cores, which should do nothing else meanwhile. RESUME=1 goes on where a run was cut off.
results := benchmarks/results/suite.jsonl

.PHONY: bench
bench: binaries ## measure the operator against the floor and its peers; writes benchmarks/results, prints tables
	@mkdir -p $(dir $(results))
	$(venv_python) -m benchmarks.suite --out $(results) $(if $(RESUME),--resume)
	$(venv_python) -m benchmarks.pages $(results)

.PHONY: clean
clean: ## remove .venv and all caches in this folder (the Kubernetes binaries are kept elsewhere)
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find $(code) -name __pycache__ -prune -exec rm -rf {} +
