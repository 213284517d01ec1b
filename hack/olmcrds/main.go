// Command olmcrds writes the CustomResourceDefinitions of OLM's kinds into a folder: those of operator-framework/api, in the
// version that go.mod names, loosened where loosen.go says. hack/generate.sh runs it.
//
//	olmcrds FOLDER
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/operator-framework/api/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const header = "# From github.com/operator-framework/api, loosened by hack/olmcrds; written by hack/generate.sh.\n---\n"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "olmcrds:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: olmcrds FOLDER")
	}

	for _, d := range definitions() {
		text, err := write(d)
		if err != nil {
			return fmt.Errorf("writing %s: %w", d.Name, err)
		}

		path := filepath.Join(args[0], d.Spec.Group+"_"+d.Spec.Names.Plural+".yaml")
		//nolint:gosec // Like everything else in the repository.
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", d.Name, err)
		}
	}

	return nil
}

// definitions returns the CustomResourceDefinitions of OLM's kinds that Ambit serves, loosened.
func definitions() []*apiextensionsv1.CustomResourceDefinition {
	groups, csvs, subscriptions := crds.OperatorGroup(), crds.ClusterServiceVersion(), crds.Subscription()
	plans, catalogs := crds.InstallPlan(), crds.CatalogSource()

	loosenGroups(groups)
	loosenCSVs(csvs)
	loosenSubscriptions(subscriptions)
	loosenPlans(plans)
	loosenCatalogs(catalogs)

	return []*apiextensionsv1.CustomResourceDefinition{groups, csvs, subscriptions, plans, catalogs}
}

// write returns a definition as a file. Its status is the API server's to write.
func write(d *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return nil, fmt.Errorf("converting: %w", err)
	}

	delete(object, "status")

	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}

	return append([]byte(header), text...), nil
}
