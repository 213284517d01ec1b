package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// Propagation is how long the API server's authorizer may take to learn of a Role and of the binding that refers to it. It
// watches the two separately, so what replaces another permission has to be there for a while before the other may go.
const Propagation = time.Second

// inheritedMark is the label by which IBM's operator finds what it projected for a ConfigMap of a namespace.
func inheritedMark(list, home string) string {
	mark := list + "-" + home

	return mark[:min(len(mark), 63)]
}

// inheritedName is the name that IBM's operator gives to its copies of a Role for a service account (its
// controllers/namespacescope_controller.go, CreateRole).
func inheritedName(role, account, home string) string {
	sum := sha256.Sum256([]byte(role + account + home))
	stem, _, _ := strings.Cut(role, ".")

	return stem + "-" + hex.EncodeToString(sum[:7])
}

// planInherited finds what IBM's operator projected for a home and Ambit projects now. Whatever differs from what that
// operator writes, in its name or its labels, is somebody's own work and stays.
func (p *Plan) planInherited(f *facts.Facts) {
	names := inheritedNames(f)

	for i := range p.Scopes {
		s := &p.Scopes[i]
		if s.Scope.WatchList == "" || p.isShared(i) {
			continue
		}

		for namespace, objects := range f.Inherited {
			for key, live := range objects {
				if live.Mark != inheritedMark(s.Scope.WatchList, p.Home) {
					continue
				}

				if !isInherited(key, &live, s.Scope.WatchList, p.Home, names) {
					s.Strangers = append(s.Strangers, fmt.Sprintf("%s %s/%s", key.Kind, namespace, key.Name))
				} else if p.isServed(s.Scope.WatchList, namespace, f) {
					s.Inherited = append(s.Inherited, Change{Action: Delete, Namespace: namespace, Key: key, Version: live.Version})
				}
			}
		}

		sortChanges(s.Inherited)
		slices.Sort(s.Strangers)
	}
}

// isShared says whether a scope before this one has the same list, and so the same inheritance.
func (p *Plan) isShared(index int) bool {
	return slices.ContainsFunc(p.Scopes[:index], func(s ScopePlan) bool {
		return s.Scope.WatchList == p.Scopes[index].Scope.WatchList
	})
}

// inheritedNames are all names that IBM's operator can have given in this home, with the account that each is for.
func inheritedNames(f *facts.Facts) map[string]string {
	names := map[string]string{}
	if len(f.Inherited) == 0 {
		return names
	}

	accounts, roles := map[string]struct{}{}, map[string]struct{}{}
	for name := range f.Home.Accounts {
		accounts[name] = struct{}{}
	}

	for name := range f.Home.Roles {
		roles[name] = struct{}{}
	}

	for _, objects := range f.Inherited {
		for key, live := range objects {
			if len(live.Subjects) == 1 {
				accounts[live.Subjects[0].Name] = struct{}{}
			}

			// A role that is gone by now was called as the copy is up to the last dash, unless it had a dot in its name.
			if dash := strings.LastIndex(key.Name, "-"); dash > 0 {
				roles[key.Name[:dash]] = struct{}{}
			}
		}
	}

	for role := range roles {
		for account := range accounts {
			names[inheritedName(role, account, f.Home.Name)] = account
		}
	}

	return names
}

func isInherited(key facts.ProjectedKey, live *facts.Inherited, list, home string, names map[string]string) bool {
	account, known := names[key.Name]
	if !known || !live.Labelled || live.List != list {
		return false
	}

	if key.Kind != projected.RoleBinding {
		return key.Kind == projected.Role
	}

	return len(live.Subjects) == 1 &&
		live.Subjects[0] == rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account} &&
		live.RoleRef == rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: key.Name}
}

// isServed says whether nothing is missed in a namespace when the inheritance goes: all scopes that share the list have
// their permissions there, and the API server's authorizer knows it.
func (p *Plan) isServed(list, namespace string, f *facts.Facts) bool {
	member := false

	for i := range p.Scopes {
		s := &p.Scopes[i]
		if s.Scope.WatchList != list || s.Scope.Deleting() || !s.isMember(namespace) {
			continue
		}

		if p.Pending(i, namespace) {
			return false
		}

		member = true
	}

	if settled := f.Granted.Add(Propagation); member && f.Now.Before(settled) {
		p.wake(settled)

		return false
	}

	return true
}
