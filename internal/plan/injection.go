package plan

import (
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// InjectAction is how an injection is written.
type InjectAction string

// The actions. ApplyInjection is a server-side apply, and ReleaseInjection one of nothing, by which the API server takes back
// what was applied. PatchInjection names each place that it changes, and RestoreInjection restores what was there.
// DisownInjection is what is left of that where the API server still knows that Ambit wrote there.
const (
	ApplyInjection   InjectAction = "apply"
	ReleaseInjection InjectAction = "release"
	PatchInjection   InjectAction = "patch"
	RestoreInjection InjectAction = "restore"
	DisownInjection  InjectAction = "disown"
)

// Injection is one write into an object of somebody else's.
type Injection struct {
	Action InjectAction
	// Workload is what is written to; its Kind is that of a workload, or CSVKind.
	Workload facts.WorkloadRef
	// Spec are the fields of an apply, Marks its annotations.
	Spec  injection.Spec
	Marks map[string]string
	// Patch are the operations of a patch.
	Patch []injection.Op
	// Otherwise are those of a patch for what only the API server's answer tells. It takes the place of an apply where a field turns
	// out to be somebody else's, since a field without a value has an owner, too; empty where that is a conflict. It comes before a
	// release where somebody else mounts Ambit's volume, and takes both away.
	Otherwise []injection.Op
	// Reads are the hashes of all the lists that its pods will begin with, by the names of their ConfigMaps; nil where it gives no
	// workload other pods. With is what its template says of that already, and Bare that the template has no annotations.
	Reads map[string]string
	With  string
	Bare  bool
	// Version is the resource version that the decision was made from.
	Version uint64
	// Scope is the index of the scope that it is for, or was; -1 when that is gone.
	Scope int
	// List is the ConfigMap that has to hold a list before this is written; empty when nothing waits for it.
	List string
}

// CSVKind is the kind of ClusterServiceVersions.
const CSVKind facts.WorkloadKind = "ClusterServiceVersion"

// Target names what is written to, for users.
func (i *Injection) Target() string { return string(i.Workload.Kind) + " " + i.Workload.Name }

// IsTakenBack says whether the injection ends by this write.
func (i *Injection) IsTakenBack() bool {
	return i.Action == ReleaseInjection || i.Action == RestoreInjection || i.Action == DisownInjection
}

// Rolls says whether pods restart by it. What Ambit remembers about an injection is in the object's own annotations, not in
// those of the pod template.
func (i *Injection) Rolls() bool {
	return i.Action == ApplyInjection || i.Action == ReleaseInjection ||
		slices.ContainsFunc(i.Patch, func(o injection.Op) bool { return strings.HasPrefix(o.Path, "/spec") })
}

// Injectable is a workload that a scope injects into, or cannot.
type Injectable struct {
	// Target names it, Conflict says why it is left alone; empty when it is not. Refused says why it always is. Older is the scope
	// that came first and injects something else into it.
	Target, Conflict, Refused, Older string
}

// maxOlder is how many workloads a scope names that an older scope injects into. Others are counted: each scope of a namespace
// may want each of its workloads.
const maxOlder = 100

// injector is what a scope wants in workloads, and its hash.
type injector struct {
	want *injection.Want
	hash string
}

// planInjections decides for each workload and each CSV which scope injects into it.
func (p *Plan) planInjections(f *facts.Facts, all *readers) {
	if f.OperatorNamespace.Terminating {
		return
	}

	p.planCSVs(f)

	all.injectors = map[int]injector{}

	for i := range p.Scopes {
		s := p.Scopes[i].Scope
		if s.InjectWorkloads == nil {
			continue
		}

		if s.Confined {
			p.Scopes[i].InjectionRefused = injection.Refusal(s.InjectWorkloads)
		}

		if !s.Deleting() && p.Scopes[i].InjectionRefused == "" {
			want := &injection.Want{ConfigMap: s.WatchList, Confined: s.Confined, WorkloadInjection: *s.InjectWorkloads}
			all.injectors[i] = injector{want, want.Hash()}
		}
	}

	for i := range f.OperatorNamespace.Workloads {
		w := &f.OperatorNamespace.Workloads[i]
		if w.Kind.Restarts() == facts.ByTemplate && !w.OwnedByOLM {
			p.planWorkload(w, all, f.AmbitAccount)
		}
	}
}

// isAmbits is why nothing is injected into what runs as Ambit's account: whoever could change that could act as Ambit.
const isAmbits = "it runs as Ambit's own service account "

// oldest returns, of the scopes with some indexes, the one that was there first: a scope that comes later must not take operators
// away from another. It returns -1 when there is none.
func (p *Plan) oldest(among []int) int {
	first := -1

	for _, i := range among {
		if first < 0 || p.Scopes[i].Scope.Created.Before(p.Scopes[first].Scope.Created) {
			first = i
		}
	}

	return first
}

func (p *Plan) planWorkload(w *facts.Workload, all *readers, ambits string) {
	var wanting []int

	for i, in := range all.injectors {
		if p.Scopes[i].Scope.Operands.Matches(w.Template.Labels) && in.want.Touches(&w.PodSpec) {
			wanting = append(wanting, i)
		}
	}

	slices.Sort(wanting)

	index := p.oldest(wanting)
	if index < 0 {
		p.takeBack(w)

		return
	}

	if w.Template.Account == ambits {
		for _, i := range wanting {
			s := &p.Scopes[i]
			s.Injectables = append(s.Injectables, Injectable{Target: string(w.Kind) + " " + w.Name, Refused: isAmbits + ambits})
		}

		p.takeBack(w)

		return
	}

	s := &p.Scopes[index]
	report := Injectable{Target: string(w.Kind) + " " + w.Name}
	report.Conflict = p.inject(w, all, index)
	s.Injectables = append(s.Injectables, report)

	for _, i := range wanting {
		if all.injectors[i].hash != all.injectors[index].hash {
			p.Scopes[i].noteOlder(report.Target, s.Scope.Owner.Name)
		}
	}
}

// noteOlder notes that an older scope injects into a workload.
func (p *ScopePlan) noteOlder(target, older string) {
	if p.OlderCount++; p.OlderCount <= maxOlder {
		p.Injectables = append(p.Injectables, Injectable{Target: target, Older: older})
	}
}

// inject plans what a workload lacks, and returns what is in the way of that.
func (p *Plan) inject(w *facts.Workload, all *readers, index int) (conflict string) {
	s := p.Scopes[index].Scope
	want := all.injectors[index].want
	is := w.Injected == all.injectors[index].hash && w.InjectedFor == p.Scopes[index].Owner

	none := w.Replaced == "" && !w.Applied
	if want.Has(&w.PodSpec) && (is || none) {
		return "" // Whoever wrote it did so for the list already.
	}

	changes := !none && !is

	conflicts := inTheWay(w, want, changes)
	if c := blocking(conflicts, s.InjectWorkloads.Replace); c != "" && !changes {
		return c
	}

	in := p.injectionInto(w, want, all, index)

	switch {
	case w.Replaced != "" && w.Injected != all.injectors[index].hash, w.Applied && len(conflicts) > 0:
		// The other way of writing, or other fields: first everything is restored, and the next plan injects again.
		p.takeBack(w)

		return ""
	case w.Replaced != "" || len(conflicts) > 0:
		in.Action, in.Patch = PatchInjection, over(w, want, s)
	default:
		in.Action, in.Spec, in.Marks = ApplyInjection, want.Spec(&w.PodSpec), marks(want, s)
		in.Otherwise = otherwiseOver(w, want, s)
	}

	p.Injections = append(p.Injections, in)

	return ""
}

// injectionInto is a write into a workload, without what it writes.
func (p *Plan) injectionInto(w *facts.Workload, want *injection.Want, all *readers, index int) Injection {
	in := Injection{
		Workload: facts.WorkloadRef{Kind: w.Kind, Name: w.Name}, With: w.InjectedWith, Bare: !w.TemplateAnnotated,
		Version: w.Version, Scope: index, List: want.ConfigMap,
	}

	// Where the template has all of it, no pod begins again, so what its pods began with stays as it is.
	if !want.Has(&w.PodSpec) {
		in.Reads = p.hashesOf(all, append(slices.Clone(w.Template.Reads), in.List), w.Template.Labels)
	}

	return in
}

// inTheWay returns the conflicts of a workload. What Ambit injected for another list, or in another form, is no conflict.
func inTheWay(w *facts.Workload, want *injection.Want, changes bool) []injection.Conflict {
	return slices.DeleteFunc(want.Conflicts(&w.PodSpec), func(c injection.Conflict) bool { return changes && c.MayBeOurs })
}

// blocking returns the first conflict that is not replaced; empty when there is none.
func blocking(conflicts []injection.Conflict, replace bool) string {
	for _, c := range conflicts {
		if !c.Replaceable || !replace {
			return c.String()
		}
	}

	return ""
}

func marks(want *injection.Want, s *scope.Scope) map[string]string {
	return map[string]string{scope.AnnotationInjected: want.Hash(), scope.AnnotationInjectedFor: s.Owner.String()}
}

// theTemplate is the name under which the only template of a workload is remembered, atTemplate where it is.
const theTemplate, atTemplate = "template", "/spec/template"

// otherwiseOver returns the operations that write over fields of somebody else's, where the scope asks for that.
func otherwiseOver(w *facts.Workload, want *injection.Want, s *scope.Scope) []injection.Op {
	if !s.InjectWorkloads.Replace {
		return nil
	}

	return over(w, want, s)
}

// over returns the operations that inject whatever is there, and remember that.
func over(w *facts.Workload, want *injection.Want, s *scope.Scope) []injection.Op {
	ops, memory := want.Put(atTemplate, w.Template.Labels, &w.PodSpec, injection.Recall(w.Replaced)[theTemplate])
	after := marks(want, s)
	after[scope.AnnotationReplaced] = injection.Remember(map[string]injection.Memory{theTemplate: memory})

	return append(ops, injection.Annotate("", annotationsOf(w), w.Annotated, after)...)
}

func annotationsOf(w *facts.Workload) map[string]string {
	return map[string]string{
		scope.AnnotationInjected: w.Injected, scope.AnnotationInjectedFor: w.InjectedFor, scope.AnnotationReplaced: w.Replaced,
	}
}

// takeBack plans the end of an injection, if there is one.
func (p *Plan) takeBack(w *facts.Workload) {
	out := Injection{
		Workload: facts.WorkloadRef{Kind: w.Kind, Name: w.Name}, Version: w.Version,
		Scope: slices.IndexFunc(p.Scopes, func(s ScopePlan) bool { return s.Owner == w.InjectedFor }),
	}

	switch {
	case w.Replaced != "":
		out.Action = RestoreInjection
		out.Patch = slices.Concat(
			injection.TakeBack(atTemplate, w.Template.Labels, &w.PodSpec, injection.Recall(w.Replaced)[theTemplate]),
			injection.Annotate(atTemplate, map[string]string{scope.AnnotationInjectedWith: w.InjectedWith}, true,
				map[string]string{scope.AnnotationInjectedWith: ""}),
			injection.Annotate("", annotationsOf(w), w.Annotated, map[string]string{
				scope.AnnotationInjected: "", scope.AnnotationInjectedFor: "", scope.AnnotationReplaced: "",
			}))
	case w.Applied:
		out.Action = ReleaseInjection
		out.Otherwise = injection.TakeBack(atTemplate, nil, &w.PodSpec, injection.Memory{Volume: true})
	case w.Patched:
		// Everything is restored, but the record that Ambit wrote it is still there: the object changed in between. It is no scope's:
		// anybody who may write the object can make one.
		out.Action, out.Scope = DisownInjection, -1
	default:
		return
	}

	p.Injections = append(p.Injections, out)
}
