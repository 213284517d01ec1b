package authorize

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// decide says what is granted: first in the namespace, then what goes along with it; and what the caller should know
// although nothing is wrong.
func (o *Options) decide(ctx context.Context, w *session, s *scope.Scope) ([]grant.Grant, []string, error) {
	if o.Installs {
		return o.decideInstalls(ctx, w)
	}

	g := grant.Grant{Namespace: o.Namespace, To: o.To, Account: o.Account, Scope: o.wanted().Owner(o.To)}
	if s != nil {
		g.Scope, g.Account = s.Owner, cmp.Or(g.Account, s.Delegate)
	}

	// The caller need not know as whom the manager writes by default: where that is another account, the command in the scope's
	// status names it.
	g.Account = cmp.Or(g.Account, grant.DefaultAccount)

	var notes []string
	if s != nil && s.Delegate != "" && s.Delegate != g.Account {
		notes = append(notes, fmt.Sprintf("%s writes as service account %s, to which this grants nothing",
			grant.Title(s.Owner), s.Delegate))
	}

	switch {
	case g.InOperatorNamespace():
		g.Rules = authority.GrantInOperatorNamespace(s)

		return []grant.Grant{g}, notes, nil
	case o.All:
		g.Rules = authority.GrantOfEverything()
	default:
		p, err := w.plan(ctx, s)
		if err != nil {
			return nil, nil, err
		}

		g.Rules = authority.GrantFor(p)
		notes = append(notes, notesOn(p, &g, o.Account)...)
	}

	namespace, note, err := o.alongInOperatorNamespace(ctx, w, s, &g)

	return append([]grant.Grant{g}, namespace...), append(notes, note...), err
}

// alongInOperatorNamespace returns the grant that goes along in the scope's own namespace, or a note that says why there is none.
// A manual scope that names no account writes as an account that authorizations make for it, and that has no rights but those
// that they grant. An account that existed before, such as Ambit's own, has its rights from elsewhere.
func (o *Options) alongInOperatorNamespace(
	ctx context.Context, w *session, s *scope.Scope, g *grant.Grant,
) ([]grant.Grant, []string, error) {
	if s == nil || !s.Manual || s.Delegate != grant.DefaultAccount || g.Account != s.Delegate {
		return nil, nil, nil
	}

	if o.GrantOnly {
		return nil, []string{fmt.Sprintf("nothing is granted in namespace %s itself; whoever may do that: %s",
			o.To, grant.Command(o.To, s.Owner, ""))}, nil
	}

	ours, err := w.ours(ctx, g.Account)
	if err != nil {
		return nil, nil, err
	}

	if !ours {
		return nil, []string{fmt.Sprintf("service account %s/%s was not made by this command, so its rights in namespace %s stay as "+
			"they are; to grant what the scope needs there: %s", o.To, g.Account, o.To, grant.Command(o.To, s.Owner, ""))}, nil
	}

	namespace := grant.Grant{Namespace: o.To, To: o.To, Account: g.Account, Scope: s.Owner,
		Rules: authority.GrantInOperatorNamespace(s)}

	return []grant.Grant{namespace}, nil, nil
}

// unused is a note where the Ambit of the cluster has no use for a grant, as far as the caller may know: it serves nothing in the
// other namespace, or writes for the scope as itself.
func (w *session) unused(ctx context.Context, s *scope.Scope) ([]string, error) {
	m, unknown, err := snapshot.New(w.Client).Manager(ctx, reading.DefaultAmbitNamespace)
	if err != nil || unknown != "" {
		return nil, err
	}

	by := m.Writers()

	switch {
	case !by.Serves(w.to):
		return []string{fmt.Sprintf("the Ambit of namespace %s serves %s only: unless another one serves %s, this grant has no effect",
			m.Namespace, strings.Join(m.Namespaces, ", "), w.to)}, nil
	case s != nil && by.WritesEverywhere() && by.Here(*s).Delegate == "":
		return []string{fmt.Sprintf("the Ambit of namespace %s writes for %s as itself and uses no grant, unless the scope names a "+
			"service account", m.Namespace, grant.Title(s.Owner))}, nil
	default:
		return nil, nil
	}
}

// ours says whether an authorization made a service account of the other namespace, or will make it. A caller who may not read
// the account learns from the writes what else they may not do.
func (w *session) ours(ctx context.Context, name string) (bool, error) {
	account := &corev1.ServiceAccount{}

	err := w.Get(ctx, client.ObjectKey{Namespace: w.to, Name: name}, account)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return true, nil
	}

	if err != nil {
		return false, describeRefusal(err, "looking for service account %s/%s", w.to, name)
	}

	return account.Labels[scope.LabelManagedBy] == grant.ManagedBy, nil
}

// notesOn are what the caller should know about what the scope projects. given is the account that the caller named.
func notesOn(p *plan.ScopePlan, g *grant.Grant, given string) []string {
	var notes []string

	again := "; run this again when it exists: " + grant.Command(g.Namespace, g.Scope, given)

	if len(p.DanglingBindings) > 0 {
		notes = append(notes, "not granted, because the role does not exist: "+strings.Join(p.DanglingBindings, ", ")+again)
	}

	if len(p.MissingAccounts) > 0 {
		notes = append(notes, "not projected, because the service account does not exist: "+
			strings.Join(printable.Names(p.MissingAccounts), ", ")+again)
	}

	if len(p.Copies) == 0 {
		notes = append(notes, "the scope projects nothing at present")
	}

	return notes
}
