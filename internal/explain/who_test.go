package explain_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
)

// everywhere is a binding of the whole cluster to a ClusterRole.
func everywhere(name, role string, subjects ...rbacv1.Subject) rbacv1.ClusterRoleBinding {
	return rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: role}, Subjects: subjects,
	}
}

func clusterRole(label string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{label: "true"}}, Rules: rules}
}

func getSecrets() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}
}

func pods() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
}

func listed(holders []explain.Entry) []string {
	out := make([]string, 0, len(holders))
	for i := range holders {
		h := &holders[i]
		out = append(out, strings.Join([]string{h.Kind, h.Namespace, h.Name, h.Right.Binding.Name}, " "))
	}

	return out
}

// TestWhoIsListed: everybody who may, sorted, wherever they are bound, and an account without a namespace where the API
// server sees one.
func TestWhoIsListed(t *testing.T) {
	t.Parallel()

	all := roles()
	all.Roles["r"].Rules = []rbacv1.PolicyRule{getSecrets()}
	all.ClusterRoles["reader"] = clusterRole("l", getSecrets())
	all.ClusterRoles["other"] = clusterRole("l", pods())

	q := explain.Question{Verb: "get", Resource: "secrets"}
	holders, unread, _ := explain.Who(&q, []rbacv1.RoleBinding{
		binding("b", nil, subject("User", "", "zoe"), subject("ServiceAccount", "", "beside"), subject("ServiceAccount", "ops", "op")),
		binding("a", nil, subject("User", "", "zoe"), subject("Group", "", "people")),
	}, []rbacv1.ClusterRoleBinding{
		everywhere("c", "reader", subject("User", "", "amy"), subject("ServiceAccount", "", "nobody")),
		everywhere("d", "other", subject("User", "", "bob")), everywhere("e", "closed", subject("User", "", "eve")),
	}, all)

	if got, want := listed(holders), []string{
		"Group  people a", "ServiceAccount m beside b", "ServiceAccount ops op b", "User  amy c", "User  zoe a", "User  zoe b",
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	for i := range holders {
		if h := &holders[i]; h.Right.Everywhere != (h.Name == "amy") {
			t.Errorf("%s holds the right everywhere: %t", h.Name, h.Right.Everywhere)
		}
	}

	if len(unread) != 1 || unread[0].Binding.Name != "e" {
		t.Errorf("what eve may do is unknown, and of nobody else: %v", unread)
	}

	q.ClusterScoped = true
	local := []rbacv1.RoleBinding{binding("b", nil, subject("User", "", "zoe"))}
	if holders, _, _ = explain.Who(&q, local, nil, all); len(holders) > 0 {
		t.Errorf("a RoleBinding gives nothing of the whole cluster, and %v", listed(holders))
	}
}

// TestAggregatedFrom: an aggregated ClusterRole is explained by those from which it takes what is asked, and by no others.
func TestAggregatedFrom(t *testing.T) {
	t.Parallel()

	gathers := clusterRole("a", getSecrets())
	gathers.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{"a": "true"}}, {MatchLabels: map[string]string{"b": "true"}},
		{MatchLabels: map[string]string{"not a label!": "true"}},
	}}
	all := &explain.Roles{
		Roles: map[string]*rbacv1.Role{"gathers": {Rules: []rbacv1.PolicyRule{getSecrets()}}},
		ClusterRoles: map[string]*rbacv1.ClusterRole{
			"gathers": gathers, "closed": nil, "two": clusterRole("b", getSecrets()), "one": clusterRole("a", getSecrets()),
			"of another rule":   clusterRole("a", pods()),
			"without the label": clusterRole("c", getSecrets()), "alone": clusterRole("c", getSecrets()),
		},
	}
	amy := subject("User", "", "amy")
	q := explain.Question{Verb: "get", Resource: "secrets"}

	for reason, tc := range map[string]struct {
		bound rbacv1.ClusterRoleBinding
		want  []string
	}{
		"aggregated": {everywhere("b", "gathers", amy), []string{"one", "two"}},
		"on its own": {everywhere("b", "alone", amy), nil},
	} {
		holders, _, _ := explain.Who(&q, nil, []rbacv1.ClusterRoleBinding{tc.bound}, all)
		if len(holders) != 1 || !slices.Equal(holders[0].Aggregated, tc.want) {
			t.Errorf("%s: %+v, want %v", reason, holders, tc.want)
		}
	}

	local := binding("b", nil, amy)
	local.RoleRef.Name = "gathers"

	if holders, _, _ := explain.Who(&q, []rbacv1.RoleBinding{local}, nil, all); len(holders) != 1 || holders[0].Aggregated != nil {
		t.Errorf("a Role of the same name is aggregated from nothing: %+v", holders)
	}

	if explain.Aggregates(nil)(map[string]string{"a": "true"}) {
		t.Error("without a rule nothing is taken")
	}
}

// TestRefOf: anybody who may write the object writes these annotations, so that only what can exist is a reference.
func TestRefOf(t *testing.T) {
	t.Parallel()

	for annotation, want := range map[string]bool{
		"NamespaceScope/ops/s": true, "ClusterServiceVersion/ops/s.v1": true, "OperatorGroup/ops/g": true, "Role/ops/r": true,
		"RoleBinding/ops/system:b": true, "ScopeTemplate//t": true, "ScopeInstance//i": true, "ClusterRole//r": true,
		"ClusterRoleBinding//b": true,

		"": false, "NamespaceScope": false, "Secret/ops/s": false, "Role//r": false, "Role/OPS/r": false, "Role/ops/": false,
		"Role/ops/..": false, "Role/ops/a%b": false, "ClusterRole/ops/r": false, "ScopeTemplate/ops/t": false, "Role/ops/a/b": false,
		"Role/ops\n/r": false,
	} {
		if _, is := explain.RefOf(annotation); is != want {
			t.Errorf("%q is a reference: %t", annotation, is)
		}
	}

	if ref := (explain.Ref{Kind: "ClusterRole", Name: "a, b"}); ref.String() != `ClusterRole "a, b"` {
		t.Errorf("a ClusterRole is in no namespace, and its name is one: %s", ref)
	}
}

// TestScopeOfBinding: marks count where Ambit's own label is beside them.
func TestScopeOfBinding(t *testing.T) {
	t.Parallel()

	b := binding("b", map[string]string{"ambit.dev/owner": "NamespaceScope/ops/s"}, subject("ServiceAccount", "ops", "op"))
	if of := explain.ScopeOf(&b, roles()); of == nil || of.String() != "NamespaceScope ops/s" {
		t.Errorf("it is of %v", of)
	}

	b.Labels = nil
	if of := explain.ScopeOf(&b, roles()); of != nil {
		t.Errorf("without the label it is of %v", of)
	}
}

// TestWhatARightIsOf: where the rules of a right come from, and why they are not known.
func TestWhatARightIsOf(t *testing.T) {
	t.Parallel()

	me := subject("ServiceAccount", "ops", "op")
	all := roles()
	all.Roles["unread"] = nil
	all.ClusterRoles["r"] = clusterRole("l", getSecrets())

	to := func(kind, name string) rbacv1.RoleBinding {
		b := binding("b", nil, me)
		b.RoleRef = rbacv1.RoleRef{Kind: kind, Name: name}

		return b
	}

	for reason, tc := range map[string]struct {
		binding rbacv1.RoleBinding
		role    string
		rules   int
		problem string
		unread  bool
	}{
		"a Role is in the namespace of its binding": {to("Role", "r"), "Role m/r", 2, "", false},
		"a ClusterRole is in none":                  {to("ClusterRole", "r"), "ClusterRole r", 1, "", false},
		"one that is not there":                     {to("Role", "gone"), "Role m/gone", 0, "the Role does not exist", false},
		"nor there":                                 {to("ClusterRole", "no"), "ClusterRole no", 0, "the ClusterRole does not", false},
		"one that may not be read":                  {to("Role", "unread"), "Role m/unread", 0, "you may not read the Role", true},
		"this one":                                  {to("ClusterRole", "closed"), "ClusterRole closed", 0, "you may not read", true},
	} {
		got := explain.Of(account, []rbacv1.RoleBinding{tc.binding}, nil, all)
		if len(got) != 1 {
			t.Fatalf("%s: %+v", reason, got)
		}

		r := &got[0]
		if r.Role.String() != tc.role || len(r.Rules) != tc.rules || r.Unread != tc.unread ||
			!strings.HasPrefix(r.Problem, tc.problem) || (r.Problem == "") != (tc.problem == "") {
			t.Errorf("%s: %+v", reason, r)
		}

		if text, err := json.Marshal(r); err != nil || strings.Contains(string(text), `"rules":null`) {
			t.Errorf("%s: scripts read a list: %s, %v", reason, text, err)
		}

		if r.Scope != nil || r.SourceRole != nil || r.Authorization != "" {
			t.Errorf("%s: Ambit did not make it: %+v", reason, r)
		}
	}

	granted := to("Role", "r")
	granted.Labels = map[string]string{"app.kubernetes.io/managed-by": "ambit-authorize"}
	granted.Annotations = map[string]string{"ambit.dev/authorized-use": "may do this"}

	if got := explain.Of(account, []rbacv1.RoleBinding{granted}, nil, all); got[0].Authorization != "may do this" || got[0].Marked ||
		got[0].Consent != got[0].Authorization {
		t.Errorf("an authorization says what it is for: %+v", got[0])
	}

	copied := binding("b", map[string]string{"ambit.dev/owner": "NamespaceScope/ops/s", "ambit.dev/source": "Role/ops/r"}, me)
	if got := explain.Of(account, []rbacv1.RoleBinding{copied}, nil, all); got[0].Scope == nil || got[0].SourceBinding != nil {
		t.Errorf("a binding is copied from a binding: %+v", got[0])
	}

	ofAll := binding("system:x", nil, subject("Group", "", "system:serviceaccounts"))
	if got := explain.Of(account, []rbacv1.RoleBinding{ofAll}, nil, all); got[0].IsEverybodys() {
		t.Errorf("what holds in one namespace is not everybody's: %+v", got[0])
	}

	granted.Labels = nil
	if got := explain.Of(account, []rbacv1.RoleBinding{granted}, nil, all); got[0].Authorization != "" {
		t.Errorf("a binding that ambit authorize did not write says %q", got[0].Authorization)
	}
}

// TestOrderOfRights: what is for a scope, what is in the namespace, what is everywhere, and last what everybody has.
func TestOrderOfRights(t *testing.T) {
	t.Parallel()

	me, all := subject("ServiceAccount", "ops", "op"), subject("Group", "", "system:serviceaccounts")
	got := explain.Of(account, []rbacv1.RoleBinding{
		binding("z", nil, me), binding("y", nil, me),
		binding("x", map[string]string{"ambit.dev/owner": "NamespaceScope/ops/s"}, me),
	}, []rbacv1.ClusterRoleBinding{
		everywhere("system:named", "r", me), everywhere("system:everybody", "r", all), everywhere("a", "r", all),
		everywhere("system:own", "r", subject("Group", "", "system:serviceaccounts:ops")),
	}, roles())

	names := make([]string, 0, len(got))
	for i := range got {
		names = append(names, got[i].Binding.Name)
	}

	if want := []string{"x", "y", "z", "a", "system:named", "system:own", "system:everybody"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}

// TestLastAuthor: the last who wrote what users decide, whoever wrote the rest.
func TestLastAuthor(t *testing.T) {
	t.Parallel()

	fields := func(text string) *metav1.FieldsV1 {
		f := &metav1.FieldsV1{}
		f.SetRawString(text)

		return f
	}
	at := func(seconds int64) *metav1.Time { return new(metav1.NewTime(time.Unix(seconds, 0))) }
	entry := func(manager string, when *metav1.Time, fields *metav1.FieldsV1) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: when, FieldsV1: fields}
	}
	spec := fields(`{"f:spec":{}}`)
	scaled := entry("scaler", at(30), spec)
	scaled.Subresource = "scale"

	for reason, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
		at      int64
	}{
		"the later one, listed last":  {[]metav1.ManagedFieldsEntry{entry("a", at(10), spec), entry("b", at(20), spec)}, "b", 20},
		"the later one, listed first": {[]metav1.ManagedFieldsEntry{entry("b", at(20), spec), entry("a", at(10), spec)}, "b", 20},
		"no time is no later":         {[]metav1.ManagedFieldsEntry{entry("b", at(20), spec), entry("a", nil, spec)}, "b", 20},
		"no time is a time, if alone": {[]metav1.ManagedFieldsEntry{entry("a", nil, spec)}, "a", 0},
		"not who wrote a subresource": {[]metav1.ManagedFieldsEntry{entry("a", at(10), spec), scaled}, "a", 10},
		"nor Ambit":                   {[]metav1.ManagedFieldsEntry{entry("a", at(10), spec), entry("ambit", at(20), spec)}, "a", 10},
		"nor who wrote labels": {
			[]metav1.ManagedFieldsEntry{entry("a", at(10), spec), entry("b", at(20), fields(`{"f:metadata":{"f:labels":{}}}`))}, "a", 10,
		},
		"nor who wrote nothing":    {[]metav1.ManagedFieldsEntry{entry("a", at(10), spec), entry("b", at(20), nil)}, "a", 10},
		"but who wrote rules":      {[]metav1.ManagedFieldsEntry{entry("a", at(10), fields(`{"f:rules":{}}`))}, "a", 10},
		"or whom a binding is for": {[]metav1.ManagedFieldsEntry{entry("a", at(10), fields(`{"f:subjects":{}}`))}, "a", 10},
		"or to what":               {[]metav1.ManagedFieldsEntry{entry("a", at(10), fields(`{"f:roleRef":{}}`))}, "a", 10},
	} {
		got := explain.AuthorOf(&metav1.ObjectMeta{ManagedFields: tc.entries})
		if got.String() != tc.want || (got.Time != nil) != (tc.at != 0) || got.Time != nil && got.Time.Unix() != tc.at {
			t.Errorf("%s: %+v", reason, got)
		}
	}

	for want, meta := range map[string]metav1.ObjectMeta{
		"Helm release web":        {Annotations: map[string]string{"meta.helm.sh/release-name": "web"}},
		"Argo CD application web": {Annotations: map[string]string{"argocd.argoproj.io/tracking-id": "web:apps/Deployment:ns/x"}},
		"Flux Kustomization web":  {Labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "web"}},
		"Flux HelmRelease web":    {Labels: map[string]string{"helm.toolkit.fluxcd.io/name": "web"}},
		`requested by "a, b"`:     {Annotations: map[string]string{"openshift.io/requester": "a, b"}},
	} {
		if got := explain.AuthorOf(&meta).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestQuestionInWords: a question is repeated as users may type it.
func TestQuestionInWords(t *testing.T) {
	t.Parallel()

	for want, q := range map[string]explain.Question{
		"get secrets":                    {Verb: "get", Resource: "secrets"},
		"get secrets one":                {Verb: "get", Resource: "secrets", Name: "one"},
		"patch deployments.apps/scale x": {Verb: "patch", Group: "apps", Resource: "deployments/scale", Name: "x"},
	} {
		if got := q.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestIneffective: what holds everywhere does give it, and a namespace of another group is no namespace.
func TestIneffective(t *testing.T) {
	t.Parallel()

	rule := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	rights := []explain.Right{
		{Binding: explain.Ref{Name: "a"}, Rules: []rbacv1.PolicyRule{rule}},
		{Binding: explain.Ref{Name: "b"}, Rules: []rbacv1.PolicyRule{rule}, Everywhere: true},
	}

	q := explain.Question{Verb: "get", Group: "example.com", Resource: "namespaces"}
	q.InNoNamespace("team-a")

	if got := explain.Ineffective(rights, &q); len(got) != 1 || got[0].Binding.Name != "a" {
		t.Errorf("%+v gives nothing", got)
	}

	q.ClusterScoped = false
	if got := explain.Ineffective(rights, &q); got != nil {
		t.Errorf("in a namespace all of it counts, and %v does not", got)
	}
}

// TestWhoMayByName: a rule that is limited to names gives nothing about any object, and something about these. A request that
// names no object is never about one of them.
func TestWhoMayByName(t *testing.T) {
	t.Parallel()

	all := roles() // The Role r gives one Secret, and everything of apps.
	all.ClusterRoles["two"] = clusterRole("l", pods(), rbacv1.PolicyRule{
		Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ResourceNames: []string{"two", "three"},
	})
	all.ClusterRoles["reader"] = clusterRole("l", getSecrets())

	local := []rbacv1.RoleBinding{binding("b", nil, subject("ServiceAccount", "", "beside"), subject("User", "", "zoe"))}
	cluster := []rbacv1.ClusterRoleBinding{
		everywhere("c", "two", subject("User", "", "amy"), subject("ServiceAccount", "", "nobody")),
		everywhere("d", "reader", subject("User", "", "bob")), everywhere("e", "closed", subject("User", "", "eve")),
	}

	for reason, tc := range map[string]struct {
		question explain.Question
		want     []string
	}{
		"one by a Role, some in the cluster": {
			explain.Question{Verb: "get", Resource: "secrets"}, []string{"ServiceAccount m beside b", "User  zoe b", "User  amy c"},
		},
		"some may whatever the name": {
			explain.Question{Verb: "get", Group: "apps", Resource: "deployments"}, []string{"User  amy c"},
		},
		"it is about a name":          {explain.Question{Verb: "get", Resource: "secrets", Name: "four"}, nil},
		"nothing is created by name":  {explain.Question{Verb: "create", Resource: "secrets"}, nil},
		"but a subresource is":        {explain.Question{Verb: "create", Resource: "pods/exec"}, []string{"User  amy c"}},
		"nor are all deleted by name": {explain.Question{Verb: "deletecollection", Resource: "secrets"}, nil},
		"a Role gives nothing in the cluster": {
			explain.Question{Verb: "get", Resource: "secrets", ClusterScoped: true}, []string{"User  amy c"},
		},
	} {
		_, _, byName := explain.Who(&tc.question, local, cluster, all)

		var got []string
		for _, of := range byName {
			got = append(got, listed(of)...)
		}

		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", reason, got, tc.want)
		}
	}
}

// TestWhoMayByTheEmptyName: for the API server, a request for all objects has the empty name, and a rule may be limited to that.
func TestWhoMayByTheEmptyName(t *testing.T) {
	t.Parallel()

	all := roles()
	all.Roles["r"].Rules = []rbacv1.PolicyRule{{
		Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"", "one"},
	}}

	for name, want := range map[string]bool{"": true, "one": true, "two": false} {
		q := explain.Question{Verb: "list", Resource: "secrets", Name: name}

		holders, _, byName := explain.Who(&q, []rbacv1.RoleBinding{binding("b", nil, subject("User", "", "zoe"))}, nil, all)
		if got := len(holders) > 0; got != want || len(byName) > 0 {
			t.Errorf("%s: is listed: %t, and is noted: %v", q.String(), got, byName)
		}
	}
}

// TestAlike: who may list or watch reads what is in objects, of the namespaces only where that is given in the whole cluster, and
// who may patch changes them.
func TestAlike(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		question explain.Question
		want     []explain.Question
	}{
		{explain.Question{Verb: "get", Resource: "secrets", Name: "a"}, []explain.Question{
			{Verb: "list", Resource: "secrets"}, {Verb: "list", Resource: "secrets", Name: "a"},
			{Verb: "watch", Resource: "secrets"}, {Verb: "watch", Resource: "secrets", Name: "a"},
		}},
		{explain.Question{Verb: "get", Resource: "namespaces"}, []explain.Question{
			{Verb: "list", Resource: "namespaces", ClusterScoped: true}, {Verb: "watch", Resource: "namespaces", ClusterScoped: true},
		}},
		{explain.Question{Verb: "update", Resource: "namespaces"}, []explain.Question{{Verb: "patch", Resource: "namespaces"}}},
		{explain.Question{Verb: "update", Resource: "pods/status", Name: "a"}, []explain.Question{
			{Verb: "patch", Resource: "pods/status", Name: "a"},
		}},
		{explain.Question{Verb: "delete", Resource: "pods"}, []explain.Question{{Verb: "deletecollection", Resource: "pods"}}},
		{explain.Question{Verb: "get", Resource: "pods/log"}, nil},
		{explain.Question{Verb: "list", Resource: "secrets"}, nil},
	} {
		if got, does := tc.question.Alike(); !slices.Equal(got, tc.want) || (does == "") != (tc.question.Verb == "list") {
			t.Errorf("%s: got %v, want %v; %q", tc.question.String(), got, tc.want, does)
		}
	}
}
