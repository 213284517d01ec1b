package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delegateName is a service account that every member let in, and the role by which it did.
const delegateName = "bench-delegate"

// ambitDelegated projects once more, with everything written as a service account. Its floor is Ambit itself as it wrote
// with its own rights, in the same turn.
func (b *bench) ambitDelegated(ctx context.Context, round int) error {
	if round == 0 {
		if err := b.grantDelegate(ctx); err != nil {
			return fmt.Errorf("granting the rights of a delegate: %w", err)
		}
	}

	own := b.figure(measureCold).ambit
	b.figure(measureDelegated).addFloor(own[len(own)-1])

	nss := newScope()
	nss.Spec.ServiceAccountName = delegateName

	err := b.counting(measureDelegated, func() error {
		took, err := b.project(ctx, nss, b.members)
		if err != nil {
			return err
		}

		b.figure(measureDelegated).addAmbit(took)

		return b.rest(ctx, b.members, 1)
	})
	if err != nil {
		return err
	}

	_, err = b.deleteScope(ctx)

	return err
}

// grantDelegate lets the delegate hold, in each member, what it passes on, and write at home. It holds the rules and does
// not merely escalate, because that is what the owners of namespaces grant.
func (b *bench) grantDelegate(ctx context.Context) error {
	rules := append(sourceRules("*"),
		rbacv1.PolicyRule{
			Verbs: []string{"create", "patch", "delete"}, APIGroups: []string{rbacv1.GroupName},
			Resources: []string{"roles", "rolebindings"},
		},
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/eviction"}},
		rbacv1.PolicyRule{Verbs: []string{"patch"}, APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}},
	)

	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: homeNamespace, Name: delegateName}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: delegateName}, Rules: rules},
	} {
		if err := b.cluster.admin.Create(ctx, obj); err != nil {
			return err
		}
	}

	namespaces := append([]string{homeNamespace}, b.members...)

	err := each(ctx, len(namespaces), 16, func(i int) error {
		return b.cluster.admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[i], Name: delegateName},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: delegateName},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: homeNamespace, Name: delegateName}},
		})
	})
	if err != nil {
		return err
	}

	return b.cluster.audit.settled(ctx)
}
