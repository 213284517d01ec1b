package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/controllers/group"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// simulate runs the manager's reconcilers in memory, with what is proposed. It says whether the result counts. It does not where
// a catalog brings operators that have to do with what is installed in namespaces which were not read; next time they are.
func (o *Options) simulate(ctx context.Context, v *reading.Cluster, result *Planned) (counts bool, err error) {
	installs, err := o.readInstalls(ctx, v, result)
	if err != nil {
		return false, err
	}

	if installs == nil {
		if err := result.nothing(v); err != nil {
			return false, err
		}
	}

	cluster := v.Snapshot.Cluster
	cluster.Begin()

	if err := o.proposeTo(cluster, result.proposals); err != nil {
		return false, err
	}

	var in *simulation.Simulation

	result.Predictions, result.authorizer, err = v.Predict(ctx, func(s *simulation.Simulation) []scope.Key {
		in = s

		return installs.setUp(in)
	})
	if err != nil {
		return true, err
	}

	result.noteFollowers(v, in)

	if installs == nil {
		return true, nil
	}

	for key, why := range in.Unserved {
		if key.Family == scope.Installs || key.Family == scope.Catalogs {
			result.unplayed[key] = why
		}
	}

	if result.Installs, err = installsOf(cluster, in, installs.Namespaces, result.proposals); err != nil {
		return false, err
	}

	if brought := result.Installs.brought(); installs.Linked(brought) {
		result.brought = append(result.brought, brought...)

		return false, nil
	}

	if !installs.serving.Ours {
		// Ambit takes back what it made, and the rest is somebody else's to say.
		result.Installs.statuses, result.Installs.After = nil, nil

		return true, nil
	}

	v.Notes = append(v.Notes, "every Deployment is taken to get ready, and every definition to be established")

	return true, nil
}

// noteFollowers says what a plan takes for granted of operators that follow their list, and where it knows of none.
func (r *Planned) noteFollowers(v *reading.Cluster, in *simulation.Simulation) {
	if in.TookIn {
		v.Notes = append(v.Notes, "every operator that follows its watch list is taken to apply it in time")
	}

	for _, f := range r.Predictions {
		if len(f.Restarts) > 0 && v.Snapshot.HidesFollowers(f.Key.Namespace) {
			v.Notes = append(v.Notes, "you may not list leases in namespace "+f.Key.Namespace+
				", which say which operators follow their watch list: those would not restart for a list")
		}
	}
}

// installing is what a plan needs to know of the installs that the files can matter to.
type installing struct {
	*snapshot.Installed

	serving  snapshot.Serving
	confined bool
}

// setUp makes a simulation serve OLM's kinds, and returns the reconcile keys.
func (i *installing) setUp(in *simulation.Simulation) []scope.Key {
	if i == nil {
		return nil
	}

	in.Ours = func() (bool, bool) { return i.serving.Ours, i.serving.Known }

	if i.confined {
		in.Confine(group.Confined{Secret: controllers.NamesSecret})
	}

	var keys []scope.Key

	for _, name := range i.Namespaces {
		keys = append(keys, scope.Installs.In(name))

		// No Subscription is served where Ambit has rights in single namespaces alone.
		if !i.confined {
			keys = append(keys, scope.Catalogs.In(name))
		}
	}

	return keys
}

// readInstalls reads what matters for OLM's kinds; nil where the files have nothing to do with them, or Ambit does not serve
// them.
func (o *Options) readInstalls(ctx context.Context, v *reading.Cluster, result *Planned) (*installing, error) {
	namespaces, err := installNamespaces(ctx, v, result.proposals)
	if err != nil || len(namespaces) == 0 {
		return nil, err
	}

	serving, err := v.ServesInstalls(ctx, &v.Settings)
	if err != nil {
		return nil, err
	}

	if !serving.Known {
		return nil, besides(v, errors.New(serving.Why), result.proposals)
	}

	if serving.Why != "" {
		v.Notes = append(v.Notes, serving.Why)
	}

	out := &installing{serving: serving, confined: len(v.Settings.Namespaces) > 0}

	if out.confined && serving.Ours {
		namespaces = result.servedHere(v, namespaces)
	}

	if !serving.Ours && !serving.Revokes || len(namespaces) == 0 {
		return nil, nil //nolint:nilnil // As documented.
	}

	out.Installed, err = v.Installs(ctx, v.Snapshot, snapshot.Installs{
		Namespaces: namespaces, Ambit: v.Settings.Namespace, Within: v.Settings.Namespaces,
		Proposed: append(installsIn(result.proposals), result.brought...),
	})
	if err != nil {
		return nil, err
	}

	if err := unknownInstalls(v, namespaces, out.Needed); err != nil && serving.Ours {
		return nil, besides(v, err, result.proposals)
	} else if err != nil {
		v.Notes = append(v.Notes, err.Error())

		return nil, nil //nolint:nilnil // As documented.
	}

	return out, nil
}

// servedHere returns the namespaces that are served where Ambit serves single ones. Objects of the files that nobody serves
// become notes.
func (r *Planned) servedHere(v *reading.Cluster, namespaces []string) []string {
	var unserved []string

	for _, p := range r.proposals {
		kind := p.GroupVersionKind().GroupKind()
		if p.object == nil || !isServedKind(kind) {
			continue
		}

		switch {
		case kind != files.OperatorGroups && kind != files.ClusterServiceVersions:
			unserved = append(unserved, fmt.Sprintf("this Ambit serves single namespaces, in which it serves OperatorGroups and "+
				"ClusterServiceVersions: nobody serves %s %s/%s", p.GetKind(), p.GetNamespace(), p.GetName()))
		case !slices.Contains(v.Settings.Namespaces, p.GetNamespace()):
			unserved = append(unserved, fmt.Sprintf("this Ambit serves the namespaces %s only: it does not serve %s %s/%s",
				strings.Join(v.Settings.Namespaces, ", "), p.GetKind(), p.GetNamespace(), p.GetName()))
		}
	}

	v.Notes, r.unserved = append(v.Notes, unserved...), len(unserved) > 0

	return slices.DeleteFunc(namespaces, func(name string) bool { return !slices.Contains(v.Settings.Namespaces, name) })
}

// installsIn are the OperatorGroups and ClusterServiceVersions of the files.
func installsIn(proposals []*proposal) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured

	for _, p := range proposals {
		kind := p.GroupVersionKind().GroupKind()
		if p.object != nil && (kind == files.OperatorGroups || kind == files.ClusterServiceVersions) {
			out = append(out, p.Unstructured)
		}
	}

	return out
}

// besides makes a note of an error about installs if the files are about something else; otherwise it returns the error.
func besides(v *reading.Cluster, err error, proposals []*proposal) error {
	if slices.ContainsFunc(proposals, func(p *proposal) bool { return isServedKind(p.GroupVersionKind().GroupKind()) }) {
		return err
	}

	v.Notes = append(v.Notes, err.Error())

	return nil
}

// proposeTo writes the files into a cluster in memory, Namespaces first, or deletes what they name.
func (o *Options) proposeTo(cluster *simulation.Cluster, proposals []*proposal) error {
	others := slices.DeleteFunc(slices.Clone(proposals), (*proposal).isNamespace)
	namespaces := slices.DeleteFunc(slices.Clone(proposals), func(p *proposal) bool { return !p.isNamespace() })

	for _, p := range slices.Concat(namespaces, others) {
		if p.object == nil || isScope(p.object) {
			continue // Predict declares the scopes.
		}

		write := cluster.Propose
		if o.Delete {
			write = cluster.Delete
		}

		obj, _ := p.object.DeepCopyObject().(client.Object) // A copy has the type of its original.
		if err := write(obj); err != nil {
			return fmt.Errorf("%s: %w", p.Source, err)
		}
	}

	return nil
}

// unknownInstalls fails where something that decides may not be read: what is not seen would count as not there. needed are the
// namespaces in which all that is installed has to be seen.
func unknownInstalls(v *reading.Cluster, namespaces, needed []string) error {
	for _, d := range v.Denied() {
		isDefinition := d.Namespace == "" && d.Resource == "customresourcedefinitions"
		if d.Verb == "list" && (isDefinition || slices.Contains(needed, d.Namespace)) {
			return fmt.Errorf("what would be installed in namespace %s is unknown: %s; let somebody run this who may, or see what "+
				"it needs with ambit preflight -f", strings.Join(namespaces, ", "), d)
		}
	}

	return nil
}
