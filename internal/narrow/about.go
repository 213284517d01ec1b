package narrow

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// general are the warnings about what operators do with their rights.
func (r *run) general(accounts []AccountReport) {
	p := r.report

	r.aboutOthers()

	for i := range accounts {
		r.aboutAccount(&accounts[i])
	}

	switch {
	case len(accounts) == 0 && p.stays: // There was something, and the warnings say why it stays.
	case len(accounts) == 0:
		p.notef("nothing was to be narrowed: no account of the input holds in the whole cluster what has an effect in a namespace")
	case len(r.Members) == 0 && len(r.MemberLabels) == 0:
		p.warnf("no members are named, so the operators work in their own namespaces only; give --members or --member-labels")
	}

	if len(accounts) > 1 {
		p.notef("%d accounts are narrowed, each to the same members", len(accounts))
	}

	if len(p.kept) > 0 {
		p.notef("stays in the operator's own namespace, by the annotation %s: %s", scope.AnnotationProject, strings.Join(p.kept, ", "))
	}

	if len(p.copied) > 0 {
		p.notef("copied into the members, because their annotation %s says that they were narrowed before: %s", AnnotationFrom,
			strings.Join(p.copied, ", "))
	}

	if len(accounts) > 0 {
		r.aboutKeeps()
		r.aboutReads()
	}

	r.aboutArguments()
	r.aboutWebhooks(len(accounts) > 0)
}

func (r *run) aboutAccount(a *AccountReport) {
	s := r.serve(a.Account)
	writes := func(resource string) bool { return mayWrite(s.before, resource) }
	clusterRoles := reach.Resource{Group: rbacv1.GroupName, Name: "clusterroles"}

	switch {
	case writes("clusterrolebindings") && reach.AllowAny(s.before, clusterRoles, "bind", "escalate"):
		r.report.warnf("%s may write ClusterRoleBindings, and bind or escalate: it can give itself everything back", title(s))
	case writes("clusterrolebindings") || writes("clusterroles"):
		r.report.warnf("%s hands out cluster-wide roles at run time. It can hand out only what it still holds cluster-wide; "+
			"--keep what it has to hand out", title(s))
	case writes("rolebindings") || writes("roles"):
		r.report.notef("%s hands out Roles at run time, and can do so in its members only", title(s))
	}

	if isSystem(a.Account.Namespace) {
		r.report.warnf("%s is in the system namespace %s, which is always one of its members", title(s), a.Account.Namespace)
	}

	events := reach.AllowAny(s.namespaced, reach.Resource{Group: "", Name: "events"}, verbCreate) ||
		reach.AllowAny(s.namespaced, reach.Resource{Group: "events.k8s.io", Name: "events"}, verbCreate)
	if events && r.writesClusterScoped(s) && !slices.Contains(a.Namespaces, "default") {
		r.report.notef("%s: events about cluster-scoped things are written to namespace default; for these, "+
			"--keep 'create,patch core/events' or make it a member", title(s))
	}
}

// aboutKeeps warns of what was to be kept, and nothing gives: it is spelled in another way, and what was meant is lost.
func (r *run) aboutKeeps() {
	for i := range r.Keep {
		k := &r.Keep[i]
		if !slices.ContainsFunc(r.served, func(s *served) bool { return k.Concerns(s.before) }) {
			r.report.warnf("--keep %s keeps nothing, because no rule gives any of it; the first part of a resource is its group, as in "+
				"'create core/pods/exec'", printable.Word(k.String()))
		}
	}
}

// aboutReads warns of what was said of a container that nothing runs: its name is misspelled, and the list gets nowhere or comes
// in another way.
func (r *run) aboutReads() {
	for i := range r.Reads {
		reads := &r.Reads[i]
		meant := func(w *workload) bool {
			return w.name == reads.Workload && (reads.Container == "" ||
				slices.ContainsFunc(w.spec.Containers, func(c corev1.Container) bool { return c.Name == reads.Container }))
		}

		runs := func(s *served) bool { return slices.ContainsFunc(s.workloads, meant) }
		if reads.Workload != "" && !slices.ContainsFunc(r.served, runs) {
			r.report.warnf("--reads %s says nothing of what is narrowed: no operator has a workload and container of that name",
				printable.Word(strings.TrimSuffix(reads.Workload+"/"+reads.Container, "/")+"="))
		}
	}
}

func title(s *served) string { return printable.Name(s.Namespace + "/" + s.Name) }

// writesClusterScoped says whether an account serves cluster-scoped objects: it then holds a status subresource in the whole
// cluster.
func (r *run) writesClusterScoped(s *served) bool {
	return slices.ContainsFunc(s.after, func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rule.Resources, func(name string) bool { return strings.HasSuffix(name, "/status") })
	})
}

// aboutArguments warns of arguments that name namespaces in which the account will hold nothing.
func (r *run) aboutArguments() {
	for _, s := range r.served {
		if len(s.namespaced) == 0 {
			continue
		}

		members := r.namesFor(s.Namespace)

		for _, w := range s.workloads {
			for i := range w.spec.Containers {
				for _, a := range slices.Concat(w.spec.Containers[i].Command, w.spec.Containers[i].Args) {
					r.aboutArgument(s, w, a, members)
				}
			}
		}
	}
}

func (r *run) aboutArgument(s *served, w *workload, argument string, members []string) {
	name, value, _ := strings.Cut(argument, "=")
	namespace, _, _ := strings.Cut(value, "/")

	if !isSystem(namespace) || slices.Contains(members, namespace) {
		return
	}

	all, _ := r.roleBindings()
	if slices.ContainsFunc(all, func(b *binding) bool { return b.Namespace == namespace && b.names([]*served{s}) }) {
		return // A Role there gives what it needs.
	}

	r.report.warnf("%s: its argument %s speaks of namespace %s, where it will hold nothing; make it a member if it is needed",
		w, printable.Text(name), printable.Text(namespace))
}

// aboutOthers warns of what may give rights in the whole cluster by another way than bindings of RBAC: that stays as it is.
func (r *run) aboutOthers() {
	reads := &declared{}

	found := r.stream.names(func(d *Document) bool {
		if reads.reader(d) == nil {
			return carriesRights(d)
		}

		return d.Kind == scope.KindCSV || d.Kind == kindInstance && isEmpty(d, "namespaces") && isEmpty(d, "namespaceSelector")
	})
	if found != "" {
		r.report.stays = true
		r.report.warnf("these may give rights by themselves, also in the whole cluster, and stay as they are: %s", found)
	}
}

// names are some objects for users.
func (s *Stream) names(which func(*Document) bool) string {
	found := map[string]bool{}

	for d := range s.objects() {
		if which(d) {
			found[d.String()] = true
		}
	}

	return strings.Join(slices.Sorted(maps.Keys(found)), ", ")
}

func isEmpty(d *Document, field string) bool {
	of := at(d.body, "spec", field)

	return of == nil || len(of.Content) == 0
}

// aboutWebhooks says that webhooks keep answering for the whole cluster.
func (r *run) aboutWebhooks(narrowed bool) {
	found := r.stream.names(func(d *Document) bool { return strings.HasSuffix(d.Kind, "WebhookConfiguration") })
	if narrowed && found != "" {
		r.report.notef("webhooks go on answering for the whole cluster: %s", found)
	}
}
