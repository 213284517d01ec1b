package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/projected"
)

// String shows the plan as text: what every scope asks for, then every write, in the order in which they are made, with who makes
// it and what it waits for.
func (p *Plan) String() string {
	pr := printer{plan: p}

	if p.LeftOut != "" {
		pr.linef("left out: %s", p.LeftOut)
	}

	for i := range p.Scopes {
		pr.scope(&p.Scopes[i])
	}

	pr.changes("hold", "", func(s *ScopePlan) []Change { return s.Hold })
	pr.changes("revoke", "", func(s *ScopePlan) []Change { return without(s.Revoke, projected.ClusterRole) })
	pr.changes("grant", "", func(s *ScopePlan) []Change { return s.Grant })
	pr.injections(true)
	pr.lists()
	pr.injections(false)
	pr.webhooks()

	for i := range p.Orphans {
		pr.change("orphan", "Ambit", &p.Orphans[i])
	}

	pr.changes("prune", "after its list", func(s *ScopePlan) []Change { return s.Prune })
	pr.changes("prune later", "after its readers", func(s *ScopePlan) []Change { return s.Held })
	pr.changes("revoke", "after what binds it", func(s *ScopePlan) []Change {
		return without(s.Revoke, projected.Role,
			projected.RoleBinding, projected.ClusterRoleBinding)
	})
	pr.changes("retire", "", func(s *ScopePlan) []Change { return s.Retire })
	pr.changes("legacy", "", func(s *ScopePlan) []Change { return s.Legacy })
	pr.restarts()

	if !p.Again.IsZero() {
		pr.linef("again: %s", p.Again.UTC().Format(time.RFC3339Nano))
	}

	return pr.String()
}

func without(changes []Change, kinds ...projected.Kind) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return slices.Contains(kinds, c.Key.Kind) })
}

// printer writes a plan down.
type printer struct {
	strings.Builder

	plan *Plan
}

func (pr *printer) linef(format string, args ...any) {
	fmt.Fprintf(pr, format, args...)
	pr.WriteByte('\n')
}

// writer is who writes for the scope with an index.
func (pr *printer) writer(index int) string {
	if index < 0 {
		return "Ambit"
	}

	return pr.plan.Scopes[index].writer()
}

func (p *ScopePlan) writer() string {
	return cmp.Or(p.Scope.Delegate, "Ambit")
}

func (pr *printer) scope(s *ScopePlan) {
	pr.linef("scope %s, as %s: members %v, everywhere %t, beyond %v, absent %v, selection %v, accounts %v, missing %v, "+
		"dangling %v, foreign %v, foreign bindings %v, foreign legacy %v, ineffective %v, cluster-wide %v and %d more, leases %v, "+
		"injectables %v and of older scopes %d, injection refused %q, CSVs %v, leaves %v, finishing %v, withdrawn %v, bare %v, "+
		"grantee %q",
		s.Scope.Owner, s.writer(), s.Members, s.Everywhere, s.Beyond, s.Absent, s.Selection, s.Accounts, s.MissingAccounts,
		s.DanglingBindings, s.Foreign, s.ForeignBindings, s.ForeignLegacy, s.Ineffective, s.ClusterWide, s.ClusterWideMore, s.Leases,
		s.Injectables, s.OlderCount, s.InjectionRefused, s.CSVs, s.Leaves, s.Finishing, s.Withdrawn, s.Bare, s.Grantee)

	for i := range s.Copies {
		c := &s.Copies[i]
		pr.linef("copy %s %s %s from %s, digest %x", c.Kind, c.Slot, s.ClusterRoles[c.Slot], c.Source, c.Sum)
	}
}

func (pr *printer) changes(why, waits string, of func(*ScopePlan) []Change) {
	for i := range pr.plan.Scopes {
		changes := of(&pr.plan.Scopes[i])
		for j := range changes {
			pr.change(strings.TrimSpace(why+" "+waits), pr.writer(i), &changes[j])
		}
	}
}

func (pr *printer) change(why, writer string, c *Change) {
	fmt.Fprintf(pr, "%s: %s %s %s/%s", why, c.Action, c.Key.Kind, c.Namespace, c.Key.Name)

	if c.Version != 0 {
		fmt.Fprintf(pr, " at %d", c.Version)
	}

	if c.Copy != nil {
		fmt.Fprintf(pr, " from %s", c.Copy.Source)
	}

	if c.Rules != nil {
		fmt.Fprintf(pr, " with %v", c.Rules)
	}

	if c.Copy != nil && c.Key.Kind.IsBinding() {
		fmt.Fprintf(pr, " after %s %s", c.RoleRef.Kind, c.RoleRef.Name)
	}

	for i := range c.Owners {
		fmt.Fprintf(pr, " with %s %s", c.Owners[i].Kind, c.Owners[i].Name)
	}

	pr.linef(", as %s", writer)
}

func (pr *printer) lists() {
	for i := range pr.plan.Lists {
		l := &pr.plan.Lists[i]
		w := ResolveList(l, nil, nil)
		pr.linef("list %s: %s %s at %d, as one of %s", l.Name, w.Action, w.Value, w.Version, pr.writers(l.Scopes))

		for j := range l.Members {
			m := &l.Members[j]

			switch {
			case m.Stays && len(m.Unless) > 0:
				pr.linef("list %s: %s stays unless it is refused to %v, and enters after the grants of %v", l.Name, m.Namespace, m.Unless,
					m.Enters)
			case m.Stays:
				pr.linef("list %s: %s stays", l.Name, m.Namespace)
			default:
				pr.linef("list %s: %s enters after the grants of %v", l.Name, m.Namespace, m.Enters)
			}
		}
	}
}

// writers are those of several scopes.
func (pr *printer) writers(scopes []int) string {
	out := make([]string, 0, len(scopes))
	for _, i := range scopes {
		out = append(out, pr.writer(i))
	}

	return strings.Join(out, ", ")
}

func (pr *printer) injections(takenBack bool) {
	for i := range pr.plan.Injections {
		in := &pr.plan.Injections[i]
		if in.IsTakenBack() == takenBack {
			pr.linef("inject: %s %s at %d%s, as %s: %s %v %s", in.Action, in.Target(), in.Version, afterList(in.List),
				pr.writer(in.Scope), content(in.Spec), in.Marks, content(in.Patch))

			if len(in.Otherwise) > 0 {
				pr.linef("inject otherwise: %s", content(in.Otherwise))
			}
		}
	}
}

// content is what is written, as JSON: it has pointers in it. Whatever its type is, its fields are in the order of their names.
func content(v any) string {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}

	if err == nil {
		text, err = json.Marshal(v)
	}

	if err != nil {
		return err.Error()
	}

	return string(text)
}

func (pr *printer) webhooks() {
	for i := range pr.plan.Webhooks {
		w := &pr.plan.Webhooks[i]
		pr.linef("webhook: limit %s at %d%s, as %s", w.Target(), w.Live.Version, afterList(w.List), pr.writer(w.Scope))
	}
}

func afterList(name string) string {
	if name == "" {
		return ""
	}

	return " after list " + name
}

func (pr *printer) restarts() {
	for i := range pr.plan.Restarts {
		r := &pr.plan.Restarts[i]
		pr.linef("restart %s%s: hash %s, evict %v, wait %s, last %t, quiet %t, template stays %t, as one of %s", r.Reader(),
			afterList(r.List), ResolveHash(r.Reads, nil), r.Evict, r.Wait, r.Last, r.Quiet, r.TemplateStays, pr.writers(r.Scopes))
	}
}
