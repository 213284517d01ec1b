package catalog_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a value, as YAML, with a file in testdata.
func golden(t *testing.T, name string, value any) {
	t.Helper()

	got, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}

	path := filepath.Join("testdata", name+".yaml")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if string(got) != string(want) {
		t.Errorf("%s differs; look at it, and run the test with -update if it is right:\n%s", path, got)
	}
}

// csv is a ClusterServiceVersion in a catalog; lines follow in its spec.
func csv(name, version, replaces string, lines ...string) string {
	var out strings.Builder

	out.WriteString("- apiVersion: operators.coreos.com/v1alpha1\n  kind: ClusterServiceVersion\n" +
		"  metadata: {name: " + name + "}\n  spec:\n    version: " + version + "\n")

	if replaces != "" {
		out.WriteString("    replaces: " + replaces + "\n")
	}

	for _, l := range lines {
		out.WriteString("    " + l + "\n")
	}

	return out.String()
}

// crd is a CustomResourceDefinition in a catalog.
func crd(name string, versions ...string) string {
	plural, group, _ := strings.Cut(name, ".")

	var out strings.Builder

	out.WriteString("- apiVersion: apiextensions.k8s.io/v1\n  kind: CustomResourceDefinition\n  metadata: {name: " + name + "}\n" +
		"  spec:\n    group: " + group + "\n    scope: Namespaced\n    names: {plural: " + plural + ", kind: Kind}\n    versions:\n")

	for _, v := range versions {
		out.WriteString("    - {name: " + v + ", served: true, storage: true}\n")
	}

	return out.String()
}

// parse reads a catalog of packages, versions and definitions.
func parse(packages, versions, definitions string) *catalog.Catalog {
	return catalog.Parse(map[string]string{
		"packages": packages, "clusterServiceVersions": versions, "customResourceDefinitions": definitions,
	})
}

// etcd is a catalog with one package: three versions in the channel alpha, and two in beta.
func etcd() *catalog.Catalog {
	return parse(`
- packageName: etcd
  defaultChannel: alpha
  channels:
  - {name: alpha, currentCSV: etcd.v3}
  - {name: beta, currentCSV: etcd.v4}
`,
		csv("etcd.v1", "1.0.0", "")+csv("etcd.v2", "2.0.0", "etcd.v1")+csv("etcd.v3", "3.0.0", "etcd.v2")+
			csv("etcd.v4", "4.0.0", "etcd.v3", "skips: [etcd.v2]"), "")
}
