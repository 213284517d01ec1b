package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The delegates that every member authorizes. One may escalate and bind. The other holds what it passes on, which the API server
// looks up at every write, in etcd and not in its caches (DefaultRuleResolver in k8s.io/kubernetes/pkg/registry/rbac).
const (
	trustedDelegate = "bench-trusted"
	holdingDelegate = "bench-holding"
)

// ambitDelegated projects once more with each delegate. The floor is Ambit itself as it wrote with its own rights, in the same
// turn.
func (b *bench) ambitDelegated(ctx context.Context, round int) error {
	own := b.figure(measureCold).ambit

	for _, d := range []struct {
		account string
		rules   []rbacv1.PolicyRule
	}{
		{trustedDelegate, []rbacv1.PolicyRule{{
			Verbs: []string{"escalate", "bind"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"},
		}}},
		{holdingDelegate, sourceRules("*")},
	} {
		if round == 0 {
			if err := b.grantDelegate(ctx, d.account, d.rules); err != nil {
				return fmt.Errorf("granting the rights of %s: %w", d.account, err)
			}
		}

		b.figure(d.account).addFloor(own[len(own)-1])

		if err := b.projectAs(ctx, d.account); err != nil {
			return fmt.Errorf("as %s: %w", d.account, err)
		}
	}

	return nil
}

func (b *bench) projectAs(ctx context.Context, account string) error {
	nss := newScope()
	nss.Spec.ServiceAccountName = account

	err := b.once(ctx, account, func() (cost, error) { return b.project(ctx, nss, b.members) },
		func() error { return b.rest(ctx, b.members, 1) })
	if err != nil {
		return err
	}

	_, err = b.deleteScope(ctx)

	return err
}

// grantDelegate lets a delegate write in each member and in the operator namespace, with further rules.
func (b *bench) grantDelegate(ctx context.Context, account string, further []rbacv1.PolicyRule) error {
	rules := append([]rbacv1.PolicyRule{
		{
			Verbs: []string{"create", "patch", "delete"}, APIGroups: []string{rbacv1.GroupName},
			Resources: []string{"roles", "rolebindings"},
		},
		{Verbs: []string{"create", "patch", "delete"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/eviction"}},
		{
			Verbs: []string{"patch"}, APIGroups: []string{"apps"},
			Resources: []string{"deployments", "statefulsets", "daemonsets"},
		},
	}, further...)

	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: account}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: rules},
	}

	for _, namespace := range append([]string{operatorNamespace}, b.members...) {
		at := metav1.ObjectMeta{Namespace: namespace, Name: account}
		objects = append(objects, bind(&at, "ClusterRole", account, operatorNamespace, account))
	}

	if err := makeMany(ctx, b.cluster.admin, objects); err != nil {
		return err
	}

	return b.cluster.audit.settled(ctx)
}
