package snapshot

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// missing gathers what the writers of scopes lack, in the order in which it is found.
type missing struct {
	order []lacking
	rules map[lacking][]rbacv1.PolicyRule
}

// lacking is a scope and a namespace in which its writer lacks something.
type lacking struct {
	owner     scope.Owner
	namespace string
}

func (m *missing) note(owner scope.Owner, namespace string, r *predict.Refusal) {
	if r == nil || len(r.Missing) == 0 {
		return
	}

	key := lacking{owner, namespace}
	if _, known := m.rules[key]; !known {
		m.order = append(m.order, key)
	}

	m.rules[key] = append(m.rules[key], r.Missing...)
}

func (m *missing) noteAll(f *predict.Prediction) {
	for i := range f.Changes {
		m.note(f.Changes[i].Owner, f.Changes[i].Namespace, f.Changes[i].Refusal)
	}

	for i := range f.Lists {
		for k := range f.Scopes {
			if f.Scopes[k].Scope.WatchList == f.Lists[i].Name {
				m.note(f.Scopes[k].Scope.Owner, f.Key.Namespace, f.Lists[i].Refusal)
			}
		}
	}

	for i := range f.Restarts {
		for _, k := range f.Restarts[i].Scopes {
			m.note(f.Scopes[k].Scope.Owner, f.Key.Namespace, f.Restarts[i].Refusal)
		}
	}

	for i := range f.Injections {
		m.note(f.Injections[i].Owner, f.Key.Namespace, f.Injections[i].Refusal)
	}
}

// Grants are the authorizations that would give what is missing, one for each scope and namespace.
func (j *Authorizer) Grants(all []*predict.Prediction) []grant.Grant {
	m := missing{rules: map[lacking][]rbacv1.PolicyRule{}}
	scopes := map[scope.Owner]*scope.Scope{}

	for _, f := range all {
		for i := range f.Scopes {
			scopes[f.Scopes[i].Scope.Owner] = f.Scopes[i].Scope
		}

		m.noteAll(f)
	}

	out := make([]grant.Grant, 0, len(m.order))

	for _, key := range m.order {
		s := scopes[key.owner]

		user := j.userOf(s)
		if key.namespace != s.Key.Namespace && key.namespace != "" {
			user = j.userInMembers(s)
		}

		to, account, known := scope.AccountOfUser(user)
		if !known {
			continue
		}

		held := j.held[place{user, key.namespace}].rules
		rules := m.rules[key]

		// Whoever may write something has to be able to take it back, and a list that is not written restarts nobody yet.
		if key.namespace == s.Key.Namespace {
			rules = append(rules, authority.Missing(held, authority.InOperatorNamespace(s.WatchList))...)
		} else {
			rules = append(rules, authority.Missing(held, authority.Writing())...)
		}

		out = append(out, grant.Grant{
			Namespace: key.namespace, To: to, Account: account, Scope: key.owner, Rules: authority.Merge(rules), Part: true,
		})
	}

	return out
}
