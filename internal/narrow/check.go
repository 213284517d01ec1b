package narrow

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
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
	// Whose says who is meant where no account is: a webhook, for example, or whoever a declaration serves.
	Whose string `json:"whose,omitempty"`
	// Namespace and Places are where the rules hold; both empty for the whole cluster.
	Namespace string   `json:"namespace,omitempty"`
	Places    []string `json:"places,omitempty"`
	// New says that no binding of the old version names the account.
	New bool `json:"newAccount,omitempty"`
	// Unknown says that nobody knows the rules of Role, or of what it takes by labels: it may give anything, besides what is below.
	Unknown bool                `json:"unknown,omitempty"`
	Rules   []rbacv1.PolicyRule `json:"rules"`
	// Rights are the rules by resource, what matters most first.
	Rights []reach.Right `json:"rights"`
	// Says are settings of a declaration that has Ambit or OLM give rights which are written elsewhere.
	Says []string `json:"says,omitempty"`
	// Binding and Role give the rules. Source and Line are where the Role was read, or the binding if the Role was not.
	Binding string `json:"binding,omitempty"`
	Role    string `json:"role"`
	Source  string `json:"source"`
	Line    int    `json:"line"`
}

// Sensitive says whether more can be had through the rules than they say.
func (m *More) Sensitive() bool {
	return m.Unknown || len(m.Says) > 0 || slices.ContainsFunc(m.Rights, func(r reach.Right) bool { return r.Sensitive })
}

// Who is to get the rules, in words that are fit to print.
func (m *More) Who() string {
	switch {
	case m.BoundTo != "":
		return "whoever is bound to ClusterRole " + printable.Name(m.BoundTo)
	case m.Whose != "":
		return printable.Text(m.Whose)
	default:
		return printable.Name(strings.TrimPrefix(m.Account.Namespace+"/"+m.Account.Name, "/"))
	}
}

// Where says where the rules hold, in words that are fit to print.
func (m *More) Where() string {
	if m.BoundTo != "" {
		return "there"
	}

	var all []string
	if m.Namespace != "" {
		all = append(all, "in namespace "+printable.Text(m.Namespace))
	}

	for _, where := range m.Places {
		all = append(all, printable.Text(where))
	}

	return cmp.Or(strings.Join(all, " and "), "in the whole cluster")
}

// errNoObject says that there is nothing to compare. What makes a new version has failed then, in a pipeline that goes on.
var errNoObject = errors.New("there is no object in the new version, so there is nothing to compare")

// Check returns what a new version asks for beyond an old one, and notes about what is unknown. It compares what rules cover, not
// how they are written.
func Check(before, after *Stream, o *Options) ([]More, []string, error) {
	if !after.hasObject() {
		return nil, nil, errNoObject
	}

	// Both are applied to the same one, also where only one of them says which that is.
	namespace := cmp.Or(o.Namespace, guessNamespace(before, after))

	old, err := versionOf(before, namespace, o, nil, after.takers())
	if err != nil {
		return nil, nil, err
	}

	young, err := versionOf(after, namespace, o, old, after.takers())
	if err != nil {
		return nil, nil, err
	}

	out, err := beyondGrants(old.given, young.given)
	if err != nil {
		return nil, nil, err
	}

	ofRoles, err := beyondRoles(old, young, o)
	if err != nil {
		return nil, nil, err
	}

	out = append(out, withoutSaid(ofRoles, out)...)
	had := saidIn(old.settings)

	for i := range young.settings {
		if more := young.settings[i].beyond(had); more != nil {
			out = append(out, *more)
		}
	}

	opaque, err := beyondOpaque(old.declared, young.declared)
	if err != nil {
		return nil, nil, err
	}

	lifted, err := beyondPolicies(before, after, o)
	if err != nil {
		return nil, nil, err
	}

	filled, err := beyondParameters(before, old, young, o)
	if err != nil {
		return nil, nil, err
	}

	out = slices.Concat(out, opaque, lifted, filled, beyondRuns(old, young, o), beyondOperands(old, young),
		beyondLabels(before, after))

	slices.SortStableFunc(out, func(a, b More) int {
		return cmp.Or(cmp.Compare(a.BoundTo, b.BoundTo), cmp.Compare(a.Whose, b.Whose),
			cmp.Compare(a.Account.Namespace, b.Account.Namespace), cmp.Compare(a.Account.Name, b.Account.Name),
			cmp.Compare(a.Namespace, b.Namespace))
	})

	return out, young.notes, nil
}

type version struct {
	*input
	*declared

	given []grant
	notes []string
	runs  runsAs
	// scoped are the namespaces that have a NamespaceScope, and home those in which it has accounts of its own, or is all.
	scoped, home map[string]bool
	// others are what other kinds than workloads run, such as what OLM makes.
	others []runner
}

// takers are the ClusterRoles of a stream that take the rules of others.
func (s *Stream) takers() map[string]bool {
	out := map[string]bool{}

	for d := range s.objects() {
		if of := child(d.body, "aggregationRule"); d.Kind == kindClusterRole && of != nil && of.Kind == yaml.MappingNode {
			out[d.Name] = true
		}
	}

	return out
}

// versionOf reads a version; what names no namespace is in the given one. old is the version that it is compared with, and nil
// for that itself. takers are the ClusterRoles that take the rules of others in the new version.
func versionOf(s *Stream, namespace string, o *Options, old *version, takers map[string]bool) (*version, error) {
	// Where a resource is does not matter here, and a version may have moved one of its own.
	in, err := gather(s, namespace, reach.NewKinds())
	if err != nil {
		return nil, err
	}

	if err := s.onlyPlainKeys(); err != nil {
		return nil, err
	}

	if old != nil {
		in.left = old.clusterRoles
	}

	for name, r := range in.clusterRoles {
		// What it takes replaces its own rules, a moment after these are applied. So they are nothing that it has, unless the new
		// version has them for such a moment, too.
		if r.AggregationRule != nil && !takers[name] {
			r.Rules = nil
		}
	}

	v := &version{input: in, runs: runsOf(s, in, namespace), scoped: map[string]bool{}, home: map[string]bool{namespace: true}}
	if v.declared, err = declaredBy(s, namespace, old == nil); err != nil {
		return nil, err
	}

	for i := range v.settings {
		if d := v.settings[i].doc; d.Kind == kindScope {
			v.scoped[v.at(d)] = true
		}
	}

	for d := range s.objects() {
		v.others = append(v.others, podsOf(d, cmp.Or(d.Namespace, namespace))...)
	}

	for a := range v.accounts {
		v.home[a.Namespace] = true
	}

	for i := range v.declared.grants {
		if g := &v.declared.grants[i]; rights.CountRepeated(g.rules) > maxAtoms {
			return nil, g.doc.failed(errTooManyRights)
		}
	}

	v.given, v.notes = in.grants(o, func(b *binding) bool { return v.isCopied(b, old) })
	v.given = append(v.given, in.aggregates(v.takers(old), o)...)
	v.given = append(v.given, v.declared.grants...)

	return v, nil
}

// isCopied says whether scopes give what a RoleBinding gives in their members, too. A scope that is not in the files may, so
// for an old version that counts; for a new one it is told where the files have a scope, or where the old one kept scopes from
// it.
func (v *version) isCopied(b *binding, old *version) bool {
	if b.Annotations[scope.AnnotationProject] == scope.ProjectDisabled {
		return false
	}

	return old == nil || v.scoped[b.Namespace] || old.scoped[b.Namespace] || old.keepsFromScopes(b)
}

// keepsFromScopes says whether a version has a RoleBinding, too, and keeps scopes from copying it.
func (v *version) keepsFromScopes(b *binding) bool {
	there := v.identities[identity(kindRoleBinding, b.Namespace, b.Name)]

	return there != nil && text(there.body, "metadata", "annotations", scope.AnnotationProject) == scope.ProjectDisabled
}

// grants are what the bindings of an input give to their subjects, one for each binding and subject. What is copied holds in the
// members of scopes, too.
func (in *input) grants(o *Options, isCopied func(*binding) bool) (out []grant, notes []string) {
	for _, b := range slices.Concat(in.everywhere, in.bindings) {
		g := grant{
			places: []place{{namespace: b.Namespace}}, binding: b.doc.String(), role: b.roleRef.Kind + " " + b.roleRef.Name, doc: b.doc,
		}

		g.rules, g.unknown = in.rulesBound(b, o)

		if b.Namespace != "" && isCopied(b) {
			g.places = append(g.places, place{text: "in the members of the NamespaceScopes of namespace " + b.Namespace})
		}

		if of := in.docOf(b); of != nil {
			g.doc = of
		}

		if len(g.unknown) > 0 {
			notes = append(notes, g.unknownNote(in.docOf(b) != nil))
		}

		for i := range b.subjects {
			g.subject = scope.Holder(&b.subjects[i])

			if g.subject.Kind == rbacv1.ServiceAccountKind {
				g.subject.Namespace = cmp.Or(g.subject.Namespace, b.Namespace)
			}

			out = append(out, g)
		}
	}

	return out, notes
}

// takers are the ClusterRoles that may take the rules of others where a version leaves them out, or is the old one itself: those
// of the old version, which may stay.
func (v *version) takers(old *version) (out []*clusterRole) {
	for _, r := range cmp.Or(old, v).clusterRoles {
		if r.AggregationRule != nil && (old == nil || v.clusterRoles[r.Name] == nil) {
			out = append(out, r)
		}
	}

	return out
}

// aggregates are what labels give to whoever is bound to the ClusterRoles for people, to others that the cluster has, and to the
// given ones.
func (in *input) aggregates(takers []*clusterRole, o *Options) (out []grant) {
	for _, name := range in.names {
		r := in.clusterRoles[name]

		var all []string

		for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
			if to, is := strings.CutPrefix(key, aggregateTo); is && r.Labels[key] == "true" {
				all = append(all, to)
			}
		}

		all = append(all, o.takenBy(r.ClusterRole)...)

		for _, by := range takers {
			if by.takes(r.Labels) {
				all = append(all, by.Name)
			}
		}

		slices.Sort(all)

		for _, to := range slices.Compact(all) {
			if to != name {
				out = append(out, in.grantOf(r, o, rbacv1.Subject{Kind: kindClusterRole, Name: to}))
			}
		}
	}

	return out
}

// grantOf is what a ClusterRole gives to whoever is bound to it, or to one that takes its rules.
func (in *input) grantOf(r *clusterRole, o *Options, to rbacv1.Subject) grant {
	rules, unknown := in.rulesOf(r.Name, o)

	return grant{subject: to, places: []place{{}}, rules: rules, unknown: unknown, role: kindClusterRole + " " + r.Name, doc: r.doc}
}
