package plan

import (
	"fmt"
	"strings"
)

// String shows the plan as text: what every scope asks for, then every write, in the order in which they are made.
func (p *Plan) String() string {
	var b strings.Builder

	for i := range p.Scopes {
		s := &p.Scopes[i]
		fmt.Fprintf(&b, "scope %s: members %v, absent %v, accounts %v, missing %v, dangling %v\n",
			s.Scope.Owner, s.Members, s.Absent, s.Accounts, s.MissingAccounts, s.DanglingBindings)
		printChanges(&b, "hold", s.Hold)
		printChanges(&b, "revoke", s.Revoke)
		printChanges(&b, "grant", s.Grant)
	}

	for i := range p.Lists {
		w := p.Lists[i].Resolve(Never, Never)
		fmt.Fprintf(&b, "list %s: %s %s\n", p.Lists[i].Name, w.Action, w.Value)
	}

	for i := range p.Injections {
		b.WriteString(printInjection(&p.Injections[i]))
	}

	for i := range p.Scopes {
		printChanges(&b, "prune", p.Scopes[i].Prune)
		printChanges(&b, "prune later", p.Scopes[i].Held)
		printChanges(&b, "inherited", p.Scopes[i].Legacy)
	}

	printChanges(&b, "orphan", p.Orphans)

	for i := range p.Restarts {
		fmt.Fprintf(&b, "restart %s: list %s\n", p.Restarts[i].Reader(), p.Restarts[i].List)
	}

	return b.String()
}

func printChanges(b *strings.Builder, why string, changes []Change) {
	for i := range changes {
		c := &changes[i]
		fmt.Fprintf(b, "%s: %s %s %s/%s", why, c.Action, c.Key.Kind, c.Namespace, c.Key.Name)

		if c.Copy != nil {
			fmt.Fprintf(b, " from %s", c.Copy.Source)
		}

		b.WriteByte('\n')
	}
}
