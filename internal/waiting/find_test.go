package waiting_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

// widgets is one object of a list, with its finalizers.
func widget(name string, deleted bool, finalizers ...string) string {
	deletion := ""
	if deleted {
		deletion = `"deletionTimestamp":"2026-01-01T00:00:00Z",`
	}

	return fmt.Sprintf(`{"metadata":{"name":%q,%s"finalizers":["%s"]}}`, name, deletion, strings.Join(finalizers, `","`))
}

func widgets(items ...string) string { return `{"items":[` + strings.Join(items, ",") + `]}` }

// discovered are the kinds of a group, each with the verbs that it has: "widgets list,patch".
func discovered(group, scope string, resources ...string) string {
	out := make([]string, 0, len(resources))

	for _, r := range resources {
		name, verbs, _ := strings.Cut(r, " ")
		out = append(out, fmt.Sprintf(`{"resource":%q,"scope":%q,"responseKind":{"group":%q,"version":"v1","kind":"K"},"verbs":["%s"],
			"subresources":[{"subresource":"status","responseKind":{"group":%q,"version":"v1","kind":"K"},"verbs":["list"]}]}`,
			name, scope, group, strings.ReplaceAll(verbs, ",", `","`), group))
	}

	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[%s]}]}`, group, strings.Join(out, ","))
}

// cluster is an API server that gives answers by path, and keeps who listed what.
type cluster struct {
	groups  []string
	answers map[string]string
	// status is that of an answer, if it is not 200.
	status map[string]int

	mu    sync.Mutex
	lists []string
}

func (c *cluster) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()

	c.mu.Lock()
	defer c.mu.Unlock()

	switch path := r.URL.Path; {
	case path == kinds:
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprintf(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[%s]}`,
			strings.Join(c.groups, ","))
	case path == "/api":
		http.NotFound(w, r)
	case c.status[path] != 0:
		c.lists = append(c.lists, path)
		http.Error(w, "no", c.status[path])
	default:
		c.lists = append(c.lists, strings.TrimSpace(path+" "+r.Header.Get("Impersonate-User")))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, c.answers[path])
	}

	return w.Result(), nil
}

// config reaches the cluster as fast as it answers.
func (c *cluster) config() *rest.Config {
	return &rest.Config{Host: "http://example.com", Transport: c, QPS: -1}
}

func (c *cluster) find(t *testing.T, q *waiting.Question) (facts.Waiting, bool) {
	t.Helper()

	answers, _ := waiting.New(c.config()).Find(t.Context(), []waiting.Question{*q})
	w, answered := answers[0]

	slices.Sort(c.lists)

	return w, answered
}

func mayWork(account string, resources ...string) plan.Grant {
	return plan.Grant{Accounts: []string{account}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"example.com"}, Resources: resources, Verbs: []string{"list", "patch"}},
	}}
}

func asked(grants ...plan.Grant) *waiting.Question {
	return &waiting.Question{Namespace: "a", Grants: grants, As: func(account string) string { return "as-" + account }}
}

// TestWhatWaits: an object waits for a finalizer of an operator once it is deleted, and all objects of a namespace that ends do.
func TestWhatWaits(t *testing.T) {
	t.Parallel()

	const foreground, orphan = "foregroundDeletion", "orphan"

	answer := widgets(
		widget("z", true, "example.com/f"), widget("b", true, foreground, "example.com/f"), widget("alive", false, "example.com/f"),
		widget("collected", true, foreground), widget("orphaned", true, orphan), `{"metadata":{"name":"free"}}`)
	many := make([]string, 0, 7)

	for i := range 7 {
		many = append(many, widget(fmt.Sprint("w", 6-i), true, "example.com/f"), widget(fmt.Sprint("k", 6-i), false, "example.com/f"))
	}

	for reason, tc := range map[string]struct {
		answer        string
		status        int
		ending        bool
		objects, kept []string
		count         int
		unseen        string
	}{
		"of a namespace that stays": {
			answer: answer, objects: []string{"b", "z"}, kept: []string{"alive"}, count: 2,
		},
		"of one that ends": {answer: answer, ending: true, objects: []string{"alive", "b", "z"}, count: 3},
		"five are named, and all are counted": {
			answer: widgets(many...), count: 7,
			objects: []string{"w0", "w1", "w2", "w3", "w4"}, kept: []string{"k0", "k1", "k2", "k3", "k4"},
		},
		"there is more": {
			answer:  `{"metadata":{"continue":"x"},` + widgets(widget("z", true, "f"))[1:],
			objects: []string{"z"}, count: 1, unseen: "of widgets.example.com, no more than 500 are looked at",
		},
		"the answer is too long": {
			answer: widgets(`{"metadata":{"name":"` + strings.Repeat("x", 4<<20) + `"}}`),
			unseen: "of widgets.example.com, no more than 500 are looked at",
		},
		"the kind is gone":                         {status: http.StatusNotFound},
		"nothing can be listed of it":              {status: http.StatusMethodNotAllowed},
		"nobody is known by that token":            {status: http.StatusUnauthorized, unseen: "widgets.example.com cannot be listed"},
		"what is not there does not wait, or will": {answer: widgets()},
	} {
		c := &cluster{
			groups:  []string{discovered("example.com", "Namespaced", "widgets list,patch")},
			answers: map[string]string{list: tc.answer}, status: map[string]int{list: tc.status},
		}
		q := asked(mayWork("op", "widgets"))
		q.Ending = tc.ending
		w, answered := c.find(t, q)

		named := func(names []string) []string {
			out := make([]string, 0, len(names))
			for _, name := range names {
				out = append(out, "widgets.example.com "+name)
			}

			return out
		}

		if !answered || !slices.Equal(w.Objects, named(tc.objects)) || w.Count != tc.count || !slices.Equal(w.Kept, named(tc.kept)) ||
			w.Unseen != tc.unseen {
			t.Errorf("%s: %+v", reason, w)
		}

		if w.KeptCount < len(w.Kept) || reason == "five are named, and all are counted" && w.KeptCount != tc.count {
			t.Errorf("%s: %d are kept", reason, w.KeptCount)
		}
	}
}

// TestWhoListsWhat: only custom resources are listed that somebody may list and change, once, by the first who may.
func TestWhoListsWhat(t *testing.T) {
	t.Parallel()

	rule := func(resource, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{"example.com"}, Resources: []string{resource}, Verbs: strings.Split(verbs, ","), ResourceNames: names,
		}
	}
	holds := func(account string, rules ...rbacv1.PolicyRule) plan.Grant {
		return plan.Grant{Accounts: []string{account}, Rules: rules}
	}
	everything := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	mayPatch := holds("op", rule("*", "patch"))
	byOp := []string{list + " as-op"}
	gadgets := strings.ReplaceAll(list, "widgets", "gadgets")

	for reason, tc := range map[string]struct {
		grants []plan.Grant
		want   []string
	}{
		"list and patch":                 {[]plan.Grant{holds("op", rule("widgets", "list,patch"))}, byOp},
		"or update":                      {[]plan.Grant{holds("op", rule("widgets", "list,update"))}, byOp},
		"by two rules":                   {[]plan.Grant{holds("op", rule("widgets", "list"), rule("widgets", "patch"))}, byOp},
		"of two grants":                  {[]plan.Grant{holds("op", rule("widgets", "list")), mayPatch}, byOp},
		"of two accounts is of neither":  {[]plan.Grant{holds("op", rule("*", "list")), holds("b", rule("*", "patch"))}, nil},
		"who only reads takes none off":  {[]plan.Grant{holds("op", rule("widgets", "get,list,watch"))}, nil},
		"who only writes sees none":      {[]plan.Grant{holds("op", rule("widgets", "get,patch,update"))}, nil},
		"who sees one by name sees none": {[]plan.Grant{holds("op", rule("widgets", "list,patch", "one"))}, nil},
		"the empty name is that of all": {
			[]plan.Grant{holds("op", rule("widgets", "list", "one", ""), rule("widgets", "patch"))}, byOp,
		},
		"but of none to change": {[]plan.Grant{holds("op", rule("widgets", "list"), rule("widgets", "patch", ""))}, nil},
		"another resource":      {[]plan.Grant{holds("op", rule("others", "list,patch"))}, nil},
		"each by who may": {
			[]plan.Grant{holds("a", rule("gadgets", "*")), holds("b", rule("widgets", "*"))}, []string{gadgets + " as-a", list + " as-b"},
		},
		"once":                      {[]plan.Grant{mayWork("a", "widgets"), mayWork("b", "widgets")}, []string{list + " as-a"}},
		"everything that is custom": {[]plan.Grant{holds("op", everything)}, []string{gadgets + " as-op", list + " as-op"}},
	} {
		c := &cluster{
			groups: []string{
				discovered("apps", "Namespaced", "deployments list,patch"), discovered("example.org", "Cluster", "clusterthings list,patch"),
				discovered("example.com", "Namespaced", "widgets list,patch", "gadgets list", "reviews create"),
			},
			answers: map[string]string{list: widgets(), gadgets: widgets()},
		}

		if w, answered := c.find(t, asked(tc.grants...)); !answered || w.Unseen != "" || !slices.Equal(c.lists, tc.want) {
			t.Errorf("%s: listed %q, want %q: %+v", reason, c.lists, tc.want, w)
		}
	}
}

// TestKindsAreBounded: whoever defines many kinds is told that not all are looked at.
func TestKindsAreBounded(t *testing.T) {
	t.Parallel()

	for n, unseen := range map[int]string{100: "", 101: "no more than 100 kinds are looked at"} {
		resources := make([]string, 0, n)
		answers := map[string]string{}

		for i := range n {
			resources = append(resources, fmt.Sprint("widgets", i, " list,patch"))
			answers[fmt.Sprint(list, i)] = widgets()
		}

		c := &cluster{groups: []string{discovered("example.com", "Namespaced", resources...)}, answers: answers}
		if w, answered := c.find(t, asked(mayWork("op", "*"))); !answered || w.Unseen != unseen || len(c.lists) != 100 {
			t.Errorf("of %d kinds, %d are listed: %+v", n, len(c.lists), w)
		}
	}
}

// TestNothingWithoutANamespaceIsAsked: where that is not wanted, what a ClusterRole allows is unknown, and said.
func TestNothingWithoutANamespaceIsAsked(t *testing.T) {
	t.Parallel()

	c := &cluster{
		groups:  []string{discovered("example.com", "Namespaced", "widgets list,patch")},
		answers: map[string]string{list: widgets()},
	}
	finder := waiting.New(c.config())
	finder.NoClusterRoles = true

	answers, _ := finder.Find(t.Context(), []waiting.Question{*asked(plan.Grant{Accounts: []string{"op"}, ClusterRole: "widgets"})})
	if w := answers[0]; w.Unseen != "what ClusterRole widgets allows cannot be read" || len(c.lists) > 0 {
		t.Errorf("asked for %q: %+v", c.lists, w)
	}
}

// TestAskedOnceForAll: several namespaces are looked at in one go, and what they have in common is asked for once.
func TestAskedOnceForAll(t *testing.T) {
	t.Parallel()

	c := &cluster{
		groups: []string{discovered("example.com", "Namespaced", "widgets list,patch")},
		answers: map[string]string{
			roles: served[roles], list: widgets(widget("z", true, "f")), strings.Replace(list, "/a/", "/b/", 1): widgets(),
		},
	}
	first := asked(plan.Grant{Accounts: []string{"op", "more"}, ClusterRole: "widgets"})
	second := *first
	second.Namespace = "b"

	finder := waiting.New(c.config())
	answers, _ := finder.Find(t.Context(), []waiting.Question{*first, second})

	if answers[0].Count != 1 || answers[1].Count != 0 || len(answers) != 2 {
		t.Errorf("answers are %+v", answers)
	}

	if asked := slices.DeleteFunc(c.lists, func(path string) bool { return path != roles }); len(asked) != 1 {
		t.Errorf("the ClusterRole was asked for %d times", len(asked))
	}
}
