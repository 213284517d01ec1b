package predict_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func TestPredict(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason   string
		subset   bool
		lacks    []string
		list     string
		made     int
		refused  int
		restarts int
		failed   []string
		served   []string
	}{
		"everything": {
			"all members join, and the reader restarts although it did a moment ago",
			false, nil, "a,b,ops", 4, 0, 1, nil, []string{"a", "b", "ops"},
		},
		"one refused": {
			"what is refused in one namespace keeps it out of the list, and stops no other",
			false, []string{"a"}, "b,ops", 2, 2, 1, []string{"a"}, []string{"b", "ops"},
		},
		"subset": {
			"with allowSubsetProjection the list does not name it either where nothing is left that could be projected",
			true, []string{"a"}, "b,ops", 2, 2, 1, []string{"a"}, []string{"b", "ops"},
		},
		"no list": {
			"a list that may not be written restarts nobody, and nobody learns of the members",
			false, []string{"ops"}, "old,ops", 4, 0, 0, []string{"ops"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, "a", "b")
			w.scope.Spec.AllowSubsetProjection = tc.subset
			w.delegate(tc.lacks...)

			out := w.predict()

			if len(out.Lists) != 1 || out.Lists[0].After != tc.list {
				t.Errorf("%s: lists %+v", tc.reason, out.Lists)
			}

			made, refused := 0, 0

			for i := range out.Changes {
				if out.Changes[i].Refusal == nil {
					made++
				} else {
					refused++
				}
			}

			if made != tc.made || refused != tc.refused || len(out.Restarts) != tc.restarts {
				t.Errorf("%s: made %d, refused %d, restarts %+v", tc.reason, made, refused, out.Restarts)
			}

			if failed := failedIn(out); !reflect.DeepEqual(failed, tc.failed) || !reflect.DeepEqual(out.Scopes[0].Served, tc.served) {
				t.Errorf("%s: failed %v, served %v", tc.reason, failed, out.Scopes[0].Served)
			}

			if out.Refused() != (len(tc.lacks) > 0) {
				t.Errorf("%s: refused %v", tc.reason, out.Refused())
			}
		})
	}
}

// TestScopeThatCannotBeRead holds that nothing is predicted to be written for a scope that the manager cannot read.
func TestScopeThatCannotBeRead(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.scope.Spec.Unreadable = "json: cannot unmarshal number"

	out := w.predict()

	written := slices.ContainsFunc(out.Changes, func(c predict.Change) bool { return c.Refusal == nil }) ||
		slices.ContainsFunc(out.Lists, func(l predict.List) bool { return l.Refusal == nil })
	if written || len(out.Restarts) > 0 || !reflect.DeepEqual(failedIn(out), []string{"a"}) {
		t.Errorf("got %+v", out)
	}
}

func failedIn(p *predict.Prediction) []string {
	var out []string
	for _, m := range p.Scopes[0].Failed {
		out = append(out, m.Namespace)
	}

	return out
}

// TestNobodyIsServed holds that a namespace in which a template gives nobody anything does not count as served, as in the status.
func TestNobodyIsServed(t *testing.T) {
	t.Parallel()

	jane := []operatorsv1alpha1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane"}}

	for reason, tc := range map[string]struct {
		roles  []operatorsv1alpha1.ClusterRoleTemplate
		served []string
	}{
		"somebody gets something":     {[]operatorsv1alpha1.ClusterRoleTemplate{{GenerateName: "r-", Subjects: jane}}, []string{"a"}},
		"nobody gets the ClusterRole": {[]operatorsv1alpha1.ClusterRoleTemplate{{GenerateName: "r-"}}, nil},
		"there is no ClusterRole":     {nil, nil},
	} {
		w := newWorld(t, "a")
		w.key = scope.TemplatesKey()
		template, instance := &operatorsv1alpha1.ScopeTemplate{}, &operatorsv1alpha1.ScopeInstance{}
		template.Name, template.UID, instance.Name, instance.UID = "t", "6", "one", "7"
		template.Spec.ClusterRoles = tc.roles
		instance.Spec.ScopeTemplateName, instance.Spec.Namespaces = "t", []string{"a"}
		w.declared = []client.Object{instance, template}

		if out := w.predict(); !slices.Equal(out.Scopes[0].Served, tc.served) {
			t.Errorf("%s: served %v, want %v", reason, out.Scopes[0].Served, tc.served)
		}
	}
}

// TestUnreadMembersOfNoNamespace holds that members of a scope that belongs to no namespace are not called failed, nor served: no
// list and no status names those that are.
func TestUnreadMembersOfNoNamespace(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "named", "selected")
	w.closed = []string{"named", "selected"}
	w.labels("selected", labels.Set{"in": "yes"})
	w.key = scope.TemplatesKey()
	template, instance := &operatorsv1alpha1.ScopeTemplate{}, &operatorsv1alpha1.ScopeInstance{}
	template.Name, template.UID, instance.Name, instance.UID = "t", "6", "one", "7"
	template.Spec.ClusterRoles = []operatorsv1alpha1.ClusterRoleTemplate{{
		GenerateName: "r-", Rules: []rbacv1.PolicyRule{ruleOf("get", "", "secrets")},
		Subjects: []operatorsv1alpha1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane"}},
	}}
	instance.Spec.ScopeTemplateName, instance.Spec.Namespaces = "t", []string{"gone", "named"}
	instance.Spec.NamespaceSelector = &operatorv1.NamespaceSelector{Raw: []byte(`{"in": "yes"}`)}
	w.declared = []client.Object{instance, template}

	out := w.predict()
	got := &out.Scopes[0]

	if !reflect.DeepEqual(got.Unread, []string{"named", "selected"}) || len(got.Served) > 0 ||
		slices.ContainsFunc(out.Changes, func(c predict.Change) bool { return c.Namespace != "" }) ||
		len(got.Failed) != 1 || got.Failed[0].Namespace != "gone" {
		t.Errorf("unread %v, served %v, failed %v, changes %v", got.Unread, got.Served, got.Failed, out.Changes)
	}
}

func TestUnreadMembers(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason      string
		selected    bool
		list        string
		reported    []string
		after       string
		unread      []string
		failed      int
		restarts    int
		terminating bool
		leaves      bool
	}{
		"listed":   {reason: "one that is in the list stays there", list: "a,ops", unread: []string{"a"}},
		"selected": {reason: "however it became a member", selected: true, list: "a,ops", unread: []string{"a"}},
		"reported": {
			reason: "one that the status names goes into the list again",
			list:   "ops", reported: []string{"a", "ops"}, after: "a,ops", unread: []string{"a"}, restarts: 1,
		},
		"new": {reason: "of one that is new nothing can be told", list: "ops", failed: 1},
		"terminating": {
			reason: "one that is on its way out leaves", list: "a,ops", after: "ops", terminating: true, failed: 1, restarts: 1,
		},
		"leaving": {reason: "and so does one that is no member", list: "a,ops", after: "ops", leaves: true, restarts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := newWorld(t, "a")
			w.labels("a", labels.Set{"in": "yes"})
			w.listed(tc.list)
			w.closed = []string{"a"}
			w.terminating = tc.terminating
			w.scope.Status.ValidatedMembers = tc.reported

			if tc.selected {
				w.scope.Spec.NamespaceMembers = nil
				w.scope.Spec.NamespaceSelector = &operatorv1.NamespaceSelector{Raw: []byte(`{"in": "yes"}`)}
			}

			if tc.leaves {
				w.scope.Spec.NamespaceMembers = nil
			}

			// It is not for want of permissions that nothing is written there.
			w.delegate("a")

			out := w.predict()

			after := ""
			for i := range out.Lists {
				after = out.Lists[i].After
			}

			s := &out.Scopes[0]
			if after != tc.after || len(out.Changes) != 0 || len(s.Failed) != tc.failed || len(out.Restarts) != tc.restarts ||
				!reflect.DeepEqual(s.Unread, tc.unread) || !reflect.DeepEqual(s.Served, []string{"ops"}) || out.Refused() {
				t.Errorf("%s: %+v, unread %v, served %v, failed %v", tc.reason, out, s.Unread, s.Served, s.Failed)
			}
		})
	}
}

func TestNothingToPredict(t *testing.T) {
	t.Parallel()

	w := newWorld(t)
	w.listed("ops")

	if out := w.predict(); !out.Empty() || out.Refused() || len(out.Scopes[0].Served) != 1 {
		t.Errorf("got %+v", out)
	}
}

// TestArgumentsInBothForms: a flag means the same with its value in an argument of its own, wherever it stands, and booleans in
// all forms that the manager takes. Flags of a newer manager change nothing of the others.
func TestArgumentsInBothForms(t *testing.T) {
	t.Parallel()

	before := []string{"manager", "--leader-elect", "--metrics-bind-address", "--namespaces=evil", "--new", "value"}

	for name, forms := range map[string][][]string{
		"default-service-account": {{"--default-service-account=deputy"}, {"--default-service-account", "deputy"}},
		"namespaces": {
			{"--namespaces=a,b"}, {"--namespaces", "a,b"}, {"--namespaces", "a", "--namespaces=b"},
		},
		"operator-groups":  {{"--operator-groups=enabled"}, {"--operator-groups", "enabled"}},
		"olm-namespaces":   {{"--olm-namespaces=a,b"}, {"--olm-namespaces", "a", "--olm-namespaces", "b"}},
		"restart-interval": {{"--restart-interval=1m"}, {"--restart-interval", "60s"}},
		"follow-grace":     {{"--follow-grace=1m"}, {"--follow-grace", "1m"}},
		"finish-grace":     {{"--finish-grace=90s"}, {"--finish-grace", "90s"}},
		"require-service-account": {
			{"--require-service-account"}, {"--require-service-account=true"}, {"--require-service-account=1"},
			{"--require-service-account=T"}, {"--require-service-account=false", "--require-service-account"},
		},
	} {
		none, err := predict.ManagerOf("ambit-system", before)
		if err != nil || len(none.Namespaces) > 0 {
			t.Fatalf("got %+v, %v", none, err)
		}

		var want predict.Manager

		for i, form := range forms {
			got, err := predict.ManagerOf("ambit-system", slices.Concat(before, form, []string{"--default-scope", "false"}))
			if i == 0 {
				want = got
			}

			if err != nil || reflect.DeepEqual(got, none) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %q: got %+v, %v; want %+v", name, form, got, err, want)
			}
		}
	}

	if m, err := predict.ManagerOf("ambit-system", []string{"--require-service-account", "--finish-grace=soon"}); err == nil ||
		!m.NeedDelegate {
		t.Errorf("got %+v, %v", m, err)
	}
}

func TestManagerOf(t *testing.T) {
	t.Parallel()

	got, err := predict.ManagerOf("ambit-system", []string{
		"manager", "--leader-elect", "--namespaces=$(OPERATOR_NAMESPACE)", "--require-service-account", "--restart-interval=30s",
		"--default-service-account=writer", "--finish-grace=20s",
	})
	want := predict.Manager{
		Namespace: "ambit-system", DefaultDelegate: "writer", NeedDelegate: true, Namespaces: []string{"ambit-system"},
		RestartInterval: 30 * time.Second, FinishGrace: 20 * time.Second, FollowGrace: plan.DefaultFollowGrace,
		OperatorGroups: "auto", OLMNamespaces: []string{"olm", "openshift-operator-lifecycle-manager"},
	}

	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}

	named := &operatorv1.NamespaceScope{Spec: operatorv1.NamespaceScopeSpec{ServiceAccountName: "own"}}
	if s := got.Compile([]client.Object{named, &operatorv1.NamespaceScope{}}); s[0].Delegate != "own" || s[0].DelegateByDefault ||
		s[1].Delegate != "writer" || !s[1].DelegateByDefault {
		t.Errorf("got %+v", s)
	}
}
