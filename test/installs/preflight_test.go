package installs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

func (w *world) apply(manifest string) {
	w.Helper()

	path := filepath.Join(w.TempDir(), "manifest.yaml")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		w.Fatal(err)
	}

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", path); err != nil {
		w.Fatalf("%v: %s", err, out)
	}
}

// TestPreflightOfAnInstall: the command that a refused CSV names prints what grants exactly what is missing; with that, the
// install goes on by itself, and nothing more is asked for.
func TestPreflightOfAnInstall(t *testing.T) {
	beds.Together(t)

	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			own, target := w.Namespace("own"), w.Namespace("target")
			w.scoped(own, own, target)

			op := csv(own, "op.v1", clusterPermissions("get nodes"))
			w.Make(op)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "ambit preflight csv/op.v1 -n "+own)

			out, code := w.Ambit("preflight", "csv/op.v1", "-n", own)
			for _, words := range []string{
				"NAMESPACE", target, "get nodes", "get, list secrets", "create deployments of apps", "lacks permissions in 3 of 3 places",
				"Service account " + own + "/scoped",
			} {
				if code != 3 || !strings.Contains(out, words) {
					t.Fatalf("exit code %d, nothing of %q in %s", code, words, out)
				}
			}

			grants, code := w.Ambit("preflight", "csv/op.v1", "-n", own, "-o", "yaml")
			if code != 3 {
				t.Fatalf("exit code %d: %s", code, grants)
			}

			w.apply(grants)
			w.succeeds(op)
			w.May(own, "op", target, "list secrets")

			out, code = w.Ambit("preflight", "csv/op.v1", "-n", own)
			if code != 0 || !strings.Contains(out, "lacks nothing to install it") {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
}

// TestPreflightCountsWhatGoes: where Ambit takes nothing away as itself, the command names what the account may not delete yet.
// With what it prints a former target is left, and a version that was replaced goes.
func TestPreflightCountsWhatGoes(t *testing.T) {
	w := begin(t, "delegated")
	own, target := w.Namespace("own"), w.Namespace("target")
	g := w.scoped(own, own, target)
	older := csv(own, "op.v1")
	w.Make(older)

	grants := func(name string, words ...string) {
		w.Eventually("what is missing is named", func() error {
			out, code := w.Ambit("preflight", "csv/"+name, "-n", own)
			for _, word := range words {
				if code != 3 || !strings.Contains(out, word) {
					return fmt.Errorf("exit code %d, nothing of %q in %s", code, word, out)
				}
			}

			return nil
		})

		out, _ := w.Ambit("preflight", "csv/"+name, "-n", own, "-o", "yaml")
		w.apply(out)
	}

	grants("op.v1", "get, list secrets")
	w.succeeds(older)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{own} })
	w.becomes(older, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "error deleting rolebinding",
		"ambit preflight csv/op.v1 -n "+own)
	grants("op.v1", target, "delete rolebindings named op.v1-op-", "delete roles named op.v1-op-", "in 1 of 2 places")
	w.succeeds(older)
	w.MayNot(own, "op", target, "list secrets")

	newer := csv(own, "op.v2")
	newer.Spec.Replaces = "op.v1"
	w.Make(newer)
	grants("op.v2", "patch clusterserviceversions named op.v2", "delete clusterserviceversions named op.v1")
	w.succeeds(newer)
	w.gone(older)
}

// TestPreflightOfABundle asks before anything is in the cluster: neither a group nor the definitions.
func TestPreflightOfABundle(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.Make(testbed.Account(own, "scoped"))

	bundle := w.TempDir()
	manifests := filepath.Join(bundle, "manifests")
	crd := "unmades.g" + strings.ReplaceAll(own, "-", "") + ".example.com"
	op := csv("", "op.v1", owning(crd, "Unmade"))
	op.APIVersion, op.Kind = olm.SchemeGroupVersion.String(), "ClusterServiceVersion"

	text, err := yaml.Marshal(op)
	if err != nil {
		t.Fatal(err)
	}

	for path, content := range map[string]string{
		filepath.Join(manifests, "csv.yaml"): string(text),
		filepath.Join(manifests, "crd.yaml"): `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + crd + `}
spec:
  group: ` + crd[len("unmades."):] + `
  scope: Namespaced
  names: {plural: unmades, singular: unmade, kind: Unmade, listKind: UnmadeList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`,
		filepath.Join(bundle, "metadata", "annotations.yaml"): "annotations: {operators.operatorframework.io.bundle.package.v1: op}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	out, code := w.Ambit("preflight", "-f", bundle, "--service-account", own+"/scoped")
	for _, words := range []string{
		"create customresourcedefinitions of apiextensions.k8s.io", "create clusterserviceversions of operators.coreos.com",
		"get, list secrets",
	} {
		if code != 3 || !strings.Contains(out, words) {
			t.Fatalf("exit code %d, nothing of %q in %s", code, words, out)
		}
	}

	// What it prints is enough for the account to write all of it, and for Ambit to install as it.
	grants, _ := w.Ambit("preflight", "-f", bundle, "--service-account", own+"/scoped", "-o", "yaml")
	w.apply(grants)
	w.group(own, operatorsv1.OperatorGroupSpec{ServiceAccountName: "scoped", TargetNamespaces: []string{own}})

	tenant := w.As("system:serviceaccount:"+own+":scoped", "system:serviceaccounts", "system:serviceaccounts:"+own)
	op.Namespace = own

	w.Eventually("the account writes the CSV", func() error { return tenant.Create(t.Context(), op) })
	w.becomes(op, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet, crd)

	if out, err := w.Cluster.Kubectl(t.Context(), "create", "--as=system:serviceaccount:"+own+":scoped", "-f",
		filepath.Join(manifests, "crd.yaml")); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	w.succeeds(op)
}
