# Ambit needs git, make and Go; everything else is built from Go modules.

BIN := $(CURDIR)/bin
TOOLS := $(BIN)/tools

# Without cgo nothing depends on a C compiler, and all commands share one build cache.
export CGO_ENABLED ?= 0
# All commands build with the same flags, so that nothing is compiled twice.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS)) -trimpath)

# What the recipes hand on: make test TESTFLAGS='-run TestScope', make bench BENCHFLAGS='-namespaces 100'. With a C
# compiler the race detector works too: make test CGO_ENABLED=1 TESTFLAGS=-race.
TESTFLAGS ?=
BENCHFLAGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

include devcluster/devcluster.mk

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(BIN)/devcluster ## Build bin/ambit and bin/devcluster
	go build -trimpath -o $(BIN)/ambit ./cmd/ambit

.PHONY: test
test: build devcluster-k8s $(TOOLS)/kustomize $(TOOLS)/helm $(TOOLS)/helm4 $(TOOLS)/promtool ## Run every test on a real API server
	hack/test.sh $(TESTFLAGS)

# The programs of a minor version: its own, or those of devcluster/go.mod.
KUBERNETES = $(if $(wildcard devcluster/versions/$(VERSION).mod),$(BIN)/k8s-$(VERSION)/.built,devcluster-k8s)

.PHONY: test-kubernetes
test-kubernetes: build $(KUBERNETES) ## Run some tests on another Kubernetes, and note it in docs/support.md: VERSION=1.35
	hack/test-kubernetes.sh $(VERSION)

.PHONY: test-operators
test-operators: build devcluster-k8s $(TOOLS)/kustomize $(TOOLS)/helm ## Run operators of others under Ambit, unchanged, and check what docs/operators.md says
	hack/build-operators.sh
	go test -count=1 -timeout 90m -v ./test/operators $(TESTFLAGS)

.PHONY: watchlist-test
watchlist-test: devcluster-k8s ## Test the module with which operators follow their scope, and the example
	cd watchlist && KUBEBUILDER_ASSETS=$(BIN)/k8s go test -count=1 $(TESTFLAGS) ./...
	cd examples && KUBEBUILDER_ASSETS=$(BIN)/k8s go test -count=1 $(TESTFLAGS) ./...

.PHONY: verify
verify: tools ## Regenerate, lint, and fail on a difference
	hack/verify.sh

.PHONY: demo
demo: build devcluster-k8s ## Play the end-to-end use case on an embedded cluster
	@go build -o $(BIN)/demo ./test/demo
	@cd examples && go build -o $(BIN)/greeting ./greeting
	@$(BIN)/demo

.PHONY: run
run: build devcluster-k8s ## Run an embedded cluster with Ambit until Ctrl-C
	@go build -o $(BIN)/demo ./test/demo
	@$(BIN)/demo --serve

.PHONY: bench
bench: build devcluster-k8s $(TOOLS)/helm ## Run the benchmarks and print tables
	go run ./bench $(BENCHFLAGS)

.PHONY: dashboard
dashboard: build devcluster-k8s $(TOOLS)/prometheus ## Record Ambit with Prometheus, and draw the dashboard into docs/images
	go run ./hack/dashboard

# What the published things are called. A fork sets REGISTRY to its own.
VERSION ?= v0.0.0-dev
REGISTRY ?= ghcr.io/ambit-k8s
DIST ?= $(CURDIR)/dist

.PHONY: image
image: $(BIN)/release ## Build the image, for all platforms, without Docker
	@$(BIN)/release image -version "$(VERSION)" -registry "$(REGISTRY)" -dist "$(DIST)"

.PHONY: release
release: $(BIN)/release $(TOOLS)/kustomize ## Fill dist with everything that is published: make release VERSION=v0.2.0
	@$(BIN)/release all -version "$(VERSION)" -registry "$(REGISTRY)" -dist "$(DIST)"

.PHONY: publish
publish: $(BIN)/release ## Push, sign and publish what is in dist; for the release workflow
	hack/publish.sh $(BIN)/release "$(DIST)" "$(VERSION)"

$(BIN)/release: $(wildcard release/*.go) release/go.mod release/go.sum
	cd release && go build -mod=readonly -trimpath -o $@ .

.PHONY: generate
generate: $(TOOLS)/controller-gen $(TOOLS)/kustomize ## Write everything that is generated
	hack/generate.sh
	hack/tidy.sh

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## Run the linters
	hack/lint.sh

.PHONY: tools
tools: $(TOOLS)/controller-gen $(TOOLS)/kustomize $(TOOLS)/helm $(TOOLS)/golangci-lint $(TOOLS)/actionlint ## Build the generators and linters

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(BIN) $(DIST)

$(TOOLS)/controller-gen: tools/go.mod tools/go.sum
	@hack/build-tool.sh $@ sigs.k8s.io/controller-tools/cmd/controller-gen

$(TOOLS)/golangci-lint: tools/go.mod tools/go.sum
	@hack/build-tool.sh $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# Modules of their own: what these need does not go together with what the others need.
$(TOOLS)/actionlint: tools/actionlint.mod tools/actionlint.sum
	@hack/build-tool.sh $@ github.com/rhysd/actionlint/cmd/actionlint -modfile=actionlint.mod

$(TOOLS)/promtool: tools/promtool.mod tools/promtool.sum
	@hack/build-tool.sh $@ github.com/prometheus/prometheus/cmd/promtool -modfile=promtool.mod -tags=remove_all_sd

$(TOOLS)/prometheus: tools/promtool.mod tools/promtool.sum
	@hack/build-tool.sh $@ github.com/prometheus/prometheus/cmd/prometheus -modfile=promtool.mod -tags=remove_all_sd

$(TOOLS)/kustomize: tools/go.mod tools/go.sum
	@hack/build-tool.sh $@ sigs.k8s.io/kustomize/kustomize/v5

$(TOOLS)/helm: tools/go.mod tools/go.sum
	@hack/build-tool.sh $@ helm.sh/helm/v3/cmd/helm

# Beside Helm 3, in the same module: they share most of what is compiled.
$(TOOLS)/helm4: tools/go.mod tools/go.sum
	@hack/build-tool.sh $@ helm.sh/helm/v4/cmd/helm
