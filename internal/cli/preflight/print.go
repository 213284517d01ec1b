package preflight

import (
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/preflight"
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
			a, of := &answers[i], preflight.Account(answers[i].Namespace, answers[i].Account)
			if err := o.table(a.Missing, of, "namespaces", "for "+grant.Title(a.Scope)); err != nil {
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

// table shows what somebody lacks for a purpose in each of some places.
func (o *Options) table(all []missingIn, who preflight.Subject, places, purpose string) error {
	var t terminal.Table

	lacking, verb := 0, "lacks"
	if who.Kind == "" {
		verb = "lack"
	}

	t.Row("NAMESPACE", "MISSING")

	for _, m := range all {
		place, words := output.Place(m.Namespace), []string{"nothing"}

		if len(m.Rules) > 0 {
			lacking++

			words = authority.Lines(m.Rules)
		}

		for _, line := range words {
			t.Row(place, line)
			place = ""
		}
	}

	if lacking == 0 {
		return output.Say(o.Out, "%s\n%s %s nothing %s.", t.Text(), who, verb, purpose)
	}

	return output.Say(o.Out, "%s\n%s %s permissions in %d of %d %s %s.\n"+
		"To grant exactly these, run this again with -o yaml, and apply what it prints.", t.Text(), who, verb, lacking, len(all),
		places, purpose)
}
