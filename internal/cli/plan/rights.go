package plan

import (
	"context"
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// rights are what accounts would hold after the files are applied or deleted. The API server is asked about what they hold now,
// which tells nothing of where the files change roles or bindings: there, those that would be there decide.
type rights struct {
	*reading.Cluster

	ctx       context.Context //nolint:containedctx // They are asked for within one plan.
	proposals []*proposal
	delete    bool

	mu   sync.Mutex
	read map[string]*rbac
}

// rbac are the roles and bindings of a namespace and of the whole cluster; unread says that not all of them may be read.
type rbac struct {
	roles      explain.Roles
	bindings   []rbacv1.RoleBinding
	everywhere []rbacv1.ClusterRoleBinding
	unread     bool
}

// over gives the answers of another one where the files change nothing, and where not all may be read.
func (r *rights) over(asks simulation.Asker) simulation.Asker {
	return func(user, namespace string) ([]rbacv1.PolicyRule, bool, error) {
		of, name, is := scope.AccountOfUser(user)
		if !is || len(r.changes(namespace)) == 0 {
			return asks(user, namespace)
		}

		found, err := r.in(namespace)
		if err != nil {
			return nil, false, err
		}

		if found.unread {
			return asks(user, namespace)
		}

		var out []rbacv1.PolicyRule
		for _, right := range explain.Of(explain.Account{Namespace: of, Name: name}, found.bindings, found.everywhere, &found.roles) {
			out = append(out, right.Rules...)
		}

		return out, true, nil
	}
}

// changes are the proposals that change what somebody may do in a namespace.
func (r *rights) changes(namespace string) []*proposal {
	var out []*proposal

	for _, p := range r.proposals {
		if isRBAC(p) && (p.object.GetNamespace() == "" || p.object.GetNamespace() == namespace) {
			out = append(out, p)
		}
	}

	return out
}

func (r *rights) in(namespace string) (*rbac, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if found := r.read[namespace]; found != nil {
		return found, nil
	}

	found, err := r.list(namespace)
	if err != nil {
		return nil, err
	}

	for _, p := range r.changes(namespace) {
		found.put(p.object, r.delete)
	}

	if r.read == nil {
		r.read = map[string]*rbac{}
	}

	r.read[namespace] = found

	return found, nil
}

// list reads what is there.
func (r *rights) list(namespace string) (*rbac, error) {
	out := &rbac{roles: explain.Roles{Roles: map[string]*rbacv1.Role{}, ClusterRoles: map[string]*rbacv1.ClusterRole{}}}
	lists := map[client.ObjectList]string{
		&rbacv1.ClusterRoleList{}: "clusterroles", &rbacv1.ClusterRoleBindingList{}: "clusterrolebindings",
	}

	if namespace != "" && namespace != scope.Cluster {
		lists[&rbacv1.RoleList{}], lists[&rbacv1.RoleBindingList{}] = "roles", "rolebindings"
	}

	for list, resource := range lists {
		in := namespace
		if resource == "clusterroles" || resource == "clusterrolebindings" {
			in = ""
		}

		listed, err := r.Lists(r.ctx, list, resource, in)
		if err != nil {
			return nil, err
		}

		out.unread = out.unread || listed != snapshot.Complete

		reading.Visit(list, func(obj client.Object) { out.put(obj, false) })
	}

	return out, nil
}

// put stores an object in the place of another version, or with gone only takes that out.
func (f *rbac) put(obj client.Object, gone bool) {
	switch obj := obj.(type) {
	case *rbacv1.Role:
		f.roles.Roles[obj.Name] = obj
		if gone {
			delete(f.roles.Roles, obj.Name)
		}
	case *rbacv1.ClusterRole:
		f.roles.ClusterRoles[obj.Name] = obj
		if gone {
			delete(f.roles.ClusterRoles, obj.Name)
		}
	case *rbacv1.RoleBinding:
		f.bindings = slices.DeleteFunc(f.bindings, func(b rbacv1.RoleBinding) bool { return b.Name == obj.Name })
		if !gone {
			f.bindings = append(f.bindings, *obj)
		}
	case *rbacv1.ClusterRoleBinding:
		f.everywhere = slices.DeleteFunc(f.everywhere, func(b rbacv1.ClusterRoleBinding) bool { return b.Name == obj.Name })
		if !gone {
			f.everywhere = append(f.everywhere, *obj)
		}
	}
}
