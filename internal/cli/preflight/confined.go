package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// inquiry is a view of the cluster for the question what somebody lacks.
type inquiry struct {
	*reading.Cluster

	// writers says who would write.
	writers *writer.Manager
	// beyond is what an install needs in the whole cluster where Ambit has rights in single namespaces alone; nil elsewhere.
	beyond *clusterNeeds
}

// clusterNeeds is what an install needs in the cluster as a whole, where Ambit has rights in single namespaces alone and
// somebody else has to see to it.
type clusterNeeds struct {
	// missing are things, in words, and operators what the accounts of operators lack.
	missing   []string
	operators []operatorLack
}

// operatorLack is what an operator's account lacks in the cluster as a whole.
type operatorLack struct {
	preflight.Subject

	rules []rbacv1.PolicyRule
}

func (b *clusterNeeds) isEmpty() bool { return b == nil || len(b.missing)+len(b.operators) == 0 }

// confine finds out whether the manager has rights in single namespaces alone.
func (o *Options) confine(ctx context.Context, v *inquiry) error {
	manager, note, err := snapshot.New(v.Client).Manager(ctx, o.AmbitNamespace)
	v.writers = manager.Writers()

	if note != "" {
		v.Notes = append(v.Notes, note)
	}

	if err != nil || len(manager.Namespaces) == 0 {
		return err
	}

	v.beyond = &clusterNeeds{}

	switch {
	case manager.OperatorGroups != string(read.ServeAlways):
		v.Notes = append(v.Notes, fmt.Sprintf("the Ambit of namespace %s installs nothing: it serves single namespaces, and runs "+
			"without --operator-groups=enabled", o.AmbitNamespace))
	case !slices.Contains(manager.Namespaces, o.Namespace):
		v.Notes = append(v.Notes, fmt.Sprintf("the Ambit of namespace %s installs nothing in namespace %s: it serves %s",
			o.AmbitNamespace, o.Namespace, strings.Join(manager.Namespaces, ", ")))
	}

	return nil
}

// needsOfVersion is what installing a ClusterServiceVersion needs, and taking away what it replaces. If Ambit cannot make what
// has no namespace, v.beyond gets that.
func (o *Options) needsOfVersion(
	ctx context.Context, v *inquiry, csv *olm.ClusterServiceVersion, targets []string,
) ([]authority.Place, error) {
	left, err := o.deletes(ctx, v, csv, targets)
	if err == nil && v.writers.NeedDelegate && v.writers.User != "" && len(install.ServingOf(csv)) > 0 {
		err = o.certifies(ctx, v)
	}

	if err != nil || v.beyond == nil {
		return append(install.Needs(csv, o.Namespace, targets), left...), err
	}

	v.beyond.missing = append(v.beyond.missing, install.Beyond(csv, func(d olm.CRDDescription) bool {
		_, group, _ := strings.Cut(d.Name, ".")
		_, err := v.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: d.Kind}, d.Version)

		return err == nil
	})...)

	permissions := install.ClusterPermissions(csv)

	for _, account := range slices.Sorted(maps.Keys(permissions)) {
		var held []rbacv1.PolicyRule

		asking, err := v.As(ctx, v.Config, scope.AccountUser(o.Namespace, account))
		if err == nil {
			held, err = snapshot.HeldIn(ctx, asking, preflight.Everywhere)
		}

		if err != nil && !errors.Is(err, snapshot.ErrMayNotAsk) {
			return nil, err
		}

		if rules := authority.Missing(held, permissions[account]); len(rules) > 0 {
			v.beyond.operators = append(v.beyond.operators, operatorLack{preflight.Account(o.Namespace, account), rules})
		}
	}

	return append(install.NeedsConfined(csv, o.Namespace, targets), left...), nil
}

// certifies notes that Ambit itself may not write certificates as other accounts. Who may not ask that learns it from the status.
func (o *Options) certifies(ctx context.Context, v *inquiry) error {
	asking, err := v.As(ctx, v.Config, v.writers.User)
	if err != nil {
		return err
	}

	held, err := snapshot.HeldIn(ctx, asking, o.Namespace)
	if errors.Is(err, snapshot.ErrMayNotAsk) {
		return nil
	}

	ways := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{apply.ActOn + "create"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}},
	}

	if err == nil && !slices.ContainsFunc(ways, func(r rbacv1.PolicyRule) bool {
		return authority.Missing(held, []rbacv1.PolicyRule{r}) == nil
	}) {
		v.Notes = append(v.Notes, "whatever may be done, no webhooks are set up; "+apply.CertificatesAdvice)
	}

	return err
}

// grants are the objects that grant the accounts of operators what they lack.
func (b *clusterNeeds) grants() []scope.Object {
	var out []scope.Object

	if b != nil {
		for _, l := range b.operators {
			out = append(out, preflight.Grant(l.Subject, preflight.Everywhere, l.rules)...)
		}
	}

	return out
}

// sayBeyond says what an administrator of the cluster has to see to. If the grants are printed for programs, it says only what no
// grant can give.
func (o *Options) sayBeyond(b *clusterNeeds) error {
	if b.isEmpty() {
		return nil
	}

	out, lines := o.ErrOut, slices.Clone(b.missing)

	if o.Output == output.Table {
		out = o.Out

		for _, l := range b.operators {
			for _, line := range authority.Lines(l.rules) {
				lines = append(lines, fmt.Sprintf("%s, in the cluster as a whole: %s", l.Subject, line))
			}
		}
	}

	if len(lines) == 0 {
		return nil
	}

	text := terminal.Textf("\nAmbit serves single namespaces and makes nothing that has none. " +
		"Missing, for whoever administers the cluster:")

	for _, line := range slices.Compact(lines) {
		text = terminal.Textf("%s\n  %s", text, line)
	}

	return output.Say(out, "%s", text)
}
