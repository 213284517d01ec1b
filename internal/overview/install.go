package overview

import (
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Why an operator that runs does not serve a target of its group: it is told of it once it has its permissions there.
const (
	notAnnotated      = "NotInAnnotation"
	notAnnotatedWords = "the operator is not told of this target: it does not exist, is being deleted, or has not let " +
		"the operator in"
	nothingHeld      = "NoPermissions"
	nothingHeldWords = "the operator holds nothing in this target: the status of its OperatorGroup says why"
)

// OfInstall returns the services of a ClusterServiceVersion whose group has these targets, and the ClusterServiceVersion itself
// as what declares them. bindings are the ClusterRoleBindings of the accounts of its namespace, and lacks says of a target that
// it was read and that nothing was bound there: while no target is ready, the annotation names some all the same. The operator
// may work in the others that its annotation names; for the rest, its status says why not.
func OfInstall(
	csv *olm.ClusterServiceVersion, targets []string, bindings facts.ClusterBindings, lacks func(namespace string) bool,
) (Scope, []Service) {
	s := compile.ClusterServiceVersion(csv, compile.Install{Targets: targets})
	runs := csv.Status.Phase == olm.CSVPhaseSucceeded
	declared := Scope{
		Name: scope.KindCSV + " " + csv.Namespace + "/" + csv.Name, Group: olm.GroupName, Ready: "False",
		Reason: string(csv.Status.Reason), Message: csv.Status.Message, Owned: ownedBy(csv),
	}

	if runs {
		declared.Ready = "True"
	}

	if !s.Members.Everywhere {
		found := plan.ClusterWideOf(plan.Bound(&s), s.Owner, &facts.Facts{ClusterBindings: bindings})
		declared.ClusterWide = ClusterWideOf(found)

		if says := plan.SayClusterWide(found, bindings.More); says != "" {
			declared.Remarks = append(declared.Remarks, says)
		}
	}

	accounts := accountsOf(&s)
	out := make([]Service, 0, len(accounts))

	for _, account := range accounts {
		operator := Operator{Kind: rbacv1.ServiceAccountKind, Namespace: csv.Namespace, Name: account}

		for _, namespace := range placesOf(csv, &s) {
			one := Service{
				Operator: operator, Namespace: namespace, Scope: declared.Name, State: Served,
				Roles:   rolesOf(&s, account, namespace),
				Besides: namespace == Everywhere && !s.Members.Everywhere,
			}

			reason, words := unserved(csv, &one, lacks)

			switch {
			case namespace == csv.Namespace && !slices.Contains(targets, namespace):
				one.State = OwnNamespace
			case !runs || reason != "":
				one.State, one.Reason, one.Message = Failed, declared.Reason, declared.Message
				if runs {
					one.Reason, one.Message = reason, words
				}

				for i := range one.Roles {
					one.Roles[i].Missing = reason != ""
				}
			case len(one.Roles) == 0:
				one.State = Idle
			}

			out = append(out, one)
		}
	}

	return declared, out
}

// unserved says why an operator does not serve a target even if it runs; empty where it does.
func unserved(csv *olm.ClusterServiceVersion, in *Service, lacks func(namespace string) bool) (reason, words string) {
	switch {
	case in.Namespace == Everywhere:
		return "", ""
	case !isAnnotated(csv, in.Namespace):
		return notAnnotated, notAnnotatedWords
	case len(in.Roles) > 0 && lacks(in.Namespace):
		return nothingHeld, nothingHeldWords
	default:
		return "", ""
	}
}

// ownedBy are the custom resources that a ClusterServiceVersion brings, by the names of their definitions.
func ownedBy(csv *olm.ClusterServiceVersion) []string {
	out := collect.Map(csv.Spec.CustomResourceDefinitions.Owned, func(c olm.CRDDescription) string { return c.Name })
	slices.Sort(out)

	return slices.Compact(out)
}

// isAnnotated says whether the annotation of an operator names a namespace.
func isAnnotated(csv *olm.ClusterServiceVersion, namespace string) bool {
	value, found := csv.Annotations[operatorsv1.TargetsAnnotation]

	return found && (value == "" || slices.Contains(strings.Split(value, ","), namespace))
}

// placesOf are the namespaces of an install, and the whole cluster if it holds something there.
func placesOf(csv *olm.ClusterServiceVersion, s *scope.Scope) []string {
	if s.Members.Everywhere {
		return []string{Everywhere, csv.Namespace}
	}

	if s.Members.Cluster {
		return append([]string{Everywhere}, s.Members.Named...)
	}

	return s.Members.Named
}

func accountsOf(s *scope.Scope) []string {
	var out []string

	for i := range s.Binds {
		for _, subject := range s.Binds[i].Subjects {
			out = append(out, subject.Name)
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(out)))
}

func rolesOf(s *scope.Scope, account, namespace string) []Role {
	var out []Role

	for i := range s.Binds {
		b := &s.Binds[i]
		if b.Subjects[0].Name != account || b.Everywhere != (namespace == Everywhere) {
			continue
		}

		// The Roles that Ambit writes for it have names that nobody knows before, another one in each namespace.
		name := "cluster-wide permissions"
		if b.Local {
			name = "permissions"
		}

		out = append(out, Role{Name: name, Rules: b.Rules})
	}

	return out
}
