package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// maxHolders and maxRights are how many names, and how many rights, a sentence about a binding has.
	maxHolders = 3
	maxRights  = 4
	// maxWord is how long a name, or a right, may be in it: both may be of any length.
	maxWord = 120
	// maxAccount is how long the namespace and the name of an account can be; a user that is called like one may be longer.
	maxAccount = 63 + 1 + 253
	// maxBindings is how many bindings one text names.
	maxBindings = 5
)

// ClusterWide is a ClusterRoleBinding by which accounts of a scope hold something in all namespaces, whatever its members are. A
// binding that includes them in several ways is there once for each.
type ClusterWide struct {
	Binding, Role string
	// Holders are those subjects of the scope that hold it, sorted; Through is the group by which the binding includes them; empty
	// if it names them.
	Holders []rbacv1.Subject
	Through string
	// Rights are what they hold, the most important first.
	Rights []facts.ClusterRight
	// Own says that Ambit made the binding for the scope itself.
	Own bool
}

// ClusterWideOf returns the bindings by which any of the holders has something in all namespaces, those with the most sensitive
// rights first. owner is the scope that asks. What Ambit made for the scope itself counts where an install asks for it besides
// its targets; elsewhere it is about to go.
func ClusterWideOf(holders []rbacv1.Subject, owner scope.Owner, f *facts.Facts) []ClusterWide {
	var out []ClusterWide

	for i := range f.ClusterBindings.Giving {
		b := &f.ClusterBindings.Giving[i]

		own := b.Owner != "" && b.Owner == owner.String()
		if own && owner.Kind != scope.KindCSV {
			continue
		}

		byGroup := held(holders, sets.New(b.Subjects...))
		for _, through := range slices.Sorted(maps.Keys(byGroup)) {
			out = append(out, ClusterWide{
				Binding: b.Name, Role: b.Role, Holders: byGroup[through], Through: through, Rights: b.Rights, Own: own,
			})
		}
	}

	slices.SortStableFunc(out, func(a, b ClusterWide) int {
		return cmp.Or(-cmp.Compare(a.sensitive(), b.sensitive()), cmp.Compare(a.Binding, b.Binding))
	})

	return out
}

func (c *ClusterWide) sensitive() int {
	return collect.Count(c.Rights, func(r facts.ClusterRight) bool { return r.Sensitive })
}

// held are those of the holders that the subjects of a ClusterRoleBinding include, by the group through which they do; by none
// are those that are named.
func held(holders []rbacv1.Subject, subjects sets.Set[rbacv1.Subject]) map[string][]rbacv1.Subject {
	out := map[string][]rbacv1.Subject{}

	for _, h := range holders {
		if subjects.Has(h) {
			out[""] = append(out[""], h)
		} else if group := groupOf(h, subjects); group != "" {
			out[group] = append(out[group], h)
		}
	}

	return out
}

// groupOf is the smallest group among the subjects in which a service account is; empty when there is none.
func groupOf(account rbacv1.Subject, subjects sets.Set[rbacv1.Subject]) string {
	if account.Kind != rbacv1.ServiceAccountKind {
		return ""
	}

	for _, group := range append([]string{scope.GroupOfAccounts(account.Namespace)}, scope.GroupsOfAllAccounts()...) {
		if subjects.Has(rbacv1.Subject{Kind: rbacv1.GroupKind, Name: group}) {
			return group
		}
	}

	return ""
}

// holders are those whom the scope gives something, sorted.
func (p *ScopePlan) holders(f *facts.Facts) []rbacv1.Subject {
	var out []rbacv1.Subject

	for _, account := range p.Accounts {
		if account != f.AmbitAccount {
			out = append(out, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: p.Scope.Key.Namespace, Name: account,
			})
		}
	}

	return slices.Compact(slices.SortedFunc(slices.Values(append(out, Bound(p.Scope)...)), compareSubjects))
}

// Bound are those whom a scope binds itself, sorted.
func Bound(s *scope.Scope) []rbacv1.Subject {
	var out []rbacv1.Subject

	for i := range s.Binds {
		for j := range s.Binds[i].Subjects {
			out = append(out, scope.Holder(&s.Binds[i].Subjects[j]))
		}
	}

	return slices.Compact(slices.SortedFunc(slices.Values(out), compareSubjects))
}

func compareSubjects(a, b rbacv1.Subject) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Words say what a binding gives to whom, such as "ClusterRoleBinding keda gives service account keda/keda-operator get, list,
// watch secrets".
func (c *ClusterWide) Words() string {
	whom := c.whom()
	if c.Through != "" {
		whom = fmt.Sprintf("%s, by the group %s,", whom, word(printable.Name(c.Through)))
	}

	return fmt.Sprintf("ClusterRoleBinding %s gives %s %s", word(printable.Name(c.Binding)), whom, c.Gives())
}

// Gives is what the binding gives, in words.
func (c *ClusterWide) Gives() string {
	out := make([]string, 0, maxRights)

	for i := range c.Rights[:min(len(c.Rights), maxRights)] {
		r := &c.Rights[i]
		out = append(out, word(strings.Join(printable.Names(r.Verbs), ", ")+" "+rightName(r.Resource)))
	}

	return printable.Counted(out, "; ", len(c.Rights)-len(out))
}

// rightName is a resource as package narrow names it, which may say besides that the right is limited to names.
func rightName(resource string) string {
	name, limited := strings.CutSuffix(resource, facts.ByName)
	if name == "*" || name == "*/*" {
		name = "everything"
	}

	if name = printable.Name(name); limited {
		name += facts.ByName
	}

	return name
}

func (c *ClusterWide) whom() string {
	var names []string

	for i := range c.Holders[:min(len(c.Holders), maxHolders)] {
		s := &c.Holders[i]

		if s.Namespace != "" {
			names = append(names, word("service account "+s.Namespace+"/"+printable.Name(s.Name)))
		} else {
			names = append(names, word(strings.ToLower(s.Kind)+" "+printable.Name(s.Name)))
		}
	}

	return printable.Counted(names, ", ", len(c.Holders)-len(names))
}

// WayOut says what to do about a binding.
func (c *ClusterWide) WayOut() string {
	account := c.Holders[0].Namespace + "/" + c.Holders[0].Name

	switch {
	case c.Own:
		return "move its clusterPermissions to permissions"
	case slices.Contains(scope.GroupsOfAllAccounts(), c.Through):
		return "bind only who needs it"
	case c.Holders[0].Kind == rbacv1.ServiceAccountKind && len(account) <= maxAccount:
		return "ambit narrow --from " + printable.Word(account)
	default:
		return "bind them in namespaces instead"
	}
}

// SayClusterWide says what accounts of a scope hold in all namespaces, and how to narrow that; nothing when they hold nothing.
// more is how many bindings nobody looked at.
func SayClusterWide(all []ClusterWide, more int) string {
	if len(all) == 0 {
		return ""
	}

	shown := all[:min(len(all), maxBindings)]
	says, ways := make([]string, 0, len(shown)), []string(nil)

	for i := range shown {
		says = append(says, shown[i].Words())

		if way := shown[i].WayOut(); !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}

	text := "members limit where operators look, and not what they may: " + strings.Join(says, "; ")
	if n := len(all) - len(shown) + more; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}

	return text + "; to narrow it: " + strings.Join(ways, "; ")
}

// word is a text that is not too long.
func word(text string) string {
	if r := []rune(text); len(r) > maxWord {
		return string(r[:maxWord-1]) + "…"
	}

	return text
}
