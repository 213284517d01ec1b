package plan

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// MaxObjects is how many Roles and RoleBindings all scopes of one operator namespace may ask for: ten Roles with as many bindings
// in 10,000 members. Refused objects cost memory, too, so a lack of permissions bounds nothing.
const MaxObjects = 200_000

// MaxProjected is how many accounts, RoleBindings and their subjects all scopes of one operator namespace may project, whatever
// their members are. Scopes may be many that project the same, and a binding that names a group stands for all accounts.
const MaxProjected = 100_000

// project says what is projected for a scope, if there is room for it, and returns how much of that it takes.
func (p *ScopePlan) project(f *facts.Facts, room int) int {
	p.resolveAccounts(&f.OperatorNamespace)

	size, subjects := len(p.Accounts), map[string][]rbacv1.Subject{}

	for name, binding := range f.OperatorNamespace.Bindings {
		if size > room || len(p.Accounts) == 0 {
			break
		}

		if of := p.subjects(binding.Subjects); len(of) > 0 {
			subjects[name] = of
			size += 1 + len(of)
		}
	}

	if size > room {
		p.Accounts, p.Members, p.Beyond = nil, nil, p.Members

		return 0
	}

	p.Copies = p.mirror(f, subjects)
	p.findUseless(f)

	return size
}

// bound leaves out the last members of scopes that ask for more than there is room for. Members are in the order of their names
// and scopes in that of their owners, so that what is left out does not depend on what was there first. Scopes that have no
// namespace are not bounded: nobody writes those who may not do everything anyway.
func (p *Plan) bound() {
	if p.Key.Family == scope.Templates {
		return
	}

	room := MaxObjects

	for i := range p.Scopes {
		s := &p.Scopes[i]

		if each := len(s.Copies); each > 0 && len(s.Members) > room/each {
			s.Members, s.Beyond = s.Members[:room/each], s.Members[room/each:]
		}

		room -= len(s.Copies) * len(s.Members)
	}
}
