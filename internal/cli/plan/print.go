package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// maxGrants is for how many namespaces the missing permissions of scopes are printed as YAML.
const maxGrants = 5

// show prints what was found out, for users or for programs.
func (o *Options) show(v *reading.Cluster, r *Planned) error {
	d, err := o.Data(v, r)
	if err != nil {
		return err
	}

	if o.Output != output.Table {
		return o.PrintData(d)
	}

	p := &printer{data: d, paint: terminal.PaintFor(o.Out)}
	p.head()
	p.scopes()
	p.installs()
	p.objects()
	p.lists()
	p.restarts()

	if o.Diff {
		if err := p.diffs(v, r); err != nil {
			return err
		}
	}

	if err := output.Say(o.Out, "%s", p.Text()); err != nil {
		return err
	}

	if err := o.grants(r); err != nil {
		return err
	}

	return o.PrintNotes(v)
}

// grants prints the YAML that gives what is missing.
func (o *Options) grants(r *Planned) error {
	grants, installs := r.authorizer.Grants(r.Predictions), r.Installs.grants
	if len(grants)+len(installs) == 0 {
		return nil
	}

	if err := output.Say(o.Out, "\nMissing permissions. This grants exactly them:\n"); err != nil {
		return err
	}

	objects := installs
	for i := range grants[:min(len(grants), maxGrants)] {
		objects = append(objects, grants[i].Role(), grants[i].RoleBinding())
	}

	if err := output.Objects(o.Out, output.YAML, objects); err != nil {
		return err
	}

	if len(grants) > maxGrants {
		return output.Say(o.Out, "\nThe same is missing in %d more namespaces; the grants of -o yaml are for all of them.",
			len(grants)-maxGrants)
	}

	return nil
}

// printer writes a plan for users.
type printer struct {
	terminal.Builder

	data  *Data
	paint terminal.Paint
	// differs says that a difference was printed.
	differs bool
}

func (p *printer) heading(text string) { p.Linef("\n%s", p.paint.Bold(text)) }

// head says what would be applied, and sums up the rest.
func (p *printer) head() {
	for _, f := range p.data.Files {
		name := reading.ScopeName(scope.Owner{Group: f.Group, Kind: f.Kind, Namespace: f.Namespace, Name: printable.Name(f.Name)})

		if f.Result == resultAbsent {
			p.Linef("%s is not there, so there is nothing to delete.", name)

			continue
		}

		p.Linef("%s would be %s.", name, f.Result)

		if f.Refused != "" {
			p.Linef("  %s %s", p.paint.Bad("The API server would refuse it:"), f.Refused)
		}
	}

	if n := len(p.data.LeftOut); n > 0 {
		p.Linef("%s", p.paint.Dim(fmt.Sprintf("Left out, because Ambit does not look at it: %s.", output.Some(p.data.LeftOut))))
	}

	p.Linef("%s", p.paint.Bold(p.summary()))

	for i := range p.data.Unknown {
		p.Linef("%s %s", p.paint.Bad("Not complete:"), p.data.Unknown[i].Words())
	}
}

func (p *printer) summary() string {
	counts := map[plan.Action]int{}
	refused := 0

	for i := range p.data.Objects {
		if p.data.Objects[i].Refused != nil {
			refused++
		} else {
			counts[p.data.Objects[i].Action]++
		}
	}

	var parts []string

	for _, part := range []struct {
		n    int
		what string
	}{
		{counts[plan.Create], "to create"},
		{counts[plan.Update], "to change"},
		{counts[plan.Delete] + counts[plan.Empty], "to delete"},
		{refused, "refused"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}

	out, what := "No Role or RoleBinding would change", "Roles and RoleBindings: "
	if len(p.data.Installs) > 0 || slices.ContainsFunc(p.data.Objects, isInstalled) {
		out, what = "No object would change", "Objects: "
	}

	if len(p.data.Unknown) > 0 {
		out = "It is not known whether any object would change"
	}

	if len(parts) > 0 {
		out = what + strings.Join(parts, ", ")
	}

	lists := count(p.data.WatchLists, 0, func(l *predict.List) bool { return l.Refusal != nil })
	restarts := count(p.data.Restarts, p.rolledOut(), func(r *Restart) bool { return r.Refused != nil })

	return fmt.Sprintf("%s. Watch lists to write: %s. Restarts: %s.", out, lists, restarts)
}

// isInstalled says whether an object is none of those that scopes project.
func isInstalled(o Object) bool {
	kind := projected.Kind(o.Kind)

	return !slices.Contains(projected.RoleKinds(), kind) && !kind.IsBinding()
}

// count says how many would be done, with some more, and how many would be refused.
func count[T any](all []T, more int, isRefused func(*T) bool) string {
	refused := collect.Count(collect.Pointers(all), isRefused)

	out := strconv.Itoa(len(all) + more - refused)
	if refused > 0 {
		out += fmt.Sprintf(", %d refused", refused)
	}

	return out
}

// scopes says which namespaces join, leave, and would not be served.
func (p *printer) scopes() {
	for i := range p.data.Scopes {
		s := &p.data.Scopes[i]
		if len(s.Joins)+len(s.Leaves)+len(s.Failed)+len(s.Says) == 0 {
			continue
		}

		owner := scope.ParseOwner(s.Scope)
		owner.Group = s.Group
		p.heading(reading.ScopeName(owner))

		if len(s.Joins) > 0 {
			p.Linef("  %s %s", p.paint.Good("joins: "), output.Some(s.Joins))
		}

		if len(s.Leaves) > 0 {
			p.Linef("  %s %s", p.paint.Bad("leaves:"), output.Some(s.Leaves))
		}

		for _, f := range s.Finishes[:min(len(s.Finishes), output.MaxSome)] {
			p.Linef("  %s %s: %s", p.paint.Warn("waits: "), f.Namespace, f.Message)
		}

		if n := len(s.Finishes) - output.MaxSome; n > 0 {
			p.Linef("  %s %d more namespaces", p.paint.Warn("waits: "), n)
		}

		for _, f := range s.Failed[:min(len(s.Failed), output.MaxSome)] {
			p.Linef("  %s %s: %s: %s", p.paint.Bad("fails: "), output.Place(f.Namespace), f.Reason, f.Message)
		}

		if n := len(s.Failed) - output.MaxSome; n > 0 {
			p.Linef("  %s %d more namespaces", p.paint.Bad("fails: "), n)
		}

		for _, remark := range s.Says {
			p.Linef("  %s  %s", p.paint.Warn("note:  "), remark)
		}
	}
}

// objectLine is what objects that share a line have in common: a copy has the same name in every member.
type objectLine struct {
	action  plan.Action
	purpose predict.Purpose
	kind    string
	name    string
	source  string
	refused string
}

func (p *printer) objects() {
	if len(p.data.Objects) == 0 {
		return
	}

	in := map[objectLine][]string{}

	var order []objectLine

	for i := range p.data.Objects {
		c := &p.data.Objects[i]
		key := objectLine{action: c.Action, purpose: c.Purpose, kind: c.Kind, name: c.Name, source: c.Source}

		if c.Refused != nil {
			key.refused = c.Refused.Reason
		}

		if _, known := in[key]; !known {
			order = append(order, key)
		}

		in[key] = append(in[key], c.Namespace)
	}

	p.heading("Objects")

	t := terminal.Table{Indent: "  "}

	for _, key := range order {
		where := "in the whole cluster"
		if places := in[key]; !slices.Contains(places, "") {
			slices.Sort(places) // Several scopes may share a line.
			where = "in " + output.Some(places)
		}

		t.Row(p.action(key), key.kind, printable.Name(key.name), where, p.paint.Dim(origin(key)))
	}

	p.Add(t.Text())
	p.refusals()
}

func (p *printer) action(key objectLine) terminal.Text {
	switch {
	case key.refused != "":
		return p.paint.Bad("refused: " + string(key.action))
	case key.action.TakesAway():
		return p.paint.Bad(string(key.action))
	case key.action == plan.Create:
		return p.paint.Good("create")
	default:
		return p.paint.Warn(string(key.action))
	}
}

func origin(key objectLine) string {
	switch key.purpose {
	case predict.Legacy:
		return "IBM's operator projected it"
	case predict.Orphaned:
		return "its scope is gone"
	case predict.Retired:
		return "another one replaces it"
	case predict.Collected:
		return "what authorized it is gone"
	case predict.Granted, predict.Revoked, predict.Pruned, purposeInstall:
	}

	if key.source == "" {
		return ""
	}

	return "from " + named(key.source)
}

// named is an annotation of the form <Kind>/<namespace>/<name>, in the words of users.
func named(annotation string) string {
	kind, name, _ := strings.Cut(annotation, "/")

	return kind + " " + printable.Name(strings.TrimPrefix(name, "/"))
}

func (p *printer) lists() {
	if len(p.data.WatchLists) == 0 {
		return
	}

	p.heading("Watch lists")

	for i := range p.data.WatchLists {
		l := &p.data.WatchLists[i]
		verb, says := p.paint.Warn("update"), ""

		switch {
		case l.Refusal != nil:
			verb, says = p.paint.Bad("refused:"), ": "+l.Refusal.Message
		case !l.Exists:
			verb = p.paint.Bad("delete")
		case !l.Existed:
			verb = p.paint.Good("create")
		case l.Before == l.After:
			says = ": the list stays as it is, and gets Ambit's marks"
		}

		p.Linef("  %s ConfigMap %s/%s%s", verb, l.Namespace, l.Name, says)

		if l.Refusal == nil && l.Exists {
			p.listChange(l)
		}
	}
}

func (p *printer) listChange(l *predict.List) {
	before, after := split(l.Before), split(l.After)

	if more := without(after, before); len(more) > 0 {
		p.Linef("    %s %s", p.paint.Good("+"), output.Some(printable.Names(more)))
	}

	if fewer := without(before, after); len(fewer) > 0 {
		p.Linef("    %s %s", p.paint.Bad("-"), output.Some(printable.Names(fewer)))
	}
}

// without are the names of a list that are not in another.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(other, name) })
}

func split(list string) []string {
	if list == "" {
		return nil
	}

	return strings.Split(list, ",")
}
