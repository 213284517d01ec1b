package catalog_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// bundles is the folder of the bundles of real operators, which are no part of this repository.
func bundles(t *testing.T) string {
	t.Helper()

	dir := os.Getenv("AMBIT_BUNDLES")
	if dir == "" {
		dir = filepath.Join(embedded.Root(), "..", "shared", "bundles")
	}

	if _, err := os.Stat(dir); err != nil {
		t.Skipf("NOT TESTED: there are no bundles of real operators; AMBIT_BUNDLES names their folder (%v)", err)
	}

	return dir
}

func TestRealBundles(t *testing.T) {
	t.Parallel()

	var all []*catalog.Bundle

	dir := bundles(t)

	for name, want := range map[string]struct {
		version     string
		definitions int
	}{
		"etcd":             {"etcdoperator.v0.9.4", 3},
		"prometheus":       {"prometheusoperator.0.22.2", 4},
		"strimzi":          {"strimzi-cluster-operator.v0.12.2", 7},
		"cloudnative-pg":   {"cloudnative-pg.v1.25.1", 9},
		"grafana-operator": {"grafana-operator.v5.18.0", 11},
	} {
		b, err := catalog.ReadBundle(os.DirFS(filepath.Join(dir, name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		if b.Version.GetName() != want.version || len(b.Definitions) != want.definitions || len(b.Left) > 0 {
			t.Errorf("%s: read %s, %d definitions, and %v", name, b.Version.GetName(), len(b.Definitions), b.Left)
		}

		all = append(all, b)
	}

	data, err := catalog.Build(all)
	if err != nil {
		t.Fatal(err)
	}

	c := catalog.Parse(data)
	if len(c.Problems) > 0 {
		t.Errorf("the catalog of the bundles is not in order:\n%s", strings.Join(c.Problems, "\n"))
	}

	for _, b := range all {
		choice, err := c.Choose(&catalog.Request{Subscription: "s", Package: b.Package})
		if err != nil {
			t.Errorf("%s: %v", b.Package, err)

			continue
		}

		s := c.Steps(choice.Next, catalog.Origin{Package: b.Package, Namespace: "ns"})
		if len(s.Objects) != len(b.Definitions)+1 || len(s.Notes) > 0 {
			t.Errorf("%s: it has %d steps for %d definitions, and %v", b.Package, len(s.Objects), len(b.Definitions), s.Notes)
		}
	}
}

func TestBuild(t *testing.T) {
	t.Parallel()

	item := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.ReplaceAll(strings.Replace(text, "- ", "", 1), "\n  ", "\n"))}
	}
	read := func(dir fstest.MapFS) *catalog.Bundle {
		b, err := catalog.ReadBundle(dir)
		if err != nil {
			t.Fatal(err)
		}

		return b
	}

	first := read(fstest.MapFS{
		"manifests/a.csv.yaml": item(csv("a.v1", "1.0.0", "")), "manifests/crd.yaml": item(crd("as.example.com", "v1")),
		"manifests/service.yaml": {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: metrics}\n")},
		"manifests/README.md":    {Data: []byte("not YAML: [")},
	})
	second := read(fstest.MapFS{
		"manifests/a.csv.yaml": item(csv("a.v2", "2.0.0", "a.v1")),
		"metadata/annotations.yaml": {Data: []byte("annotations:\n  operators.operatorframework.io.bundle.package.v1: a\n" +
			"  operators.operatorframework.io.bundle.channels.v1: stable, fast\n" +
			"  operators.operatorframework.io.bundle.channel.default.v1: fast\n")},
	})

	if len(first.Left) != 1 || first.Left[0] != "Service metrics" {
		t.Errorf("left out: %v", first.Left)
	}

	data, err := catalog.Build([]*catalog.Bundle{first, second})
	if err != nil {
		t.Fatal(err)
	}

	golden(t, "built", data)

	for _, dir := range []fstest.MapFS{
		{},
		{"manifests/a.yaml": item(csv("a.v1", "1.0.0", "")), "manifests/b.yaml": item(csv("a.v2", "1.0.0", ""))},
		{"manifests/a.yaml": {Data: []byte("[")}},
	} {
		if _, err := catalog.ReadBundle(dir); err == nil {
			t.Errorf("a folder without exactly one version was read: %v", dir)
		}
	}
}

// TestBuildKeepsWhatYAMLMerges: a property may have the name by which YAML merges maps, and is a property of the catalog's
// definition, too.
func TestBuildKeepsWhatYAMLMerges(t *testing.T) {
	t.Parallel()

	definition := map[string]any{"kind": "CustomResourceDefinition", "properties": map[string]any{"<<": map[string]any{"type": "x"}}}

	data, err := catalog.Build([]*catalog.Bundle{{
		Package: "a", Definitions: []*unstructured.Unstructured{{Object: definition}}, Version: &unstructured.Unstructured{},
	}})
	if err != nil {
		t.Fatal(err)
	}

	var read []map[string]any
	if err := yaml.Unmarshal([]byte(data[catalog.KeyDefinitions]), &read); err != nil || !reflect.DeepEqual(read[0], definition) {
		t.Errorf("read as %v (%v):\n%s", read, err, data[catalog.KeyDefinitions])
	}
}
