package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// ibmOperator is the name of the Deployment of IBM's operator (github.com/IBM/ibm-namespace-scope-operator, config/manager).
const ibmOperator = "ibm-namespace-scope-operator"

// lookInterval is how often the command checks whether Ambit is done.
const lookInterval = 200 * time.Millisecond

// takeOver shows what a take-over does, stops IBM's operator and waits until Ambit is done.
func (o *Options) takeOver(ctx context.Context, v *reading.Cluster) error {
	f, running, err := o.predictTakeOver(ctx, v)
	if err := v.Close(ctx, err); err != nil {
		return err
	}

	if err := o.showTakeOver(f, running); err != nil {
		return err
	}

	if err := o.PrintNotes(v); err != nil {
		return err
	}

	hidden := unread(v.FactsOf(scope.NamespaceScopes.In(o.Namespace)).Namespaces, v.Denied())

	switch {
	case o.DryRun:
		return output.Say(o.Out, "\nNothing was changed: this was a dry run.")
	// OLM undoes changes to the Deployments of a ClusterServiceVersion.
	case running != nil && running.Labels[scope.LabelOLMOwner] != "":
		return fmt.Errorf("OLM runs IBM's operator and would start it again, so nothing was done; delete its Subscription and "+
			"ClusterServiceVersion %s first, and then run this again", running.Labels[scope.LabelOLMOwner])
	case len(hidden) > 0:
		return fmt.Errorf("nothing was done, because nobody would see what IBM's operator leaves behind: %s; ask for these rights, or "+
			"let somebody run this who has them", strings.Join(snapshot.Words(hidden), "; "))
	case f.Refused():
		return fmt.Errorf("something of this would be refused, so IBM's operator was not stopped; ambit preflight SCOPE -n %s says "+
			"of each scope what is missing", o.Namespace)
	}

	if running != nil {
		if err := stop(ctx, v, running); err != nil {
			return err
		}

		if err := output.Say(o.Out, "\nDeployment %s/%s is scaled to zero.", running.Namespace, running.Name); err != nil {
			return err
		}
	}

	return o.awaitTakeOver(ctx, v, f)
}

// predictTakeOver plans for the namespace as Ambit does, and finds IBM's operator if it runs.
func (o *Options) predictTakeOver(ctx context.Context, v *reading.Cluster) (*predict.Prediction, *appsv1.Deployment, error) {
	if err := o.FindManager(ctx, v); err != nil {
		return nil, nil, err
	}

	resources, err := v.Resources(ctx, []string{o.Namespace}, false)
	if err != nil {
		return nil, nil, err
	}

	if len(resources) == 0 {
		return nil, nil, fmt.Errorf("there is no NamespaceScope in namespace %s, or you may not see it, so there is nothing to "+
			"take over", o.Namespace)
	}

	if err := v.Read(ctx, resources); err != nil {
		return nil, nil, err
	}

	predictions, _, err := v.Predict(ctx, reading.Nothing)
	if err != nil {
		return nil, nil, err
	}

	running, err := ibmOperatorIn(ctx, v, o.Namespace)

	return predictions[0], running, err
}

// unread returns the refusals that hide what IBM's operator left in namespaces that exist, as far as that is known.
func unread(namespaces map[string]facts.Namespace, denied []snapshot.Denied) []snapshot.Denied {
	return slices.DeleteFunc(slices.Clone(denied), func(d snapshot.Denied) bool {
		return namespaces[d.Namespace].Closed == "" || d.Resource != "roles" && d.Resource != "rolebindings"
	})
}

// ibmOperatorIn returns the Deployment of IBM's operator, if it runs.
func ibmOperatorIn(ctx context.Context, v *reading.Cluster, namespace string) (*appsv1.Deployment, error) {
	d := &appsv1.Deployment{}

	err := v.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ibmOperator}, d)

	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // It may run elsewhere, or nowhere.
	case err != nil:
		return nil, fmt.Errorf("looking for Deployment %s/%s: %w", namespace, ibmOperator, err)
	case d.Spec.Replicas != nil && *d.Spec.Replicas == 0:
		return nil, nil //nolint:nilnil // It is stopped.
	default:
		return d, nil
	}
}

func (o *Options) showTakeOver(f *predict.Prediction, running *appsv1.Deployment) error {
	var p terminal.Builder

	paint := terminal.PaintFor(o.Out)
	p.Linef("%s", paint.Bold("Taking over namespace "+o.Namespace+" from IBM's operator"))

	step := 0
	say := func(format string, values ...any) {
		step++

		p.Linef("%d. %s", step, fmt.Sprintf(format, values...))
	}

	if running == nil {
		p.Linef("   There is no Deployment %s in namespace %s that runs; if IBM's operator runs elsewhere, stop it first.", ibmOperator,
			o.Namespace)
	} else {
		say("%s", stopping(running))
	}

	created := count(f, func(c *predict.Change) bool {
		return c.Purpose == predict.Granted && c.Action == plan.Create && c.Refusal == nil
	})
	if len(created) > 0 {
		say("Ambit creates %d Roles and RoleBindings, beside those of IBM's operator: in %s.", len(created),
			output.Some(placesOf(created)))
	}

	refused := func(what, name string, r *predict.Refusal) {
		p.Linef("   %s %s: %s: %s", paint.Bad(what), name, r.Reason, r.Message)
	}

	for i := range f.Lists {
		if l := &f.Lists[i]; l.Refusal != nil {
			refused("Not written:", "ConfigMap "+l.Name, l.Refusal)
		} else {
			say("%s", listing(l, f.Restarts))
		}
	}

	removed := count(f, func(c *predict.Change) bool { return c.Purpose == predict.Legacy && c.Refusal == nil })
	if len(removed) > 0 {
		say("A second after its own are there, Ambit removes %d Roles and RoleBindings of IBM's operator: in %s.", len(removed),
			output.Some(placesOf(removed)))
	}

	for i := range f.Restarts {
		if r := &f.Restarts[i]; r.Refusal != nil {
			refused("Not restarted:", r.Reader(), r.Refusal)
		} else {
			say("%s restarts: %s.", r.Reader(), r.Why())
		}
	}

	showRest(&p, paint, f)

	return output.Say(o.Out, "%s", p.Text())
}

// showRest says what a take-over has nothing to do with, or does not come to.
func showRest(p *terminal.Builder, paint terminal.Paint, f *predict.Prediction) {
	if f.Empty() {
		p.Linef("   Ambit has nothing to do there: it took over already.")
	}

	for i := range f.Scopes {
		s := &f.Scopes[i]
		if len(s.ForeignLegacy) > 0 {
			p.Linef("   Left alone, because it bears the mark of IBM's operator and is not its work: %s.", output.Some(s.ForeignLegacy))
		}

		for _, failed := range s.Failed {
			p.Linef("   %s %s: %s: %s", paint.Bad("Not served:"), failed.Namespace, failed.Reason, failed.Message)
		}
	}
}

// listing says what becomes of a watch list.
func listing(l *predict.List, restarts []predict.Restart) string {
	late := slices.ContainsFunc(restarts, func(r predict.Restart) bool { return r.List == l.Name })

	switch {
	case !l.Existed:
		return fmt.Sprintf("Ambit creates the watch list ConfigMap %s: %s.", l.Name, l.After)
	case l.NamesTheSame() && late:
		return fmt.Sprintf("Ambit adopts the watch list ConfigMap %s. It names the same namespaces, and who began without it restarts.",
			l.Name)
	case l.NamesTheSame():
		return fmt.Sprintf("Ambit adopts the watch list ConfigMap %s. It names the same namespaces, so nobody restarts for it.", l.Name)
	default:
		return fmt.Sprintf("Ambit adopts the watch list ConfigMap %s, and its list becomes %s.", l.Name, l.After)
	}
}

func stopping(d *appsv1.Deployment) string {
	if csv := d.Labels[scope.LabelOLMOwner]; csv != "" {
		return fmt.Sprintf("Remove IBM's operator from OLM, which would start it again: delete its Subscription and "+
			"ClusterServiceVersion %s in namespace %s. This command does not do that.", csv, d.Namespace)
	}

	return fmt.Sprintf("Stop IBM's operator: scale Deployment %s/%s to zero.", d.Namespace, d.Name)
}

func count(f *predict.Prediction, which func(*predict.Change) bool) []predict.Change {
	return slices.DeleteFunc(slices.Clone(f.Changes), func(c predict.Change) bool { return !which(&c) })
}

// placesOf are the namespaces of changes, sorted, each once.
func placesOf(changes []predict.Change) []string {
	return sets.List(sets.New(collect.Map(changes, func(c predict.Change) string { return c.Namespace })...))
}

// stop scales the Deployment that was shown to zero, but none that was created under the same name since.
func stop(ctx context.Context, v *reading.Cluster, d *appsv1.Deployment) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"replicas":0}}`, d.UID, d.ResourceVersion)

	err := v.Patch(ctx, d, client.RawPatch("application/merge-patch+json", patch), importManager)
	if err != nil {
		return fmt.Errorf("stopping IBM's operator: %w; nothing was changed", command.OneLine(err))
	}

	return nil
}

// awaitTakeOver waits until nothing is left of what IBM's operator projected.
func (o *Options) awaitTakeOver(ctx context.Context, v *reading.Cluster, f *predict.Prediction) error {
	left := count(f, func(c *predict.Change) bool { return c.Purpose == predict.Legacy })
	all := len(left)
	progress := terminal.NewProgress(o.ErrOut)
	err := wait.PollUntilContextTimeout(ctx, lookInterval, o.Timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		if left, err = stillThere(ctx, snapshot.New(v.Client), left); ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
			return false, nil //nolint:nilerr // What is late is asked again. The timeout is reported below, in other words.
		}

		progress.Show("waiting for Ambit", all-len(left), all)

		return len(left) == 0, err
	})

	progress.Clear()

	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; IBM's operator is stopped, and Ambit goes on by itself: see kubectl get nss -n " + o.Namespace)
	case wait.Interrupted(err):
		return fmt.Errorf("after %s, %d objects of IBM's operator are still there; is Ambit running? See kubectl get nss -n %s -o wide",
			o.Timeout, len(left), o.Namespace)
	case err != nil:
		return fmt.Errorf("waiting for Ambit: %w", command.OneLine(err))
	}

	return output.Say(o.Out, "Done: nothing is left of what IBM's operator projected, and what was left alone stays.")
}

// stillThere are those of some objects that still exist, or of which that is not known because something went wrong. There may be
// tens of thousands: what is gone is not asked about again.
func stillThere(ctx context.Context, r *snapshot.Reader, objects []predict.Change) ([]predict.Change, error) {
	gone := make([]bool, len(objects))

	err := r.Each(ctx, "", len(objects), func(i int) error {
		key := &objects[i].Key
		obj := key.Kind.Empty(objects[i].Namespace, key.Name)

		err := r.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if gone[i] = apierrors.IsNotFound(err); err != nil && !gone[i] {
			return fmt.Errorf("looking for %s of %s: %w", key.Kind, rbacv1.GroupName, err)
		}

		return nil
	})

	left := make([]predict.Change, 0, len(objects))

	for i := range objects {
		if !gone[i] {
			left = append(left, objects[i])
		}
	}

	return left, err
}
