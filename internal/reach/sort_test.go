package reach

import (
	"fmt"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/test/harness/reachtest"
)

func rule(groups, resources, verbs []string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs, ResourceNames: names}
}

func l(words ...string) []string { return words }

func kinds() *Kinds {
	k := NewKinds()
	k.AddCustom(Resource{"example.com", "widgets"}, true)
	k.AddCustom(Resource{"example.com", "clusterwidgets"}, false)

	return k
}

func TestSort(t *testing.T) {
	t.Parallel()

	all := l("create", "deletecollection", "list", "watch")

	for _, c := range []struct {
		reason              string
		in                  rbacv1.PolicyRule
		keep                string
		cluster, namespaced []rbacv1.PolicyRule
		unsorted            []Resource
	}{
		{
			reason:     "what is namespaced stays as it was written",
			in:         rule(l("", "events.k8s.io"), l("events"), l("create", "patch")),
			namespaced: []rbacv1.PolicyRule{rule(l("", "events.k8s.io"), l("events"), l("create", "patch"))},
		},
		{
			reason:     "of any group, what no known kind is called by is told",
			in:         rule(l("*"), l("widgets/status", "gadgets"), l("get")),
			namespaced: []rbacv1.PolicyRule{rule(l("*"), l("widgets/status", "gadgets"), l("get"))},
			unsorted:   []Resource{{"*", "gadgets"}},
		},
		{
			reason:  "so does what is cluster-scoped",
			in:      rule(l(""), l("nodes", "nodes/status"), l("get")),
			cluster: []rbacv1.PolicyRule{rule(l(""), l("nodes", "nodes/status"), l("get"))},
		},
		{
			reason:     "a rule with both is divided",
			in:         rule(l("example.com"), l("widgets", "clusterwidgets", "clusterwidgets/status"), l("get")),
			cluster:    []rbacv1.PolicyRule{rule(l("example.com"), l("clusterwidgets", "clusterwidgets/status"), l("get"))},
			namespaced: []rbacv1.PolicyRule{rule(l("example.com"), l("widgets"), l("get"))},
		},
		{
			reason:     "a Role gives get of its own namespace, and never list",
			in:         rule(l(""), l("namespaces"), l("get", "list", "watch", "patch")),
			cluster:    []rbacv1.PolicyRule{rule(l(""), l("namespaces"), l("list", "watch"))},
			namespaced: []rbacv1.PolicyRule{rule(l(""), l("namespaces"), l("get", "patch"))},
		},
		{
			reason:     "any verb on namespaces is both",
			in:         rule(l(""), l("namespaces"), l("*")),
			cluster:    []rbacv1.PolicyRule{rule(l(""), l("namespaces"), all)},
			namespaced: []rbacv1.PolicyRule{rule(l(""), l("namespaces"), l("*"))},
		},
		{
			reason: "a second group beside that of namespaces keeps no more of them",
			in:     rule(l("", "apps"), l("namespaces"), l("*")),
			cluster: []rbacv1.PolicyRule{
				rule(l(""), l("namespaces"), all), rule(l("apps", ""), l("namespaces"), all),
			},
			namespaced: []rbacv1.PolicyRule{rule(l("", "apps"), l("namespaces"), l("*"))},
		},
		{
			reason:  "one namespace by name is narrow already",
			in:      rule(l(""), l("namespaces"), l("get"), "kube-system"),
			cluster: []rbacv1.PolicyRule{rule(l(""), l("namespaces"), l("get"), "kube-system")},
		},
		{
			reason: "a wildcard in a group means its cluster-scoped kinds by name",
			in:     rule(l("example.com"), l("*"), l("get")),
			cluster: []rbacv1.PolicyRule{rule(l("example.com"), l("clusterwidgets", "clusterwidgets/finalizers", "clusterwidgets/scale",
				"clusterwidgets/status"), l("get"))},
			namespaced: []rbacv1.PolicyRule{rule(l("example.com"), l("*"), l("get"))},
		},
		{
			reason:     "a wildcard before a subresource means that subresource",
			in:         rule(l("example.com"), l("*/status"), l("get")),
			cluster:    []rbacv1.PolicyRule{rule(l("example.com"), l("clusterwidgets/status"), l("get"))},
			namespaced: []rbacv1.PolicyRule{rule(l("example.com"), l("*/status"), l("get"))},
		},
		{
			reason:     "a wildcard of which nothing is known is named",
			in:         rule(l("nobody.example.com"), l("*"), l("get")),
			namespaced: []rbacv1.PolicyRule{rule(l("nobody.example.com"), l("*"), l("get"))},
			unsorted:   []Resource{{"nobody.example.com", "*"}},
		},
		{
			reason:     "what nobody knows is taken for namespaced and named",
			in:         rule(l("nobody.example.com"), l("things"), l("get")),
			namespaced: []rbacv1.PolicyRule{rule(l("nobody.example.com"), l("things"), l("get"))},
			unsorted:   []Resource{{"nobody.example.com", "things"}},
		},
		{
			reason:  "a resource that another group of the rule has is as there",
			in:      rule(l("example.com", "old.example.com"), l("clusterwidgets"), l("get")),
			cluster: []rbacv1.PolicyRule{rule(l("example.com", "old.example.com"), l("clusterwidgets"), l("get"))},
		},
		{
			reason:     "people and groups have no namespace, accounts have",
			in:         rule(l(""), l("users", "groups", "serviceaccounts"), l("impersonate")),
			cluster:    []rbacv1.PolicyRule{rule(l(""), l("users", "groups"), l("impersonate"))},
			namespaced: []rbacv1.PolicyRule{rule(l(""), l("serviceaccounts"), l("impersonate"))},
		},
		{
			reason:     "escalate and bind are where the roles are",
			in:         rule(l(rbacv1.GroupName), l("roles", "clusterroles"), l("bind", "escalate")),
			cluster:    []rbacv1.PolicyRule{rule(l(rbacv1.GroupName), l("clusterroles"), l("bind", "escalate"))},
			namespaced: []rbacv1.PolicyRule{rule(l(rbacv1.GroupName), l("roles"), l("bind", "escalate"))},
		},
		{
			reason:  "URLs have no namespace",
			in:      rbacv1.PolicyRule{NonResourceURLs: l("/metrics"), Verbs: l("get")},
			cluster: []rbacv1.PolicyRule{{NonResourceURLs: l("/metrics"), Verbs: l("get")}},
		},
		{
			reason: "what is kept is in both", keep: "list,watch core/secrets", in: rule(l(""), l("secrets"), l("*"), "one"),
			cluster:    []rbacv1.PolicyRule{rule(l(""), l("secrets"), l("list", "watch"), "one")},
			namespaced: []rbacv1.PolicyRule{rule(l(""), l("secrets"), l("*"), "one")},
		},
		{
			reason: "what is kept as a whole is not narrowed", keep: "get,list secrets", in: rule(l(""), l("secrets"), l("list")),
			cluster: []rbacv1.PolicyRule{rule(l(""), l("secrets"), l("list"))},
		},
		{
			reason: "a keep takes from wildcards what it means", keep: "list secrets", in: rule(l("*"), l("secrets"), l("*")),
			cluster:    []rbacv1.PolicyRule{rule(l(""), l("secrets"), l("list"))},
			namespaced: []rbacv1.PolicyRule{rule(l("*"), l("secrets"), l("*"))},
		},
	} {
		var keep []Keep

		if c.keep != "" {
			var err error
			if keep, err = ParseKeep(c.keep); err != nil {
				t.Errorf("%s: %v", c.reason, err)
			}
		}

		got := kinds().Sort(&c.in, keep)
		if !reflect.DeepEqual(got.Cluster, c.cluster) || !reflect.DeepEqual(got.Namespaced, c.namespaced) ||
			!reflect.DeepEqual(got.Unsorted, c.unsorted) {
			t.Errorf("%s:\ncluster    %v\nnamespaced %v\nunsorted   %v", c.reason, got.Cluster, got.Namespaced, got.Unsorted)
		}
	}
}

func TestKeepsThatSayNothing(t *testing.T) {
	t.Parallel()

	for _, text := range []string{"", "list", "list secrets now", ", secrets", "list, core/secrets", "list core/"} {
		if keep, err := ParseKeep(text); err == nil {
			t.Errorf("%q was taken as %v", text, keep)
		}
	}
}

// TestKeeps: what can be written is read, and printed as it is read.
func TestKeeps(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][]string{
		"list secrets": {"list core/secrets"}, "list core/secrets": {"list core/secrets"}, "list /secrets": {"list core/secrets"},
		"list *": {"list */*"}, "list */*": {"list */*"}, "get,list apps/*": {"get,list apps/*"},
		"get apps/deployments,replicasets": {"get apps/deployments", "get apps/replicasets"},
		"get secrets,pods":                 {"get core/secrets", "get core/pods"},
	} {
		keep, err := ParseKeep(text)

		got := make([]string, 0, len(keep))
		for i := range keep {
			got = append(got, keep[i].String())
		}

		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %q, want %q: %v", text, got, want, err)
		}
	}
}

// TestConcerns: a keep that no rule gives anything of is a mistake, and said.
func TestConcerns(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		keep string
		rule rbacv1.PolicyRule
		want bool
	}{
		"one verb of it":                  {"get,list secrets", rule(l(""), l("secrets"), l("list")), true},
		"a wildcard in the rule":          {"list secrets", rule(l("*"), l("*"), l("*")), true},
		"a wildcard in the keep":          {"* */*", rule(l("apps"), l("deployments"), l("get")), true},
		"a subresource of everything":     {"get core/*/status", rule(l(""), l("pods/status"), l("get")), true},
		"no verb of it":                   {"list secrets", rule(l(""), l("secrets"), l("get")), false},
		"another group":                   {"list secrets", rule(l("apps"), l("secrets"), l("list")), false},
		"another resource":                {"list secrets", rule(l(""), l("pods"), l("list")), false},
		"a resource, not its subresource": {"get core/pods", rule(l(""), l("pods/status"), l("get")), false},
	} {
		keep, err := ParseKeep(tc.keep)
		if err != nil || keep[0].Concerns([]rbacv1.PolicyRule{tc.rule}) != tc.want {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestWhereAResourceIs: built-in resources stay where they are, whatever a definition says, and what is not known is asked about.
func TestWhereAResourceIs(t *testing.T) {
	t.Parallel()

	k := kinds()

	if k.AddCustom(Resource{"apps", "deployments"}, false) || k.AddCustom(Resource{"", "nodes"}, true) {
		t.Error("a definition moved a resource of Kubernetes")
	}

	if !k.AddCustom(Resource{"apps", "deployments"}, true) || !k.AddCustom(Resource{"example.com", "clusterwidgets"}, false) {
		t.Error("a definition that says where a resource is anyway was refused")
	}

	for r, want := range map[Resource]Reach{
		{"apps", "deployments"}: Namespaced, {"apps", "deployments/anything"}: Namespaced, {"", "nodes"}: ClusterScoped,
		{"", "nodes/anything"}: ClusterScoped, {"example.com", "clusterwidgets/finalizers"}: ClusterScoped,
		{"example.com", "widgets/scale"}: Namespaced, {"example.com", "others"}: Unknown, {"apps", "nodes"}: Unknown,
	} {
		if got := k.ReachOf(r); got != want {
			t.Errorf("%s is %v, want %v", r, got, want)
		}
	}

	var asked []Resource

	k.ask = func(r Resource) Reach {
		asked = append(asked, r)

		return ClusterScoped
	}

	if k.ReachOf(Resource{"", "pods/log"}) != Namespaced || k.ReachOf(Resource{"a.io", "things/status"}) != ClusterScoped ||
		!reflect.DeepEqual(asked, []Resource{{"a.io", "things"}}) {
		t.Errorf("asked about %v", asked)
	}
}

// TestBuiltInClusterScoped: their names have the form in which others look for them.
func TestBuiltInClusterScoped(t *testing.T) {
	t.Parallel()

	all := BuiltInClusterScoped()

	for name, want := range map[string]bool{
		"nodes": true, "clusterroles.rbac.authorization.k8s.io": true, "customresourcedefinitions.apiextensions.k8s.io": true,
		"pods": false, "roles.rbac.authorization.k8s.io": false, "nodes/status": false, "deployments.apps": false,
	} {
		if _, is := all[name]; is != want {
			t.Errorf("%s is cluster-scoped: %t", name, is)
		}
	}
}

// TestSortSaysWhatItGuessed: a wildcard is replaced by what is known, and whoever reads the result is told so.
func TestSortSaysWhatItGuessed(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		keep string
		want Sorted
	}{
		"a wildcard that stands for something": {rule(l("example.com"), l("*"), l("get")), "", Sorted{Enumerated: true}},
		"the first of two":                     {rule(l("example.com", "batch"), l("*"), l("get")), "", Sorted{Enumerated: true}},
		"one that stands for nothing known":    {rule(l("batch"), l("*"), l("get")), "", Sorted{}},
		"every group is never unknown":         {rule(l("*"), l("*"), l("get")), "", Sorted{Enumerated: true}},
		"no wildcard":                          {rule(l(""), l("nodes"), l("get")), "", Sorted{}},
		"what is kept": {
			rule(l(""), l("secrets", "nodes"), l("get")), "get *", Sorted{Kept: []rbacv1.PolicyRule{rule(l(""), l("secrets"), l("get"))}},
		},
	} {
		var keep []Keep
		if tc.keep != "" {
			keep, _ = ParseKeep(tc.keep)
		}

		got := kinds().Sort(&tc.rule, keep)
		if got.Enumerated != tc.want.Enumerated || !reflect.DeepEqual(got.Kept, tc.want.Kept) || len(got.Unsorted) > 0 {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

func TestNothingIsGainedAndNothingLostInMembers(t *testing.T) {
	t.Parallel()

	all := reachtest.Requests()

	rapid.Check(t, func(t *rapid.T) {
		in := reachtest.RandomRule(t)

		var keep []Keep
		if rapid.Bool().Draw(t, "keeps") {
			keep = []Keep{{
				Verbs:    rapid.SliceOfN(reachtest.Verbs, 1, 3).Draw(t, "kept"),
				Resource: Resource{reachtest.Groups.Draw(t, "group"), reachtest.Resources.Draw(t, "resource")},
			}}
		}

		s := kinds().Sort(&in, keep)
		before := []rbacv1.PolicyRule{in}
		member := append(append([]rbacv1.PolicyRule{}, s.Cluster...), s.Namespaced...)

		if !rights.Covers(before, member) {
			t.Fatalf("%v became %v, which is more", in, s)
		}

		for _, q := range all {
			was := reachtest.Allows(before, q)

			if reachtest.Allows(s.Cluster, q) && !was || reachtest.Allows(member, q) && !was {
				t.Fatalf("%v gives %+v, which %v did not", s, q, in)
			}

			if was && q.Namespaced && !reachtest.Allows(member, q) {
				t.Fatalf("%v takes %+v in a member, which %v gave", s, q, in)
			}

			if was && !q.Namespaced && !reachtest.Allows(s.Cluster, q) {
				t.Fatalf("%v takes %+v in the cluster, which %v gave", s, q, in)
			}
		}

		for i := range s.Cluster {
			again := kinds().Sort(&s.Cluster[i], keep)
			if len(again.Namespaced) > 0 {
				t.Fatalf("%v is narrowed again, to %v", s.Cluster[i], again)
			}
		}
	})
}

func TestKeptIsTheOnlyThingThatStays(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		in := reachtest.RandomRule(t)

		s := kinds().Sort(&in, nil)
		if len(s.Kept) > 0 {
			t.Fatal("nothing was to be kept")
		}

		for _, q := range reachtest.Requests() {
			if q.Namespaced && q.Resource != "namespaces" && q.Resource != "namespaces/status" && reachtest.Allows(s.Cluster, q) {
				t.Fatalf("%v still gives %+v everywhere, by %v", in, q, fmt.Sprint(s.Cluster))
			}
		}
	})
}
