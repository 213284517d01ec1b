package preflight_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/preflight"
)

// policy is an admission policy, or a binding of one.
func policy(resource string, spec map[string]any) preflight.Object {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetName("one")

	return preflight.Object{Object: o, Resource: schema.GroupResource{Group: admissionv1.GroupName, Resource: resource}}
}

// TestTrustIsAttested: the API server takes trust anchors of a signer from those who may attest for it, or for all of its domain.
func TestTrustIsAttested(t *testing.T) {
	t.Parallel()

	attest := func(signer string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"signers"}, Verbs: []string{"attest"},
			ResourceNames: []string{signer},
		}
	}
	writes := rbacv1.PolicyRule{
		APIGroups: []string{"certificates.k8s.io"}, Resources: []string{"clustertrustbundles"},
		Verbs: []string{"create", "get", "patch"},
	}

	for name, tc := range map[string]struct {
		signer, holds string
		lacks         bool
	}{
		"of no signer":          {},
		"without the right":     {signer: "a.io/x", holds: "a.io/y", lacks: true},
		"the right":             {signer: "a.io/x", holds: "a.io/x"},
		"the domain":            {signer: "a.io/x", holds: "a.io/*"},
		"that of another group": {signer: "a.io/x", holds: "b.io/*", lacks: true},
	} {
		o := policy("clustertrustbundles", map[string]any{"signerName": tc.signer})
		o.Resource.Group = "certificates.k8s.io"

		needs := preflight.Needs([]preflight.Object{o}, nil, nil)
		missing := needs[0].Missing([]rbacv1.PolicyRule{writes, attest(tc.holds)})

		want := ""
		if tc.lacks {
			want = "attest signers named a.io/x of certificates.k8s.io"
		}

		if got := authority.Words(missing, 1<<20); got != want {
			t.Errorf("%s: lacks %q, want %q", name, got, want)
		}
	}
}

// TestParamsAreRead holds that whoever writes a policy has to be allowed to get all of its parameters, and whoever binds it
// those that the binding names; where the API server does not know which kind these are of, everything that they may be.
func TestParamsAreRead(t *testing.T) {
	t.Parallel()

	of := func(apiVersion, kind string) map[string]any {
		return map[string]any{"paramKind": map[string]any{"apiVersion": apiVersion, "kind": kind}}
	}
	named := map[string]any{"policyName": "one", "paramRef": map[string]any{"name": "list", "namespace": "ops"}}
	selected := map[string]any{"policyName": "one", "paramRef": map[string]any{"selector": map[string]any{}}}

	const vap, mutating = "validatingadmissionpolicies", "mutatingadmissionpolicies"

	for name, tc := range map[string]struct {
		objects []preflight.Object
		there   map[string]any
		want    string
	}{
		"without parameters":  {objects: []preflight.Object{policy(vap, map[string]any{})}},
		"a binding without":   {objects: []preflight.Object{policy("validatingadmissionpolicybindings", nil)}},
		"of a kind":           {objects: []preflight.Object{policy(vap, of("v1", "ConfigMap"))}, want: "in : get configmaps"},
		"of a kind, mutating": {objects: []preflight.Object{policy(mutating, of("v1", "ConfigMap"))}, want: "in : get configmaps"},
		"of an unknown kind":  {objects: []preflight.Object{policy(vap, of("a.io/v1", "A"))}, want: "in : get all resources of a.io"},
		"a binding": {
			objects: []preflight.Object{policy("validatingadmissionpolicybindings", named)}, there: of("v1", "ConfigMap"),
			want: "in ops: get configmaps named list",
		},
		"a binding beside its policy": {
			objects: []preflight.Object{policy("mutatingadmissionpolicybindings", selected), policy(mutating, of("v1", "ConfigMap"))},
			want:    "in : get, list configmaps",
		},
		"a binding of a policy that nobody knows": {
			objects: []preflight.Object{policy("validatingadmissionpolicybindings", named)},
			want:    "in ops: get all resources named list of all API groups",
		},
	} {
		p := &preflight.Params{
			Resource: func(gvk schema.GroupVersionKind) (schema.GroupResource, bool) {
				return schema.GroupResource{Resource: "configmaps"}, gvk.Kind == "ConfigMap"
			},
			Policy: func(schema.GroupResource, string) (map[string]any, bool) {
				return map[string]any{"spec": tc.there}, tc.there != nil
			},
		}

		var got []string
		for _, need := range p.Needs(tc.objects) {
			got = append(got, "in "+need.Namespace+": "+authority.Words(need.Missing(nil), 1<<20))
		}

		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
