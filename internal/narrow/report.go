package narrow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// Report says what a narrowing did, and what users have to know before they apply it.
type Report struct {
	Accounts []AccountReport `json:"accounts"`
	// Warnings are about what will not work, or stays cluster-wide. Notes are what is good to know.
	Warnings []string `json:"warnings,omitempty"`
	Notes    []string `json:"notes,omitempty"`
	// LeftOut are ClusterRoleBindings and ClusterRoles that the output does not have any more. Applying it deletes none of them.
	LeftOut []string `json:"leftOut,omitempty"`
	// Changed says whether anything was rewritten.
	Changed bool `json:"changed"`
}

// AccountReport is about one account.
type AccountReport struct {
	Account   Account  `json:"account"`
	Workloads []string `json:"workloads,omitempty"`
	// Namespaces are those that are known by name; Options.MemberLabels may select more.
	Namespaces []string `json:"namespaces"`
	// Before and After count the rules that hold in the whole cluster.
	Before int `json:"clusterRulesBefore"`
	After  int `json:"clusterRulesAfter"`
	// Lost is what it may no longer do outside of its members, what matters most first.
	Lost []reach.Right `json:"lost"`
	// Still is what is sensitive and still holds in the whole cluster.
	Still []reach.Right `json:"stillClusterWide,omitempty"`
}

// reporter collects what there is to say.
type reporter struct {
	Report

	// kept are the RoleBindings that stay in their own namespace, and copied those that do not, because they say that they were
	// narrowed before.
	kept, copied []string
	// stays says that an account goes on holding something in the whole cluster that was not narrowed.
	stays bool
}

func (p *reporter) warnf(format string, values ...any) { addf(&p.Warnings, format, values...) }
func (p *reporter) notef(format string, values ...any) { addf(&p.Notes, format, values...) }

func addf(to *[]string, format string, values ...any) {
	if text := fmt.Sprintf(format, values...); !slices.Contains(*to, text) {
		*to = append(*to, text)
	}
}

func (p *reporter) unknownRole(b *binding) {
	p.stays = true
	p.warnf("ClusterRoleBinding %s refers to %s %s, which is not in the input, and not known; it stays cluster-wide",
		printable.Name(b.Name), b.roleRef.Kind, printable.Name(b.roleRef.Name))
}

func (p *reporter) openRole(b *binding) {
	p.stays = true
	p.warnf("ClusterRoleBinding %s refers to ClusterRole %s, which may have more rules than the input says, and nobody knows "+
		"them; it stays cluster-wide", printable.Name(b.Name), printable.Name(b.roleRef.Name))
}

func (p *reporter) heldByGroup(b *binding, s *rbacv1.Subject, holders []*served) {
	p.stays = true
	names := collect.Map(holders, title)
	slices.Sort(names)

	p.warnf("ClusterRoleBinding %s gives something in the whole cluster to Group %s, in which other accounts may be, so it stays, "+
		"and %s holds it as before. Bind the account itself instead, or --keep it", printable.Name(b.Name), printable.Name(s.Name),
		strings.Join(names, ", "))
}

func (p *reporter) sorted(s *sortedRole) {
	if len(s.Unsorted) > 0 {
		names := collect.Map(s.Unsorted, func(r reach.Resource) string { return printable.Name(r.String()) })
		slices.Sort(names)

		p.warnf("ClusterRole %s: nothing is known of %s; taken for namespaced. Give the definitions with -f, or a cluster, or --keep "+
			"what is cluster-scoped", printable.Name(s.name), strings.Join(slices.Compact(names), ", "))
	}

	if s.Enumerated {
		p.notef("ClusterRole %s has wildcards: in the whole cluster they now mean the cluster-scoped resources that are known today",
			printable.Name(s.name))
	}
}

func (p *reporter) reading(s *served, w *workload, container string, r *Reading, one bool) {
	out := wayOut(s)

	switch {
	case (one || r.ListsAll) && out == "":
		p.notef("%s goes on listing the whole cluster, and what it lists is kept%s", w, and(r.Says))
	case one:
		p.warnf("%s takes one namespace or all, and nothing between, so it goes on listing the whole cluster; it needs %s%s",
			w, out, and(r.Says))
	case r.ListsAll:
		p.warnf("%s lists the whole cluster, whatever it is told; it needs %s%s", w, out, and(r.Says))
	case r.None:
		p.notef("%s: container %s reads no list of namespaces (%s)", w, printable.Name(container), r.Source)
	default:
		how, name := "variable", r.Variable
		if r.Argument != "" {
			how, name = "argument", r.Argument
		}

		p.notef("%s: container %s gets its namespaces by the %s %s (known by %s)%s", w, printable.Name(container), how,
			printable.Name(name), printable.Text(r.Source), and(r.Says))
	}
}

func and(says string) string {
	if says == "" {
		return ""
	}

	return "; " + says
}

// wayOut are the flags with which an account may keep listing, behind a fence; empty where it may list already.
func wayOut(s *served) string {
	byGroup := map[string][]string{}
	left := authority.Missing(s.after, s.namespaced)

	for i := range left {
		rule := &left[i]
		if !slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "list" || v == "watch" || v == wildcard }) {
			continue
		}

		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				if !reach.IsNamespaceItself(reach.Resource{Group: group, Name: name}) {
					byGroup[cmp.Or(group, "core")] = append(byGroup[cmp.Or(group, "core")], name)
				}
			}
		}
	}

	if len(byGroup) == 0 {
		return ""
	}

	var out []string

	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		slices.Sort(byGroup[group])
		out = append(out, "--keep "+printable.Word("get,list,watch "+group+"/"+strings.Join(slices.Compact(byGroup[group]), ",")))
	}

	return strings.Join(append(out, "--fence"), " ")
}

func (p *reporter) secondVariable(w *workload, container string, r, first *Reading) {
	p.warnf("%s: container %s reads its namespaces by the variable %s, and a scope injects one variable into a workload, here "+
		"%s; that of the container stays as it is. Set it yourself, and say so by --reads %s", w, printable.Name(container),
		printable.Name(r.variable()), printable.Name(first.variable()), printable.Word(w.name+"/"+container+"=none"))
}

func (p *reporter) unread(all []unread) {
	for i := range all {
		u := &all[i]
		hint := "nothing of it has a name like that"

		if len(u.candidates) > 0 {
			hint = "candidates: " + printable.Text(strings.Join(u.candidates, ", "))
		}

		p.warnf("%s: nobody knows how container %s reads its namespaces; say it by --reads %s, =arg:--flag or =none; %s",
			u.workload, printable.Name(u.container), printable.Word(u.name+"/"+u.container+"=env:NAME"), hint)
	}
}

// finish makes the report.
func (p *reporter) finish(r *run) *Report {
	p.Accounts = []AccountReport{}

	for _, s := range r.served {
		if len(s.namespaced)+len(s.kept) > 0 {
			p.Accounts = append(p.Accounts, r.account(s))
		}
	}

	r.general(p.Accounts)

	for _, name := range slices.Sorted(maps.Keys(r.clusterRoles)) {
		if r.clusterRoles[name].doc.dropped {
			p.LeftOut = append(p.LeftOut, "clusterrole "+name)
		}
	}

	p.Changed = len(r.stream.made) > 0
	for d := range r.stream.objects() {
		p.Changed = p.Changed || d.touched()
	}

	return &p.Report
}

func (r *run) account(s *served) AccountReport {
	a := AccountReport{
		Account: s.Account, Workloads: collect.Map(s.workloads, (*workload).String), Namespaces: r.namesFor(s.Namespace),
		Before: len(s.before), After: len(s.after),
	}

	lost := authority.Missing(s.after, s.namespaced)
	a.Lost = slices.DeleteFunc(reach.Rights(lost), r.isClusterScoped)
	a.Still = slices.DeleteFunc(reach.Rights(s.after), func(r reach.Right) bool { return !r.Sensitive })

	if r.Namespaces != nil {
		for i := range a.Lost {
			a.Lost[i].Of, a.Lost[i].Namespaces = len(r.Namespaces), r.Namespaces.without(a.Namespaces)
		}
	}

	return a
}

// isClusterScoped says whether a right, such as one that a wildcard includes, is about a cluster-scoped resource.
func (r *run) isClusterScoped(of reach.Right) bool {
	group, name, has := strings.Cut(of.Resource, "/")
	if !has || r.Kinds.ReachOf(reach.Resource{Group: "", Name: of.Resource}) != reach.Unknown {
		group, name = "", of.Resource
	}

	return r.Kinds.ReachOf(reach.Resource{Group: group, Name: name}) == reach.ClusterScoped
}
