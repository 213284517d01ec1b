package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// The kinds that stand before a slash in the argument.
const (
	argumentCSV  = "csv"
	argumentPlan = "installplan"
)

// installed splits an argument such as csv/NAME.
func (o *PreflightOptions) installed() (kind, name string, is bool) {
	kind, name, found := strings.Cut(o.Scope, "/")

	return kind, name, found && (kind == argumentCSV || kind == argumentPlan)
}

// documents are the objects of the files. They are read here and nowhere else: the standard input gives them once.
func (o *PreflightOptions) documents() ([]document, error) {
	var all []document

	for _, path := range o.Files {
		found, err := documentsOf(path)
		if err != nil && !errors.Is(err, errNoObject) {
			return nil, err
		}

		all = append(all, found...)
	}

	if len(all) == 0 && len(o.Files) > 0 {
		return nil, errNoObject
	}

	return all, nil
}

// documentsOf reads a file or a folder. One that is a bundle stands for its manifests: what is beside them are no objects.
func documentsOf(path string) ([]document, error) {
	manifests := filepath.Join(path, "manifests")
	if !isFolder(manifests) {
		return readFiles([]string{path}, false)
	}

	bundled, unreadable := readFiles([]string{manifests}, false)
	if unreadable == nil && isInstall(bundled) {
		return bundled, nil
	}

	found, err := readFiles([]string{path}, false)
	if err != nil && unreadable != nil {
		return nil, unreadable
	}

	return found, err
}

func isFolder(path string) bool {
	info, err := os.Stat(path)

	return err == nil && info.IsDir()
}

// isInstall says whether objects hold a ClusterServiceVersion, so that the question is what installing it needs.
func isInstall(documents []document) bool {
	return slices.ContainsFunc(documents, func(d document) bool { return d.GetKind() == scope.KindCSV })
}

// installOf reads what would be installed: of the cluster, or of files.
func (o *PreflightOptions) installOf(ctx context.Context, v *view, documents []document) ([]*unstructured.Unstructured, error) {
	kind, name, named := o.installed()

	if !named {
		out := make([]*unstructured.Unstructured, 0, len(documents))
		for _, d := range documents {
			out = append(out, d.Unstructured)
		}

		return out, nil
	}

	if kind == argumentCSV {
		csv := &unstructured.Unstructured{}
		csv.SetGroupVersionKind(olm.SchemeGroupVersion.WithKind(scope.KindCSV))

		return []*unstructured.Unstructured{csv}, o.get(ctx, v, csv, name)
	}

	return o.stepsOf(ctx, v, name)
}

func (o *PreflightOptions) get(ctx context.Context, v *view, obj client.Object, name string) error {
	err := v.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return fmt.Errorf("there is no %s in namespace %s; give another name, or another namespace by -n", o.Scope, o.Namespace)
	}

	if err != nil {
		return fmt.Errorf("reading %s in namespace %s: %w", o.Scope, o.Namespace, oneLineError{err})
	}

	return nil
}

// stepsOf are the objects of an InstallPlan's steps that are yet to be written.
func (o *PreflightOptions) stepsOf(ctx context.Context, v *view, name string) ([]*unstructured.Unstructured, error) {
	plan := &olm.InstallPlan{}
	if err := o.get(ctx, v, plan, name); err != nil {
		return nil, err
	}

	out := make([]*unstructured.Unstructured, 0, len(plan.Status.Plan))

	for _, step := range plan.Status.Plan {
		if step == nil || step.Status == olm.StepStatusCreated || step.Status == olm.StepStatusPresent {
			continue
		}

		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON([]byte(step.Resource.Manifest)); err != nil {
			return nil, fmt.Errorf("step %s of %s holds no object: %w", step.Resource.Name, o.Scope, err)
		}

		out = append(out, obj)
	}

	return out, nil
}

// askAboutInstall says what is needed to install, and what the account lacks of it.
func (o *PreflightOptions) askAboutInstall(
	ctx context.Context, v *view, documents []document,
) ([]preflight.Need, [][]rbacv1.PolicyRule, error) {
	objects, err := o.installOf(ctx, v, documents)
	if err != nil {
		return nil, nil, err
	}

	group, err := o.group(ctx, v)
	if err != nil {
		return nil, nil, err
	}

	if o.Account == "" && o.User == "" && o.Group == "" && group != nil {
		o.Account = group.Spec.ServiceAccountName
	}

	if o.subject().Kind == "" && len(o.Files) == 0 {
		return nil, nil, fmt.Errorf("the OperatorGroup of namespace %s names no service account, so Ambit itself installs, or nobody "+
			"does; say whom to ask about: --service-account NAME", o.Namespace)
	}

	targets, err := o.targets(ctx, v, group)
	if err != nil {
		return nil, nil, err
	}

	places, err := o.placesOf(ctx, v, objects, targets)
	if err != nil {
		return nil, nil, err
	}

	needs := make([]preflight.Need, 0, len(places))
	for _, place := range places {
		needs = append(needs, preflight.Install(place))
	}

	return o.askFor(ctx, v, needs)
}

// placesOf is what writing the objects needs, and installing the ClusterServiceVersions among them. A definition that is there
// is not written again.
func (o *PreflightOptions) placesOf(
	ctx context.Context, v *view, objects []*unstructured.Unstructured, targets []string,
) ([]authority.Place, error) {
	var (
		places []authority.Place
		write  []*unstructured.Unstructured
	)

	_, _, inCluster := o.installed()

	for _, obj := range objects {
		csv, err := typed(v.Scheme(), obj)
		if err != nil {
			return nil, err
		}

		namespaced, err := v.isNamespaced(obj)
		if err != nil {
			return nil, err
		}

		if namespaced {
			obj.SetNamespace(o.Namespace)
		}

		// That of the cluster is there; the account needs no right to write it anew.
		if csv, is := csv.(*olm.ClusterServiceVersion); is {
			places = append(places, install.Needs(csv, o.Namespace, targets)...)

			if kind, _, _ := o.installed(); inCluster && kind == argumentCSV {
				continue
			}
		}

		if there := v.Get(ctx, client.ObjectKeyFromObject(obj), obj.DeepCopy()) == nil; !there {
			write = append(write, obj)
		}
	}

	return authority.Places(append(places, catalog.Needs(write)...)), nil
}

func (v *view) isNamespaced(obj *unstructured.Unstructured) (bool, error) {
	gvk := obj.GroupVersionKind()

	mapping, err := v.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, fmt.Errorf("the cluster does not know the kind %s of %s, which %s is of: %w", gvk.Kind, gvk.GroupVersion(),
			obj.GetName(), oneLineError{err})
	}

	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

// group is the OperatorGroup of the namespace; nil when there is none.
func (o *PreflightOptions) group(ctx context.Context, v *view) (*operatorsv1.OperatorGroup, error) {
	if namespace, _, found := strings.Cut(o.Account, "/"); found {
		o.Namespace = namespace
	}

	var groups operatorsv1.OperatorGroupList

	err := v.List(ctx, &groups, client.InNamespace(o.Namespace))

	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil, errors.New("the cluster does not know OperatorGroups; install Ambit's profile with OLM's kinds, or OLM")
	case err != nil:
		return nil, fmt.Errorf("listing the OperatorGroups of namespace %s: %w", o.Namespace, oneLineError{err})
	case len(groups.Items) > 1:
		return nil, fmt.Errorf("namespace %s has %d OperatorGroups, so nothing can be installed there; delete all but one",
			o.Namespace, len(groups.Items))
	case len(groups.Items) == 0:
		return nil, nil //nolint:nilnil // None is an answer.
	}

	return &groups.Items[0], nil
}

// targets are the namespaces that the operator would serve: those of --in and --namespace-selector, else those of the group, else
// its own.
func (o *PreflightOptions) targets(ctx context.Context, v *view, group *operatorsv1.OperatorGroup) ([]string, error) {
	switch {
	case len(o.In) > 0 || o.Selector != "" || group == nil:
		return o.namespacesFor(ctx, v)
	case len(group.Status.Namespaces) > 0:
		return group.Status.Namespaces, nil
	case len(group.Spec.TargetNamespaces) > 0:
		return group.Spec.TargetNamespaces, nil
	case group.Spec.Selector == nil:
		return []string{""}, nil
	default:
		return nil, fmt.Errorf("the OperatorGroup %s of namespace %s has no target namespaces; "+
			"kubectl describe operatorgroup %s -n %s says why", group.Name, o.Namespace, group.Name, o.Namespace)
	}
}
