package authority_test

import (
	"reflect"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// may is a rule about RBAC itself.
func may(resource, name string, verbs ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}, Verbs: verbs}
	if name != "" {
		r.ResourceNames = []string{name}
	}

	return r
}

func secrets(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}
}

func role(name string, rules ...rbacv1.PolicyRule) plan.Copy {
	return plan.Copy{Object: projected.Object{Kind: projected.Role, Name: name, Rules: rules}}
}

func binding(kind, name string) plan.Copy {
	return plan.Copy{Object: projected.Object{
		Kind: projected.RoleBinding, Name: "to-" + name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
	}}
}

// TestNeedsOfAChange: the verb of the change, on the object of that name where there is one already, and the right to hand out
// what the change hands out.
func TestNeedsOfAChange(t *testing.T) {
	t.Parallel()

	copied, bound, foreign := role("copied", secrets("get")), binding("Role", "copied"), binding("ClusterRole", "view")
	copies := []plan.Copy{role("other", secrets("list")), copied, bound, foreign}
	change := func(action plan.Action, c *plan.Copy, rules ...rbacv1.PolicyRule) plan.Change {
		key := facts.ProjectedKey{Kind: projected.Role, Name: "copied"}
		if c != nil {
			key = facts.ProjectedKey{Kind: c.Kind, Name: c.Name}
		}

		return plan.Change{Action: action, Key: key, Copy: c, Rules: rules}
	}

	for reason, tc := range map[string]struct {
		change     plan.Change
		held, want []rbacv1.PolicyRule
	}{
		"a request that creates names nothing": {
			change(plan.Create, &copied), []rbacv1.PolicyRule{may("roles", "copied", "create"), secrets("get")},
			[]rbacv1.PolicyRule{may("roles", "", "create")},
		},
		"an update is a patch of one object": {
			change(plan.Update, &copied), []rbacv1.PolicyRule{secrets("get")}, []rbacv1.PolicyRule{may("roles", "copied", "patch")},
		},
		"so is emptying it": {change(plan.Empty, nil), nil, []rbacv1.PolicyRule{may("roles", "copied", "patch")}},
		"and holding it":    {change(plan.Hold, nil), nil, []rbacv1.PolicyRule{may("roles", "copied", "patch")}},
		"deleting hands nothing out": {
			change(plan.Delete, nil), nil, []rbacv1.PolicyRule{may("roles", "copied", "delete")},
		},
		"who may do it misses nothing": {
			change(plan.Delete, nil), []rbacv1.PolicyRule{may("roles", "copied", "delete")}, nil,
		},
		"a role's rules are held": {
			change(plan.Create, &copied), []rbacv1.PolicyRule{may("roles", "", "create")}, []rbacv1.PolicyRule{secrets("get")},
		},
		"or escalated": {
			change(plan.Create, &copied), []rbacv1.PolicyRule{may("roles", "", "create", "escalate")}, nil,
		},
		"escalating by name does not create": {
			change(plan.Create, &copied),
			[]rbacv1.PolicyRule{may("roles", "", "create"), may("roles", "copied", "escalate")}, []rbacv1.PolicyRule{secrets("get")},
		},
		"of a role that is left with fewer rules, those are held": {
			change(plan.Update, &copied, secrets("watch")), []rbacv1.PolicyRule{may("roles", "copied", "patch"), secrets("get")},
			[]rbacv1.PolicyRule{secrets("watch")},
		},
		"or escalated as well": {
			change(plan.Update, &copied, secrets("watch")),
			[]rbacv1.PolicyRule{may("roles", "copied", "patch"), may("roles", "", "escalate")}, nil,
		},
		"a binding hands out what its role gives": {
			change(plan.Create, &bound), []rbacv1.PolicyRule{may("rolebindings", "", "create")}, []rbacv1.PolicyRule{secrets("get")},
		},
		"who holds that need not be allowed to bind": {
			change(plan.Create, &bound), []rbacv1.PolicyRule{may("rolebindings", "", "create"), secrets("get")}, nil,
		},
		"who may bind need not hold it": {
			change(plan.Create, &bound), []rbacv1.PolicyRule{may("rolebindings", "", "create"), may("roles", "copied", "bind")}, nil,
		},
		"binding another role is not enough": {
			change(plan.Create, &bound), []rbacv1.PolicyRule{may("rolebindings", "", "create"), may("roles", "other", "bind")},
			[]rbacv1.PolicyRule{secrets("get")},
		},
		"what somebody else's ClusterRole gives is not known, so binding it is asked for": {
			change(plan.Create, &foreign), []rbacv1.PolicyRule{may("rolebindings", "", "create")},
			[]rbacv1.PolicyRule{may("clusterroles", "view", "bind")},
		},
		"and is enough": {
			change(plan.Create, &foreign),
			[]rbacv1.PolicyRule{may("rolebindings", "", "create"), may("clusterroles", "view", "bind")}, nil,
		},
	} {
		if got := authority.OfChange(tc.held, &tc.change, copies); !slices.EqualFunc(got, tc.want, same) {
			t.Errorf("%s: missing is %v, want %v", reason, got, tc.want)
		}
	}
}

func same(a, b rbacv1.PolicyRule) bool { return reflect.DeepEqual(a, b) }

// TestNeedsOfAMember: a member's owner grants once what all changes there will need.
func TestNeedsOfAMember(t *testing.T) {
	t.Parallel()

	writing := may("rolebindings", "", "create", "delete", "patch")
	writing.Resources = append(writing.Resources, "roles")

	copies := []plan.Copy{
		role("copied", secrets("get")), binding("Role", "copied"), binding("ClusterRole", "view"), binding("Role", "gone"),
	}
	all := []rbacv1.PolicyRule{writing, secrets("get"), may("clusterroles", "view", "bind")}

	got := authority.OfMember(nil, copies)
	covers(t, "missing is less", got, all)
	covers(t, "missing is more", all, got)

	if got := authority.OfMember(all, copies); len(got) > 0 {
		t.Errorf("everything is held, and %v is missing", got)
	}

	aggregated := role("all")
	aggregated.Kind, aggregated.Aggregates = projected.ClusterRole, []string{"label"}
	everything := []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}},
		{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}},
	}
	covers(t, "an aggregated role may give anything", authority.OfMember(nil, []plan.Copy{aggregated}), everything)
}

// TestFixedNeeds holds what is needed whatever a scope projects.
func TestFixedNeeds(t *testing.T) {
	t.Parallel()

	of := func(group string, resources []string, verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: resources, Verbs: verbs}}
	}
	roles, cluster := []string{"rolebindings", "roles"}, []string{"clusterrolebindings", "clusterroles"}
	csvs := of("operators.coreos.com", []string{"clusterserviceversions"}, "patch")
	get := []rbacv1.PolicyRule{secrets("get")}

	for reason, tc := range map[string]struct{ got, want []rbacv1.PolicyRule }{
		"what is projected is made, corrected and deleted": {
			authority.Writing(), of(rbacv1.GroupName, roles, "create", "delete", "patch"),
		},
		"an install writes in a member": {authority.Installing("member"), of(rbacv1.GroupName, roles, "create", "patch")},
		"or in the cluster":             {authority.Installing(""), of(rbacv1.GroupName, cluster, "create", "patch")},
		"webhooks are limited": {
			authority.OfWebhooks(),
			of("admissionregistration.k8s.io", []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, "patch"),
		},
		"a ClusterServiceVersion is injected into": {authority.OfInjection(plan.CSVKind), csvs},
		"and by no scope that does not ask for it": {
			authority.GrantInOperatorNamespace(&scope.Scope{WatchList: "list"}), authority.InOperatorNamespace("list"),
		},
		"by one that does": {inject(scope.Scope{InjectCSVs: true}), csvs},
		"also by one whose injection is to be taken back": {inject(scope.Scope{Injected: true}), csvs},
		"operators are permitted what they ask for":       {after(authority.GrantForInstalls(get)), get},
		"once, however often they do":                     {after(authority.GrantForInstalls(slices.Repeat(get, 2))), get},
		"besides the roles that say so": {
			authority.GrantForInstalls(nil), of(rbacv1.GroupName, roles, "create", "delete", "get", "list", "patch", "watch"),
		},
		"the first operators asked for everything, and to grant everything": {
			authority.GrantOfEverything(), slices.Concat(
				of("*", []string{"*"}, "create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
				of(rbacv1.GroupName, []string{"roles"}, "bind", "escalate")),
		},
	} {
		if !slices.EqualFunc(tc.got, tc.want, same) {
			t.Errorf("%s: got %v, want %v", reason, tc.got, tc.want)
		}
	}
}

// inject is the last rule of the grant in a scope's own namespace.
func inject(s scope.Scope) []rbacv1.PolicyRule {
	rules := authority.GrantInOperatorNamespace(&s)

	return rules[len(rules)-1:]
}

// after are the rules after the first one, which is about the roles themselves.
func after(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule { return rules[1:] }

// TestHeldIsWhatTheAPIServerAnswers: nothing of its answer is lost, and names stay with their resources.
func TestHeldIsWhatTheAPIServerAnswers(t *testing.T) {
	t.Parallel()

	got := authority.Held(&authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{{
			Verbs: []string{"get"}, APIGroups: []string{"g"}, Resources: []string{"r"}, ResourceNames: []string{"n"},
		}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"post"}, NonResourceURLs: []string{"/u"}}},
	})
	want := []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"g"}, Resources: []string{"r"}, ResourceNames: []string{"n"}},
		{Verbs: []string{"post"}, NonResourceURLs: []string{"/u"}},
	}

	if !slices.EqualFunc(got, want, same) {
		t.Errorf("got %v, want %v", got, want)
	}

	if rights.Covers(want[:1], want) || !rights.Covers(want, want[:1]) {
		t.Error("the first rule is a part of both, and does not cover them")
	}
}

// TestMergeTellsApart: words mean something only where they stand, since a resource may be called as a verb, and a name as a URL.
func TestMergeTellsApart(t *testing.T) {
	t.Parallel()

	for reason, rules := range map[string][]rbacv1.PolicyRule{
		"a resource called as a verb": {
			{APIGroups: []string{"a"}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{"b"}, Resources: []string{"list", "pods"}, Verbs: []string{"get"}},
		},
		"a name called as a resource": {
			{APIGroups: []string{"a"}, Resources: []string{"n", "pods"}, Verbs: []string{"get"}},
			{APIGroups: []string{"b"}, Resources: []string{"n"}, ResourceNames: []string{"pods"}, Verbs: []string{"get"}},
		},
		"an object called as a URL": {
			{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"/u"}, Verbs: []string{"get"}},
			{NonResourceURLs: []string{"/u"}, Verbs: []string{"get"}},
		},
		"any object and one": {
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"one"}, Verbs: []string{"get", "list"}},
		},
		"an object with an empty name": {
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
			{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{""}, Verbs: []string{"list"}},
		},
	} {
		merged := authority.Merge(rules)
		covers(t, reason+": lost", merged, rules)
		covers(t, reason+": added", rules, merged)
	}
}

// TestWordsOfRules: whoever grants rules decides by these words.
func TestWordsOfRules(t *testing.T) {
	t.Parallel()

	named := secrets("get")
	named.ResourceNames = []string{"one", "a, b"}

	unnamed := secrets("list")
	unnamed.ResourceNames = []string{""}

	of := func(resource string, groups ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: groups, Resources: []string{resource}, Verbs: []string{"get"}}
	}
	url := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}
	odd := of("a b", "")
	odd.Verbs = []string{"get, list"}

	all := func(resource, group string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"*"}}
	}
	urls := rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}

	for reason, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want string
	}{
		"core resources need no group":    {secrets("get", "list"), "get, list secrets"},
		"nor do those of RBAC":            {may("roles", "", "bind"), "bind roles"},
		"names are said":                  {named, `get secrets named one, "a, b"`},
		"the empty name is not nothing":   {unnamed, `list secrets named "" (the name of requests without one)`},
		"other groups are said":           {of("deployments", "apps"), "get deployments of apps"},
		"and one of several that is core": {of("x", "", "apps"), `get x of "", apps`},
		"URLs are of no group":            {url, "get /metrics"},
		"nothing passes for two words":    {odd, `"get, list" "a b"`},
		"all resources of all groups":     {all("*", "*"), "do everything with all resources of all API groups"},
		"all resources of the core group": {all("*", ""), "do everything with all resources of the core API group"},
		"all resources of one group":      {all("*", "apps"), "do everything with all resources of apps"},
		"all resources of RBAC alone": {
			all("*", rbacv1.GroupName), "do everything with all resources of rbac.authorization.k8s.io",
		},
		"everything with one resource": {all("secrets", ""), "* secrets"},
		"reading all resources":        {of("*", "*"), "get all resources of all API groups"},
		"all URLs":                     {urls, "do everything with all URLs"},
	} {
		if got := authority.Words([]rbacv1.PolicyRule{tc.rule}, 0); got != tc.want {
			t.Errorf("%s: %s, want %s", reason, got, tc.want)
		}
	}

	three := []rbacv1.PolicyRule{secrets("get"), secrets("list"), secrets("watch")}

	for limit, want := range map[int]string{
		0:    "get secrets and 2 more",
		22:   "get secrets and 2 more",
		23:   "get secrets; list secrets and 1 more",
		1000: "get secrets; list secrets; watch secrets",
	} {
		if got := authority.Words(three, limit); got != want {
			t.Errorf("within %d characters: %s, want %s", limit, got, want)
		}
	}
}
