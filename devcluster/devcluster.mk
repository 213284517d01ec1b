# The embedded Kubernetes. The root Makefile includes this file and sets BIN,
# the folder for programs.

DEVCLUSTER_SOURCE := $(CURDIR)/devcluster
DEVCLUSTER_MODULE := $(addprefix $(DEVCLUSTER_SOURCE)/,go.mod go.sum)
devcluster_go = $(shell find $(addprefix $(DEVCLUSTER_SOURCE)/,$(1)) -name '*.go' ! -name '*_test.go')

.PHONY: devcluster devcluster-k8s devcluster-test

devcluster: $(BIN)/devcluster devcluster-k8s ## Build the embedded Kubernetes and the program that runs it

# Small, and quick to build: it contains nothing of Kubernetes.
$(BIN)/devcluster: $(call devcluster_go,cmd/devcluster internal) $(DEVCLUSTER_MODULE)
	@mkdir -p $(BIN)
	cd $(DEVCLUSTER_SOURCE) && CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags '-s -w' -o $(abspath $@) ./cmd/devcluster
	@touch $@

devcluster-k8s: $(BIN)/k8s/.built ## Build Kubernetes itself from source (minutes the first time)

# The stamp is newer than everything it depends on, or the programs are built
# again; which takes seconds, unless a version in go.mod changed.
$(BIN)/k8s/.built: $(call devcluster_go,cmd/kubernetes cmd/kubectl cmd/kwok internal/english internal/lifeline) $(DEVCLUSTER_MODULE) $(DEVCLUSTER_SOURCE)/hack/build-k8s.sh
	@$(DEVCLUSTER_SOURCE)/hack/build-k8s.sh $(BIN)/k8s
	@touch $@

# Another minor version, from its own pinned modules: make bin/k8s-1.35/.built. It has the same kwok, which is a client.
$(BIN)/k8s-%/.built: $(DEVCLUSTER_SOURCE)/versions/%.mod $(DEVCLUSTER_SOURCE)/versions/%.sum $(BIN)/k8s/.built
	@$(DEVCLUSTER_SOURCE)/hack/build-k8s.sh $(@D) $*
	@ln -sf ../k8s/kwok $(@D)/kwok
	@touch $@

devcluster-test: $(BIN)/devcluster devcluster-k8s ## Test the embedded Kubernetes
	cd $(DEVCLUSTER_SOURCE) && DEVCLUSTER_BIN=$(BIN) CGO_ENABLED=0 go test -mod=readonly -vet=off -count=1 $$(go list ./... | grep -v -e /cmd/kubernetes -e /cmd/kubectl -e /cmd/kwok)
