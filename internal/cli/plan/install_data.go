package plan

import (
	"maps"
	"reflect"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// purposeInstall is the purpose of an object that an install brings, its Roles and bindings included.
const purposeInstall predict.Purpose = "install"

// Install is what the status of an object of OLM's kinds would say.
type Install struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Before is the phase now, and Phase that in the end; for a Subscription, its state.
	Before  string `json:"before,omitempty"`
	Phase   string `json:"phase,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Installed is what a Subscription has installed, and Targets the namespaces of a group; the empty name stands for all.
	Installed  string      `json:"installed,omitempty"`
	Targets    []string    `json:"targets,omitempty"`
	Conditions []Condition `json:"conditions,omitempty"`
	// Refused says that it fails in the end.
	Refused bool `json:"refused,omitempty"`
}

// Condition is a condition.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (p *Install) isAs(other *Install) bool {
	a, b := *p, *other
	a.Before, b.Before = "", ""

	return reflect.DeepEqual(a, b)
}

// Status is what the status of an object of OLM's kinds says; empty for an object that is not there.
func Status(u *unstructured.Unstructured) Install {
	if u == nil {
		return Install{}
	}

	var read struct {
		Status struct {
			Phase      string      `json:"phase"`
			State      string      `json:"state"`
			Reason     string      `json:"reason"`
			Message    string      `json:"message"`
			Installed  string      `json:"installedCSV"`
			Targets    []string    `json:"namespaces"`
			Conditions []Condition `json:"conditions"`
		} `json:"status"`
	}

	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &read) // What cannot be read says nothing.
	status := &read.Status

	out := Install{
		Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), Phase: status.Phase, Reason: status.Reason,
		Message: status.Message, Installed: status.Installed, Targets: status.Targets,
	}

	switch out.Kind {
	case olm.SubscriptionKind:
		out.Phase = status.State
	case scope.KindCSV: // Its conditions are its history, of which the last one repeats the status itself.
		status.Conditions = nil
	}

	out.Conditions = slices.Concat(status.Conditions) // None, where they are empty.
	out.Refused = out.Phase == string(olm.CSVPhaseFailed) || out.Phase == string(olm.InstallPlanPhaseFailed)

	return out
}

func (i *Installs) object(c *simulation.Change) Object {
	out := Object{
		Action: plan.Update, Purpose: purposeInstall, Kind: c.Key.Kind.Kind, Namespace: c.Key.Namespace, Name: i.nameOf(c.Key),
	}

	there := c.After

	switch {
	case c.Before == nil:
		out.Action = plan.Create
	case c.After == nil:
		out.Action, there = plan.Delete, c.Before
	}

	if owner := there.GetAnnotations()[scope.AnnotationOwner]; owner != "" {
		out.Scope, out.Source = owner, there.GetAnnotations()[scope.AnnotationSource]
	} else if refs := there.GetOwnerReferences(); len(refs) > 0 && out.Kind != scope.KindCSV {
		out.Scope = refs[0].Kind + "/" + c.Key.Namespace + "/" + refs[0].Name
		out.Source = out.Scope
	}

	return out
}

// diffInstalls shows every field of the objects that an install would write.
func (p *printer) diffInstalls(i *Installs) error {
	for _, c := range i.Changes {
		var texts [2]string

		for n, u := range []*unstructured.Unstructured{c.Before, c.After} {
			if u == nil {
				continue
			}

			u = i.Shown(u)
			delete(u.Object, "status")
			hideSecret(u)

			text, err := written(u)
			if err != nil {
				return err
			}

			texts[n] = text
		}

		p.diff(printable.Title(c.Key.Kind.Kind, c.Key.Namespace, i.nameOf(c.Key)), texts[0], texts[1])
	}

	return nil
}

// hideSecret takes out what a Secret keeps, also where kubectl wrote it down once more.
func hideSecret(u *unstructured.Unstructured) {
	if u.GetKind() != "Secret" {
		return
	}

	for _, field := range [][]string{{"data"}, {"stringData"}, {"metadata", "annotations"}} {
		kept, there, _ := unstructured.NestedMap(u.Object, field...)
		if !there {
			continue
		}

		for name := range kept {
			if field[0] != "metadata" || name == corev1.LastAppliedConfigAnnotation {
				kept[name] = "(hidden)"
			}
		}

		_ = unstructured.SetNestedMap(u.Object, kept, field...)
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
