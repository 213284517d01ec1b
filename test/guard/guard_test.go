package guard_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// person is somebody, and what the policies let them do.
type person struct {
	reason string
	who    *somebody
	// may are the authorities that they have in the eyes of the policies.
	may []authority
	// lacks are the verbs that RBAC refuses them on scopes.
	lacks []string
}

// people are everybody who may write scopes in a namespace for one reason or another.
func people(h *house) map[string]person {
	var (
		writesScopes = h.hereAs("ambit-edit", rule(scopes.Group, scopes.Resource, "create"))
		impersonates = rule(core, "serviceaccounts", "impersonate", writer)
		createsPods  = rule(core, "pods", "create")
		escalates    = rule(rbacGroup, "clusterroles", "escalate")
		anything     = rule("*", "*", "*")
	)

	return map[string]person{
		"SystemMasters": {
			reason: "the group that every check lets through, as which the other tests and the installer act",
			may:    []authority{asAmbit, asWriter, asOther, asManual, toRelease},
		},
		"ClusterAdminByGroup": {
			reason: "a cluster administrator may escalate clusterroles; that a group has the right makes no difference",
			who:    h.member("root", "admins", everywhereAs("cluster-admin", anything)),
			may:    []authority{asAmbit, asWriter, asOther, asManual, toRelease},
		},
		"ClusterAdminInOneNamespace": {
			reason: "cluster-admin by a RoleBinding holds escalate on clusterroles in one namespace, which means nothing",
			who:    h.user("namespace-root", h.hereAs("cluster-admin", anything)),
			may:    []authority{asWriter, asOther, asManual},
		},
		"Escalator": {
			reason: "escalate on clusterroles leads to any right, but it is not by itself the right to use an account",
			who:    h.user("escalator", writesScopes, everywhere(escalates)),
			may:    []authority{asAmbit, toRelease},
		},
		"EscalatorOfOneClusterRole": {
			reason: "who may escalate one ClusterRole does not hold escalate on clusterroles",
			who:    h.user("one-escalator", writesScopes, everywhere(rule(rbacGroup, "clusterroles", "escalate", "one"))),
		},
		"EscalatorOfRoles": {
			reason: "escalate on roles, even everywhere, is not escalate on clusterroles",
			who:    h.user("roles-escalator", writesScopes, everywhere(rule(rbacGroup, "roles", "escalate"))),
		},
		"BinderOfClusterRoles": {
			reason: "bind is another right; the contract with administrators names escalate",
			who:    h.user("binder", writesScopes, everywhere(rule(rbacGroup, "clusterroles", "bind"))),
		},
		"NamespaceAdmin": {
			reason: "may impersonate every account of the namespace and run pods there, and has nothing in other namespaces",
			who:    h.user("admin", writesScopes, h.hereAs("admin", createsPods)),
			may:    []authority{asWriter, asOther, asManual},
		},
		"NamespaceEditor": {
			reason: "may run pods with every account of the namespace",
			who:    h.user("editor", writesScopes, h.hereAs("edit", createsPods)),
			may:    []authority{asWriter, asOther, asManual},
		},
		"ViewerWhoWritesScopes": {
			reason: "to see a namespace is not to use its accounts",
			who:    h.user("scope-viewer", writesScopes, h.hereAs("view", rule(core, "pods", "get"))),
		},
		"Viewer": {
			reason: "the role view lets nobody write a scope; the policies are not even asked",
			who:    h.user("viewer", h.hereAs("view", rule(scopes.Group, scopes.Resource, "get"))),
			lacks:  []string{"create", "update", "patch", "delete"},
		},
		"NobodyElse": {
			reason: "whoever may write scopes and nothing else has no rights to put to use",
			who:    h.user("only-scopes", writesScopes),
		},
		"Impersonator": {
			reason: "may use exactly one account",
			who:    h.user("impersonator", writesScopes, h.here(impersonates)),
			may:    []authority{asWriter},
		},
		"ImpersonatorByGroup": {
			reason: "the rights of one's groups count as one's own",
			who:    h.member("member", "impersonators", writesScopes, h.here(impersonates)),
			may:    []authority{asWriter},
		},
		"ImpersonatorOfAnother": {
			reason: "may use exactly one account, and it is not the writer",
			who:    h.user("other-impersonator", writesScopes, h.here(rule(core, "serviceaccounts", "impersonate", other))),
			may:    []authority{asOther},
		},
		"ImpersonatorOfAmbitHere": {
			reason: "may use exactly the account that manualManagement means",
			who:    h.user("manual-impersonator", writesScopes, h.here(rule(core, "serviceaccounts", "impersonate", ambitHere))),
			may:    []authority{asManual},
		},
		"ImpersonatorOfAmbitItself": {
			reason: "Ambit's own account has the name that manualManagement means, and is of another namespace",
			who: h.user("ambit-impersonator", writesScopes,
				in(embedded.Namespace, rule(core, "serviceaccounts", "impersonate", embedded.ServiceAccount))),
		},
		"ImpersonatorOfAll": {
			reason: "may use every account there is, Ambit's among them, which is not yet the right to escalate",
			who:    h.user("all-impersonator", writesScopes, everywhere(rule(core, "serviceaccounts", "impersonate"))),
			may:    []authority{asWriter, asOther, asManual, toRelease},
		},
		"ImpersonatorElsewhere": {
			reason: "an account of the same name in another namespace is another account",
			who:    h.user("away-impersonator", writesScopes, h.there(impersonates)),
		},
		"ImpersonatorOfUsers": {
			reason: "the API server asks for impersonate on serviceaccounts to act as one, whatever users one may be",
			who:    h.user("user-impersonator", writesScopes, everywhere(rule(core, "users", "impersonate"))),
		},
		"PodCreator": {
			reason: "a pod may run as any account of its namespace",
			who:    h.user("pod-creator", writesScopes, h.here(createsPods)),
			may:    []authority{asWriter, asOther, asManual},
		},
		"PodCreatorElsewhere": {
			reason: "a pod cannot run as an account of another namespace",
			who:    h.user("away-pod-creator", writesScopes, h.there(createsPods)),
		},
		"PodReader": {
			reason: "nothing but create runs a pod",
			who:    h.user("pod-reader", writesScopes, h.here(rule(core, "pods", "get"))),
		},
		"CountsAsAmbit": {
			reason: "the policies know Ambit by this right; it is about finalizers and InstallPlans, not about scopes",
			who:    h.user("counts-as-ambit", writesScopes, everywhere(rule("ambit.dev", "scopes", "serve"))),
			may:    []authority{toRelease},
		},
		"CountsAsAmbitHere": {
			reason: "what a RoleBinding gives does not count",
			who:    h.user("counts-here", writesScopes, h.here(rule("ambit.dev", "scopes", "serve"))),
		},
		"LimitedImpersonator": {
			reason: "who may do one thing as the account may not have Ambit do everything as it",
			who: h.user("limited-impersonator", writesScopes,
				everywhere(rule("authentication.k8s.io", "serviceaccounts", "impersonate:serviceaccount")),
				everywhere(rule(core, "pods", "impersonate-on:serviceaccount:get"))),
		},
		"TheDelegateItself": {
			reason: "to be an account is not the right to have Ambit act as it; RBAC can say that it is",
			who:    serviceAccount(h.namespace, writer, writesScopes),
		},
		"Ambit": {
			reason: "Ambit may impersonate accounts, escalate clusterroles for templates, and serve; finalizers are all that it changes",
			who:    serviceAccount(embedded.Namespace, embedded.ServiceAccount),
			may:    []authority{asAmbit, asWriter, asOther, asManual, toRelease},
			lacks:  []string{"create", "update", "delete"},
		},
	}
}

// TestWhoMayWriteWhat lets everybody try everything as a dry run, which the API server decides as it decides the rest.
func TestWhoMayWriteWhat(t *testing.T) {
	h := begin(t)
	h.elsewhere = testcluster.Namespace(t, h.config, "guard-elsewhere")

	h.letTry(people(h), dryRun)
}

// TestForReal lets some of them try everything with effect.
func TestForReal(t *testing.T) {
	h := begin(t)
	h.elsewhere = testcluster.Namespace(t, h.config, "guard-elsewhere")

	everybody := people(h)
	some := map[string]person{}

	for _, name := range []string{"Ambit", "ClusterAdminByGroup", "Impersonator", "NobodyElse"} {
		some[name] = everybody[name]
	}

	h.letTry(some, nil)
}

func (h *house) letTry(everybody map[string]person, dryRun []string) {
	h.Helper()

	everything := maps.Clone(operations)
	maps.Copy(everything, manualOperations)

	for _, name := range slices.Sorted(maps.Keys(everybody)) {
		p := everybody[name]

		h.Run(name, func(t *testing.T) {
			room := *h
			room.T, room.furnished = t, map[string]string{}

			if p.who != nil {
				room.welcome(p.who)
			}

			room.furnish()
			// Other packages' tests may look for scopes that nobody removed, so none is there while the next person arrives.
			defer room.clear()

			for _, name := range slices.Sorted(maps.Keys(everything)) {
				o := everything[name]
				err := o.do(room.request(p.who, resourceOf(o.group), dryRun))
				room.judge(name, err, &p, &o)

				if err == nil && dryRun == nil {
					room.tidy()
					room.furnish()
				}
			}
		})
	}
}

// judge compares the answer to a request with what the rights of somebody make of it.
func (h *house) judge(what string, err error, p *person, o *operation) {
	h.Helper()

	var policies []string

	for _, a := range o.needs {
		if !slices.Contains(p.may, a) {
			policies = append(policies, policyOf(a))
		}
	}

	switch {
	case slices.ContainsFunc(o.verbs, func(v string) bool { return slices.Contains(p.lacks, v) }):
		if !apierrors.IsForbidden(err) || refusedBy(err) != "" {
			h.Errorf("%s\n%s: %s\nwant: refused by RBAC, got: %v", p.reason, what, o.reason, err)
		}
	case len(policies) == 0:
		if err != nil {
			h.Errorf("%s\n%s: %s\nwant: allowed, got: %v", p.reason, what, o.reason, err)
		}
	case !slices.Contains(policies, refusedBy(err)):
		h.Errorf("%s\n%s: %s\nwant: refused by %s, got: %v", p.reason, what, o.reason, strings.Join(policies, " or "), err)
	}
}

// furnish makes the scopes that requests are about, those that are missing.
func (h *house) furnish() {
	h.Helper()

	for _, s := range []struct {
		in   schema.GroupVersionResource
		name string
		spec map[string]any
	}{
		{scopes, own, map[string]any{}},
		{scopes, delegated, map[string]any{account: writer}},
		{scopes, manual, map[string]any{manualField: true}},
		{legacyScopes, own, map[string]any{}},
		{legacyScopes, manual, map[string]any{manualField: true}},
	} {
		if h.furnished[s.in.Group+"/"+s.name] != "" {
			continue
		}

		s.spec["namespaceMembers"] = []any{"team-a"}

		_, err := h.as(nil, s.in).Apply(h.Context(), s.name, object(s.in, s.name, s.spec), metav1.ApplyOptions{FieldManager: tool})
		if err != nil {
			h.Fatalf("creating the scope %s of %s: %v", s.name, s.in.Group, err)
		}

		h.furnished[s.in.Group+"/"+s.name] = h.hold(s.in, s.name)
	}
}

// clear removes all scopes, and tidy those that are not as furnish left them.
func (h *house) clear() {
	h.Helper()

	h.furnished = nil
	h.tidy()
}

func (h *house) tidy() {
	h.Helper()

	intact := map[string]string{}

	for _, resource := range []schema.GroupVersionResource{scopes, legacyScopes} {
		// The test's own context is cancelled when this cleans up after it.
		list, err := h.as(nil, resource).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			h.Fatal(err)
		}

		for i := range list.Items {
			name, version := list.Items[i].GetName(), list.Items[i].GetResourceVersion()
			if key := resource.Group + "/" + name; h.furnished[key] == version {
				intact[key] = version
			} else {
				h.remove(resource, name)
			}
		}
	}

	h.furnished = intact
}
