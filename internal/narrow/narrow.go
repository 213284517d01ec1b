// Package narrow shrinks what operators may do in the whole cluster to some namespaces: it sorts the rules of their ClusterRoles
// by where they have an effect, and rewrites manifests so that a scope gives in its members what was given everywhere. It is
// pure: what a cluster knows is handed in.
package narrow

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	wildcard   = rbacv1.ResourceAll
	verbCreate = "create"
)

// AnnotationFrom says of a Role or binding which one it was made from, and so that it need not be made again.
const AnnotationFrom = "ambit.dev/narrowed-from"

// LabelScope is the label by which a scope knows the workloads that were narrowed to it. Its value differs for each scope: two
// that share a label would share their members.
const LabelScope = "ambit.dev/narrowed"

type run struct {
	*Options
	*input

	stream *Stream
	report *reporter
	// sorted are the rules of ClusterRoles, by name.
	sorted map[string]*sortedRole
	// served are the accounts that a scope serves, in their order and by themselves.
	served    []*served
	byAccount map[Account]*served
	// roleDone are the Roles that were made.
	roleDone map[string]string
	// live are bindings of the cluster, by their kind, once they were asked for.
	live map[string]*liveBindings
	// beside are NamespaceScopes, by their namespaces, once they were asked for.
	beside map[string][]beside
}

// sortedRole is a ClusterRole by its parts.
type sortedRole struct {
	name  string
	rules []rbacv1.PolicyRule
	reach.Sorted
	// rest is the name of the ClusterRole for what has an effect in the whole cluster only; empty until it was chosen.
	rest string
	// inPlace says that the ClusterRole can be changed where it is, since nothing else needs it as it is. open says that it may have
	// more rules than are known, and bound that an account which is narrowed holds it in the whole cluster.
	inPlace, open, bound bool
}

// served is an account that a scope serves.
type served struct {
	Account

	workloads []*workload
	// before and after are what it holds in the whole cluster.
	before, after, kept []rbacv1.PolicyRule
	namespaced          []rbacv1.PolicyRule
	bindings            []string
}

// Narrow rewrites a stream.
func Narrow(s *Stream, o *Options) (*Report, error) {
	if s.function != nil && slices.ContainsFunc(s.docs, func(d *Document) bool { return d != s.function && d.body != nil }) {
		// It takes everything that is written.
		return nil, s.function.failed(errors.New("a ResourceList is the whole input of a function; leave out what is beside it"))
	}

	if o.Namespace == "" {
		o.Namespace = guessNamespace(s)
	}

	in, err := gather(s, o.Namespace, o.Kinds)
	if err != nil {
		return nil, err
	}

	r := &run{
		Options: o, input: in, stream: s, report: &reporter{}, sorted: map[string]*sortedRole{}, roleDone: map[string]string{},
		byAccount: map[Account]*served{}, live: map[string]*liveBindings{},
	}

	r.sortRoles()

	for _, b := range r.everywhere {
		if err := r.narrowBinding(b); err != nil {
			return nil, err
		}
	}

	r.staying()

	if err := r.rewriteRoles(); err != nil {
		return nil, err
	}

	if err := r.scopes(); err != nil {
		return nil, err
	}

	r.goesOn()

	return r.report.finish(r), nil
}

// guessNamespace is for charts that leave the namespace to Helm: it is the one that all accounts of cluster-wide bindings are in,
// or all accounts of bindings in namespaces, if there is just one.
func guessNamespace(all ...*Stream) string {
	for _, kind := range []string{kindClusterRoleBinding, kindRoleBinding} {
		found := map[string]bool{}

		for _, s := range all {
			for d := range s.objects() {
				accountsBound(d, kind, found)
			}
		}

		delete(found, "")

		if len(found) == 1 {
			return slices.Sorted(maps.Keys(found))[0]
		}
	}

	return "default"
}

// accountsBound finds the namespaces of the accounts that a binding names.
func accountsBound(d *Document, kind string, found map[string]bool) {
	if d.Kind != kind || !isRBAC(d) {
		return
	}

	subjects := child(d.body, "subjects")
	if subjects == nil {
		return
	}

	for _, subject := range subjects.Content {
		if text(subject, "kind") == rbacv1.ServiceAccountKind {
			found[text(subject, "namespace")] = true
		}
	}
}

// sortRoles sorts the rules of every ClusterRole that is bound in the whole cluster.
func (r *run) sortRoles() {
	for _, b := range r.everywhere {
		name := b.roleRef.Name
		if r.sorted[name] != nil || b.roleRef.Kind != kindClusterRole {
			continue
		}

		rules, unknown := r.rulesOf(name, r.Options)
		if len(unknown) > 0 && r.clusterRoles[name] == nil {
			continue
		}

		s := &sortedRole{name: name, rules: rules, open: len(unknown) > 0}

		for i := range rules {
			part := r.Kinds.Sort(&rules[i], r.Keep)
			s.Cluster = append(s.Cluster, part.Cluster...)
			s.Namespaced = append(s.Namespaced, part.Namespaced...)
			s.Kept = append(s.Kept, part.Kept...)
			s.Unsorted = append(s.Unsorted, part.Unsorted...)
			s.Enumerated = s.Enumerated || part.Enumerated
		}

		r.sorted[name] = s
	}

	needed := r.needed()

	for _, s := range r.sorted {
		// It can be changed where it is if nothing else of the input, or of the cluster, refers to it, selects it, or fills it.
		of := r.clusterRoles[s.name]
		s.inPlace = of != nil && !needed[s.name] && of.AggregationRule == nil && !isKubernetes(s.name) && !r.feeds(of) &&
			!r.usedElsewhere(of.ClusterRole)
	}
}

// needed are the ClusterRoles that somebody needs as they are: those of RoleBindings, those of subjects that are not narrowed,
// and those of accounts that may bind them while they run. Operators that do so are bound to the roles that they hand out, beside
// their own: nobody can hand out what they do not hold.
func (r *run) needed() map[string]bool {
	needed, binds := map[string]bool{}, map[Account]bool{}
	held := map[Account]map[string]bool{}

	for _, b := range r.bindings {
		if b.roleRef.Kind == kindClusterRole {
			needed[b.roleRef.Name] = true
		}
	}

	for _, b := range r.everywhere {
		rules, _ := r.rulesOf(b.roleRef.Name, r.Options)
		writes := mayWrite(rules, "rolebindings") || mayWrite(rules, "clusterrolebindings")

		for i := range b.subjects {
			if !r.isNarrowed(&b.subjects[i]) {
				needed[b.roleRef.Name] = true

				continue
			}

			a := accountOf(&b.subjects[i])
			if held[a] == nil {
				held[a] = map[string]bool{}
			}

			held[a][b.roleRef.Name] = true
			binds[a] = binds[a] || writes
		}
	}

	for a := range binds {
		if binds[a] && len(held[a]) > 1 {
			maps.Copy(needed, held[a])
		}
	}

	return needed
}

// mayWrite says whether rules allow to write objects of RBAC.
func mayWrite(rules []rbacv1.PolicyRule, resource string) bool {
	return reach.AllowAny(rules, reach.Resource{Group: rbacv1.GroupName, Name: resource}, verbCreate, "update", "patch")
}

// isNarrowed says whether a subject of a cluster-wide binding is an operator's account. One of a system namespace that is not in
// the input, such as that of the HorizontalPodAutoscaler, is somebody else's.
func (r *run) isNarrowed(s *rbacv1.Subject) bool {
	a := accountOf(s)
	if a.Namespace == "" || a.Name == "" {
		return false
	}

	if len(r.Accounts) > 0 {
		return slices.Contains(r.Accounts, a)
	}

	return !isSystem(a.Namespace) || r.accounts[a] || len(r.workloads[a]) > 0
}

// accountOf is the account that a subject of a cluster-wide binding names, by itself or by its user name. For every other subject
// it has no name.
func accountOf(s *rbacv1.Subject) Account {
	holder := scope.Holder(s)
	if holder.Kind != rbacv1.ServiceAccountKind {
		return Account{}
	}

	return Account{Namespace: holder.Namespace, Name: holder.Name}
}

// isSystem says whether a namespace belongs to the cluster. Which one is Ambit's is not known here.
func isSystem(namespace string) bool { return scope.IsSystemNamespace(namespace, "") }

// serve returns what is known of an account.
func (r *run) serve(a Account) *served {
	s := r.byAccount[a]
	if s == nil {
		s = &served{Account: a, workloads: r.workloads[a]}
		r.byAccount[a] = s
		r.served = append(r.served, s)
	}

	return s
}

// add puts an object at the end, unless it is there already: what was narrowed before stays as it is, even if the options differ
// now, which is reported.
func (r *run) add(obj any) error {
	d, there, err := r.made(obj)

	switch {
	case err != nil:
		return err
	case there != nil:
		r.stayed(there, d)
	default:
		r.stream.made = append(r.stream.made, d)
	}

	return nil
}

// follow puts an object behind another. What was narrowed before is there already where the operator was narrowed as it runs, and
// nobody has deleted its old bindings yet.
func (r *run) follow(after *Document, obj any) error {
	d, there, err := r.made(obj)

	switch {
	case err != nil:
		return err
	case there == nil:
		after.after = append(after.after, d)
	case cameFrom(there) == "" || cameFrom(there) != cameFrom(d):
		return errors.New(d.String() + " is there already; rename it, or leave it out")
	default:
		r.stayed(there, d)
	}

	return nil
}

// cameFrom is what an object was narrowed from.
func cameFrom(d *Document) string { return text(d.body, "metadata", "annotations", AnnotationFrom) }

// stayed reports an object of the input that is another one than these options give.
func (r *run) stayed(there, other *Document) {
	if !there.saysAllOf(other) {
		r.report.warnf("%s is in the input already and stays as it is, although these options give another one; narrow what the "+
			"operator came with, rather than what was narrowed before", there)
	}
}

// made returns the document of an object, and what is there already under its name; nil for nothing.
func (r *run) made(obj any) (d, there *Document, err error) {
	if d, err = made(obj); err != nil {
		return nil, nil, err
	}

	key := identity(d.Kind, d.Namespace, d.Name)
	there = r.identities[key]
	r.identities[key] = cmp.Or(there, d)

	return d, there, nil
}
