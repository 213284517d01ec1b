package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/report"
)

// report writes each status that differs, and after that the events that speak of it.
func (r *Reconciler) report(ctx context.Context, p *state) error {
	errs := []error{generic.InTurn(len(p.members), func(i int) error { return r.reportCSV(ctx, p, &p.members[i]) })}

	began := time.Now()

	for i := range p.found.groups {
		// Where there are several, they serve nothing. What changes meanwhile waits for the next plan.
		if time.Since(began) > lateGroups {
			p.nextCheck = p.facts.Now // Soon.

			break
		}

		errs = append(errs, r.reportGroup(ctx, p, i))
	}

	return errors.Join(errs...)
}

// lateGroups is how long the statuses of groups keep a plan from ending. Each of several may be as large as an object can be.
const lateGroups = 300 * time.Millisecond

func (r *Reconciler) reportCSV(ctx context.Context, p *state, m *member) error {
	left := install.Left(m.csv, m.undeleted)
	if m.verdict.DeleteCSV && left == "" && m.csv.Status.Reason == m.verdict.Reason {
		return nil
	}

	before := m.csv.DeepCopy()
	verdict := p.snapshot.Finish(m.csv, m.verdict, cmp.Or(m.refusal, left)).Leaving(left)
	if m.refusal == "" {
		verdict = verdict.Delayed(m.delay, m.late && before.Status.Phase == olm.CSVPhaseSucceeded)
	}

	report.CSVStatus(&m.csv.Status, verdict, report.CSVConditions(m.planned), metav1.NewTime(p.facts.Now))

	if equality.Semantic.DeepEqual(before.Status, m.csv.Status) {
		return nil
	}

	if err := r.writeCSV(ctx, m.csv, before); err != nil {
		return err
	}

	r.written.Note(m.csv)

	if before.Status.Phase != m.csv.Status.Phase || before.Status.Reason != m.csv.Status.Reason {
		e := report.Event{
			Warning: m.csv.Status.Phase == olm.CSVPhaseFailed, Reason: string(m.csv.Status.Reason), Action: "Install",
			Message: m.csv.Status.Message,
		}
		e.Send(r.Recorder, m.csv)
	}

	return nil
}

// writeCSV writes the status of a ClusterServiceVersion, with what OLM's types do not know.
func (r *Reconciler) writeCSV(ctx context.Context, csv, before *olm.ClusterServiceVersion) error {
	obj, err := install.Untyped(csv)
	if err != nil {
		return err
	}

	was, err := install.Untyped(before)
	if err != nil {
		return err
	}

	report.TypeConditions(obj)

	if err := generic.WriteStatus(ctx, r.Client, obj, was); err != nil {
		return err
	}

	csv.ResourceVersion = obj.GetResourceVersion()

	return nil
}

// reportGroup writes the status of a group, and the list of what its members provide, which OLM keeps in an annotation.
func (r *Reconciler) reportGroup(ctx context.Context, p *state, index int) error {
	g := p.found.groups[index]
	before := g.DeepCopy()
	list, unlisted := p.toList(g)

	report.GroupStatus(g, report.Group{
		Targets: p.snapshot.targets[index], Several: len(p.found.groups) > 1, Account: accountOf(p, g), UserRoles: p.userRolesProblem(),
		LeftOut: p.snapshot.LeftOut.Words, Unlisted: unlisted, Closed: p.closedWords(),
		Left: install.Shorten(p.left),
	}, metav1.NewTime(p.facts.Now))

	if !equality.Semantic.DeepEqual(before.Status, g.Status) {
		if err := generic.WriteStatus(ctx, r.Client, g, before); err != nil {
			return err
		}

		r.note(g, before)
	}

	if len(list) == 0 {
		return nil
	}

	before = g.DeepCopy()

	if err := client.IgnoreNotFound(r.Applier.Annotate(ctx, apply.Own(), g, list)); err != nil {
		return fmt.Errorf("listing the provided APIs: %w", err)
	}

	r.note(g, before)

	return nil
}

// toList is what is to be written into the annotations of a group, empty when nothing is, and why what its members provide is not
// listed.
func (p *state) toList(g *operatorsv1.OperatorGroup) (list map[string]string, unlisted string) {
	if p.snapshot.Group == nil || p.snapshot.Group.Static {
		return nil, ""
	}

	provided := strings.Join(p.provided(), ",")

	if unlisted = install.TooManyToList(g.Annotations, provided); unlisted != "" ||
		provided == g.Annotations[operatorsv1.ProvidedAPIsAnnotation] {
		return nil, unlisted
	}

	return map[string]string{operatorsv1.ProvidedAPIsAnnotation: provided}, ""
}

// accountOf is the service account that a group names, if it exists.
func accountOf(p *state, g *operatorsv1.OperatorGroup) *corev1.ObjectReference {
	live, exists := p.snapshot.Accounts[g.Spec.ServiceAccountName]
	if !exists || live.Ending {
		return nil
	}

	return install.AccountRef(g.Namespace, g.Spec.ServiceAccountName, live)
}
