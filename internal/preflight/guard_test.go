package preflight_test

import (
	"reflect"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// guardedObject is one of a resource, such as "operatorgroups.operators.coreos.com", with fields and their values.
func guardedObject(resource string, fields ...any) preflight.Object {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName("one")

	for i := 0; i < len(fields); i += 2 {
		path := strings.Split(fields[i].(string), ".")
		if err := unstructured.SetNestedField(obj.Object, fields[i+1], path...); err != nil {
			panic(err)
		}
	}

	gr := schema.ParseGroupResource(resource)

	return preflight.Object{Object: obj, Resource: gr, Namespaced: !strings.HasPrefix(resource, "scope")}
}

// TestGuardNeeds: what each policy of the guard asks of whoever writes an object is a right that is needed, where the cluster has
// the policy.
func TestGuardNeeds(t *testing.T) {
	t.Parallel()

	const (
		scopes, legacy = "namespacescopes.operator.ibm.com", "namespacescopes.namespacescope.ibm.com"
		groups, olm    = "operatorgroups.operators.coreos.com", "operators.coreos.com"
		account        = "spec.serviceAccountName"
		manual         = "spec.manualManagement"
		escalate       = "escalate clusterroles"
		all            = "ambit-delegate-identity ambit-delegate-identity-groups ambit-delegate-identity-operators " +
			"ambit-delegate-identity-catalogs ambit-own-identity ambit-own-identity-groups ambit-own-identity-operators " +
			"ambit-own-identity-catalogs ambit-cluster-scoped"
	)

	uses := func(name string) string { return "impersonate serviceaccounts named " + name }
	at := func(here, everywhere string) map[string]string {
		out := map[string]string{}

		if here != "" {
			out["a"] = here
		}

		if everywhere != "" {
			out[""] = everywhere
		}

		return out
	}

	instance, subscription := guardedObject("scopeinstances."+olm), guardedObject("subscriptions."+olm)
	catalog := guardedObject("configmaps", "data.clusterServiceVersions", "x")

	enough := []rbacv1.PolicyRule{rule("", "pods", "", "create"), rule(rbacv1.GroupName, "clusterroles", "", "escalate")}

	for name, tc := range map[string]struct {
		object    preflight.Object
		policies  string
		byDefault string
		indexed   string
		unknown   bool
		user      string
		live      scope.Object
		want      map[string]string
	}{
		"a scope with an account":   {object: guardedObject(scopes, account, "w"), policies: all, want: at(uses("w"), "")},
		"a manual scope":            {object: guardedObject(scopes, manual, true), policies: all, want: at(uses("ambit"), "")},
		"a legacy one":              {object: guardedObject(legacy, manual, true), policies: all, want: at(uses("ambit"), "")},
		"a scope without":           {object: guardedObject(scopes), policies: all, want: at("", escalate)},
		"by the default account":    {object: guardedObject(scopes), policies: all, byDefault: "d", want: at(uses("d"), "")},
		"without policies":          {object: guardedObject(scopes, account, "w"), want: at("", "")},
		"in the profile delegated":  {object: guardedObject(scopes), policies: "ambit-delegate-identity", want: at("", "")},
		"a group with an account":   {object: guardedObject(groups, account, "w"), policies: all, want: at(uses("w"), "")},
		"a group without":           {object: guardedObject(groups), policies: all, byDefault: "d", want: at("", escalate)},
		"a template":                {object: guardedObject("scopetemplates." + olm), policies: all, want: at("", escalate)},
		"an instance":               {object: instance, policies: all, want: at("", escalate)},
		"an instance, unguarded":    {object: instance, policies: "ambit-own-identity", want: at("", "")},
		"a ConfigMap":               {object: guardedObject("configmaps", "data.x", "y"), policies: all, want: at("", "")},
		"a catalog":                 {object: catalog, policies: all, indexed: "w", want: at(uses("w"), "")},
		"a catalog, of nobody":      {object: catalog, policies: all, want: at("impersonate serviceaccounts", escalate)},
		"a catalog, and who knows":  {object: catalog, policies: all, unknown: true, want: at("", "")},
		"a Subscription":            {object: subscription, policies: all, indexed: "w", want: at(uses("w"), "")},
		"a Subscription, of nobody": {object: subscription, policies: all, want: at("impersonate serviceaccounts", escalate)},
		"a Deployment":              {object: guardedObject("deployments.apps"), policies: all, want: at("", "")},
		"a scope that had none before": {
			object: guardedObject(scopes, account, "w"), policies: all, live: guardedObject(scopes).Object, want: at(uses("w"), escalate),
		},
		"a catalog, by the account": {
			object: catalog, policies: all, indexed: "w", user: "system:serviceaccount:a:w", want: at("", ""),
		},
		"a CatalogSource, of nobody, in the profile delegated": {
			object: guardedObject("catalogsources." + olm), policies: "ambit-delegate-identity-operators",
			want: at("impersonate serviceaccounts", ""),
		},
	} {
		g := preflight.Guard{
			InForce: map[string]string{}, User: tc.user,
			Account: func(string) (string, bool) { return tc.indexed, !tc.unknown },
			Live:    func(*preflight.Object, string) scope.Object { return tc.live },
		}
		for policy := range strings.FieldsSeq(tc.policies) {
			g.InForce[policy] = ""
			if policy == "ambit-delegate-identity" || policy == "ambit-own-identity" {
				g.InForce[policy] = tc.byDefault
			}
		}

		got := map[string]string{}
		for _, need := range g.Needs([]preflight.Object{tc.object}, []string{"a"}) {
			got[need.Namespace] = authority.Words(need.Missing(nil), 1<<20)

			if lacks := need.Missing(enough); len(lacks) > 0 {
				t.Errorf("%s: whoever may run pods, and escalate, lacks %v", name, lacks)
			}
		}

		if !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestGuardGoesByTheGroupOfTheFiles: what is installed in a namespace is installed as the account of the group that the files
// make there.
func TestGuardGoesByTheGroupOfTheFiles(t *testing.T) {
	t.Parallel()

	g := preflight.Guard{
		InForce: map[string]string{"ambit-delegate-identity-operators": "", "ambit-own-identity-operators": ""},
		Account: func(string) (string, bool) { return "", true },
	}
	objects := []preflight.Object{
		guardedObject("subscriptions.operators.coreos.com"),
		guardedObject("operatorgroups.operators.coreos.com", "spec.serviceAccountName", "w"),
	}

	needs := g.Needs(objects, []string{"a"})
	if len(needs) != 1 || authority.Words(needs[0].Missing(nil), 1<<20) != "impersonate serviceaccounts named w" {
		t.Errorf("got %+v", needs)
	}
}
