package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// installed holds the clusters on which this process has installed the definitions. Some definitions are large, so once is
// enough.
var installed sync.Map

// InstallCRDs applies every CustomResourceDefinition of config/crd and waits until the API server serves them. Any
// number of tests may do it at the same time.
func InstallCRDs(t testing.TB, cfg *rest.Config) {
	t.Helper()

	if _, done := installed.Load(cfg.Host); done {
		return
	}

	crds, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}

	discoverer, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	paths, err := filepath.Glob(filepath.Join(embedded.Root(), "config", "crd", "*_*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("looking for CustomResourceDefinitions in config/crd: found %d, %v", len(paths), err)
	}

	for _, path := range paths {
		crd, err := readObject(path)
		if err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}

		if err := install(ctx, crds.Resource(embedded.Definitions), discoverer, crd); err != nil {
			t.Fatalf("installing %s: %v", path, err)
		}
	}

	installed.Store(cfg.Host, nil)
}

func readObject(path string) (*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}

	object := &unstructured.Unstructured{}

	return object, yaml.Unmarshal(raw, &object.Object)
}

func install(
	ctx context.Context, crds dynamic.ResourceInterface, discoverer discovery.DiscoveryInterface, crd *unstructured.Unstructured,
) error {
	raw, err := json.Marshal(crd)
	if err != nil {
		return err
	}

	var last error

	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, last = crds.Patch(ctx, crd.GetName(), types.ApplyPatchType, raw, metav1.PatchOptions{
			FieldManager: "ambit-test", Force: new(true),
		})
		// Both mean that somebody else applies it at this moment.
		if apierrors.IsConflict(last) || apierrors.IsAlreadyExists(last) {
			return false, nil
		}

		return last == nil, last
	})
	if err != nil {
		return fmt.Errorf("applying: %w (%w)", err, last)
	}

	return waitUntilServed(ctx, discoverer, crd)
}

// waitUntilServed waits for discovery to name the resource. The condition Established comes before that, and clients that
// ask discovery, such as kubectl, fail in between.
func waitUntilServed(ctx context.Context, discoverer discovery.DiscoveryInterface, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")

	missing := map[string]bool{}

	for _, version := range versions {
		if v, _ := version.(map[string]any); v["served"] == true {
			missing[fmt.Sprintf("%s/%s", group, v["name"])] = true
		}
	}

	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
		_, lists, err := discoverer.ServerGroupsAndResources()
		if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
			return false, err
		}

		for _, list := range lists {
			for _, resource := range list.APIResources {
				if resource.Name == plural {
					delete(missing, list.GroupVersion)
				}
			}
		}

		return len(missing) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %v is served: %w", missing, err)
	}

	return nil
}
