package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/embedded"
)

const floorAccount = "bench-floor"

// floorClient returns the client of a service account with Ambit's own rights. A cluster-admin with a certificate would be
// authenticated faster, exempt from priority and fairness, and authorized without looking at a single rule.
func floorClient(ctx context.Context, c *cluster) (client.WithWatch, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: floorAccount}}
	if err := c.admin.Create(ctx, account); err != nil {
		return nil, fmt.Errorf("creating the floor's service account: %w", err)
	}

	for _, role := range []string{"ambit-base", "ambit-direct", "ambit-templates", "ambit-installs-direct"} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bench-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{
				{Kind: rbacv1.ServiceAccountKind, Namespace: embedded.Namespace, Name: floorAccount},
			},
		}
		if err := c.admin.Create(ctx, binding); err != nil {
			return nil, fmt.Errorf("giving the floor Ambit's rights: %w", err)
		}
	}

	return clientOf(ctx, c, embedded.Namespace, floorAccount)
}

// clientOf returns the client of a service account, which does not limit its own rate.
func clientOf(ctx context.Context, c *cluster, namespace, account string) (client.WithWatch, error) {
	config, err := embedded.ConfigFor(ctx, c.config, namespace, account)
	if err != nil {
		return nil, err
	}

	config.QPS = -1

	return newClient(config)
}
