package compile_test

import (
	"reflect"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWhoWrites: a scope that is manual writes as the account to which ambit authorize grants, unless it names one.
func TestWhoWrites(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		manual      bool
		named, want string
	}{
		"neither": {false, "", ""}, "named": {false, "writer", "writer"},
		"manual": {true, "", scope.ManualDelegate}, "manual and named": {true, "writer", "writer"},
	} {
		s := compile.NamespaceScope(scopeOf(operatorv1.NamespaceScopeSpec{ManualManagement: tc.manual, ServiceAccountName: tc.named}))
		if s.Delegate != tc.want || s.Manual != tc.manual {
			t.Errorf("%s: it writes as %q, manual %t", reason, s.Delegate, s.Manual)
		}
	}
}

// TestInjectors: as with IBM's operator, an injector that is given is on unless it says otherwise.
func TestInjectors(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		spec      operatorv1.NamespaceScopeSpec
		csvs      bool
		workloads *scope.WorkloadInjection
	}{
		"none": {},
		"on by being there": {
			operatorv1.NamespaceScopeSpec{CSVInjector: &operatorv1.Injector{}, WorkloadInjector: &operatorv1.WorkloadInjector{}}, true,
			&scope.WorkloadInjection{Variable: "WATCH_NAMESPACE"},
		},
		"on": {
			operatorv1.NamespaceScopeSpec{
				CSVInjector: &operatorv1.Injector{Enable: new(true)}, WorkloadInjector: &operatorv1.WorkloadInjector{Enable: new(true)},
			}, true, &scope.WorkloadInjection{Variable: "WATCH_NAMESPACE"},
		},
		"off": {
			spec: operatorv1.NamespaceScopeSpec{
				CSVInjector: &operatorv1.Injector{Enable: new(false)}, WorkloadInjector: &operatorv1.WorkloadInjector{Enable: new(false)},
			},
		},
		"in another way": {
			operatorv1.NamespaceScopeSpec{WorkloadInjector: &operatorv1.WorkloadInjector{
				Variable: new("NS"), Arguments: []string{"b", "a", "b"}, MountPath: "/list", Containers: []string{"b", "a", "b"},
				Conflicts: operatorv1.ReplaceConflicts,
			}}, false,
			&scope.WorkloadInjection{
				Variable: "NS", Arguments: []string{"b", "a", "b"}, MountPath: "/list", Containers: []string{"a", "b"}, Replace: true,
			},
		},
		"without a variable": {
			operatorv1.NamespaceScopeSpec{WorkloadInjector: &operatorv1.WorkloadInjector{Variable: new("")}}, false,
			&scope.WorkloadInjection{},
		},
	} {
		nss := scopeOf(tc.spec)
		if s := compile.NamespaceScope(nss); s.InjectCSVs != tc.csvs || !reflect.DeepEqual(s.InjectWorkloads, tc.workloads) {
			t.Errorf("%s: %t, %+v", reason, s.InjectCSVs, s.InjectWorkloads)
		}

		nss.DeletionTimestamp = new(metav1.Now())
		if s := compile.NamespaceScope(nss); s.InjectCSVs || s.InjectWorkloads != nil {
			t.Errorf("%s: a deleted scope takes back what was injected: %+v", reason, s)
		}
	}
}

// TestStatusIsEvidence: what the status last said survives the manager, which decides by it where to look.
func TestStatusIsEvidence(t *testing.T) {
	t.Parallel()

	at := func(seconds int64) metav1.Time { return metav1.NewTime(time.Unix(seconds, 0)) }
	nss := scopeOf(operatorv1.NamespaceScopeSpec{})
	nss.Generation, nss.ResourceVersion, nss.CreationTimestamp = 3, "17", at(5)
	nss.Status = operatorv1.NamespaceScopeStatus{
		ValidatedMembers: []string{"a", "b"}, FailedMembers: []operatorv1.FailedMember{{Namespace: "c"}, {Namespace: "d"}},
		FinishingMembers: []operatorv1.FinishingMember{{Namespace: "e", Since: at(10)}, {Namespace: "f", Since: at(20)}},
		FinishingSince:   new(at(30)),
	}

	s := compile.NamespaceScope(nss)
	if s.Generation != 3 || s.Version != 17 || s.Created.Unix() != 5 || !reflect.DeepEqual(s.Reported, []string{"a", "b"}) ||
		!reflect.DeepEqual(s.Failed, []string{"c", "d"}) || len(s.Finishing) != 2 || s.Finishing["e"].Unix() != 10 ||
		s.Finishing["f"].Unix() != 20 || s.FinishingSince.Unix() != 30 || s.Injected {
		t.Errorf("the status says %+v, and the scope %+v", nss.Status, s)
	}

	for reason, status := range map[string]operatorv1.NamespaceScopeStatus{
		"a CSV":       {PatchedCSVList: []string{"a"}},
		"a webhook":   {PatchedWebhookList: []string{"a"}},
		"maybe a CSV": {Conditions: []metav1.Condition{{Type: scope.ConditionCSVsInjected, Status: metav1.ConditionFalse}}},
	} {
		nss.Status = status
		if !compile.NamespaceScope(nss).Injected {
			t.Errorf("%s was injected into, and nobody looks", reason)
		}
	}

	nss.DeletionTimestamp = new(metav1.Time{})
	if s := compile.NamespaceScope(nss); !s.Deleting() {
		t.Error("a deletion without a time is one all the same")
	}

	nss.DeletionTimestamp = new(at(40))
	if s := compile.NamespaceScope(nss); s.Deleted.Unix() != 40 || s.WatchList != "namespace-scope" {
		t.Errorf("deleted at %v; the list %q goes with it", s.Deleted, s.WatchList)
	}
}

// TestListAndLabels: a scope uses the list and the labels that it names, and nothing besides.
func TestListAndLabels(t *testing.T) {
	t.Parallel()

	s := compile.NamespaceScope(scopeOf(operatorv1.NamespaceScopeSpec{
		ConfigmapName: "list", RestartLabels: map[string]operatorv1.LabelValue{"a": "b", "c": "d"}, AllowSubsetProjection: true,
	}))
	if s.WatchList != "list" || s.Operands.String() != "a=b,c=d" ||
		!reflect.DeepEqual(s.Labels, map[string]string{"a": "b", "c": "d"}) || !s.AllowSubset ||
		!s.Accounts.OfOperands || s.Accounts.All {
		t.Errorf("got %+v, operands %s", s, s.Operands)
	}
}

// TestLegacyMeansTheSame: a NamespaceScope of the legacy group is served as the other, but for its accounts: those that it lists,
// or all of its namespace.
func TestLegacyMeansTheSame(t *testing.T) {
	t.Parallel()

	meta := metav1.ObjectMeta{Namespace: "ops", Name: "s", Generation: 2}
	labels := map[string]operatorv1.LabelValue{"a": "b"}
	status := operatorv1.NamespaceScopeStatus{ValidatedMembers: []string{"a"}}
	same := compile.NamespaceScope(&operatorv1.NamespaceScope{
		ObjectMeta: meta, Status: status, Spec: operatorv1.NamespaceScopeSpec{
			NamespaceMembers: []string{"b", "a"}, ConfigmapName: "list", RestartLabels: labels, ManualManagement: true,
		},
	})

	for reason, tc := range map[string]struct {
		accounts []string
		want     scope.Accounts
	}{
		"all":    {nil, scope.Accounts{All: true}},
		"listed": {[]string{"y", "x", "y"}, scope.Accounts{Named: []string{"x", "y"}}},
	} {
		got := compile.LegacyNamespaceScope(&namespacescopev1alpha1.NamespaceScope{
			ObjectMeta: meta, Status: status, Spec: namespacescopev1alpha1.NamespaceScopeSpec{
				NamespaceMembers: []string{"b", "a"}, ConfigmapName: "list", RestartLabels: labels, ManualManagement: true,
				ProjectedServiceAccounts: tc.accounts,
			},
		})

		want := same
		want.Accounts = tc.want
		want.Owner.Group = "namespacescope.ibm.com"

		if got.Operands.String() != want.Operands.String() {
			t.Errorf("%s: the operands are %s, want %s", reason, got.Operands, want.Operands)
		}

		if got.Operands, want.Operands = nil, nil; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", reason, got, want)
		}
	}
}

// TestNamespaced: where nothing may be read cluster-wide, and no policy asks who wrote a scope, no labels are looked at, and
// nothing of somebody else's is written over. What was compiled before is not changed.
func TestNamespaced(t *testing.T) {
	t.Parallel()

	s := compile.NamespaceScope(scopeOf(operatorv1.NamespaceScopeSpec{
		NamespaceMembers: []string{"a"}, NamespaceSelector: &operatorv1.NamespaceSelector{Raw: []byte(`{"a":"b"}`)},
		WorkloadInjector: &operatorv1.WorkloadInjector{Conflicts: operatorv1.ReplaceConflicts, MountPath: "/list"},
	}))
	got := compile.Namespaced(s)

	if !got.Confined || got.Members.Selector != nil || got.Members.Problem == "" || len(got.Members.Named) != 1 ||
		got.InjectWorkloads.Replace || got.InjectWorkloads.MountPath != "/list" {
		t.Errorf("confined to its namespaces, it is %+v", got)
	}

	if s.Confined || s.Members.Selector == nil || !s.InjectWorkloads.Replace {
		t.Errorf("the scope itself became %+v", s)
	}

	if got := compile.Namespaced(scope.Scope{Members: scope.Members{Named: []string{"a"}}}); got.Members.Problem != "" {
		t.Errorf("without a selector there is no problem: %s", got.Members.Problem)
	}
}

// TestConfinedCSVs: where nothing cluster-scoped is made, the clusterPermissions of an operator are somebody else's to grant.
func TestConfinedCSVs(t *testing.T) {
	t.Parallel()

	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
	csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "op.v1"}}
	csv.Spec.InstallStrategy.StrategySpec.Permissions = []olm.StrategyDeploymentPermissions{{ServiceAccountName: "op", Rules: rules}}
	csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = csv.Spec.InstallStrategy.StrategySpec.Permissions

	for _, confined := range []bool{false, true} {
		s := compile.ClusterServiceVersion(csv, compile.Install{Targets: []string{"a"}, Confined: confined, Account: "installer"})
		if len(s.Roles) != 1 || (len(s.Defines) == 0) != confined || s.Members.Cluster == confined || s.Confined != confined ||
			s.Delegate != "installer" || !reflect.DeepEqual(s.Members.Named, []string{"a", "ops"}) {
			t.Errorf("confined %t: %+v", confined, s)
		}
	}
}

// TestTemplatesTogether: a template is referred to by instances that stay, and what is being deleted makes nothing.
func TestTemplatesTogether(t *testing.T) {
	t.Parallel()

	gone := new(metav1.Now())
	template := func(name string, deleted *metav1.Time) *operatorsv1alpha1.ScopeTemplate {
		out := templateOf(name, entriesOf("r-"))
		out.DeletionTimestamp = deleted
		out.Spec.ClusterRoles[0].Subjects = []operatorsv1alpha1.Subject{{Kind: "User", Name: "jane"}}

		return out
	}
	instance := func(of string, deleted *metav1.Time) *operatorsv1alpha1.ScopeInstance {
		return &operatorsv1alpha1.ScopeInstance{
			ObjectMeta: metav1.ObjectMeta{Name: "of-" + of, DeletionTimestamp: deleted},
			Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: of},
		}
	}
	lives, leaves, orphan := instance("used", nil), instance("left", gone), instance("gone", nil)
	all := compile.NewTemplates(
		[]*operatorsv1alpha1.ScopeTemplate{template("used", nil), template("left", nil), template("gone", gone)},
		[]*operatorsv1alpha1.ScopeInstance{lives, leaves, orphan})

	if len(all) != 2 || !all["used"].Scope.Members.Everywhere || all["left"].Scope.Members.Everywhere {
		t.Errorf("the ClusterRoles of a template are there while an instance refers to it: %+v", all)
	}

	if s, is := all.Instance(lives); !is || s.Template != all["used"].Scope.Owner || len(s.Binds) != 1 {
		t.Errorf("an instance binds what its template makes: %+v", s)
	}

	if s, is := all.Instance(leaves); is {
		t.Errorf("an instance that is being deleted binds %+v", s)
	}

	if s, is := all.Instance(orphan); !is || len(s.Binds) > 0 {
		t.Errorf("an instance without a template binds %+v", s)
	}
}
