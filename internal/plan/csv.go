package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// CSVs is what a scope's csvInjector covers and changes.
type CSVs struct {
	// Listed says that ClusterServiceVersions could be read. When they could not, nothing is known.
	Listed bool
	// Packages are those that an annotation covers, sorted; Found those of them that have a CSV with a deployment here.
	Packages, Found []string
	// Problems say what is left alone, and why. LeftAlone are the CSVs that hold nothing of an injection, nor are to.
	Problems, LeftAlone []string
	// Unlimited are the CSVs whose annotation asks to limit their webhooks, which a confined scope cannot: webhook configurations
	// have no namespace.
	Unlimited []string
	// ByPackage are the CSVs of each package that is found.
	ByPackage map[string][]string
}

// maxAlike is how many packages count that OLM's label does not tell apart: it has room for the first 63 characters of a name.
const maxAlike = 20

// byPackage finds the CSVs of packages. OLM says of which package one is by a label, as far as a Subscription brought it; the
// name of one that somebody made by hand begins with that of its package, as the name of every CSV does. There may be thousands
// of both, so none is compared with all others.
func byPackage(packages []string, csvs []facts.CSV, namespace string) map[string][]*facts.CSV {
	out, labelled := make(map[string][]*facts.CSV, len(packages)), make(map[string][]string, len(packages))

	for _, name := range packages {
		out[name] = nil

		if label := scope.LabelValue(name + "." + namespace); len(labelled[label]) < maxAlike {
			labelled[label] = append(labelled[label], name)
		}
	}

	for i := range csvs {
		csv := &csvs[i]

		for _, label := range csv.Components {
			for _, name := range labelled[label] {
				out[name] = append(out[name], csv)
			}
		}

		for at := 0; len(csv.Components) == 0 && at <= len(csv.Name); at++ {
			if at < len(csv.Name) && csv.Name[at] != '.' {
				continue
			}

			if of, is := out[csv.Name[:at]]; is {
				out[csv.Name[:at]] = append(of, csv)
			}
		}
	}

	return out
}

// packagesOf are the packages that the annotations of the CSVs name, sorted, each once.
func packagesOf(csvs []facts.CSV) []string {
	found := map[string]struct{}{}

	for i := range csvs {
		for name := range strings.SplitSeq(csvs[i].ManagedOperators, ",") {
			if name = strings.TrimSpace(name); name != "" {
				found[name] = struct{}{}
			}
		}
	}

	return slices.Sorted(maps.Keys(found))
}

// findCSVs finds the CSVs of the packages that are to read the list. covered are their names, with those of the packages.
func (p *Plan) findCSVs(f *facts.Facts) (found CSVs, covered map[string]string) {
	found = CSVs{Listed: f.OperatorNamespace.CSVsListed, Packages: packagesOf(f.OperatorNamespace.CSVs),
		ByPackage: map[string][]string{}}
	covered = map[string]string{}
	of := byPackage(found.Packages, f.OperatorNamespace.CSVs, p.Key.Namespace)

	for _, name := range found.Packages {
		for _, csv := range of[name] {
			covered[csv.Name] = name

			if len(csv.Deployments) > 0 {
				found.ByPackage[name] = append(found.ByPackage[name], csv.Name)
			}
		}

		if len(found.ByPackage[name]) > 0 {
			found.Found = append(found.Found, name)
		}
	}

	return found, covered
}

func (p *Plan) planCSVs(f *facts.Facts) {
	var wanting []int

	for i := range p.Scopes {
		if s := p.Scopes[i].Scope; !s.Deleting() && s.InjectCSVs {
			wanting = append(wanting, i)
		}
	}

	index := p.oldest(wanting)
	found, covered := p.findCSVs(f)

	for i := range f.OperatorNamespace.CSVs {
		csv := &f.OperatorNamespace.CSVs[i]

		if _, is := covered[csv.Name]; is && index >= 0 {
			problems, into := p.planCSV(csv, index, f.AmbitAccount)

			found.Problems = append(found.Problems, problems...)
			if !into {
				found.LeftAlone = append(found.LeftAlone, csv.Name)
			}

			if csv.ManagedWebhooks && p.Scopes[index].Scope.Confined {
				found.Unlimited = append(found.Unlimited, csv.Name)
			}
		} else {
			p.restoreCSV(csv, index)
		}
	}

	p.planWebhooks(f, covered, index)

	for _, i := range wanting {
		s := &p.Scopes[i]
		s.CSVs = found

		if first := p.Scopes[index].Scope; i != index && len(covered) > 0 && csvWant(s.Scope).Hash() != csvWant(first).Hash() {
			s.CSVs.Found = nil // They read the list of the other.
			s.CSVs.Problems = append(slices.Clone(found.Problems), fmt.Sprintf("ClusterServiceVersions are injected for the older scope "+
				"%s; give both scopes the same spec.configmapName and spec.restartLabels, or leave spec.csvInjector out of one",
				first.Owner.Name))
		}
	}
}

func csvWant(s *scope.Scope) *injection.Want {
	return &injection.Want{
		ConfigMap: s.WatchList, Labels: s.Labels, Optional: true, Confined: s.Confined, OverOLM: true,
		WorkloadInjection: scope.WorkloadInjection{Variable: "WATCH_NAMESPACE"},
	}
}

// planCSV plans what the deployments of a CSV lack, and returns what is left alone. into says whether any of them reads the list,
// or has something to restore.
func (p *Plan) planCSV(csv *facts.CSV, index int, ambits string) (problems []string, into bool) {
	if csv.Problem != "" {
		return []string{fmt.Sprintf("ClusterServiceVersion %s: %s", csv.Name, csv.Problem)}, csv.Replaced != ""
	}

	// What was there is remembered by the name of the deployment.
	if name := facts.Twice(csv.Deployments, func(d *facts.CSVDeployment) string { return d.Name }); name != "" {
		return []string{fmt.Sprintf("ClusterServiceVersion %s: two of its deployments have the name %s; rename one", csv.Name, name)},
			csv.Replaced != ""
	}

	want := csvWant(p.Scopes[index].Scope)
	before, after := injection.Recall(csv.Replaced), map[string]injection.Memory{}

	var ops []injection.Op

	for i := range csv.Deployments {
		d := &csv.Deployments[i]
		if d.Template.Account == ambits {
			problems = append(problems, fmt.Sprintf("ClusterServiceVersion %s, deployment %s: %s%s", csv.Name, d.Name, isAmbits, ambits))
			ops = append(ops, injection.TakeBack(templateAt(i), d.Template.Labels, &d.PodSpec, before[d.Name])...)

			continue
		}

		if why := leftAlone(d, want, before[d.Name]); why != "" {
			problems = append(problems, fmt.Sprintf("ClusterServiceVersion %s, deployment %s: %s", csv.Name, d.Name, why))
			after[d.Name] = before[d.Name]
			into = into || csv.Replaced != ""

			continue
		}

		edits, memory := want.Put(templateAt(i), d.Template.Labels, &d.PodSpec, before[d.Name])
		if d.Bare && len(edits) > 0 {
			edits = slices.Insert(edits, 0, injection.Op{Op: "add", Path: templateAt(i) + "/metadata", Value: map[string]any{}})
		}

		ops, after[d.Name], into = append(ops, edits...), memory, true
	}

	if len(ops) > 0 {
		ops = append(ops, remember(csv, after)...)
		p.Injections = append(p.Injections, Injection{
			Action: PatchInjection, Workload: facts.WorkloadRef{Kind: CSVKind, Name: csv.Name},
			Patch: ops, Version: csv.Version, Scope: index, List: want.ConfigMap,
		})
	}

	return problems, into
}

// leftAlone says why nothing is injected into a deployment; empty when something may be. The record on the ClusterServiceVersion,
// which nobody writes who may not write its deployments, tells what Ambit injected before, for another list.
func leftAlone(d *facts.CSVDeployment, want *injection.Want, before injection.Memory) string {
	if why := otherwise(d, want.Labels); why != "" {
		return why
	}

	if !want.Confined {
		return ""
	}

	// Labels can lead traffic to pods, and make webhooks put containers into them. The default label does neither.
	for _, k := range slices.Sorted(maps.Keys(want.Labels)) {
		is, there := d.Template.Labels[k]
		isDefault := k == operatorv1.DefaultRestartLabel && want.Labels[k] == operatorv1.DefaultRestartLabelValue

		if is != want.Labels[k] && (there || !isDefault) {
			return fmt.Sprintf("its pod template has to have the label %s=%s, and this Ambit adds none but %s=%s",
				k, want.Labels[k], operatorv1.DefaultRestartLabel, operatorv1.DefaultRestartLabelValue)
		}
	}

	for _, c := range want.Conflicts(&d.PodSpec) {
		if c.List == "" || c.List != before.Containers[c.Container].ConfigMap {
			return c.String() + "; remove it there"
		}
	}

	return ""
}

// otherwise says why a Deployment would not choose pods with these labels any more, so that the API server would refuse it; empty
// where it would.
func otherwise(d *facts.CSVDeployment, want map[string]string) string {
	if d.Selector == nil {
		return ""
	}

	for _, k := range slices.Sorted(maps.Keys(want)) {
		if v, asked := d.Selector.MatchLabels[k]; asked && v != want[k] {
			return fmt.Sprintf("its selector asks for %s=%s", k, v)
		}
	}

	expressions, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: d.Selector.MatchExpressions})
	if err != nil {
		return "its selector cannot be read"
	}

	with := maps.Clone(d.Template.Labels)
	if with == nil {
		with = labels.Set{}
	}

	if maps.Copy(with, want); expressions.Matches(with) || !expressions.Matches(d.Template.Labels) {
		return ""
	}

	return "its selector does not match pods with " + labels.FormatLabels(want)
}

func templateAt(i int) string {
	return fmt.Sprintf("/spec/install/spec/deployments/%d/spec/template", i)
}

func remember(csv *facts.CSV, memories map[string]injection.Memory) []injection.Op {
	return injection.Annotate("", map[string]string{scope.AnnotationReplaced: csv.Replaced}, csv.Annotated,
		map[string]string{scope.AnnotationReplaced: injection.Remember(memories)})
}

// restoreCSV plans to restore what was in a CSV, if anything was injected. Without an injector it is done for the first scope
// whose status still speaks of an injection: nobody else's CSV is concerned.
func (p *Plan) restoreCSV(csv *facts.CSV, index int) {
	if csv.Replaced == "" || csv.Problem != "" {
		return
	}

	memories := injection.Recall(csv.Replaced)

	var ops []injection.Op

	for i := range csv.Deployments {
		d := &csv.Deployments[i]
		ops = append(ops, injection.TakeBack(templateAt(i), d.Template.Labels, &d.PodSpec, memories[d.Name])...)
	}

	p.Injections = append(p.Injections, Injection{
		Action: RestoreInjection, Workload: facts.WorkloadRef{Kind: CSVKind, Name: csv.Name},
		Patch: append(ops, remember(csv, nil)...), Version: csv.Version, Scope: p.remaining(index),
	})
}

// remaining is the scope for which something is taken back: the one that injects, else the first one that did.
func (p *Plan) remaining(index int) int {
	if index >= 0 {
		return index
	}

	return slices.IndexFunc(p.Scopes, func(s ScopePlan) bool { return s.Scope.Injected })
}

// aboutToRoll says whether OLM is about to replace the pods of a Deployment, because its CSV does not read a list any more
// that the Deployment reads.
func aboutToRoll(f *facts.Facts, w *facts.Workload, list string) bool {
	for i := range f.OperatorNamespace.CSVs {
		csv := &f.OperatorNamespace.CSVs[i]
		if csv.Name != w.CSV {
			continue
		}

		for j := range csv.Deployments {
			if d := &csv.Deployments[j]; d.Name == w.Name {
				return !contains(d.Template.Reads, list)
			}
		}
	}

	return false
}
