package narrow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// group are the accounts of one scope: those of a namespace whose workloads read their namespaces in the same way.
type group struct {
	namespace, name string
	served          []*served
	// variable gets the list in containers; empty for none.
	variable   string
	containers []string
	// arguments get the list through the variable.
	injected []injected
}

type injected struct {
	*workload

	container string
	reading   Reading
}

func (g *group) configMap() string { return g.name + "-namespaces" }

// wholeName is a name for a cluster-scoped object of a group. No two groups share one: namespaces hold no dot. What was narrowed
// when such names had a hyphen keeps its name, if the object of this kind that bears it is for this group: it may be another's.
func (r *run) wholeName(g *group, kind, prefix string, isFor func(*group, *Document) bool) string {
	before := prefix + g.namespace + "-" + g.name
	if strings.HasPrefix(g.name, g.namespace) {
		before = prefix + g.name
	}

	if there := r.identities[identity(kind, "", before)]; there != nil && isFor(g, there) {
		return before
	}

	return prefix + g.namespace + "." + g.name
}

func (g *group) accountNames() []string {
	return slices.Sorted(slices.Values(collect.Map(g.served, func(s *served) string { return s.Name })))
}

// namesFor are the namespaces, of those in which operators of a namespace work, that are known by name.
func (o *Options) namesFor(namespace string) []string {
	names := append([]string{namespace}, o.Members...)
	slices.Sort(names)

	return slices.Compact(names)
}

// scopes writes the scopes of everything that is served.
func (r *run) scopes() error {
	byNamespace := map[string][]*served{}

	for _, s := range r.served {
		if len(s.namespaced)+len(s.kept) > 0 {
			byNamespace[s.Namespace] = append(byNamespace[s.Namespace], s)
		}
	}

	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		groups := r.groups(namespace, byNamespace[namespace])
		if r.As == AsScope {
			label(groups)
		}

		for _, g := range groups {
			if err := r.writeGroup(g); err != nil {
				return err
			}
		}

		if r.As == AsScope {
			all := byNamespace[namespace]
			r.keepInOwnNamespace(namespace, append(all, r.labelled(namespace, groups, all)...))
		}
	}

	return nil
}

// groups divides the accounts of a namespace by how their workloads read their namespaces. An account without an injection joins
// the first group.
func (r *run) groups(namespace string, all []*served) []*group {
	byVariable := map[string]*group{}
	plain := &group{namespace: namespace}

	for _, s := range all {
		found := false

		for _, w := range s.workloads {
			for _, i := range r.readings(s, w) {
				g := byVariable[i.reading.variable()]
				if g == nil {
					g = &group{namespace: namespace, variable: i.reading.variable()}
					byVariable[g.variable] = g
				}

				g.take(s, i)

				found = true
			}
		}

		if !found {
			plain.served = append(plain.served, s)
		}
	}

	out := collect.Map(slices.Sorted(maps.Keys(byVariable)), func(variable string) *group { return byVariable[variable] })

	if len(out) == 0 {
		out = append(out, plain)
	} else {
		out[0].served = append(out[0].served, plain.served...)
	}

	r.name(out)

	return out
}

// label marks the workloads of groups by their scopes: what a scope injects into by that scope, and what else runs as its
// accounts by the first one.
func label(groups []*group) {
	labelled := map[*workload]bool{}
	by := func(g *group, w *workload) {
		if w.injectable() && !labelled[w] {
			w.label(LabelScope, g.name)
			labelled[w] = true
		}
	}

	for _, g := range groups {
		for _, i := range g.injected {
			by(g, i.workload)
		}
	}

	for _, g := range groups {
		for _, s := range g.served {
			for _, w := range s.workloads {
				by(g, w)
			}
		}
	}
}

func (g *group) take(s *served, i injected) {
	if !slices.Contains(g.served, s) {
		g.served = append(g.served, s)
	}

	if !slices.Contains(g.containers, i.container) {
		g.containers = append(g.containers, i.container)
		slices.Sort(g.containers)
	}

	g.injected = append(g.injected, i)
}

// name finds names for the groups of a namespace: that of the one workload or account, or that of the namespace.
func (r *run) name(groups []*group) {
	for _, g := range groups {
		name := g.namespace

		switch {
		case len(g.served) == 1 && len(g.served[0].workloads) == 1:
			name = g.served[0].workloads[0].name
		case len(g.served) == 1:
			name = g.served[0].Name
		}

		name = labelValue(name)

		isTaken := func() bool {
			return r.isOthers(g, name) || slices.ContainsFunc(groups, func(o *group) bool { return o != g && o.name == name })
		}

		for base, n := name, 2; isTaken(); n++ {
			name = fmt.Sprintf("%s-%d", base, n)
		}

		g.name = name
	}
}

// maxName leaves room for what is appended to a name in a label's value.
const maxName = 50

// labelValue is a name that may be the value of a label, too.
func labelValue(name string) string {
	name = strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}

		return '-'
	}, strings.ToLower(name)), "-")

	if len(name) > maxName {
		name = strings.Trim(name[:maxName], "-")
	}

	if len(validation.IsDNS1123Label(name)) > 0 {
		return "operator"
	}

	return name
}

// isSidecar says whether an image is that of a container that reads no namespaces: a proxy that is put beside operators.
func isSidecar(image string) bool {
	return slices.ContainsFunc([]string{"kube-rbac-proxy", "oauth-proxy", "oauth2-proxy", "istio/proxy", "linkerd/proxy"},
		func(name string) bool { return strings.Contains(image, name) })
}

// readings are the containers of a workload into which the list goes.
func (r *run) readings(s *served, w *workload) []injected {
	var (
		out    []injected
		asked  []unread
		silent bool
	)

	for i := range w.spec.Containers {
		c := &w.spec.Containers[i]
		if isSidecar(c.Image) {
			continue
		}

		reading, known := r.read(w, c, r.Reads)
		if !known {
			asked = append(asked, unread{w, c.Name, candidates(c)})

			continue
		}

		one := reading.One && (len(r.MemberLabels) > 0 || len(r.namesFor(w.namespace)) > 1)
		r.report.reading(s, w, c.Name, &reading, one)

		switch {
		case reading.None || one:
			silent = true
		case !w.injectable():
			r.report.warnf("%s: the list is put into Deployments, StatefulSets and DaemonSets only; set it yourself", w)

			silent = true
		default:
			out = append(out, injected{w, c.Name, reading})
		}
	}

	if len(out) == 0 && !silent {
		r.report.unread(asked)
	}

	return r.oneVariable(out)
}

// oneVariable leaves out what reads another variable than the first container: one scope injects into a workload, and that one
// variable.
func (r *run) oneVariable(all []injected) []injected {
	if r.As == AsTemplate {
		return all // Nothing is injected.
	}

	return slices.DeleteFunc(all, func(i injected) bool {
		second := i.reading.variable() != all[0].reading.variable()
		if second {
			r.report.secondVariable(i.workload, i.container, &i.reading, &all[0].reading)
		}

		return second
	})
}

type unread struct {
	*workload

	container  string
	candidates []string
}

// writeGroup writes the scope of a group, and has its workloads read the list.
func (r *run) writeGroup(g *group) error {
	for _, i := range g.injected {
		r.inject(g, i)
	}

	if r.As == AsTemplate {
		name := r.wholeName(g, kindTemplate, "", (*group).isTemplate)

		t := g.template(name)
		if len(t.Spec.ClusterRoles) == 0 {
			return nil
		}

		if err := r.add(t); err != nil {
			return err
		}

		return r.add(g.instance(name, r.Options))
	}

	// Before the scope: Ambit makes the list if it is not there yet, and whoever applies the fence then finds it in the way.
	if r.Fence != nil {
		if err := r.fence(g); err != nil {
			return err
		}
	}

	r.aboutScopes(g)

	return r.add(g.namespaceScope(r.Options))
}

// inject makes room for the list, which the scope's injector writes; a template has no injector, so it is written as it is.
func (r *run) inject(g *group, i injected) {
	if r.As == AsTemplate {
		list := strings.Join(r.namesFor(g.namespace), ",")

		if i.reading.Argument != "" {
			i.setArgument(i.container, i.reading.Argument, list)
		} else {
			i.setVariable(i.container, i.reading.Variable, list)
		}

		if len(r.MemberLabels) > 0 {
			r.report.warnf("%s: a ScopeInstance injects no list, so the one that was written does not follow --member-labels", i.workload)
		}

		return
	}

	i.empty(i.container, i.reading.variable())

	// Kubernetes replaces the reference by the variable's value. Until the injector has set it, the argument is the name of no
	// namespace, so the operator does nothing rather than everything.
	if i.reading.Argument != "" {
		i.setArgument(i.container, i.reading.Argument, "$("+listVariable+")")
	}
}
