// Package served is "ambit operators", "ambit tree" and "ambit matrix": they read who is served where, and by which scope, and
// each shows it in another way.
package served

import (
	"context"
	"maps"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// declared are the resources that declare scopes, in the given namespace or in all.
func declared(ctx context.Context, v *reading.Cluster, o *reading.Options) ([]client.Object, error) {
	if err := o.FindManager(ctx, v); err != nil {
		return nil, err
	}

	if o.NamespaceGiven {
		return v.Resources(ctx, []string{o.Namespace}, false)
	}

	resources, err := v.Resources(ctx, nil, true)
	if err != nil || !v.MayNotListAllScopes() {
		return resources, err
	}

	// Whoever may not see all scopes may see those of the current namespace.
	more, err := v.Resources(ctx, []string{o.Namespace}, false)

	return append(resources, more...), err
}

// once reads the scopes and who they serve where, for a command that does nothing else.
func once(ctx context.Context, o *reading.Options) (*reading.Cluster, *overview.Overview, error) {
	return reading.Once(ctx, o, func(ctx context.Context, v *reading.Cluster) (*overview.Overview, error) {
		return Overview(ctx, v, o)
	})
}

// Overview reads the scopes of the given namespace, or of all, and who they serve where.
func Overview(ctx context.Context, v *reading.Cluster, o *reading.Options) (*overview.Overview, error) {
	resources, err := declared(ctx, v, o)
	if err != nil {
		return nil, err
	}

	namespace := ""
	if o.NamespaceGiven {
		namespace = o.Namespace
	}

	if err := v.Read(ctx, resources); err != nil {
		return nil, err
	}

	scopes, services, err := installsIn(ctx, v, namespace)
	if err != nil {
		return nil, err
	}

	return sumUp(v, append(scopes, abandoned(v, namespace, scopes)...), services), nil
}

// abandoned are the scopes that are gone without having cleaned up, of the given namespace or of all, and none of what is
// installed. Where the caller may not see all scopes, one that seems to be gone may only be out of sight.
func abandoned(v *reading.Cluster, namespace string, installed []overview.Scope) []overview.Scope {
	denied, operatorNamespaces := v.Denied(), v.OperatorNamespaces()
	for _, f := range v.Snapshot.Abandoned() {
		operatorNamespaces = append(operatorNamespaces, reading.OperatorNamespace{Key: f.Key, Facts: f})
	}

	var out []overview.Scope

	for _, h := range operatorNamespaces {
		if namespace != "" && namespace != h.Key.Namespace || reading.MayMiss(denied, h.Key.Family) {
			continue
		}

		p := plan.New(h.Scopes, h.Facts)
		for _, left := range report.OrphansOf(p.Orphans, h.Facts) {
			gone := orphaned(&left)
			if h.Key.Family != scope.Installs || left.Owner.Kind == scope.KindCSV && !hasScope(installed, gone.Name) {
				out = append(out, gone)
			}
		}
	}

	return out
}

func hasScope(scopes []overview.Scope, name string) bool {
	return slices.ContainsFunc(scopes, func(s overview.Scope) bool { return s.Name == name })
}

// orphaned is a scope that is gone without having cleaned up: nobody is served by it, and the permissions are there still.
func orphaned(left *report.Orphans) overview.Scope {
	out := overview.Scope{
		Name: reading.ScopeName(left.Owner), Group: left.Owner.Group,
		Ready: string(metav1.ConditionFalse), Reason: report.EventOrphansLeft,
		Message: left.Message(),
	}

	for _, namespace := range left.Namespaces {
		out.Failed = append(out.Failed, overview.FailedNamespace{
			Namespace: namespace, Reason: report.EventOrphansLeft, Message: left.MessageIn(namespace),
		})
	}

	return out
}

// installsIn are the operators that OperatorGroups of the given namespace serve, or of all.
func installsIn(ctx context.Context, v *reading.Cluster, namespace string) ([]overview.Scope, []overview.Service, error) {
	var groups operatorsv1.OperatorGroupList
	if _, err := v.Need(ctx, &groups, "operatorgroups", namespace); err != nil {
		return nil, nil, err
	}

	targets, named := map[string][]string{}, []string{}

	for i := range groups.Items {
		g := &groups.Items[i]
		targets[g.Namespace], named = g.Status.Namespaces, append(named, g.Status.Namespaces...)
	}

	if err := v.Bindings(ctx, v.Snapshot, withoutAll(named)); err != nil {
		return nil, nil, err
	}

	return installedAt(ctx, v, []string{namespace}, targets)
}

// withoutAll are namespaces, each once, without the empty name that stands for all.
func withoutAll(names []string) []string {
	slices.Sort(names)

	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == overview.Everywhere })
}

// Installed adds a ClusterServiceVersion and whom it serves, by the targets of each namespace's group; lacks says where
// nothing was bound for one. Of one that cannot be read nobody knows whom: its operators keep what they have.
func Installed(
	u *unstructured.Unstructured, targets map[string][]string, bindings func(scope.Key) facts.ClusterBindings,
	lacks func(csv scope.Owner, namespace string) bool, scopes []overview.Scope, services []overview.Service,
) (all []overview.Scope, by []overview.Service, isKnown bool) {
	if install.IsCopy(u) {
		return scopes, services, true
	}

	csv, err := install.Read(u)
	if err != nil {
		return append(scopes, unreadable(u, err)), services, false
	}

	declared, served := overview.OfInstall(csv, targets[csv.Namespace], bindings(scope.Installs.In(csv.Namespace)),
		func(namespace string) bool { return lacks(compile.CSVOwner(csv.Namespace, csv.Name), namespace) })

	return append(scopes, declared), append(services, served...), true
}

func unreadable(u *unstructured.Unstructured, why error) overview.Scope {
	const most = 300

	return overview.Scope{
		Name: CSVName(u), Group: olm.GroupName, Ready: string(metav1.ConditionFalse), Reason: report.ReasonInvalidSpec,
		Message: printable.Cut(why.Error(), most),
	}
}

// CSVName names a ClusterServiceVersion for users, as what declares where its operators work.
func CSVName(u *unstructured.Unstructured) string {
	return reading.ScopeName(scope.Owner{Kind: scope.KindCSV, Namespace: u.GetNamespace(), Name: u.GetName()})
}

// sumUp plans for every operator namespace, as the manager does, and adds who is served by its scopes to what is installed. If
// the caller may read too little to plan, the status of the scopes has to do.
func sumUp(v *reading.Cluster, scopes []overview.Scope, services []overview.Service) *overview.Overview {
	var existing []string

	for _, h := range v.OperatorNamespaces() {
		p := plan.New(h.Scopes, h.Facts)

		for i := range p.Scopes {
			s := &p.Scopes[i]
			of := scopeIn(v, s.Scope.Owner)
			status := statusOf(of)
			known := Seen(v, &h, status.why)

			scopes = append(scopes, summary(v, of, s, &status, known))
			services = append(services, overview.OfScope(s, reading.ScopeName(s.Scope.Owner), known)...)
		}

		existing = slices.AppendSeq(existing, maps.Keys(h.Facts.Namespaces))
	}

	slices.Sort(existing)

	return overview.New(scopes, services, slices.Compact(existing))
}

// Seen is what the caller could see of an operator namespace. why says why one of its scopes does not serve a namespace.
func Seen(v *reading.Cluster, h *reading.OperatorNamespace, why func(namespace string) overview.Reason) *overview.Known {
	return &overview.Known{
		OperatorNamespace:       h.Key.Namespace,
		OperatorNamespaceClosed: v.Snapshot.IsClosed(h.Key.Namespace) || isDenied(v, "serviceaccounts", h.Key.Namespace),
		Closed: func(namespace string) bool {
			return h.Key.Family == scope.Templates && isDenied(v, "clusterroles", "") ||
				h.Facts.Namespaces[namespace].Closed != "" ||
				namespace == overview.Everywhere && isDenied(v, "clusterrolebindings", "")
		},
		Hidden: v.Snapshot.IsHidden,
		Why:    why,
		Rules:  func(clusterRole string) []rbacv1.PolicyRule { return rulesOf(v, clusterRole) },
	}
}

func isDenied(v *reading.Cluster, resource, namespace string) bool {
	return v.IsDenied(snapshot.Denied{Verb: "list", Resource: resource, Namespace: namespace})
}

func scopeIn(v *reading.Cluster, owner scope.Owner) *predict.Scope {
	if i := slices.IndexFunc(v.Scopes, func(s predict.Scope) bool { return s.Owner == owner }); i >= 0 {
		return &v.Scopes[i]
	}

	return nil
}

// scopeStatus is what the status of a scope says.
type scopeStatus struct {
	ready  *metav1.Condition
	failed []operatorv1.FailedMember
}

func statusOf(s *predict.Scope) scopeStatus {
	if of := reading.StatusOf(s.Object); of != nil {
		return scopeStatus{meta.FindStatusCondition(of.Conditions, report.ConditionReady), of.FailedMembers}
	}

	switch obj := s.Object.(type) {
	case *operatorsv1alpha1.ScopeTemplate:
		return scopeStatus{meta.FindStatusCondition(obj.Status.Conditions, report.ConditionTemplated), nil}
	case *operatorsv1alpha1.ScopeInstance:
		return scopeStatus{
			meta.FindStatusCondition(obj.Status.Conditions, report.ConditionScoped), obj.Status.FailedNamespaces,
		}
	default:
		return scopeStatus{}
	}
}

func (s *scopeStatus) why(namespace string) overview.Reason {
	for i := range s.failed {
		if f := &s.failed[i]; f.Namespace == namespace {
			return overview.Reason{Reason: f.Reason, Message: f.Message}
		}
	}

	return overview.Reason{}
}

func summary(
	v *reading.Cluster, of *predict.Scope, s *plan.ScopePlan, status *scopeStatus, known *overview.Known,
) overview.Scope {
	out := overview.Scope{
		Name: reading.ScopeName(s.Scope.Owner), Group: s.Scope.Owner.Group, Ready: string(metav1.ConditionUnknown),
		Reason: "NoStatus", Message: "Ambit has not said anything about it yet; is it running?",
		Remarks: sureRemarks(v, s, known), NotRead: known.Unread(s), Empty: known.Empty(s),
		ClusterWide: overview.ClusterWideOf(s.ClusterWide),
	}

	if w := v.Settings.Writers(); !w.Serves(s.Scope.Key.Namespace) {
		out.Message = "nobody serves it: " + w.ServesOnly(s.Scope)
	}

	if c := status.ready; c != nil {
		out.Ready, out.Reason, out.Message = string(c.Status), c.Reason, c.Message

		if c.ObservedGeneration != of.Generation {
			out.Ready, out.Message = string(metav1.ConditionUnknown), "the status is not about the latest change yet: "+c.Message
		}
	}

	for i := range status.failed {
		f := &status.failed[i]
		out.Failed = append(out.Failed, overview.FailedNamespace{Namespace: f.Namespace, Reason: f.Reason, Message: f.Message})
	}

	for _, a := range s.Absent {
		if a.Closed == "" && status.why(a.Namespace).Reason == "" {
			reason, message := report.Absent(a)
			out.Failed = append(out.Failed, overview.FailedNamespace{Namespace: a.Namespace, Reason: reason, Message: message})
		}
	}

	return out
}

// sureRemarks are the remarks of the planner, without those that may only be due to what the caller may not read.
func sureRemarks(v *reading.Cluster, s *plan.ScopePlan, known *overview.Known) []string {
	sure := *s

	if known.OperatorNamespaceClosed {
		sure.MissingAccounts, sure.DanglingBindings = nil, nil
	}

	if isDenied(v, "namespaces", "") {
		sure.Selection.Asked = false
	}

	return reading.Remarks(v, &predict.ScopePrediction{ScopePlan: &sure})
}

// rulesOf are the rules of a ClusterRole, where they may be read.
func rulesOf(v *reading.Cluster, clusterRole string) []rbacv1.PolicyRule {
	key := facts.ProjectedKey{Kind: projected.ClusterRole, Name: clusterRole}
	if role, is := v.Snapshot.Live("", key).(*rbacv1.ClusterRole); is {
		return role.Rules
	}

	return nil
}
