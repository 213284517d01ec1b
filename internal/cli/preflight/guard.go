package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// guarded is what Ambit's admission policies ask of whoever applies the objects, as far as the cluster has these policies.
func (o *Options) guarded(
	ctx context.Context, v *inquiry, objects []preflight.Object, namespaces []string,
) ([]preflight.Need, error) {
	var some, byGroups bool

	for i := range objects {
		is, by := preflight.Guards(&objects[i])
		some, byGroups = some || is, byGroups || by
	}

	if !some {
		return nil, nil
	}

	inForce, err := v.policies(ctx)
	if err != nil || len(inForce) == 0 {
		return nil, err
	}

	var unread error

	g := preflight.Guard{
		InForce: inForce, User: o.userName(ctx, v),
		Account: func(string) (string, bool) { return "", false },
		Live: func(of *preflight.Object, namespace string) scope.Object {
			live, err := v.live(ctx, of, namespace)
			unread = errors.Join(unread, err)

			return live
		},
	}

	if byGroups {
		if g.Account, err = v.groupAccounts(ctx); err != nil {
			return nil, err
		}
	}

	needs := g.Needs(objects, namespaces)

	return needs, unread
}

// policies are the admission policies that are bound to refuse, each with the account that it takes for that of scopes which name
// none.
func (v *inquiry) policies(ctx context.Context) (map[string]string, error) {
	var (
		policies admissionv1.ValidatingAdmissionPolicyList
		bindings admissionv1.ValidatingAdmissionPolicyBindingList
	)

	out := map[string]string{}

	for resource, list := range map[string]client.ObjectList{
		"validatingadmissionpolicies": &policies, "validatingadmissionpolicybindings": &bindings,
	} {
		listed, err := v.Lists(ctx, list, resource, "")
		if err != nil {
			return nil, fmt.Errorf("looking for Ambit's admission policies: %w", command.OneLine(err))
		}

		if listed == snapshot.Forbidden {
			v.Notes = append(v.Notes, "you may not list "+resource+", so the rights for which Ambit's admission policies ask whoever "+
				"applies this are not counted")

			return out, nil
		}
	}

	for i := range policies.Items {
		p := &policies.Items[i]
		bound := slices.ContainsFunc(bindings.Items, func(b admissionv1.ValidatingAdmissionPolicyBinding) bool {
			return b.Spec.PolicyName == p.Name && slices.Contains(b.Spec.ValidationActions, admissionv1.Deny)
		})

		if bound {
			out[p.Name] = byDefault(p)
		}
	}

	return out, nil
}

// byDefault is the account of --default-service-account, as a policy has it.
func byDefault(p *admissionv1.ValidatingAdmissionPolicy) string {
	for _, variable := range p.Spec.Variables {
		if variable.Name == "byDefault" {
			return strings.Trim(variable.Expression, "'")
		}
	}

	return ""
}

// userName is who would apply the objects, as far as that is known.
func (o *Options) userName(ctx context.Context, v *inquiry) string {
	switch s := o.subject(); s.Kind {
	case rbacv1.ServiceAccountKind:
		return scope.AccountUser(s.Namespace, s.Name)
	case rbacv1.UserKind:
		return s.Name
	case rbacv1.GroupKind:
		return nobodyInParticular
	default:
		name, _ := command.UserName(ctx, v.Client) // Whom nobody knows is not the account of a group.

		return name
	}
}

// groupAccounts says which account the guard takes for that of a namespace's OperatorGroups.
func (v *inquiry) groupAccounts(ctx context.Context) (func(namespace string) (string, bool), error) {
	index := &rbacv1.ClusterRole{}
	err := v.Get(ctx, client.ObjectKey{Name: read.GroupIndexName}, index)

	switch {
	case apierrors.IsForbidden(err):
		v.Notes = append(v.Notes, fmt.Sprintf("you may not get the ClusterRole %s, where Ambit's admission policies read which "+
			"accounts install, so the rights for which they ask whoever applies what is installed are not counted", read.GroupIndexName))
	case apierrors.IsNotFound(err):
		v.Notes = append(v.Notes, fmt.Sprintf("the ClusterRole %s, where Ambit's admission policies read which accounts install, does "+
			"not exist, so these refuse what is installed; apply Ambit's profile again", read.GroupIndexName))
	case err != nil:
		return nil, fmt.Errorf("reading ClusterRole %s: %w", read.GroupIndexName, command.OneLine(err))
	}

	return func(namespace string) (string, bool) {
		return index.Annotations[read.AccountPrefix+namespace], err == nil
	}, nil
}

// live is an object as it is in the cluster; nil where it is not there. Where it may not be read, a note says what is not
// counted.
func (v *inquiry) live(ctx context.Context, o *preflight.Object, namespace string) (client.Object, error) {
	if o.GetName() == "" {
		return nil, nil //nolint:nilnil // It gets a name that no other has.
	}

	what := fmt.Sprintf("%s %s/%s", o.Resource, namespace, o.GetName())

	gvk, err := v.GroupVersionKindFor(o.Object)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", what, err)
	}

	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(gvk)

	switch err := v.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.GetName()}, found); {
	case err == nil:
		return found, nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil //nolint:nilnil // None is an answer.
	case apierrors.IsForbidden(err):
		v.Notes = append(v.Notes, fmt.Sprintf("you may not get %s, so the right for which Ambit's admission policies ask whoever "+
			"changes one that names no account today is not counted", what))

		return nil, nil //nolint:nilnil // The note says it.
	default:
		return nil, fmt.Errorf("reading %s: %w", what, command.OneLine(err))
	}
}
