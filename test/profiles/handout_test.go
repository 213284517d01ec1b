package profiles_test

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// handouts are, for each right to hand something out, what Ambit's account does not hold and can give with that right only.
// The suite's scopes project such things all the time; no request shows by which right.
func handouts() map[right]client.Object {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "handed-out"}
	bind := func(kind, name string) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"}},
		}
	}

	return map[right]client.Object{
		{"escalate", rbacv1.GroupName, "roles"}: &rbacv1.Role{ObjectMeta: meta, Rules: theirs()},
		{"escalate", rbacv1.GroupName, "clusterroles"}: &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: meta.Name}, Rules: theirs(),
		},
		{"bind", rbacv1.GroupName, "roles"}:        bind("Role", "theirs"),
		{"bind", rbacv1.GroupName, "clusterroles"}: bind("ClusterRole", "theirs"),
	}
}

// theirs are rules that Ambit's account does not hold.
func theirs() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}
}

// handsOut holds that Ambit's account may hand out what it does not hold by each right that is for that, and by no other.
func handsOut(t *testing.T, bed *testbed.Bed, in *installed) {
	t.Helper()

	grants, err := in.grants()
	if err != nil {
		t.Fatal(err)
	}

	for _, g := range grants {
		if !g.handsOut() {
			continue
		}

		obj := handouts()[g.right]
		if obj == nil || !g.everywhere {
			t.Errorf("granted, and no test shows what for: %s (%s)", g.right, g.role)

			continue
		}

		withoutIt(t, bed, in, g.right, obj)
	}
}

// withoutIt tries to hand something out with a right and without it. Nothing is written.
func withoutIt(t *testing.T, bed *testbed.Bed, in *installed, r right, obj client.Object) {
	t.Helper()

	provide(t, bed.Client, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "theirs"}, Rules: theirs()},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Rules: theirs()})

	config := rest.CopyConfig(bed.Config)
	config.Impersonate.UserName = ambit

	as, err := client.New(config, client.Options{Scheme: bed.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}

	try := func() error { return as.Create(t.Context(), obj.DeepCopyObject().(client.Object), client.DryRunAll) }
	if err := try(); err != nil {
		t.Errorf("with the right to %s: %v", r, err)
	}

	for i := range in.clusterRoles {
		role := in.clusterRoles[i].DeepCopy()
		set(t, bed.Client, role, without(t, role.Rules, r))

		defer set(t, bed.Client, role, role.Rules)
	}

	within(t, "the right to "+r.String()+" goes", func() bool { return !allowed(t, as, r) })

	if err := try(); !apierrors.IsForbidden(err) {
		t.Errorf("without the right to %s, want it refused, got: %v", r, err)
	}
}

func provide(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()

	for _, obj := range objects {
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}
	}
}

func set(t *testing.T, c client.Client, role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) {
	t.Helper()

	now := &rbacv1.ClusterRole{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(role), now); err != nil {
		t.Fatal(err)
	}

	now.Rules = rules
	if err := c.Update(t.Context(), now); err != nil {
		t.Fatal(err)
	}
}

// without takes one right out of rules.
func without(t *testing.T, rules []rbacv1.PolicyRule, r right) []rbacv1.PolicyRule {
	t.Helper()

	rights, err := rightsOf(rules)
	if err != nil {
		t.Fatal(err)
	}

	var out []rbacv1.PolicyRule

	for _, other := range rights {
		if other != r {
			out = append(out, rbacv1.PolicyRule{
				APIGroups: []string{other.group}, Resources: []string{other.resource}, Verbs: []string{other.verb},
			})
		}
	}

	return out
}

func allowed(t *testing.T, as client.Client, r right) bool {
	t.Helper()

	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: "default", Verb: r.verb, Group: r.group, Resource: r.resource, Name: "theirs",
		},
	}}
	if err := as.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}

	return review.Status.Allowed
}
