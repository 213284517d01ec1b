package narrow

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// beside is a NamespaceScope of the input, or of the cluster alone.
type beside struct {
	scope.Scope

	live bool
}

func (b *beside) String() string {
	of := printable.Title(b.Owner.Kind, b.Owner.Namespace, b.Owner.Name)
	if b.live {
		of += " of the cluster"
	}

	return of
}

// scopesBeside are the NamespaceScopes of a namespace, once they were asked for.
func (r *run) scopesBeside(namespace string) []beside {
	if r.beside == nil {
		r.beside = map[string][]beside{}
		inFiles := map[scope.Owner]bool{}

		for d := range r.stream.objects() {
			if s, is := compiled(d, r.Namespace); is {
				inFiles[s.Owner] = true
				r.beside[s.Owner.Namespace] = append(r.beside[s.Owner.Namespace], beside{Scope: s})
			}
		}

		r.besideThere(inFiles)
	}

	return r.beside[namespace]
}

func (r *run) besideThere(inFiles map[scope.Owner]bool) {
	if r.Scopes == nil {
		return
	}

	there, known := r.Scopes()
	if !known {
		r.report.notef("NamespaceScopes of the cluster could not be read: one that serves an account already copies what is narrowed " +
			"into its members, too")
	}

	for i := range there {
		if s := &there[i]; !inFiles[s.Owner] && s.Deleted.IsZero() {
			r.beside[s.Owner.Namespace] = append(r.beside[s.Owner.Namespace], beside{*s, true})
		}
	}
}

// emptyScope is an empty NamespaceScope of the group that a document is of; nil for every other kind.
func emptyScope(d *Document) scope.Object {
	switch d.APIVersion + "/" + d.Kind {
	case operatorv1.GroupVersion.String() + "/" + kindScope:
		return &operatorv1.NamespaceScope{}
	case namespacescopev1alpha1.GroupVersion.String() + "/" + kindScope:
		return &namespacescopev1alpha1.NamespaceScope{}
	default:
		return nil
	}
}

// compiled is what a NamespaceScope of either group means; false for every other kind, and for what the API server would refuse.
func compiled(d *Document, namespace string) (s scope.Scope, is bool) {
	nss := emptyScope(d)
	if nss == nil || d.into(nss) != nil {
		return s, false
	}

	nss.SetNamespace(cmp.Or(nss.GetNamespace(), namespace))

	return compile.AnyNamespaceScope(nss)
}

// isOthers says whether the cluster has a scope under a name that is for other accounts than those of a group. To apply the
// group's would take theirs away.
func (r *run) isOthers(g *group, name string) bool {
	return slices.ContainsFunc(r.scopesBeside(g.namespace), func(b beside) bool {
		return b.live && b.Owner.Name == name && b.Owner.Group == operatorv1.GroupVersion.Group &&
			!slices.ContainsFunc(g.accountNames(), func(account string) bool { return slices.Contains(b.Accounts.Named, account) })
	})
}

// aboutScopes warns of further scopes that serve an account: they copy what is narrowed into their members, too.
func (r *run) aboutScopes(g *group) {
	for _, b := range r.scopesBeside(g.namespace) {
		if b.Owner.Name == g.name && b.Owner.Group == operatorv1.GroupVersion.Group {
			continue // It is the group's own, or what stays in its place.
		}

		members := b.Members
		members.Named = slices.DeleteFunc(slices.Clone(members.Named), func(name string) bool {
			return slices.Contains(r.namesFor(g.namespace), name)
		})

		if len(members.Named) == 0 && members.Selector == nil {
			continue
		}

		for _, s := range g.served {
			if !b.serves(s) {
				continue
			}

			where := make([]string, 0, len(members.Named)+1)
			for _, p := range placesOf(&members) {
				where = append(where, printable.Text(cmp.Or(p.text, p.namespace)))
			}

			r.report.warnf("%s serves %s, too, so what is narrowed holds in its members as well: %s. Leave that scope out, or have it "+
				"serve others", &b, title(s), strings.Join(where, ", "))
		}
	}
}

// serves says whether a scope copies the RoleBindings of an account.
func (b *beside) serves(s *served) bool {
	return b.Accounts.All || slices.Contains(b.Accounts.Named, s.Name) ||
		b.Accounts.OfOperands && slices.ContainsFunc(s.workloads, func(w *workload) bool { return b.Operands.Matches(w.labels()) })
}

func (w *workload) labels() labels.Set { return entries(at(w.template, "metadata", "labels")) }

// labelled are the accounts of a namespace, besides those that are served, whose workloads bear the label of a group's scope: it
// serves them, too.
func (r *run) labelled(namespace string, groups []*group, all []*served) (out []*served) {
	for a, workloads := range r.workloads {
		if a.Namespace != namespace || slices.ContainsFunc(all, func(s *served) bool { return s.Account == a }) {
			continue
		}

		if slices.ContainsFunc(workloads, func(w *workload) bool {
			return slices.ContainsFunc(groups, func(g *group) bool { return w.labels()[LabelScope] == g.name })
		}) {
			out = append(out, &served{Account: a, workloads: workloads})
		}
	}

	return out
}
