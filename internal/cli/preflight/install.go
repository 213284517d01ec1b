package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// The kinds that stand before a slash in the argument.
const (
	argumentCSV  = "csv"
	argumentPlan = "installplan"
)

// installed splits an argument such as csv/NAME.
func (o *Options) installed() (kind, name string, is bool) {
	kind, name, found := strings.Cut(o.Scope, "/")

	return kind, name, found && (kind == argumentCSV || kind == argumentPlan)
}

// documents are the objects of the files. They are read here and nowhere else: the standard input gives them once.
func (o *Options) documents() ([]files.Document, error) {
	var all []files.Document

	for _, path := range o.Files {
		found, err := documentsOf(path)
		if err != nil && !errors.Is(err, files.ErrNoObject) {
			return nil, err
		}

		all = append(all, found...)
	}

	if len(all) == 0 && len(o.Files) > 0 {
		return nil, files.ErrNoObject
	}

	return all, nil
}

// documentsOf reads a file or a folder. A folder that is a bundle stands for its manifests: the files beside them hold no
// objects.
func documentsOf(path string) ([]files.Document, error) {
	manifests := filepath.Join(path, "manifests")
	if !isDir(manifests) {
		return files.Read([]string{path}, false)
	}

	bundled, unreadable := files.Read([]string{manifests}, false)
	if unreadable == nil && isInstall(bundled) {
		return bundled, nil
	}

	found, err := files.Read([]string{path}, false)
	if err != nil && unreadable != nil {
		return nil, unreadable
	}

	return found, err
}

func isDir(path string) bool {
	info, err := os.Stat(path)

	return err == nil && info.IsDir()
}

// isInstall says whether objects hold a ClusterServiceVersion, so that the question is what installing it needs.
func isInstall(documents []files.Document) bool {
	return slices.ContainsFunc(documents, func(d files.Document) bool {
		return d.GroupVersionKind().GroupKind() == files.ClusterServiceVersions
	})
}

// installOf reads what would be installed: of the cluster, or of files.
func (o *Options) installOf(ctx context.Context, v *inquiry, documents []files.Document) ([]files.Document, error) {
	switch kind, name, named := o.installed(); {
	case !named:
		return documents, nil
	case kind == argumentCSV:
		csv := scope.NewOLM(scope.KindCSV)

		return []files.Document{{Unstructured: csv, Source: o.Scope}}, o.get(ctx, v, csv, name)
	default:
		return o.stepsOf(ctx, v, name)
	}
}

func (o *Options) get(ctx context.Context, v *inquiry, obj client.Object, name string) error {
	switch err := v.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, obj); {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return snapshot.OLMNotInstalled("the kind of " + o.Scope)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("there is no %s in namespace %s; give another name, or another namespace by -n", o.Scope, o.Namespace)
	default:
		return fmt.Errorf("reading %s in namespace %s: %w", o.Scope, o.Namespace, command.OneLine(err))
	}
}

// stepsOf are the objects of an InstallPlan's steps that are yet to be written.
func (o *Options) stepsOf(ctx context.Context, v *inquiry, name string) ([]files.Document, error) {
	plan := &olm.InstallPlan{}
	if err := o.get(ctx, v, plan, name); err != nil {
		return nil, err
	}

	out := make([]files.Document, 0, len(plan.Status.Plan))

	for _, step := range plan.Status.Plan {
		if step == nil || step.Status == olm.StepStatusCreated || step.Status == olm.StepStatusPresent {
			continue
		}

		obj, err := objectOf(&step.Resource)
		if err != nil {
			return nil, fmt.Errorf("step %s of %s holds no object: %w", step.Resource.Name, o.Scope, err)
		}

		out = append(out, files.Document{Unstructured: obj, Source: o.Scope})
	}

	return out, nil
}

// objectOf is the object of a step. Where the manifests of an InstallPlan are too large together, those of the definitions are
// left out, and their names are known even so.
func objectOf(r *olm.StepResource) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}

	if r.Manifest == "" && r.Kind == kindOfDefinitions.Kind {
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
		obj.SetName(r.Name)

		return obj, nil
	}

	return obj, obj.UnmarshalJSON([]byte(r.Manifest)) //nolint:wrapcheck // The caller says which step.
}

// askAboutInstall says what is needed to install, and what the account lacks of it.
func (o *Options) askAboutInstall(
	ctx context.Context, v *inquiry, documents []files.Document,
) ([]missingIn, error) {
	// The account of an install is in the operator's namespace. For csv/ and installplan/, that one is given already.
	if namespace, _, found := strings.Cut(o.Account, "/"); found && !o.isNamedInstall() {
		o.Namespace = namespace
	}

	if err := o.confine(ctx, v); err != nil {
		return nil, command.OneLine(err)
	}

	documents, err := o.installOf(ctx, v, documents)
	if err != nil {
		return nil, err
	}

	group, err := o.group(ctx, v, documents)
	if err != nil {
		return nil, err
	}

	if o.Account == "" && o.User == "" && o.Group == "" && group != nil {
		o.Account = group.Spec.ServiceAccountName

		// Whether the account is there is another question than what it lacks.
		id := v.writers.OfGroup(o.Namespace, &writer.Group{Name: group.Name, Account: o.Account, Exists: true}, "").Writes
		if id.IsNobody() {
			v.Notes = append(v.Notes, "whatever may be done, nothing is installed: "+id.Why())
		}
	}

	if o.subject().Kind == "" && len(o.Files) == 0 {
		return nil, o.nobody(group)
	}

	targets, err := o.targets(ctx, v, group, documents)
	if err != nil {
		return nil, err
	}

	needs, err := o.needsOf(ctx, v, documents, targets)
	if err != nil {
		return nil, err
	}

	return o.askFor(ctx, v, needs)
}

// nobody is the error for an install that no account makes.
func (o *Options) nobody(group *operatorsv1.OperatorGroup) error {
	if group == nil {
		return fmt.Errorf("namespace %s has no OperatorGroup, so nothing is installed there; create one, or say whom to ask about: "+
			"--service-account NAME", o.Namespace)
	}

	return fmt.Errorf("the OperatorGroup of namespace %s names no service account, so Ambit itself installs, or nobody does; say "+
		"whom to ask about: --service-account NAME", o.Namespace)
}

// needsOf is what writing the objects needs, and installing the ClusterServiceVersions among them. Ambit writes those and their
// definitions, or they are written as it would. Somebody applies the other objects, as with any manifest.
func (o *Options) needsOf(
	ctx context.Context, v *inquiry, documents []files.Document, targets []string,
) ([]preflight.Need, error) {
	var (
		places []authority.Place
		write  []*unstructured.Unstructured
		others []files.Document
	)

	for _, d := range documents {
		switch d.GroupVersionKind().GroupKind() {
		case files.ClusterServiceVersions:
			csv, err := o.versionOf(v, d)
			if err != nil {
				return nil, err
			}

			needs, err := o.needsOfVersion(ctx, v, csv, targets)
			if err != nil {
				return nil, err
			}

			places = append(places, needs...)

			// The one in the cluster exists, so the account needs no right to write it again.
			if kind, _, inCluster := o.installed(); inCluster && kind == argumentCSV {
				continue
			}
		case kindOfDefinitions:
			if v.beyond != nil {
				continue // Somebody else's to make, and reported with what the version needs.
			}

			if _, err := v.RESTMapper().RESTMapping(kindOfDefinitions, d.GroupVersionKind().Version); meta.IsNoMatchError(err) {
				others = append(others, d)

				continue
			}
		default:
			others = append(others, d)

			continue
		}

		if v.isWritten(ctx, d, documents) {
			write = append(write, d.Unstructured)
		}
	}

	k := v.kindsOf(documents)

	objects, err := k.objects(others)
	if err != nil {
		return nil, err
	}

	guarded, err := o.guardedBeside(ctx, v, objects)
	if err != nil {
		return nil, err
	}

	needs := append(v.needsOfOthers(ctx, k, objects, []string{o.Namespace}), guarded...)

	for _, place := range authority.Places(append(places, catalog.Needs(write)...)) {
		needs = append(needs, preflight.Install(place))
	}

	return preflight.Together(needs), nil
}

// guardedBeside is what the admission policies ask of whoever applies the objects that nobody installs. Those of an InstallPlan
// are applied by Ambit.
func (o *Options) guardedBeside(ctx context.Context, v *inquiry, objects []preflight.Object) ([]preflight.Need, error) {
	if o.isNamedInstall() {
		return nil, nil
	}

	return o.guarded(ctx, v, objects, []string{o.Namespace})
}

// versionOf is a ClusterServiceVersion, in the operator's namespace: a namespace that its author wrote into it is never meant.
func (o *Options) versionOf(v *inquiry, d files.Document) (*olm.ClusterServiceVersion, error) {
	d.SetNamespace(o.Namespace)

	obj, err := files.Typed(v.Scheme(), d.Unstructured)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Source, err)
	}

	csv, is := obj.(*olm.ClusterServiceVersion)
	if !is {
		return nil, fmt.Errorf("%s: it is of %s; Ambit installs those of %s", d.Source, d.GetAPIVersion(), olm.SchemeGroupVersion)
	}

	return csv, nil
}

// isWritten says whether an object of an install is yet to be written. A ClusterServiceVersion that exists is not written again,
// nor is a definition that will do. One that is changed gets the UID of the live one: that takes another right.
func (v *inquiry) isWritten(ctx context.Context, d files.Document, documents []files.Document) bool {
	live := d.DeepCopy()
	if v.Get(ctx, client.ObjectKeyFromObject(d), live) != nil {
		return true
	}

	if d.GroupVersionKind().GroupKind() != kindOfDefinitions {
		return false
	}

	isMade := scope.WrittenByAmbit(live.GetManagedFields(), "")
	verdict, why := catalog.Compare(live, d.Unstructured, owned(documents, d.GetName()), isMade)

	if _, says := d.Object["spec"]; !says {
		verdict = catalog.Differs // Otherwise the step that leaves it out would be done.
	}

	switch verdict {
	case catalog.Differs:
		d.SetUID(live.GetUID())

		return true
	case catalog.Clashes:
		v.Notes = append(v.Notes, fmt.Sprintf("whatever may be done, nothing is installed: CustomResourceDefinition %s: %s",
			d.GetName(), why))
	case catalog.Fits:
	}

	return false
}

// owned are the versions of a definition that the ClusterServiceVersions among documents own.
func owned(documents []files.Document, definition string) []string {
	var versions []string

	for _, d := range documents {
		if d.GroupVersionKind().GroupKind() != files.ClusterServiceVersions {
			continue
		}

		if csv, err := install.Read(d.Unstructured); err == nil {
			versions = append(versions, (&catalog.Steps{CSV: csv}).Wants(definition)...)
		}
	}

	return versions
}
