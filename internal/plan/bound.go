package plan

import "github.com/ambit-k8s/ambit/internal/scope"

// MaxObjects is how many Roles and RoleBindings all scopes of one operator namespace may ask for: ten Roles with as many bindings
// in 10,000 members. Refused objects cost memory, too, so a lack of permissions bounds nothing.
const MaxObjects = 200_000

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
