package compile

import (
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Templates are all ScopeTemplates by their names, as they are compiled together with all ScopeInstances. What is being deleted
// is not among them: the garbage collector removes what it made, and Ambit what is left of that.
type Templates map[string]*Template

// NewTemplates compiles templates; the instances say which of them are referred to.
func NewTemplates(templates []*operatorsv1alpha1.ScopeTemplate, instances []*operatorsv1alpha1.ScopeInstance) Templates {
	referred, out := map[string]bool{}, Templates{}

	for _, in := range instances {
		if in.DeletionTimestamp == nil {
			referred[in.Spec.ScopeTemplateName] = true
		}
	}

	for _, t := range templates {
		if t.DeletionTimestamp == nil {
			compiled := ScopeTemplate(t, referred[t.Name])
			out[t.Name] = &compiled
		}
	}

	return out
}

// Instance compiles an instance; false where it is being deleted.
func (t Templates) Instance(in *operatorsv1alpha1.ScopeInstance) (scope.Scope, bool) {
	if in.DeletionTimestamp != nil {
		return scope.Scope{}, false
	}

	return ScopeInstance(in, t[in.Spec.ScopeTemplateName]), true
}
