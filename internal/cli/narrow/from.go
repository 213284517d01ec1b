package narrow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// read makes manifests of what the cluster holds about an account, as somebody would have written them.
func (c *cluster) read(ctx context.Context, a explain.Account) (*narrow.Stream, error) {
	if c == nil {
		return nil, errors.New("--from asks the cluster, and no cluster is configured")
	}

	var everywhere rbacv1.ClusterRoleBindingList
	if err := c.List(ctx, &everywhere); err != nil {
		return nil, fmt.Errorf("reading ClusterRoleBindings: %w", err)
	}

	var objects []client.Object

	for i := range everywhere.Items {
		b := &everywhere.Items[i]
		if !means(b.Subjects, a, "") {
			continue
		}

		objects = append(objects, b)
		role := &rbacv1.ClusterRole{}

		switch err := c.Get(ctx, client.ObjectKey{Name: b.RoleRef.Name}, role); {
		case err == nil:
			objects = append(objects, role)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading ClusterRole %s: %w", b.RoleRef.Name, err)
		}
	}

	if len(objects) == 0 {
		return nil, fmt.Errorf("no ClusterRoleBinding names account %s/%s", a.Namespace, a.Name)
	}

	more, err := c.around(ctx, a)
	if err != nil {
		return nil, err
	}

	return c.stream(append(objects, more...))
}

// around are the workloads of an account, and what its namespace gives it.
func (c *cluster) around(ctx context.Context, a explain.Account) ([]client.Object, error) {
	var out []client.Object

	in := client.InNamespace(a.Namespace)
	lists := []client.ObjectList{&rbacv1.RoleBindingList{}, &rbacv1.RoleList{}}

	for i := range facts.WorkloadTypes {
		if t := &facts.WorkloadTypes[i]; t.Restart == facts.ByTemplate {
			lists = append(lists, t.NewList())
		}
	}

	for _, list := range lists {
		err := c.List(ctx, list, in)
		if apierrors.IsForbidden(err) {
			c.notef("%v; what it would have said is not known", err)

			continue
		}

		if err != nil {
			return nil, fmt.Errorf("reading namespace %s: %w", a.Namespace, err)
		}

		out = append(out, collect.Filter(snapshot.Objects(list), func(obj client.Object) bool { return isOf(obj, a) })...)
	}

	account := &corev1.ServiceAccount{}

	err := c.Get(ctx, client.ObjectKey{Namespace: a.Namespace, Name: a.Name}, account)
	if err == nil {
		return append(out, account), nil
	}

	note, err := command.OfAccount(err, a.Namespace, a.Name)
	if note != "" {
		c.notef("%s", note)
	}

	return out, err
}

func isOf(obj client.Object, a explain.Account) bool {
	if b, is := obj.(*rbacv1.RoleBinding); is {
		return means(b.Subjects, a, b.Namespace)
	}

	if t := facts.TypeOfWorkload(obj); t != nil {
		template, _ := t.Pods(obj)

		return facts.AccountOf(&template.Spec) == a.Name
	}

	return true
}

// means says whether subjects name an account, or a group of it other than system:authenticated: everybody is in that one.
func means(subjects []rbacv1.Subject, a explain.Account, namespace string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Name != scope.GroupAuthenticated && a.IsMeant(&s, namespace)
	})
}

// stream writes objects as manifests: without what only the API server fills in.
func (c *cluster) stream(objects []client.Object) (*narrow.Stream, error) {
	s := &narrow.Stream{}

	seen := map[string]bool{}

	for _, obj := range objects {
		gvk, err := apiutil.GVKForObject(obj, c.Scheme())
		if err != nil {
			return nil, fmt.Errorf("reading the cluster: %w", err)
		}

		key := gvk.Kind + "/" + obj.GetNamespace() + "/" + obj.GetName()
		if seen[key] {
			continue
		}

		seen[key] = true

		text, err := manifest(obj, gvk)
		if err != nil {
			return nil, err
		}

		if err := s.Read("the cluster", bytes.NewReader(append([]byte("---\n"), text...))); err != nil {
			return nil, err
		}
	}

	return s, nil
}

func manifest(obj client.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	content, err := output.Content(obj)
	if err != nil {
		return nil, err
	}

	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()

	for _, field := range [][]string{
		{"status"}, {"metadata", "ownerReferences"}, {"metadata", "annotations", corev1.LastAppliedConfigAnnotation},
		{"metadata", "annotations", "deployment.kubernetes.io/revision"},
	} {
		unstructured.RemoveNestedField(content, field...)
	}

	text, err := printable.YAML(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", obj.GetName(), err)
	}

	return []byte(text), nil
}
