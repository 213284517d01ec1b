package guard_test

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

const (
	rbacGroup = rbacv1.GroupName
	core      = ""
)

// somebody is who makes a request.
type somebody struct {
	user   string
	groups []string
	// subject is what rights are granted to: the user, the service account, or the group.
	subject rbacv1.Subject
	grants  []grant
}

// grant gives somebody a right, and says by which right one sees that it has arrived.
type grant struct {
	give  func(h *house, to rbacv1.Subject) error
	shows authorizationv1.ResourceAttributes
}

// user is a user whom no other test has.
func (h *house) user(name string, grants ...grant) *somebody {
	user := h.namespace + "-" + name

	return &somebody{
		user: user, grants: grants,
		subject: rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacGroup, Name: user},
	}
}

// member is a user who has no rights but those of a group.
func (h *house) member(name, group string, grants ...grant) *somebody {
	who := h.user(name, grants...)
	who.groups = []string{h.namespace + "-" + group}
	who.subject = rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacGroup, Name: who.groups[0]}

	return who
}

// serviceAccount is somebody who is a service account.
func serviceAccount(namespace, name string, grants ...grant) *somebody {
	return &somebody{
		user: "system:serviceaccount:" + namespace + ":" + name, grants: grants,
		subject: rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name},
	}
}

// welcome grants somebody their rights, and waits until the API server's authorizer knows them.
func (h *house) welcome(who *somebody) *somebody {
	h.Helper()

	for _, g := range who.grants {
		if err := g.give(h, who.subject); err != nil {
			h.Fatalf("granting rights to %s: %v", who.user, err)
		}
	}

	for _, g := range who.grants {
		h.eventually("waiting for the rights of "+who.user, func(ctx context.Context) error {
			review, err := h.clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: who.user, Groups: who.groups, ResourceAttributes: &g.shows},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}

			if !review.Status.Allowed {
				return fmt.Errorf("may not %s %s", g.shows.Verb, g.shows.Resource)
			}

			return nil
		})
	}

	return who
}

func rule(group, resource, verb string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}, ResourceNames: names,
	}
}

// right is what a rule allows.
func right(r *rbacv1.PolicyRule, namespace string) authorizationv1.ResourceAttributes {
	out := authorizationv1.ResourceAttributes{
		Namespace: namespace, Group: r.APIGroups[0], Resource: r.Resources[0], Verb: r.Verbs[0],
	}
	if len(r.ResourceNames) > 0 {
		out.Name = r.ResourceNames[0]
	}

	return out
}

// here grants by a Role in the house's namespace, there by one in the other namespace.
func (h *house) here(r rbacv1.PolicyRule) grant  { return in(h.namespace, r) }
func (h *house) there(r rbacv1.PolicyRule) grant { return in(h.elsewhere, r) }

func in(namespace string, r rbacv1.PolicyRule) grant {
	return grant{
		give: func(h *house, to rbacv1.Subject) error {
			roles := h.clients.RbacV1().Roles(namespace)

			role, err := roles.Create(h.Context(), &rbacv1.Role{
				ObjectMeta: metav1.ObjectMeta{GenerateName: h.namespace + "-"}, Rules: []rbacv1.PolicyRule{r},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}

			h.forget(namespace, role.Name, roles.Delete)

			return h.bind(namespace, rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: role.Name}, to)
		},
		shows: right(&r, namespace),
	}
}

// hereAs binds a ClusterRole in the house's namespace. The ClusterRole has to allow what the rule says.
func (h *house) hereAs(clusterRole string, shows rbacv1.PolicyRule) grant {
	return grant{
		give: func(h *house, to rbacv1.Subject) error {
			return h.bind(h.namespace, rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: clusterRole}, to)
		},
		shows: right(&shows, h.namespace),
	}
}

func (h *house) bind(namespace string, role rbacv1.RoleRef, to rbacv1.Subject) error {
	bindings := h.clients.RbacV1().RoleBindings(namespace)

	binding, err := bindings.Create(h.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: h.namespace + "-"}, RoleRef: role, Subjects: []rbacv1.Subject{to},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}

	h.forget(namespace, binding.Name, bindings.Delete)

	return nil
}

// forget deletes after the test what was made in Ambit's own namespace. What is elsewhere goes with its namespace.
func (h *house) forget(namespace, name string, remove func(context.Context, string, metav1.DeleteOptions) error) {
	if namespace != embedded.Namespace {
		return
	}

	h.Cleanup(func() {
		if err := remove(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			h.Errorf("cleaning up: %v", err)
		}
	})
}

// everywhere grants by a ClusterRole, in the whole cluster.
func everywhere(r rbacv1.PolicyRule) grant {
	return grant{
		give: func(h *house, to rbacv1.Subject) error {
			roles := h.clients.RbacV1().ClusterRoles()

			role, err := roles.Create(h.Context(), &rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{GenerateName: h.namespace + "-"}, Rules: []rbacv1.PolicyRule{r},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}

			h.Cleanup(func() {
				if err := roles.Delete(context.Background(), role.Name, metav1.DeleteOptions{}); err != nil {
					h.Errorf("cleaning up: %v", err)
				}
			})

			return h.bindEverywhere(role.Name, to)
		},
		shows: right(&r, ""),
	}
}

// everywhereAs binds a ClusterRole in the whole cluster. The ClusterRole has to allow what the rule says.
func everywhereAs(clusterRole string, shows rbacv1.PolicyRule) grant {
	return grant{
		give: func(h *house, to rbacv1.Subject) error {
			return h.bindEverywhere(clusterRole, to)
		},
		shows: right(&shows, ""),
	}
}

func (h *house) bindEverywhere(clusterRole string, to rbacv1.Subject) error {
	bindings := h.clients.RbacV1().ClusterRoleBindings()

	binding, err := bindings.Create(h.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: h.namespace + "-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: clusterRole},
		Subjects:   []rbacv1.Subject{to},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}

	h.Cleanup(func() {
		if err := bindings.Delete(context.Background(), binding.Name, metav1.DeleteOptions{}); err != nil {
			h.Errorf("cleaning up: %v", err)
		}
	})

	return nil
}
