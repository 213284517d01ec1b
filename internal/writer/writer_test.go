package writer_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// The profiles, and what an administrator may set besides. Ambit runs as ambit-system/ambit, but where its namespaces are named.
var (
	cluster   = writer.Manager{User: user("ambit-system", "ambit")}
	byDefault = writer.Manager{User: user("ambit-system", "ambit"), DefaultDelegate: "house"}
	delegated = writer.Manager{User: user("ambit-system", "ambit"), NeedDelegate: true}
	both      = writer.Manager{User: user("ambit-system", "ambit"), NeedDelegate: true, DefaultDelegate: "house"}
	confined  = writer.Manager{User: user("ops", "ambit"), Namespaces: []string{"ops"}}
	installs  = writer.Manager{User: user("ops", "ambit"), Namespaces: []string{"ops"}, Installs: true}
	two       = writer.Manager{User: user("ops", "ambit"), Namespaces: []string{"ops", "second"}}
)

func user(namespace, name string) string { return scope.AccountUser(namespace, name) }

// answer is who writes, in short: "own"; a user; what a user is in members besides, after a plus; or "nobody: " and why.
func answer(id writer.Identity) string {
	short := func(id writer.Identity) string {
		if id.IsOwn() {
			return "own"
		}

		return strings.TrimPrefix(id.User(), "system:serviceaccount:")
	}

	switch in := id.InMembers(); {
	case id.IsNobody():
		return "nobody: " + id.Why()
	case in != id:
		return short(id) + " + " + short(in)
	default:
		return short(id)
	}
}

// TestOf has who writes for scopes, templates and their instances, in each profile.
func TestOf(t *testing.T) {
	t.Parallel()

	named := func(name string) scope.Scope {
		return scope.Scope{Key: scope.NamespaceScopes.In("ops"), Delegate: name}
	}
	of := func(key scope.Key, s scope.Scope) scope.Scope { s.Key = key; return s }
	in := func(namespace string, s scope.Scope) scope.Scope { return of(scope.NamespaceScopes.In(namespace), s) }
	template := of(scope.TemplatesKey(), named(""))
	manual := func(s scope.Scope) scope.Scope { s.Manual = true; return s }
	legacy := func(s scope.Scope) scope.Scope { s.Owner.Group = "namespacescope.ibm.com"; return s }
	unread := func(s scope.Scope) scope.Scope { s.Problem = "it is a list"; return s }
	deleting := func(s scope.Scope) scope.Scope { s.Deleted = time.Unix(1, 0); return s }

	for name, tc := range map[string]struct {
		reason  string
		manager writer.Manager
		scope   scope.Scope
		ending  bool
		want    string
	}{
		"names none":     {"the guard asks its author for the right to escalate", cluster, named(""), false, "own"},
		"cannot be read": {"nobody knows whom it names", cluster, unread(named("")), false, "nobody: it is a list"},
		"cannot be read, and is deleted": {
			"what was made for it goes", cluster, deleting(unread(named(""))), false, "own",
		},
		"names one": {"the API server checks each write against the account", cluster, named("writer"), false, "ops:writer"},
		"names one that is gone": {
			"one that is made again is somebody else's", cluster, named("gone"), false, "nobody: service account ops/gone does not exist",
		},
		"names one that is gone, and is deleted": {
			"what was granted to the name is taken back", cluster, deleting(named("gone")), false, "ops:gone",
		},
		"names one that is gone, in a namespace that ends": {
			"it loses its accounts before its scopes", cluster, named("gone"), true, "ops:gone",
		},
		"names Ambit's own": {
			"Ambit need not impersonate itself", cluster, in("ambit-system", named("ambit")), false, "own",
		},
		"names an account that is called as Ambit's": {
			"it is one of another namespace", cluster, named("ambit"), false, "ops:ambit",
		},
		"manual": {"authorizations make the account", cluster, manual(named("ambit")), false, "ops:ambit"},
		"manual, in Ambit's namespace": {
			"Ambit holds more than owners granted", cluster, in("ambit-system", manual(named("ambit"))), false,
			"nobody: spec.manualManagement lets nothing be used but",
		},
		"manual, in Ambit's namespace, and deleted": {
			"Ambit takes away what there is", cluster, deleting(in("ambit-system", manual(named("ambit")))), false, "own",
		},
		"a template": {"the guard asks its author for the right to escalate", cluster, template, false, "own"},
		"what is installed": {
			"its group says who writes", cluster, of(scope.Installs.In("ops"), named("writer")), false, "nobody: the OperatorGroup",
		},

		"names none, with a default": {"the default is its account", byDefault, named(""), false, "ops:house"},
		"names one, with a default":  {"its own word counts", byDefault, named("writer"), false, "ops:writer"},
		"a template, with a default": {
			"it has no namespace of which the default could be", byDefault, template, false, "own",
		},

		"delegated, names none": {
			"Ambit writes nothing of its own", delegated, named(""), false, "nobody: the scope names no service account",
		},
		"delegated, names none, of the legacy group": {
			"it has no field for one", delegated, legacy(named("")), false,
			"nobody: the scope names no service account, and this Ambit writes only as one that a scope names; " +
				"set spec.manualManagement to true, or",
		},
		"manual, in Ambit's namespace, of the legacy group": {
			"it has no field for another account", cluster, legacy(in("ambit-system", manual(named("ambit")))), false,
			"nobody: spec.manualManagement lets nothing be used but what the owners of namespaces granted, and service account " +
				"ambit-system/ambit is Ambit's own, which may do more; have ambit import",
		},
		"delegated, names one": {"that is what the profile is for", delegated, named("writer"), false, "ops:writer"},
		"delegated, names none, with a default": {
			"the default is its account", both, named(""), false, "ops:house",
		},
		"delegated, manual, in Ambit's namespace": {
			"Ambit reads more than owners granted", delegated, in("ambit-system", manual(named("ambit"))), false,
			"nobody: spec.manualManagement lets nothing be used but",
		},
		"delegated, manual, in Ambit's namespace, and deleted": {
			"Ambit takes away what there is", delegated, deleting(in("ambit-system", manual(named("ambit")))), false, "own",
		},
		"delegated, a template": {
			"it can name no account", delegated, template, false, "nobody: this Ambit writes only as service accounts",
		},
		"delegated, a template, with a default": {
			"it has no namespace of which the default could be", both, template, false,
			"nobody: this Ambit writes only",
		},

		"confined, names none":        {"Ambit holds only what owners granted it", confined, named(""), false, "own"},
		"confined, names Ambit's own": {"it says the same", confined, named("ambit"), false, "own"},
		"confined, manual":            {"owners grant to Ambit itself", confined, manual(named("ambit")), false, "own"},
		"confined, names another":     {"the API server decides whether Ambit may", confined, named("writer"), false, "ops:writer"},
		"confined, names another that is gone": {
			"to create it would not help", confined, named("gone"), false,
			"nobody: service account ops/gone does not exist, or is being deleted, so nothing can be written as it; " +
				"leave spec.serviceAccountName out",
		},
		"confined, another namespace": {
			"its scopes are another manager's", confined, in("other", named("")), false,
			"nobody: this Ambit serves scopes in the namespaces ops only",
		},
		"confined, a template": {
			"it is nobody's there", confined, template, false, "nobody: this Ambit serves scopes",
		},
		"confined with installs, names another": {
			"no policy asks who wrote the scope, and Ambit may act as accounts of OperatorGroups", installs, named("writer"), false,
			"nobody: this Ambit writes for scopes with what was granted",
		},
		"confined with installs, names another, and is deleted": {
			"it takes back", installs, deleting(named("writer")), false, "ops:writer",
		},
		"two namespaces, the first": {"owners grant to the account of each", two, named(""), false, "own"},
		"two namespaces, the second": {
			"what was granted to the first is of no use to it", two, in("second", named("")), false, "own + second:ambit",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := tc.scope
			if !s.Explicit() {
				s = tc.manager.Here(s)
			}

			accounts := map[string]struct{}{"writer": {}, "house": {}, "ambit": {}}

			got := answer(tc.manager.Of(&s, &facts.OperatorNamespace{Accounts: accounts, Terminating: tc.ending}))
			if got != tc.want && (!strings.HasPrefix(tc.want, "nobody: ") || !strings.HasPrefix(got, tc.want)) {
				t.Errorf("%s, got %s; %s", tc.want, got, tc.reason)
			}
		})
	}
}

// TestOfGroup has who writes what is installed, in each profile: who installs, who deletes, and who takes permissions away.
func TestOfGroup(t *testing.T) {
	t.Parallel()

	const (
		none    = "nobody: the operator group names no service account"
		missing = "nobody: please make sure the service account exists. sa=gone operatorgroup=ops/group"
		ambits  = "nobody: service account ambit is Ambit's own"
		noGroup = "nobody: the namespace has no operator group, or more than one"
		unknown = "nobody: "
	)

	group := func(account string) *writer.Group {
		return &writer.Group{Name: "group", Account: account, Exists: account != "gone"}
	}

	for name, tc := range map[string]struct {
		reason                   string
		manager                  writer.Manager
		group                    *writer.Group
		last                     string
		writes, deletes, removes string
	}{
		"names none": {"the guard asks its author for the right to escalate", cluster, group(""), "", "own", "own", "own"},
		"names one": {
			"the account need not be allowed to delete", cluster, group("scoped"), "scoped", "ops:scoped", "own", "own",
		},
		"names one that is gone": {"Ambit takes away all the same", cluster, group("gone"), "gone", missing, "own", "own"},
		"no group":               {"Ambit takes away what it installed", cluster, nil, "", noGroup, "own", "own"},
		"names none, with a default": {
			"the default is one of scopes alone, and so says the guard", byDefault, group(""), "", "own", "own", "own",
		},

		"delegated, names none": {"Ambit writes nothing of its own", delegated, group(""), "", none, none, unknown},
		"delegated, names none any more": {
			"whoever drops the account keeps nothing of what it gave", delegated, group(""), "scoped", none, none, "ops:scoped",
		},
		"delegated, names one": {
			"everything is the account's", delegated, group("scoped"), "scoped", "ops:scoped", "ops:scoped", "ops:scoped",
		},
		"delegated, names one that is gone": {
			"rights outlive their account, to be taken away and nothing else",
			delegated, group("gone"), "gone", missing, missing, "ops:gone",
		},
		"delegated, no group": {
			"its account takes away what it gave", delegated, nil, "scoped", noGroup, noGroup, "ops:scoped",
		},
		"delegated, no group that is known": {"it is unknown who gave", delegated, nil, "", noGroup, noGroup, unknown},

		"confined, names none": {"Ambit's own rights install nothing", installs, group(""), "", none, none, unknown},
		"confined, names one": {
			"that is what it is for", installs, group("scoped"), "scoped", "ops:scoped", "ops:scoped", "ops:scoped",
		},
		"confined, names Ambit's own": {
			"nobody asks who wrote the group", installs, group("ambit"), "ambit", ambits, ambits, unknown,
		},
		"confined, names Ambit's own after another": {
			"the other takes away what it gave", installs, group("ambit"), "scoped", ambits, ambits, "ops:scoped",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tc.manager.OfGroup("ops", tc.group, tc.last)
			for what, is := range map[string][2]string{
				"installs": {answer(got.Writes), tc.writes}, "deletes": {answer(got.Deletes), tc.deletes},
				"takes away": {answer(got.Removes), tc.removes},
			} {
				if is[0] != is[1] && (!strings.HasPrefix(is[1], "nobody: ") || !strings.HasPrefix(is[0], is[1])) {
					t.Errorf("%s %s, got %s; %s", is[1], what, is[0], tc.reason)
				}
			}
		})
	}

	if id := installs.OfGroup("other", group("scoped"), "").Writes; !id.IsNobody() {
		t.Errorf("%s installs in a namespace that is not served", id)
	}

	if id := two.OfGroup("second", group("ambit"), "ambit"); !id.Writes.IsNobody() || !id.Removes.IsNobody() {
		t.Error("a group names the account that stands for Ambit in members, and is installed as that")
	}
}

// TestOrphans has who takes away what is left of scopes that are gone.
func TestOrphans(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		manager writer.Manager
		key     scope.Key
		want    string
	}{
		"cluster":                {cluster, scope.NamespaceScopes.In("ops"), "own"},
		"cluster, templates":     {cluster, scope.TemplatesKey(), "own"},
		"delegated":              {delegated, scope.NamespaceScopes.In("ops"), "nobody: "},
		"delegated, a default":   {both, scope.NamespaceScopes.In("ops"), "nobody: "},
		"delegated, templates":   {delegated, scope.TemplatesKey(), "nobody: "},
		"confined":               {confined, scope.NamespaceScopes.In("ops"), "own"},
		"confined, another's":    {confined, scope.NamespaceScopes.In("other"), "nobody: "},
		"confined, of a second":  {two, scope.NamespaceScopes.In("second"), "own + second:ambit"},
		"confined, of templates": {confined, scope.TemplatesKey(), "nobody: "},
	} {
		if got := answer(tc.manager.Orphans(tc.key)); got != tc.want {
			t.Errorf("%s: %s takes away what is left, and not %s", name, got, tc.want)
		}
	}
}

// TestNobody: the zero identity, and an account without a name, are nobody.
func TestNobody(t *testing.T) {
	t.Parallel()

	for _, id := range []writer.Identity{{}, writer.ServiceAccount("", "a"), writer.ServiceAccount("ns", "")} {
		if !id.IsNobody() || id.IsOwn() || id.User() != "" || id.InMembers() != id || id.String() != "nobody" {
			t.Errorf("%v is somebody", id)
		}
	}
}
