package discovered_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/ambit-k8s/ambit/internal/discovered"
)

// group is an API group that serves resources, each by its plural, in some versions.
func group(name string, namespaced bool, versions []string, plurals ...string) *restmapper.APIGroupResources {
	out := &restmapper.APIGroupResources{
		Group: metav1.APIGroup{Name: name}, VersionedResources: map[string][]metav1.APIResource{},
	}

	for _, version := range versions {
		out.Group.Versions = append(out.Group.Versions, metav1.GroupVersionForDiscovery{Version: version})

		for _, plural := range plurals {
			singular := strings.TrimSuffix(plural, "s")
			out.VersionedResources[version] = append(out.VersionedResources[version], metav1.APIResource{
				Name: plural, SingularName: singular, Kind: strings.ToUpper(singular[:1]) + singular[1:], Namespaced: namespaced,
			})
		}
	}

	return out
}

// mappers are those of one API server. The order of its groups is that of a map, so it is another one in each process.
func mappers() []meta.RESTMapper {
	groups := []*restmapper.APIGroupResources{
		group("", true, []string{"v1"}, "pods", "secrets"),
		group("apps", true, []string{"v1"}, "deployments"),
		group("apps.example.com", false, []string{"v2", "v1"}, "deployments"),
		group("batch", true, []string{"v1"}, "jobs"),
		group("batch.volcano.sh", false, []string{"v1alpha1"}, "jobs", "queues"),
		group("metrics.k8s.io", false, []string{"v1beta1"}, "pods"),
		group("namespacescope.ibm.com", true, []string{"v1alpha1"}, "namespacescopes"),
		group("operator.ibm.com", true, []string{"v1"}, "namespacescopes"),
	}

	var out []meta.RESTMapper

	for range groups {
		groups = append(groups[1:], groups[0])
		out = append(out, restmapper.NewDiscoveryRESTMapper(groups))

		slices.Reverse(groups)
		out = append(out, restmapper.NewDiscoveryRESTMapper(groups))
		slices.Reverse(groups)
	}

	return out
}

// TestResolve: what is asked for by a name is the same in every run, and of the group that the name has.
func TestResolve(t *testing.T) {
	t.Parallel()

	for asked, want := range map[string]struct {
		group, path          string
		known, clusterScoped bool
		among                string
	}{
		"pods":                             {"", "pods", true, false, ""},
		"pod":                              {"", "pods", true, false, ""},
		"pods/log":                         {"", "pods/log", true, false, ""},
		"pod/exec":                         {"", "pods/exec", true, false, ""},
		"pods/*":                           {"", "pods/*", true, false, ""},
		"secrets/stripe":                   {"", "secrets/stripe", true, false, ""},
		"jobs.batch/status":                {"batch", "jobs/status", true, false, ""},
		"jobs.batch/finalizers":            {"batch", "jobs/finalizers", true, false, ""},
		"pods.metrics.k8s.io":              {"metrics.k8s.io", "pods", true, true, ""},
		"pods.metrics":                     {"metrics.k8s.io", "pods", true, true, ""},
		"deployments.apps":                 {"apps", "deployments", true, false, ""},
		"deployments.apps/scale":           {"apps", "deployments/scale", true, false, ""},
		"deployments.apps.example.com":     {"apps.example.com", "deployments", true, true, ""},
		"deployments":                      {among: "deployments.apps, deployments.apps.example.com"},
		"deployments.app":                  {among: "deployments.apps, deployments.apps.example.com"},
		"jobs.batch":                       {"batch", "jobs", true, false, ""},
		"queues":                           {"batch.volcano.sh", "queues", true, true, ""},
		"queues.batch":                     {"batch.volcano.sh", "queues", true, true, ""},
		"namespacescopes":                  {among: "namespacescopes.namespacescope.ibm.com, namespacescopes.operator.ibm.com"},
		"namespacescopes.operator.ibm.com": {"operator.ibm.com", "namespacescopes", true, false, ""},
		"secretes":                         {"", "secretes", false, false, ""},
		"po":                               {"", "po", false, false, ""},
		"things.example.com/status":        {"example.com", "things/status", false, false, ""},
		"*.*":                              {"*", "*", false, false, ""},
	} {
		for _, mapper := range mappers() {
			got, err := discovered.Resolve(mapper, asked)

			if want.among != "" {
				if !errors.Is(err, discovered.ErrAmbiguous) || !strings.Contains(err.Error(), want.among) {
					t.Errorf("%s: %v, %v; want an error that names %s", asked, got, err, want.among)
				}

				continue
			}

			if err != nil || got.Group != want.group || got.Path() != want.path || got.Known != want.known ||
				got.ClusterScoped != want.clusterScoped {
				t.Errorf("%s: %+v, %v; want %+v", asked, got, err, want)

				continue
			}

			// kubectl writes an object as RESOURCE/NAME.
			isObject := asked == "secrets/stripe"
			if noted := got.Note() != ""; noted != (!want.known && got.Resource != "*" || isObject) {
				t.Errorf("%s: the note is %q", asked, got.Note())
			}
		}
	}
}

// TestIsClusterScoped: it is asked of rules, and another group that serves the name says nothing about the one in the rule.
func TestIsClusterScoped(t *testing.T) {
	t.Parallel()

	for gr, want := range map[schema.GroupResource]struct{ is, known bool }{
		{Group: "batch", Resource: "jobs"}:                   {false, true},
		{Group: "batch.volcano.sh", Resource: "jobs"}:        {true, true},
		{Group: "batch", Resource: "queues"}:                 {},
		{Group: "apps", Resource: "deployments"}:             {false, true},
		{Group: "apps.example.com", Resource: "deployments"}: {true, true},
		{Resource: "queues"}:                                 {},
	} {
		for _, mapper := range mappers() {
			if is, known := discovered.IsClusterScoped(mapper, gr); is != want.is || known != want.known {
				t.Errorf("%s: %t, known %t; want %+v", gr, is, known, want)
			}
		}
	}
}
