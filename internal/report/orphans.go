package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Orphans are what is left of one scope that is gone without having cleaned up.
type Orphans struct {
	// Owner is the scope. What its objects say of it can be anything, so a name that no scope can have is quoted.
	Owner scope.Owner
	// Hash is the label of its objects.
	Hash string
	// Objects are the names of those in each namespace, as "<kind> <name>", sorted.
	Objects map[string][]string
	// Namespaces are those that hold any, sorted.
	Namespaces []string
	// Emptied says that nobody holds anything by any of them, and Granting counts those by which somebody may.
	Emptied  bool
	Granting int
}

// orphansLeft returns what is left, after a plan was applied, of scopes that are gone: everything, where Ambit may write nothing
// of its own and nobody knows any more who wrote it; else what could not be deleted.
func orphansLeft(p *plan.Plan, out *apply.Outcome, f *facts.Facts) []Orphans {
	if out.Orphans.Nobody != "" {
		return OrphansOf(p.Orphans, f)
	}

	return OrphansOf(collect.Map(out.Orphans.Failures, func(f apply.Failure) plan.Change { return *f.Change }), f)
}

// OrphansOf groups orphans by the scope that they are of.
func OrphansOf(changes []plan.Change, f *facts.Facts) []Orphans {
	type key struct{ owner, hash string }

	found := map[key]*Orphans{}

	for i := range changes {
		c := &changes[i]

		live, exists := f.Projected[c.Namespace][c.Key]
		if !exists || goesWithOwner(c.Namespace, live) {
			continue
		}

		of := found[key{live.Owner, live.ScopeHash}]
		if of == nil {
			of = &Orphans{
				Owner: orphanOwner(live.Owner, live.ScopeHash), Hash: live.ScopeHash, Objects: map[string][]string{}, Emptied: true,
			}
			found[key{live.Owner, live.ScopeHash}] = of
		}

		if !live.Empty {
			of.Emptied = false
			of.Granting++
		}

		of.Objects[c.Namespace] = append(of.Objects[c.Namespace], string(c.Key.Kind)+" "+c.Key.Name)
	}

	out := make([]Orphans, 0, len(found))

	for _, of := range found {
		for namespace, objects := range of.Objects {
			slices.Sort(objects)
			of.Namespaces = append(of.Namespaces, namespace)
		}

		slices.Sort(of.Namespaces)
		out = append(out, *of)
	}

	slices.SortFunc(out, func(a, b Orphans) int {
		return cmp.Or(cmp.Compare(a.Owner.String(), b.Owner.String()), cmp.Compare(a.Hash, b.Hash))
	})

	return out
}

// goesWithOwner says whether garbage collection is about to delete an orphan: beside a ClusterServiceVersion that is gone, it is
// owned by it.
func goesWithOwner(namespace string, live *facts.Projected) bool {
	owner := scope.ParseOwner(live.Owner)

	return live.Owners != "" && owner.Kind == scope.KindCSV && owner.Namespace == namespace
}

// orphanOwner is the scope that an annotation names. The API group is not in the annotation, and the hash says which it is. It
// stays empty where annotation and hash do not belong together: somebody else wrote one of them.
func orphanOwner(annotation, hash string) scope.Owner {
	o := scope.ParseOwner(annotation)

	for _, group := range []string{operatorv1.GroupVersion.Group, namespacescopev1alpha1.GroupVersion.Group,
		operatorsv1.GroupVersion.Group} {
		if o.Group = group; o.Hash() == hash {
			return o
		}
	}

	o.Group = ""

	return o
}

func (o *Orphans) count() int {
	n := 0
	for _, objects := range o.Objects {
		n += len(objects)
	}

	return n
}

func (o *Orphans) name() string { return o.Owner.Kind + " " + o.Owner.Namespace + "/" + o.Owner.Name }

// Message says what is left, and how to remove it.
func (o *Orphans) Message() string {
	places := collect.Map(o.Namespaces, func(namespace string) string { return cmp.Or(namespace, "the whole cluster") })

	left := fmt.Sprintf("%s is gone, and nothing was taken back: %d roles and bindings in %s still grant its permissions",
		o.name(), o.count(), some(places))
	if o.Emptied {
		left = fmt.Sprintf("%s is gone: %d roles and bindings in %s are left, emptied, and grant nothing any more",
			o.name(), o.count(), some(places))
	}

	return left + ", and this Ambit may not delete them. Make the scope again, with the service account that it had, and delete " +
		"it; or delete them: " + o.deletion(o.Namespaces)
}

// deletion is a command that deletes what is left in some namespaces, of which an empty one stands for what has none.
func (o *Orphans) deletion(namespaces []string) string {
	var commands []string

	if slices.Contains(namespaces, "") {
		commands = append(commands, "kubectl delete clusterrolebindings,clusterroles")
	}

	switch named := slices.DeleteFunc(slices.Clone(namespaces), func(n string) bool { return n == "" }); len(named) {
	case 0:
	case 1:
		commands = append(commands, "kubectl delete rolebindings,roles -n "+named[0])
	default:
		commands = append(commands, "kubectl delete rolebindings,roles -A")
	}

	selector := " -l " + scope.LabelScope + "=" + o.Hash

	return strings.Join(commands, selector+" && ") + selector
}

// MessageIn says what is left in one namespace.
func (o *Orphans) MessageIn(namespace string) string {
	return fmt.Sprintf("%s is gone, and left here: %s", o.name(), some(o.Objects[namespace]))
}

func (o *Orphans) event() Event {
	return Event{Warning: true, Reason: EventOrphansLeft, Action: "Prune", Message: o.Message()}
}

// eventIn reports what is left in one namespace.
func (o *Orphans) eventIn(namespace string) Event {
	grant := "still grant its permissions"
	if o.Emptied {
		grant = "were emptied, and grant nothing any more"
	}

	return Event{
		Warning: true, Reason: EventOrphansLeft, Action: "Prune",
		Message: fmt.Sprintf("%s. They %s. To delete them: %s", o.MessageIn(namespace), grant, o.deletion([]string{namespace})),
	}
}
