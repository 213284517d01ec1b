package preflight

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/rights"
)

// Params finds what admission policies have as parameters. Whoever writes a policy has to be allowed to get all objects of its
// paramKind, and whoever writes a binding to read those that its paramRef names
// (k8s.io/kubernetes/pkg/registry/admissionregistration, the authz.go of each kind).
type Params struct {
	// Resource is what the API server calls a kind, and Policy a policy of the cluster; false for what it does not have.
	Resource func(schema.GroupVersionKind) (schema.GroupResource, bool)
	Policy   func(what schema.GroupResource, name string) (content map[string]any, is bool)
}

const suffixBindings = "policybindings"

// Needs says what has to be allowed to be read by whoever writes objects. Those count as new ones: of a policy or a binding whose
// parameters stay the same, the API server asks nothing.
func (p *Params) Needs(objects []Object) []Need {
	n := &needs{at: map[string]*Need{}, objects: objects}

	for i := range objects {
		o := &objects[i]

		switch resource := o.Resource.Resource; {
		case o.Resource.Group != admissionv1.GroupName:
		case strings.HasSuffix(resource, "policies"):
			if of := contentOf(o.Object); has(of, "paramKind") {
				n.reads(Everywhere, p.kindOf(of), "", "get")
			}
		case strings.HasSuffix(resource, suffixBindings):
			p.add(n, o)
		}
	}

	return n.all()
}

func has(content map[string]any, field string) bool {
	value, is, _ := unstructured.NestedFieldNoCopy(content, "spec", field)

	return is && value != nil
}

// add adds what a binding refers to.
func (p *Params) add(n *needs, binding *Object) {
	content := contentOf(binding.Object)
	if !has(content, "paramRef") {
		return
	}

	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(content, append([]string{"spec"}, fields...)...)

		return value
	}

	verb, name := "get", text("paramRef", "name")
	if name == "" {
		verb = "list" // It selects by labels.
	}

	of := schema.GroupResource{
		Group: admissionv1.GroupName, Resource: strings.TrimSuffix(binding.Resource.Resource, suffixBindings) + "policies",
	}

	n.reads(text("paramRef", "namespace"), p.kindOf(p.policy(n.objects, of, text("policyName"))), name, verb)
}

// policy is a policy of the objects or of the cluster; nil for one that is in neither.
func (p *Params) policy(objects []Object, what schema.GroupResource, name string) map[string]any {
	for i := range objects {
		if objects[i].Resource == what && objects[i].GetName() == name {
			return contentOf(objects[i].Object)
		}
	}

	content, _ := p.Policy(what, name)

	return content
}

// kindOf is what the API server calls the parameters of a policy. Where it does not know, it asks for all that they may be.
func (p *Params) kindOf(policy map[string]any) schema.GroupResource {
	apiVersion, _, _ := unstructured.NestedString(policy, "spec", "paramKind", "apiVersion")
	kind, _, _ := unstructured.NestedString(policy, "spec", "paramKind", "kind")

	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || kind == "" {
		return schema.GroupResource{Group: rbacv1.APIGroupAll, Resource: rbacv1.ResourceAll}
	}

	if of, is := p.Resource(gv.WithKind(kind)); is {
		return of
	}

	return schema.GroupResource{Group: gv.Group, Resource: rbacv1.ResourceAll}
}

// reads adds the right to read something.
func (n *needs) reads(namespace string, what schema.GroupResource, name, verb string) {
	need := n.in(namespace)
	need.Rules = append(need.Rules, rights.To(what, name, verb))
}
