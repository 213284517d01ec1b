package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// nobodyInParticular is the user that stands for a group: it has no rights but those of the group.
const nobodyInParticular = "ambit-preflight"

func (o *Options) validateObjects() error {
	who := collect.Count([]string{o.Account, o.User, o.Group}, func(given string) bool { return given != "" })

	switch {
	case who > 1:
		return errors.New("--service-account, --for-user and --for-group name three different subjects; give one of them")
	case len(o.Files) == 0 && !o.isNamedInstall() && (o.User != "" || o.Group != "" || len(o.In) > 0 || o.Selector != ""):
		return errors.New("--for-user, --for-group, --in and --namespace-selector are about the objects of files; give -f, too")
	}

	if _, err := labels.Parse(o.Selector); err != nil {
		return fmt.Errorf("--namespace-selector is %q: %w", o.Selector, err)
	}

	for _, name := range o.In {
		if err := command.ValidName("--in", name); err != nil {
			return err
		}
	}

	return nil
}

func (o *Options) isNamedInstall() bool {
	_, _, is := o.installed()

	return is
}

// subject is who would write the objects; its kind is empty for the caller.
func (o *Options) subject() preflight.Subject {
	switch {
	case o.Account != "":
		namespace, name, found := strings.Cut(o.Account, "/")
		if !found {
			namespace, name = o.Namespace, o.Account
		}

		return preflight.Account(namespace, name)
	case o.User != "":
		return preflight.Subject{Subject: rbacv1.Subject{Kind: rbacv1.UserKind, Name: o.User}}
	case o.Group != "":
		return preflight.Subject{Subject: rbacv1.Subject{Kind: rbacv1.GroupKind, Name: o.Group}}
	default:
		return preflight.Subject{}
	}
}

func (o *Options) printGrants(ctx context.Context, v *inquiry, missing []missingIn) error {
	to, err := o.grantee(ctx, v)
	if err != nil {
		return err
	}

	var grants []scope.Object

	for _, m := range missing {
		if len(m.Rules) > 0 {
			grants = append(grants, preflight.Grant(to, m.Namespace, m.Rules)...)
		}
	}

	return output.Objects(o.Out, o.Output, append(grants, v.beyond.grants()...))
}

// grantee is who is granted what the subject lacks. If that is the caller, only the API server knows the name.
func (o *Options) grantee(ctx context.Context, v *inquiry) (preflight.Subject, error) {
	if s := o.subject(); s.Kind != "" {
		return s, nil
	}

	name, err := command.UserName(ctx, v.Client)
	if err != nil {
		return preflight.Subject{}, fmt.Errorf("asking the API server who you are: %w", command.OneLine(err))
	}

	return preflight.Subject{Subject: scope.Holder(&rbacv1.Subject{Kind: rbacv1.UserKind, Name: name})}, nil
}

// runObjects says what the subject lacks to apply the files. ErrMissing is the answer "something".
func (o *Options) runObjects(
	ctx context.Context, c client.Client, config *rest.Config, documents []files.Document,
) error {
	v := &inquiry{Cluster: reading.New(c, config, o.ErrOut)}

	ask, purpose := o.askAboutObjects, "to apply the files"
	if o.isNamedInstall() || isInstall(documents) {
		ask, purpose = o.askAboutInstall, "to install it"
	}

	missing, err := ask(ctx, v, documents)
	if err := v.Close(ctx, err); err != nil {
		return err
	}

	lacking := slices.ContainsFunc(missing, func(m missingIn) bool { return len(m.Rules) > 0 })

	if o.Output == output.Table {
		err = o.table(missing, o.subject(), "places", purpose)
	} else {
		err = o.printGrants(ctx, v, missing)
	}

	if err != nil {
		return err
	}

	if err := o.sayBeyond(v.beyond); err != nil {
		return err
	}

	if err := output.Notes(o.ErrOut, slices.Concat(v.Notes, v.NotRead())); err != nil {
		return err
	}

	if lacking || !v.beyond.isEmpty() {
		return command.ErrMissing
	}

	return nil
}

func (o *Options) askAboutObjects(
	ctx context.Context, v *inquiry, documents []files.Document,
) ([]missingIn, error) {
	namespaces, err := o.namespacesFor(ctx, v)
	if err != nil {
		return nil, err
	}

	k := v.kindsOf(documents)

	objects, err := k.objects(documents)
	if err != nil {
		return nil, err
	}

	guarded, err := o.guarded(ctx, v, objects, namespaces)
	if err != nil {
		return nil, err
	}

	needs := preflight.Together(append(v.needsOfOthers(ctx, k, objects, namespaces), guarded...))

	if len(needs) == 0 && len(k.unknown) > 0 {
		return nil, errors.New(strings.Join(k.notes(), "; "))
	}

	return o.askFor(ctx, v, needs)
}

// needsOfOthers is what applying objects needs that nobody installs.
func (v *inquiry) needsOfOthers(ctx context.Context, k *kinds, objects []preflight.Object, namespaces []string) []preflight.Need {
	v.Notes = append(v.Notes, k.notes()...)

	params := &preflight.Params{
		Resource: func(gvk schema.GroupVersionKind) (schema.GroupResource, bool) {
			resource, _, err := k.find(gvk)

			return resource, err == nil
		},
		Policy: func(what schema.GroupResource, name string) (map[string]any, bool) {
			return v.objectIn(ctx, what, name)
		},
	}

	return append(params.Needs(objects), preflight.Needs(objects, namespaces,
		func(kind, namespace, name string) ([]rbacv1.PolicyRule, bool) {
			return v.rulesIn(ctx, kind, namespace, name)
		})...)
}

// objectIn is an object of the cluster that has no namespace; false where there is none, or it may not be read.
func (v *inquiry) objectIn(ctx context.Context, what schema.GroupResource, name string) (map[string]any, bool) {
	gvk, err := v.RESTMapper().KindFor(what.WithVersion(""))
	if err != nil {
		return nil, false
	}

	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)

	err = v.Get(ctx, client.ObjectKey{Name: name}, obj)

	return obj.Object, err == nil
}

// askFor asks what the subject holds of what is needed.
func (o *Options) askFor(ctx context.Context, v *inquiry, needs []preflight.Need) ([]missingIn, error) {
	asking, err := o.asking(ctx, v)
	if err != nil {
		return nil, o.notAsked(err)
	}

	all := make([][]rbacv1.PolicyRule, len(needs))

	err = v.Each(ctx, "asking what may be written", len(needs), func(i int) error {
		var err error
		all[i], err = snapshot.HeldIn(ctx, asking, needs[i].Namespace)

		return o.notAsked(err)
	})
	if err != nil {
		return nil, err
	}

	if s := o.subject(); s.Kind == rbacv1.ServiceAccountKind {
		notes, err := noteMissingAccount(ctx, v.Client, s.Namespace, s.Name)
		if err != nil {
			return nil, err
		}

		v.Notes = append(v.Notes, notes...)
	}

	missing := missingOf(needs, all)

	var lacking []string

	for _, m := range missing {
		if len(m.Rules) > 0 && m.Namespace != preflight.Everywhere {
			lacking = append(lacking, m.Namespace)
		}
	}

	return missing, v.notThere(ctx, lacking)
}

// missingOf is what is missing of each need. What is missing in the whole cluster, once granted, is not missing in a namespace.
func missingOf(needs []preflight.Need, held [][]rbacv1.PolicyRule) []missingIn {
	out := make([]missingIn, len(needs))

	var everywhere []rbacv1.PolicyRule

	for i := range needs {
		out[i] = missingIn{needs[i].Namespace, needs[i].Missing(append(slices.Clone(held[i]), everywhere...))}

		if needs[i].Namespace == preflight.Everywhere {
			everywhere = out[i].Rules
		}
	}

	return out
}

// namespacesFor are the namespaces into which objects that name none are written.
func (o *Options) namespacesFor(ctx context.Context, v *inquiry) ([]string, error) {
	out := slices.Clone(o.In)

	if o.Selector != "" {
		selector, err := labels.Parse(o.Selector)
		if err != nil {
			return nil, fmt.Errorf("reading --namespace-selector: %w", err)
		}

		var list corev1.NamespaceList

		err = v.List(ctx, &list, client.MatchingLabelsSelector{Selector: selector})
		if apierrors.IsForbidden(err) {
			return nil, errors.New("you may not list namespaces, so they cannot be selected by label; name them by --in")
		}

		if err != nil {
			return nil, fmt.Errorf("listing namespaces: %w", err)
		}

		out = append(out, collect.Map(list.Items, func(ns corev1.Namespace) string { return ns.Name })...)
	}

	if len(o.In) == 0 && o.Selector == "" {
		out = []string{o.Namespace}
	}

	return slices.Compact(slices.Sorted(slices.Values(out))), nil
}

// rulesIn are the rules of a role that is in the cluster, where they may be read. To bind one that is not there takes the right
// to bind it, as where nobody knows: the API server looks for its rules, and does not find them.
func (v *inquiry) rulesIn(ctx context.Context, kind, namespace, name string) ([]rbacv1.PolicyRule, bool) {
	if kind == "Role" {
		role := &rbacv1.Role{}
		err := v.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, role)

		return role.Rules, err == nil
	}

	role := &rbacv1.ClusterRole{}
	err := v.Get(ctx, client.ObjectKey{Name: name}, role)

	return role.Rules, err == nil
}

// notAsked says why it is not known what the subject may do; no error stays none.
func (o *Options) notAsked(err error) error {
	if errors.Is(err, snapshot.ErrMayNotAsk) {
		return fmt.Errorf("you may not impersonate %s, so it cannot be asked what they may do; let somebody run this who may",
			strings.ToLower(o.subject().String()))
	}

	return err
}

// asking returns a client that asks as the subject.
func (o *Options) asking(ctx context.Context, v *inquiry) (client.Client, error) {
	switch s := o.subject(); s.Kind {
	case rbacv1.ServiceAccountKind:
		return v.As(ctx, v.Config, scope.AccountUser(s.Namespace, s.Name))
	case rbacv1.UserKind:
		return v.As(ctx, v.Config, s.Name)
	case rbacv1.GroupKind:
		return v.As(ctx, v.Config, nobodyInParticular, s.Name)
	default:
		return v.Client, nil
	}
}
