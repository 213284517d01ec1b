package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// scopeAnswer is what an account lacks for a scope.
type scopeAnswer struct {
	Scope scope.Owner
	// Namespace and Account are the service account.
	Namespace, Account string
	// Missing is sorted by namespace; a namespace in which nothing is missing has no rules.
	Missing []missingIn
	// Notes are what the caller should know about what could not be asked.
	Notes []string
}

type missingIn struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// askAbout plans as the manager does, and asks in every namespace of the plan what the account may do there. ambit is the
// namespace that the manager runs in.
func askAbout(
	ctx context.Context, c client.Client, config *rest.Config, s *scope.Scope, ambit, namespace, account string,
) (*scopeAnswer, error) {
	f, err := reading.ReadNamespace(ctx, c, s.Key.Namespace)
	if err != nil {
		return nil, err
	}

	f.AmbitNamespace = ambit
	answer := &scopeAnswer{Scope: s.Owner, Namespace: namespace, Account: account}

	if answer.Notes, err = noteMissingAccount(ctx, c, namespace, account); err != nil {
		return nil, err
	}

	if f.Namespaces, err = namespacesAround(ctx, c, s, answer); err != nil {
		return nil, err
	}

	p, err := reading.PlanOne(ctx, c, f, s)
	if err != nil {
		return nil, err
	}

	if err := answer.ask(ctx, snapshot.New(c), config, s, p); err != nil {
		return nil, err
	}

	for _, a := range p.Absent {
		answer.Notes = append(answer.Notes, "namespace "+a.Namespace+" does not exist, or is being deleted, and was not asked about")
	}

	return answer, nil
}

// ask asks what the account may do in the scope's namespace and in each member.
func (a *scopeAnswer) ask(
	ctx context.Context, r *snapshot.Reader, config *rest.Config, s *scope.Scope, p *plan.ScopePlan,
) error {
	who := a.Namespace + "/" + a.Account

	asking, err := r.As(ctx, config, scope.AccountUser(a.Namespace, a.Account))
	if err != nil {
		return notAsked(err, who)
	}

	rules, err := rulesOfClusterRoles(ctx, r, p.Copies)
	if err != nil {
		return err
	}

	places := append([]string{s.Key.Namespace}, p.Members...)
	held := make([][]rbacv1.PolicyRule, len(places))

	err = r.Each(ctx, "asking what may be written", len(places), func(i int) error {
		var err error
		held[i], err = snapshot.HeldIn(ctx, asking, places[i])

		return notAsked(err, who)
	})
	if err != nil {
		return err
	}

	a.noteWebhooks(held[0], s)
	a.Missing = append(a.Missing, missingIn{places[0], authority.Missing(held[0], authority.GrantInOperatorNamespace(s))})

	for i := 1; i < len(places); i++ {
		a.Missing = append(a.Missing, missingIn{places[i], withoutHeld(held[i], authority.OfMember(held[i], p.Copies), rules)})
	}

	return nil
}

// noteMissingAccount says that a service account does not exist. Rights depend only on its name, so what it lacks is known all
// the same, and nothing else in the answer would show that it is missing. For a caller who may not read it there is no note.
func noteMissingAccount(ctx context.Context, c client.Reader, namespace, name string) ([]string, error) {
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ServiceAccount{})

	switch {
	case apierrors.IsNotFound(err):
		return []string{fmt.Sprintf("service account %s/%s does not exist, so nothing can be written as it; what is said here is what "+
			"an account of that name would lack", namespace, printable.Name(name))}, nil
	case err != nil && !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("looking for service account %s/%s: %w", namespace, printable.Name(name), command.OneLine(err))
	default:
		return nil, nil
	}
}

// noteWebhooks names a right that nobody in a namespace can grant. Whether the scope needs it depends on its operators.
func (a *scopeAnswer) noteWebhooks(held []rbacv1.PolicyRule, s *scope.Scope) {
	if s.TouchesCSVs() && authority.Missing(held, authority.OfWebhooks()) != nil {
		a.Notes = append(a.Notes, fmt.Sprintf("webhook configurations have no namespace, so the right to patch them is not counted; "+
			"if a ClusterServiceVersion has the annotation nss.operator.ibm.com/managed-webhooks, a cluster administrator has to "+
			"give it to service account %s/%s", a.Namespace, a.Account))
	}
}

// namespacesAround returns the namespaces that exist, as far as the caller may know.
func namespacesAround(
	ctx context.Context, c client.Reader, s *scope.Scope, answer *scopeAnswer,
) (map[string]facts.Namespace, error) {
	var list corev1.NamespaceList

	found := map[string]facts.Namespace{}
	err := c.List(ctx, &list)

	switch {
	case apierrors.IsForbidden(err):
		for _, name := range s.Members.Named {
			found[name] = facts.Namespace{}
		}

		if s.Members.Selector != nil {
			answer.Notes = append(answer.Notes, "you may not list namespaces, so those that the selector matches were not asked about")
		}
	case err != nil:
		return nil, fmt.Errorf("listing namespaces: %w", command.OneLine(err))
	}

	addNamespaces(found, list.Items)

	return found, nil
}

func addNamespaces(found map[string]facts.Namespace, namespaces []corev1.Namespace) {
	for i := range namespaces {
		found[namespaces[i].Name] = facts.NamespaceOf(&namespaces[i])
	}
}

// notAsked says why it is not known what an account may do; no error stays none.
func notAsked(err error, account string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, snapshot.ErrMayNotAsk):
		return fmt.Errorf("you may not impersonate service account %s, so it cannot be asked what it may do; "+
			"let somebody run this who may, such as an administrator of its namespace", account)
	default:
		return fmt.Errorf("asking about service account %s: %w", account, command.OneLine(err))
	}
}

// rulesOfClusterRoles are the rules of the ClusterRoles that copies bind, where the caller may read them.
func rulesOfClusterRoles(ctx context.Context, c client.Reader, copies []plan.Copy) (map[string][]rbacv1.PolicyRule, error) {
	out := map[string][]rbacv1.PolicyRule{}

	for i := range copies {
		name := copies[i].RoleRef.Name
		if _, read := out[name]; read || copies[i].RoleRef.Kind != "ClusterRole" {
			continue
		}

		role := &rbacv1.ClusterRole{}

		switch err := c.Get(ctx, client.ObjectKey{Name: name}, role); {
		case err == nil:
			out[name] = role.Rules
		case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading ClusterRole %s: %w", name, command.OneLine(err))
		}
	}

	return out, nil
}

// withoutHeld takes out the right to bind a ClusterRole whose rules the account holds in full: then the API server does not
// ask for it. Where the caller may not read the ClusterRole, the right stays in the answer.
func withoutHeld(held, missing []rbacv1.PolicyRule, clusterRoles map[string][]rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var covered []string

	for name, rules := range clusterRoles {
		if authority.Missing(held, rules) == nil {
			covered = append(covered, name)
		}
	}

	var out []rbacv1.PolicyRule

	for _, r := range missing {
		if slices.Equal(r.Verbs, []string{"bind"}) {
			r.ResourceNames = slices.DeleteFunc(slices.Clone(r.ResourceNames), func(n string) bool { return slices.Contains(covered, n) })
			if len(r.ResourceNames) == 0 {
				continue
			}
		}

		out = append(out, r)
	}

	return out
}
