package installs_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestRealBundles installs operators as they were published, in each of the four ways, as far as each supports it; and with an
// account that is granted just what was said to be missing.
func TestRealBundles(t *testing.T) {
	beds.Together(t)

	dir := cmp.Or(os.Getenv("AMBIT_BUNDLES"), filepath.Join(embedded.Root(), "..", "shared", "bundles"))

	bundles, err := filepath.Glob(filepath.Join(dir, "*", "manifests", "csv.yaml"))
	if err != nil || len(bundles) == 0 {
		t.Skipf("NOT TESTED: there are no bundles in %s; set AMBIT_BUNDLES to a folder of <name>/manifests/csv.yaml", dir)
	}

	for _, path := range bundles {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(path))), func(t *testing.T) {
			w := begin(t, "cluster")
			w.makeCRDs(filepath.Dir(path))

			published := w.published(path)
			modes, err := olm.NewInstallModeSet(published.Spec.InstallModes)
			if err != nil {
				t.Fatal(err)
			}

			// One after the other: a group for all namespaces has something in common with every other.
			for mode, targets := range map[olm.InstallModeType]func(own, a string) []string{
				olm.InstallModeTypeOwnNamespace:    func(own, _ string) []string { return []string{own} },
				olm.InstallModeTypeSingleNamespace: func(_, a string) []string { return []string{a} },
				olm.InstallModeTypeMultiNamespace:  func(own, a string) []string { return []string{own, a} },
				olm.InstallModeTypeAllNamespaces:   func(string, string) []string { return nil },
			} {
				own, a := w.Namespace("own"), w.Namespace("a")
				g := w.group(own, operatorsv1.OperatorGroupSpec{TargetNamespaces: targets(own, a)})
				c := published.DeepCopy()
				c.Namespace = own
				w.Make(c)

				if !modes[mode] {
					w.becomes(c, olm.CSVPhaseFailed, olm.CSVReasonUnsupportedOperatorGroup, string(mode))
				} else {
					w.succeeds(c)
					w.checkRules(c, g.Spec.TargetNamespaces)
				}

				w.Remove(c)
				w.Remove(g)
			}

			if modes[olm.InstallModeTypeOwnNamespace] {
				w.grantedAsAsked(published)
			}
		})
	}
}

func (w *world) makeCRDs(dir string) {
	w.Helper()

	crds, err := filepath.Glob(filepath.Join(dir, "*.crd.yaml"))
	if err != nil || len(crds) == 0 {
		w.Fatalf("no definitions in %s: %v", dir, err)
	}

	for _, path := range crds {
		text, err := os.ReadFile(path)
		if err != nil {
			w.Fatal(err)
		}

		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			w.Fatalf("%s: %v", path, err)
		}

		w.Make(crd)
	}
}

// published reads a CSV as strictly as the API server would. The definitions that it replaces are not there.
func (w *world) published(path string) *olm.ClusterServiceVersion {
	w.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}

	c := &olm.ClusterServiceVersion{}
	if err := yaml.Unmarshal(text, c); err != nil {
		w.Fatal(err)
	}

	return c
}

// checkRules holds that each account of an operator has each rule of its permissions where it should.
func (w *world) checkRules(c *olm.ClusterServiceVersion, targets []string) {
	w.Helper()

	places := append([]string{c.Namespace}, targets...)
	if len(targets) == 0 {
		places = []string{""}
	}

	check := func(p olm.StrategyDeploymentPermissions, places []string) {
		for _, rule := range p.Rules {
			if len(rule.Resources) == 0 || len(rule.ResourceNames) > 0 {
				continue
			}

			resource, _, _ := strings.Cut(rule.Resources[0], "/")

			for _, namespace := range places {
				w.Eventually(p.ServiceAccountName+" may "+rule.Verbs[0]+" "+resource, func() error {
					if !w.AllowedIn(c.Namespace, p.ServiceAccountName, namespace, rule.Verbs[0], rule.APIGroups[0], rule.Resources[0]) {
						return errNot
					}

					return nil
				})
			}
		}
	}

	for _, p := range c.Spec.InstallStrategy.StrategySpec.Permissions {
		check(p, places)
	}

	for _, p := range c.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
		check(p, []string{""})
	}
}
