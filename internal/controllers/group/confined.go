package group

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Confined is what a Reconciler works with where Ambit has rights in single namespaces only.
type Confined struct {
	// Secret is one in Ambit's own namespace that no operator may read.
	Secret string
	// Served says which definitions exist, where Ambit may not read them.
	Served interface {
		// Has says whether a kind is served in a version, by the name of its definition.
		Has(definition, version, kind string) (bool, error)
	}
}

// accountNamespace is the namespace of the account that Ambit runs as.
func (r *Reconciler) accountNamespace() string {
	if namespace, _, is := scope.AccountOfUser(r.Writers.User); is {
		return namespace
	}

	return r.AmbitNamespace
}

// maxAsked bounds for how many accounts of a namespace the API server is asked which of their CSV's cluster-wide permissions they
// lack.
const maxAsked = 50

// askAgain is when to check again for something cluster-wide that is missing, and which no watch reports.
const askAgain = 10 * time.Second

// watchTargets has the targets of a namespace's group watched, as the account that installs. A target that was taken from the
// group is watched until nothing is left there; so are all where no group names an account, by the one that wrote there last.
func (r *Reconciler) watchTargets(found *resources) error {
	if r.Confined == nil {
		return nil
	}

	account := r.lastAccount(found.namespace)
	names := append(r.Store.Holding(scope.Installs.In(found.namespace)), found.namespace)

	if len(found.groups) == 1 && found.groups[0].Spec.ServiceAccountName != "" {
		account = found.groups[0].Spec.ServiceAccountName
		names = append(names, install.Reach(found.groups[0])...)
	}

	if !r.Writers.MayInstallAs(found.namespace, account) {
		account = ""
	}

	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })

	if err := r.Watches.Targets(found.namespace, account, names); err != nil {
		return fmt.Errorf("looking into targets: %w", err)
	}

	return nil
}

// definitions are the definitions that the CSVs are about, as far as discovery tells: whether they are there, in which version.
func (c *Confined) definitions(csvs []*olm.ClusterServiceVersion) (map[string]install.CRD, error) {
	out := map[string]install.CRD{}

	for _, csv := range csvs {
		for _, d := range csv.GetAllCRDDescriptions() {
			is, err := c.Served.Has(d.Name, d.Version, d.Kind)
			if err != nil {
				return nil, err
			}

			if is {
				out[d.Name] = install.CRD{Served: append(out[d.Name].Served, d.Version)}
			}
		}
	}

	return out, nil
}

// confine adds to a snapshot what matters where Ambit has rights in single namespaces only.
func (r *Reconciler) confine(ctx context.Context, w *snapshot) {
	if r.Confined == nil {
		return
	}

	w.Confined = &install.Confined{
		Accounts: r.Writers.OwnAccounts(w.Namespace), AmbitNamespace: r.accountNamespace(), Secret: r.Confined.Secret,
		Cluster: map[string]install.ClusterLack{},
	}

	asked := 0

	for _, csv := range w.CSVs {
		permissions := install.ClusterPermissions(csv)

		for _, account := range slices.Sorted(maps.Keys(permissions)) {
			lack, rules := w.Confined.Cluster[account], permissions[account]
			if lack.Unknown != "" {
				continue
			}

			if asked++; asked > maxAsked {
				w.Confined.Cluster[account] = install.ClusterLack{Unknown: "there are too many accounts to ask about in this namespace"}

				continue
			}

			places, err := r.Applier.Lacks(ctx, writer.ServiceAccount(w.Namespace, account), []authority.Place{{Rules: rules}})
			if err != nil {
				lack.Unknown = apply.Message(err)
			}

			for _, place := range places {
				lack.Rules = append(lack.Rules, place.Rules...)
			}

			w.Confined.Cluster[account] = lack
		}
	}
}

// closed are the targets of the group that its account may not access.
func (p *state) closed() []string {
	if p.snapshot.Group == nil {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(p.snapshot.Group.Targets), func(name string) bool {
		return p.facts.Namespaces[name].Closed == ""
	})
}

// closedWords says which targets have not let the group's account in, and what their owners do about it.
func (p *state) closedWords() string {
	closed := p.closed()
	words := collect.Map(closed, func(name string) string {
		return fmt.Sprintf("%s: %s; its owner lets the operators in by: %s",
			name, p.facts.Namespaces[name].Closed, grant.InstallCommand(name, p.found.namespace))
	})

	return install.Shorten(words)
}

// shutOut says that no target of the group has let the operator of a CSV in, which needs something there; empty where one has.
func (p *state) shutOut(csv *olm.ClusterServiceVersion) string {
	closed := p.closed()
	if len(closed) == 0 || len(closed) < len(p.snapshot.Group.Targets) ||
		len(csv.Spec.InstallStrategy.StrategySpec.Permissions) == 0 {
		return ""
	}

	return "none of the target namespaces has let the operators in: " + p.closedWords()
}

// annotatedTargets is the group as the annotations of its operators have it: without inaccessible targets, while there are
// others.
func annotatedTargets(g *install.TargetedGroup, namespaces map[string]facts.Namespace) *install.TargetedGroup {
	open := slices.DeleteFunc(slices.Clone(g.Targets), func(name string) bool { return namespaces[name].Closed != "" })
	if len(open) == 0 || len(open) == len(g.Targets) {
		return g
	}

	return &install.TargetedGroup{Group: g.Group, Targets: open}
}

// checkSoon schedules another check of what is cluster-wide and reported by no watch: soon while a CSV waits for something, or it
// is not known whether it has to.
func (p *state) checkSoon() {
	if p.Confined == nil {
		return
	}

	waits := slices.ContainsFunc(p.members, func(m member) bool {
		return m.verdict.Phase == olm.CSVPhasePending || install.CountUnknown(m.verdict.Requirements) > 0
	})
	next := p.facts.Now.Add(checkSecretsEvery)

	if waits {
		next = p.facts.Now.Add(askAgain)
	}

	if len(p.members) > 0 {
		p.checkBy(next)
	}
}

// bringingHere are the CSVs of the served namespaces that bring one of the APIs. Those of others this Ambit may not see.
func (r *Reconciler) bringingHere(ctx context.Context, apis sets.Set[string]) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured

	if len(apis) == 0 {
		return nil, nil
	}

	for _, namespace := range slices.Sorted(slices.Values(r.Writers.Namespaces)) {
		list := scope.NewOLMList(scope.KindCSV)
		if err := r.Cache.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			continue // What may not be read is served by nobody here.
		}

		for i := range list.Items {
			if apis.HasAny(providedBy(&list.Items[i])...) {
				out = append(out, &list.Items[i])
			}
		}
	}

	return out, nil
}

// userRolesHere says which user ClusterRoles this Ambit leaves to others.
func (p *state) userRolesHere() string {
	return strings.TrimSpace(p.snapshot.UserRolesBeyond(p.holding()))
}
