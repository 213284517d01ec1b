package api

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

func TestKustomizationNamesEveryCRD(t *testing.T) {
	dir := filepath.Join(testcluster.Root(), "config", "crd")

	raw, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(raw, &kustomization); err != nil {
		t.Fatal(err)
	}

	files, err := filepath.Glob(filepath.Join(dir, "*_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	if len(files) != len(kustomization.Resources) || len(files) == 0 {
		t.Errorf("the folder holds %d definitions, kustomization.yaml names %d", len(files), len(kustomization.Resources))
	}

	for _, file := range files {
		if !slices.Contains(kustomization.Resources, filepath.Base(file)) {
			t.Errorf("config/crd/kustomization.yaml leaves out %s: kubectl apply -k would not install it", filepath.Base(file))
		}
	}
}
