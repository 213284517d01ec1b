package profiles_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// right is one thing that a role allows.
type right struct{ verb, group, resource string }

func (r right) String() string {
	if r.group == "" {
		return r.verb + " " + r.resource
	}

	return r.verb + " " + r.resource + " of " + r.group
}

// handsOut says whether it is a right that no request shows: without it, what somebody hands out must be theirs.
func (r right) handsOut() bool { return r.verb == "escalate" || r.verb == "bind" }

// grant is a right by way of a role.
type granted struct {
	right

	role string
	// everywhere says that it holds in all namespaces, and not only in Ambit's own.
	everywhere bool
}

// installed are the roles that a profile binds to Ambit's account.
type installed struct {
	clusterRoles []rbacv1.ClusterRole
	roles        []rbacv1.Role
}

// readInstalled finds the roles by the bindings. Everything that Ambit's manifests make has a label; what tests make beside
// it for the same account has none.
func readInstalled(ctx context.Context, c client.Client) (*installed, error) {
	var (
		everywhere rbacv1.ClusterRoleBindingList
		here       rbacv1.RoleBindingList
		found      installed
	)

	ours := client.MatchingLabels{"app.kubernetes.io/part-of": "ambit"}
	if err := errors.Join(c.List(ctx, &everywhere, ours), c.List(ctx, &here, ours)); err != nil {
		return nil, err
	}

	for _, b := range everywhere.Items {
		if !bindsAmbit(b.Subjects) {
			continue
		}

		var role rbacv1.ClusterRole
		if err := c.Get(ctx, client.ObjectKey{Name: b.RoleRef.Name}, &role); err != nil {
			return nil, err
		}

		found.clusterRoles = append(found.clusterRoles, role)
	}

	for _, b := range here.Items {
		if !bindsAmbit(b.Subjects) {
			continue
		}

		if b.Namespace != embedded.Namespace || b.RoleRef.Kind != "Role" {
			return nil, fmt.Errorf("RoleBinding %s/%s is of a form that this test cannot judge", b.Namespace, b.Name)
		}

		var role rbacv1.Role
		if err := c.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.RoleRef.Name}, &role); err != nil {
			return nil, err
		}

		found.roles = append(found.roles, role)
	}

	if len(found.roles) == 0 {
		return nil, errors.New("nothing is bound to Ambit's account; is it installed?")
	}

	return &found, nil
}

func bindsAmbit(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == embedded.Namespace && s.Name == embedded.ServiceAccount
	})
}

// grants are the rights of all roles.
func (in *installed) grants() ([]granted, error) {
	var out []granted

	for i := range in.clusterRoles {
		role := &in.clusterRoles[i]

		rights, err := rightsOf(role.Rules)
		if err != nil {
			return nil, fmt.Errorf("ClusterRole %s: %w", role.Name, err)
		}

		for _, r := range rights {
			out = append(out, granted{right: r, role: "ClusterRole " + role.Name, everywhere: true})
		}
	}

	for i := range in.roles {
		role := &in.roles[i]

		rights, err := rightsOf(role.Rules)
		if err != nil {
			return nil, fmt.Errorf("Role %s: %w", role.Name, err)
		}

		for _, r := range rights {
			out = append(out, granted{right: r, role: "Role " + role.Name})
		}
	}

	return out, nil
}

// rightsOf takes rules apart. A right that is limited to a name counts like one that is not: what uses it is told by the rest.
func rightsOf(rules []rbacv1.PolicyRule) ([]right, error) {
	var out []right

	for i := range rules {
		r := &rules[i]
		if len(r.NonResourceURLs) > 0 ||
			slices.Contains(slices.Concat(r.Verbs, r.APIGroups, r.Resources), "*") {
			return nil, fmt.Errorf("rule %v is of a form that this test cannot judge", r)
		}

		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					out = append(out, right{verb, group, resource})
				}
			}
		}
	}

	return out, nil
}

// use is where a right was used.
type use struct{ elsewhere, atAll bool }

// usesOf finds what one user used, by who that user acted as.
func usesOf(requests []request, by func(*request) bool) map[right]use {
	out := map[right]use{}

	for i := range requests {
		r := &requests[i]
		if !by(r) || r.refused {
			continue
		}

		verbs := []string{r.verb}
		if r.verb == "patch" && r.made {
			verbs = append(verbs, "create") // The API server asks for this right, too, when a patch finds nothing to change.
		}

		for _, verb := range verbs {
			of := right{verb, r.group, r.resource}
			u := out[of]
			u.atAll = true
			u.elsewhere = u.elsewhere || r.namespace != embedded.Namespace
			out[of] = u
		}
	}

	return out
}

// byAmbit are the requests that Ambit made as itself, and asDelegate those that it made as somebody else.
func byAmbit(r *request) bool { return r.user == ambit && r.actingAs == "" }

func asDelegate(r *request) bool { return r.user == ambit && r.actingAs != "" }

// unused says of each grant that nobody needed, in words.
func unused(grants []granted, uses map[right]use) []string {
	var out []string

	for _, g := range grants {
		u := uses[g.right]

		switch {
		case g.right == right{"serve", "ambit.dev", "scopes"}: // What the admission policies ask for, which no request shows.
		case g.verb == "impersonate-on:serviceaccount:get", isOfWebhooks(g.right),
			g.right == right{"impersonate-on:serviceaccount:patch", rbacv1.GroupName, "clusterrolebindings"}:
			// To look whose it is that stands where something should, and to mend what somebody changed, is the same code with
			// another identity: the profile cluster shows that both are needed.
		case g.group == "" && g.verb == "delete" && slices.Contains([]string{"serviceaccounts", "services", "secrets"}, g.resource):
			// Only an API server that guards owners asks for it: TestUpgradeWhereOwnersAreGuarded.
		case g.handsOut(), g.verb == "get" && g.group == rbacv1.GroupName:
			// To look again at an object that somebody writes on while Ambit does, or made in the place of one that is installed,
			// takes two who write at the same moment: TestMarksWrittenAllTheTime of the applier sees to that, and the suite only
			// now and then.
		case !u.atAll:
			out = append(out, fmt.Sprintf("granted and never used: %s (%s)", g.right, g.role))
		case g.everywhere && !u.elsewhere:
			out = append(out, fmt.Sprintf("granted everywhere and used in Ambit's own namespace only: %s (%s)", g.right, g.role))
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// isOfWebhooks says whether a right is about the webhooks of operators that are installed, for which this suite has none:
// TestWebhooksByAnAccount and those beside it need each.
func isOfWebhooks(r right) bool {
	verb := strings.TrimPrefix(r.verb, "impersonate-on:serviceaccount:")

	switch r.group + "/" + r.resource {
	case "/services", "/secrets":
		return verb == "get" || verb == "create" || verb == "patch"
	case "admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"admissionregistration.k8s.io/validatingwebhookconfigurations":
		return verb == "get" || verb == "create" || verb == "delete"
	}

	return false
}

// withImpersonation adds what requests as somebody else say of Ambit: in the one way or the other, as the audit log tells.
func withImpersonation(uses map[right]use, requests []request) map[right]use {
	for i := range requests {
		r := &requests[i]

		switch {
		case !asDelegate(r) || !strings.HasPrefix(r.actingAs, "system:serviceaccount:"):
		case r.constraint == "":
			uses[right{"impersonate", "", "serviceaccounts"}] = use{elsewhere: true, atAll: true}
		default:
			uses[right{r.constraint, "authentication.k8s.io", "serviceaccounts"}] = use{elsewhere: true, atAll: true}
			// The right is asked for before the one of the account, so it is used also when that is refused.
			on := right{"impersonate-on:serviceaccount:" + r.verb, r.group, r.resource}
			uses[on] = use{elsewhere: true, atAll: true}
		}
	}

	return uses
}
