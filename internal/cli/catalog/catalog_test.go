package catalog_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/cli"
)

func TestCatalog(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()

		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write("good/manifests/csv.yaml", "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n"+
		"metadata: {name: kettle.v1}\nspec: {version: 1.0.0}\n")
	write("good/manifests/service.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: metrics}\n")
	write("bad/manifests/csv.yaml", "[")
	write("strange/manifests/csv.yaml", "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n"+
		"metadata: {name: kettle.v2}\nspec: {version: the second}\n")

	run := func(args ...string) (code int, out, said string) {
		var o, e bytes.Buffer

		code = cli.Run(t.Context(), append([]string{"catalog"}, args...), &o, &e)

		return code, o.String(), e.String()
	}

	code, out, said := run("kettles", "-n", "ops", "-f", filepath.Join(dir, "good"), "--package", "tea", "--channel", "slow,fast")
	if code != cli.ExitDone || !strings.Contains(said, "Service metrics is left out") {
		t.Fatalf("exit %d: %s", code, said)
	}

	var cm corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(strings.Split(out, "\n---\n")[0]), &cm); err != nil || cm.Namespace != "ops" {
		t.Fatalf("%v: %s", err, out)
	}

	choice, err := catalog.Parse(cm.Data).Choose(&catalog.Request{Package: "tea"})
	if err != nil || choice.Channel != "slow" || choice.Next.Name != "kettle.v1" {
		t.Errorf("the catalog offers %+v, %v", choice, err)
	}

	if !strings.Contains(out, "kind: CatalogSource\n") || !strings.Contains(out, "sourceType: configmap\n") {
		t.Errorf("no CatalogSource in\n%s", out)
	}

	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		"no name":   {"a catalog has a name", []string{"-f", dir}, cli.ExitUsage, "takes the name"},
		"bad name":  {"which the API server accepts", []string{"A/b", "-f", dir}, cli.ExitUsage, "no name for a catalog"},
		"no bundle": {"and something in it", []string{"c"}, cli.ExitUsage, "with -f"},
		"no folder": {"which has to be a bundle", []string{"c", "-f", dir}, cli.ExitFailed, "there is no ClusterServiceVersion"},
		"nowhere":   {"which has to be there", []string{"c", "-f", dir + "/nowhere"}, cli.ExitFailed, "no such file"},
		"bad namespace": {
			"the API server accepts the namespace", []string{"c", "-n", "A_", "-f", dir}, cli.ExitUsage, "--namespace",
		},
		"bad package": {"it is in a label", []string{"c", "--package", "a b", "-f", dir}, cli.ExitUsage, "--package"},
		"no channel":  {"a channel has a name", []string{"c", "--channel", "a,", "-f", dir}, cli.ExitUsage, "--channel"},
		"unusable": {
			"a catalog from which nothing can be installed is no success", []string{"c", "-f", filepath.Join(dir, "strange")},
			cli.ExitFailed, "not usable: ",
		},
		"unreadable": {"that can be read", []string{"c", "-f", filepath.Join(dir, "bad")}, cli.ExitFailed, "csv.yaml"},
	} {
		if code, _, said := run(tc.args...); code != tc.code || !strings.Contains(said, tc.says) {
			t.Errorf("%s: %s: exit %d, %s", name, tc.reason, code, said)
		}
	}
}
