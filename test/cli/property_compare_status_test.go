package cli_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
)

// compareScopes holds the statuses of scopes against what is said of them.
func (p *promise) compareScopes(after *state, w *drawn) error {
	var errs []error

	for i := range p.data.Scopes {
		s := &p.data.Scopes[i]
		parts := strings.SplitN(s.Scope, "/", 3)
		is := after.objects[id{s.Group, parts[0], parts[1], parts[2]}]

		if is == nil || !w.has(parts[1], s.Scope) {
			continue // It is being deleted, or another world's.
		}

		switch parts[0] {
		case "NamespaceScope":
			errs = append(errs, w.compareScope(s, is))
		case "ScopeInstance":
			errs = append(errs, w.compareInstance(s, is))
		}
	}

	return errors.Join(errs...)
}

func (w *drawn) compareScope(s *cliplan.Scope, is *found) error {
	nss := &operatorv1.NamespaceScope{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(is.raw.Object, nss); err != nil {
		return err
	}

	var errs []error

	// A member in which a change is refused stays validated; a plan calls it failed.
	validated := slices.DeleteFunc(slices.Clone(nss.Status.ValidatedMembers), func(name string) bool {
		return slices.ContainsFunc(nss.Status.FailedMembers, func(m operatorv1.FailedMember) bool { return m.Namespace == name })
	})
	if !slices.Equal(s.Served, validated) {
		errs = append(errs, fmt.Errorf("%s serves: planned %q, is %q", s.Scope, s.Served, validated))
	}

	errs = append(errs, w.compareFailed(s, nss.Status.FailedMembers))

	ready := meta.FindStatusCondition(nss.Status.Conditions, "Ready")
	if ready == nil || nss.Status.ObservedGeneration != nss.Generation {
		errs = append(errs, fmt.Errorf("%s is not reported: %+v", s.Scope, nss.Status))
	}

	return errors.Join(errs...)
}

func (w *drawn) compareInstance(s *cliplan.Scope, is *found) error {
	instance := &operatorsv1alpha1.ScopeInstance{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(is.raw.Object, instance); err != nil {
		return err
	}

	scoped := meta.FindStatusCondition(instance.Status.Conditions, "Scoped")
	if scoped == nil || scoped.ObservedGeneration != instance.Generation {
		return fmt.Errorf("%s is not reported: %+v", s.Scope, instance.Status)
	}

	if err := w.compareFailed(s, instance.Status.FailedNamespaces); err != nil {
		return err
	}

	if served := slices.DeleteFunc(slices.Clone(s.Served), func(n string) bool { return n == "" }); len(served) !=
		int(instance.Status.BoundNamespaces) {
		return fmt.Errorf("%s serves: planned %q, is %+v", s.Scope, served, instance.Status)
	}

	return nil
}

// compareFailed holds the members that a plan calls failed against those that a status does.
func (w *drawn) compareFailed(s *cliplan.Scope, failedMembers []operatorv1.FailedMember) error {
	var planned, failed []string
	for _, m := range s.Failed {
		planned = append(planned, m.Namespace+": "+m.Reason+": "+m.Message)
	}

	for _, m := range failedMembers {
		failed = append(failed, m.Namespace+": "+m.Reason+": "+m.Message)
	}

	if !slices.Equal(w.lasting(planned), w.lasting(failed)) {
		return fmt.Errorf("%s fails: planned %q, is %q", s.Scope, planned, failed)
	}

	return nil
}

// lasting are the words about those members that are not being deleted: when the others are gone is the cluster's to say.
func (w *drawn) lasting(members []string) []string {
	return slices.DeleteFunc(slices.Clone(members), func(words string) bool {
		name, _, _ := strings.Cut(words, ": ")

		return w.isEnding(name)
	})
}

// compareInstalls holds the statuses of OLM's kinds against what is said of them.
func (p *promise) compareInstalls(after *state) error {
	var errs []error

	for i := range p.statuses {
		planned := &p.statuses[i]

		candidates := after.installs(planned)
		if len(candidates) == 0 {
			errs = append(errs, fmt.Errorf("%s %s/%s is not there", planned.Kind, planned.Namespace, planned.Name))

			continue
		}

		planned.Before = ""
		says := starred(value(planned))

		var others []string

		for _, is := range candidates {
			if now := starred(value(is)); !reflect.DeepEqual(says, now) {
				others = append(others, text(now))
			}
		}

		if len(others) == len(candidates) {
			errs = append(errs, fmt.Errorf("%s %s/%s:\n    planned %s\n    is      %s", planned.Kind, planned.Namespace, planned.Name,
				text(says), strings.Join(others, "\n    or      ")))
		}
	}

	return errors.Join(errs...)
}

// installs are what a plan may have spoken of. An InstallPlan that is new is called otherwise, and there may be others beside it.
func (s *state) installs(planned *cliplan.Install) []*cliplan.Install {
	var out []*cliplan.Install

	for of, f := range s.objects {
		if of.kind != planned.Kind || of.namespace != planned.Namespace {
			continue
		}

		is := cliplan.Status(f.raw)
		is.Before = ""

		switch {
		case of.name == planned.Name:
			return []*cliplan.Install{&is}
		case of.kind == "InstallPlan" && star(planned.Name) == star(of.name):
			out = append(out, &is)
		}
	}

	return out
}
