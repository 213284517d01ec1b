package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
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

	spaces := make([]client.Object, len(namespaces))

	for i, name := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if i >= len(namespaces)-len(members) {
			ns.Labels = map[string]string{memberLabel: "true"}
		}

		spaces[i] = ns
	}

	if err := makeMany(ctx, admin, spaces); err != nil {
		return err
	}

	var objects []client.Object

	for account := range o.accounts {
		objects = append(objects, operator(account, o.roles)...)
	}

	probe := &operatorv1.NamespaceScope{}
	probe.Namespace, probe.Name = probeNamespace, "probe"
	objects = append(objects, probe,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: floorList}})

	return makeMany(ctx, admin, objects)
}

// makeMany creates objects, several at once.
func makeMany(ctx context.Context, c client.Client, objects []client.Object) error {
	return each(ctx, len(objects), 16, func(i int) error {
		if err := c.Create(ctx, objects[i]); err != nil {
			return fmt.Errorf("creating %T %s: %w", objects[i], objects[i].GetName(), err)
		}

		return nil
	})
}

// bind binds a service account to a Role or a ClusterRole.
func bind(at *metav1.ObjectMeta, kind, role, namespace, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: *at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}
}

// operator returns an account with its roles, and a Deployment that runs as it and reads the watch list.
func operator(index, roles int) []client.Object {
	name := accountName(index)
	objects := []client.Object{testbed.Account(operatorNamespace, name)}

	for r := range roles {
		at := metav1.ObjectMeta{Namespace: operatorNamespace, Name: roleName(index, r)}
		objects = append(objects, &rbacv1.Role{ObjectMeta: at, Rules: sourceRules("")},
			bind(&at, "Role", at.Name, operatorNamespace, name))
	}

	return append(objects, testbed.Reader(operatorNamespace, name))
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

// each calls do for 0 to n-1, with at most so many calls under way at once, until one fails, and returns its error.
func each(ctx context.Context, n, parallel int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	workqueue.ParallelizeUntil(ctx, parallel, n, func(i int) {
		if err := do(i); err != nil {
			cancel(err)
		}
	})

	return context.Cause(ctx)
}
