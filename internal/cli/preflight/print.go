package preflight

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// print says what is missing, with notes that are about no scope. It returns ErrMissing when something is.
func (o *Options) print(answers []scopeAnswer, notes []string) error {
	var objects []scope.Object

	for i := range answers {
		objects = append(objects, answers[i].grants()...)
	}

	if o.Output == output.Table {
		for i := range answers {
			if err := o.table(&answers[i]); err != nil {
				return err
			}
		}
	} else if err := output.Objects(o.Out, o.Output, objects); err != nil {
		return err
	}

	for i := range answers {
		notes = append(notes, answers[i].Notes...)
	}

	if err := output.Notes(o.ErrOut, notes); err != nil {
		return err
	}

	if len(objects) > 0 {
		return command.ErrMissing
	}

	return nil
}

// grants are the Roles and RoleBindings that grant what is missing.
func (a *scopeAnswer) grants() []scope.Object {
	var out []scope.Object

	for _, m := range a.Missing {
		if len(m.Rules) == 0 {
			continue
		}

		g := grant.Grant{Namespace: m.Namespace, To: a.Namespace, Account: a.Account, Scope: a.Scope, Rules: m.Rules, Part: true}
		out = append(out, g.Role(), g.RoleBinding())
	}

	return out
}

func (o *Options) table(a *scopeAnswer) error {
	t, lacking := missingTable(len(a.Missing), func(i int) (string, []rbacv1.PolicyRule) {
		return a.Missing[i].Namespace, a.Missing[i].Rules
	})

	if err := output.Print(o.Out, t.Text()); err != nil {
		return err
	}

	if lacking == 0 {
		return output.Say(o.Out, "\nService account %s/%s lacks nothing for %s.", a.Namespace, a.Account, grant.Title(a.Scope))
	}

	return output.Say(o.Out, "\nService account %s/%s lacks permissions in %d of %d namespaces for %s.\n"+
		"To grant exactly these, run this again with -o yaml, and apply what it prints.",
		a.Namespace, a.Account, lacking, len(a.Missing), grant.Title(a.Scope))
}

// missingTable shows what is missing in each of some places, and counts those in which anything is.
func missingTable(places int, missing func(i int) (place string, rules []rbacv1.PolicyRule)) (t terminal.Table, lacking int) {
	t.Row("NAMESPACE", "MISSING")

	for i := range places {
		place, rules := missing(i)
		words := []string{"nothing"}

		if len(rules) > 0 {
			lacking++

			words = authority.Lines(rules)
		}

		for _, line := range words {
			t.Row(place, line)

			place = ""
		}
	}

	return t, lacking
}
