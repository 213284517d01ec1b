package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

const (
	operatorNamespace = "bench-home"
	probeNamespace    = "bench-probe"
	// extraNamespace joins and leaves the scope while it is measured.
	extraNamespace = "bench-extra"
	memberLabel    = "bench.example.com/member"
	scopeName      = "scope"
	listName       = operatorv1.DefaultConfigmapName
	// floorList is the ConfigMap that the floor writes instead of the watch list.
	floorList = "bench-floor"
)

func memberName(i int) string { return fmt.Sprintf("bench-member-%04d", i) }

// createWorld makes everything that is there before a scope is.
func createWorld(ctx context.Context, admin client.Client, o *options, members []string) error {
	namespaces := append([]string{operatorNamespace, probeNamespace, extraNamespace}, members...)

	err := each(ctx, len(namespaces), 16, func(i int) error {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaces[i]}}
		if i >= len(namespaces)-len(members) {
			ns.Labels = map[string]string{memberLabel: "true"}
		}

		return admin.Create(ctx, ns)
	})
	if err != nil {
		return fmt.Errorf("creating namespaces: %w", err)
	}

	var objects []client.Object

	for account := range o.accounts {
		objects = append(objects, operator(account, o.roles)...)
	}

	probe := &operatorv1.NamespaceScope{}
	probe.Namespace, probe.Name = probeNamespace, "probe"
	objects = append(objects, probe,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: floorList}})

	for _, obj := range objects {
		if err := admin.Create(ctx, obj); err != nil {
			return fmt.Errorf("creating %T %s: %w", obj, obj.GetName(), err)
		}
	}

	return nil
}

// operator returns an account with its roles, and a Deployment that runs as it and reads the watch list.
func operator(index, roles int) []client.Object {
	name := accountName(index)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}
	}
	objects := []client.Object{&corev1.ServiceAccount{ObjectMeta: meta(name)}}

	for r := range roles {
		role := roleName(index, r)
		objects = append(objects,
			&rbacv1.Role{ObjectMeta: meta(role), Rules: sourceRules("")},
			&rbacv1.RoleBinding{
				ObjectMeta: meta(role),
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: name}},
			})
	}

	return append(objects, deployment(name))
}

func accountName(account int) string { return fmt.Sprintf("operator-%02d", account) }

func roleName(account, role int) string { return fmt.Sprintf("operator-%02d-role-%02d", account, role) }

// sourceRules are rules of the size that operators have. extra, unless empty, is one more resource.
func sourceRules(extra string) []rbacv1.PolicyRule {
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	custom := []string{"things", "things/status", "things/finalizers"}

	if extra != "" {
		custom = append(custom, extra)
	}

	return []rbacv1.PolicyRule{
		{Verbs: all, APIGroups: []string{""}, Resources: []string{"configmaps", "secrets", "services", "pods"}},
		{Verbs: all, APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets"}},
		{Verbs: all, APIGroups: []string{"things.example.com"}, Resources: custom},
		{Verbs: []string{"create", "patch"}, APIGroups: []string{""}, Resources: []string{"events"}},
	}
}

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name, operatorv1.DefaultRestartLabel: operatorv1.DefaultRestartLabelValue}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: name,
					Containers: []corev1.Container{{
						Name: "operator", Image: "operator.example.com/operator:v1",
						Env: []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
							ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
								LocalObjectReference: corev1.LocalObjectReference{Name: listName},
								Key:                  "namespaces", Optional: new(true),
							},
						}}},
					}},
				},
			},
		},
	}
}

// newScope returns the scope that is measured: of the members by name, or of all that bear the label.
func newScope(members ...string) *operatorv1.NamespaceScope {
	nss := &operatorv1.NamespaceScope{}
	nss.Namespace, nss.Name = operatorNamespace, scopeName
	nss.Spec.NamespaceMembers = members

	if len(members) == 0 {
		nss.Spec.NamespaceSelector = &operatorv1.NamespaceSelector{}
		nss.Spec.NamespaceSelector.Raw = []byte(`{"` + memberLabel + `":"true"}`)
	}

	return nss
}

// each calls do for 0 to n-1, with at most so many calls under way at once, and returns the errors. A worker stops at its first
// error.
func each(ctx context.Context, n, parallel int, do func(i int) error) error {
	var (
		next    atomic.Int64
		workers sync.WaitGroup
		mu      sync.Mutex
		errs    []error
	)

	for range min(n, parallel) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := do(i); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()

					return
				}
			}
		})
	}

	workers.Wait()

	return errors.Join(append(errs, ctx.Err())...)
}
