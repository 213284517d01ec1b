package narrow

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// aggregateTo begins the labels by which the ClusterRoles for people that every cluster has take the rules of others: admin, edit
// and view.
const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// More is what one version of a manifest asks for beyond another.
type More struct {
	Account Account `json:"account"`
	// BoundTo is the ClusterRole that takes the rules by a label, wherever somebody is bound to it. There is no account then, and no
	// binding.
	BoundTo string `json:"boundTo,omitempty"`
	// Namespace is where the rules hold; empty for the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// New says that no binding of the old version names the account.
	New bool `json:"newAccount,omitempty"`
	// Unknown says that nobody knows the rules of Role, so there are none below: it may give anything.
	Unknown bool                `json:"unknown,omitempty"`
	Rules   []rbacv1.PolicyRule `json:"rules"`
	// Rights are the rules by resource, what matters most first.
	Rights []reach.Right `json:"rights"`
	// Binding and Role give the rules. Source and Line are where the Role was read, or the binding if the Role was not.
	Binding string `json:"binding,omitempty"`
	Role    string `json:"role"`
	Source  string `json:"source"`
	Line    int    `json:"line"`
}

// Sensitive says whether more can be had through the rules than they say.
func (m *More) Sensitive() bool {
	return m.Unknown || slices.ContainsFunc(m.Rights, func(r reach.Right) bool { return r.Sensitive })
}

// Who is to get the rules, in words that are fit to print.
func (m *More) Who() string {
	if m.BoundTo != "" {
		return "whoever is bound to ClusterRole " + printable.Name(m.BoundTo)
	}

	return printable.Name(strings.TrimPrefix(m.Account.Namespace+"/"+m.Account.Name, "/"))
}

// Where says where the rules hold.
func (m *More) Where() string {
	switch {
	case m.BoundTo != "":
		return "there"
	case m.Namespace == "":
		return "in the whole cluster"
	default:
		return "in namespace " + m.Namespace
	}
}

// grant is what one binding gives to one subject, or a label to whoever is bound to a ClusterRole.
type grant struct {
	subject   rbacv1.Subject
	namespace string
	rules     []rbacv1.PolicyRule
	// known says whether the rules are: of a role that is neither in the files nor known there are none.
	known         bool
	binding, role string
	doc           *Document
}

// errNoObject says that there is nothing to compare. What makes a new version has failed then, in a pipeline that goes on.
var errNoObject = errors.New("there is no object in the new version, so there is nothing to compare")

// Check returns what a new version asks for beyond an old one, and notes about what is unknown. It compares what rules cover, not
// how they are written.
func Check(before, after *Stream, o *Options) ([]More, []string, error) {
	if !after.hasObject() {
		return nil, nil, errNoObject
	}

	// Where a resource is does not matter here, and a version may have moved one of its own.
	old, err := gather(before, cmp.Or(o.Namespace, guessNamespace(before)), reach.NewKinds())
	if err != nil {
		return nil, nil, err
	}

	young, err := gather(after, cmp.Or(o.Namespace, guessNamespace(after)), reach.NewKinds())
	if err != nil {
		return nil, nil, err
	}

	had, _ := old.grants(o)
	has, notes := young.grants(o)

	out := []More{}

	for i := range has {
		if more := has[i].beyond(had); more != nil {
			out = append(out, *more)
		}
	}

	slices.SortStableFunc(out, func(a, b More) int {
		return cmp.Or(cmp.Compare(a.BoundTo, b.BoundTo), cmp.Compare(a.Account.Namespace, b.Account.Namespace),
			cmp.Compare(a.Account.Name, b.Account.Name), cmp.Compare(a.Namespace, b.Namespace))
	})

	return out, notes, nil
}

// beyond is what it gives beyond grants of another version; nil for nothing. Rules that nobody knows may give anything, so only a
// grant of the same role, whose rules were not known either, holds as much.
func (g *grant) beyond(had []grant) *More {
	var held []rbacv1.PolicyRule

	isNew, same := true, false

	for i := range had {
		of := &had[i]
		if of.subject != g.subject {
			continue
		}

		isNew = false

		if of.namespace == "" || of.namespace == g.namespace {
			held = append(held, of.rules...)
			same = same || !of.known && of.role == g.role
		}
	}

	m := &More{
		Account: Account{Namespace: g.subject.Namespace, Name: g.subject.Name}, Namespace: g.namespace, New: isNew,
		Unknown: !g.known && !same, Rules: []rbacv1.PolicyRule{}, Rights: []reach.Right{}, Binding: g.binding,
		Role: g.role, Source: g.doc.Source, Line: g.doc.Line,
	}

	if g.subject.Kind == kindClusterRole {
		m.Account, m.BoundTo, m.New = Account{}, g.subject.Name, false
	}

	if more := authority.Missing(held, g.rules); more != nil {
		m.Rules, m.Rights = more, reach.Rights(more)
	} else if !m.Unknown {
		return nil
	}

	return m
}

// grants are what the bindings of an input give to their subjects, one for each binding and subject, and what labels give to
// whoever is bound to the ClusterRoles for people.
func (in *input) grants(o *Options) (out []grant, notes []string) {
	for _, b := range slices.Concat(in.everywhere, in.bindings) {
		g := grant{namespace: b.Namespace, binding: b.doc.String(), role: b.roleRef.Kind + " " + b.roleRef.Name, doc: b.doc}

		g.rules, g.known = in.rulesBound(b, o)

		if of := in.docOf(b); of != nil {
			g.doc = of
		}

		if !g.known {
			notes = append(notes, g.binding+" refers to "+g.role+", which is not in the files, so what it gives is unknown")
		}

		for i := range b.subjects {
			g.subject = b.subjects[i]
			g.subject.APIGroup = ""

			if g.subject.Kind == rbacv1.ServiceAccountKind {
				g.subject.Namespace = cmp.Or(g.subject.Namespace, b.Namespace)
			}

			out = append(out, g)
		}
	}

	return append(out, in.aggregates(o)...), notes
}

// aggregates are what labels give to whoever is bound to the ClusterRoles for people.
func (in *input) aggregates(o *Options) (out []grant) {
	for _, name := range in.roleNames() {
		r := in.clusterRoles[name]

		for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
			if to, is := strings.CutPrefix(key, aggregateTo); is && r.Labels[key] == "true" {
				rules, known := in.rulesOf(name, o.Roles)

				out = append(out, grant{
					subject: rbacv1.Subject{Kind: kindClusterRole, Name: to}, rules: rules, known: known,
					role: kindClusterRole + " " + name, doc: r.doc,
				})
			}
		}
	}

	return out
}
