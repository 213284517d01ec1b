package main

import (
	"context"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

const floorAccount = "bench-floor"

// maxConnections is how many connections the floor may have.
const maxConnections = 4

// floorClients returns clients of a service account with Ambit's own rights, each with a connection of its own. A cluster-admin
// with a certificate would be authenticated faster, exempt from priority and fairness, and authorized without looking at a single
// rule.
func floorClients(ctx context.Context, c *cluster) ([]client.WithWatch, error) {
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: embedded.Namespace, Name: floorAccount}},
	}

	for _, role := range []string{"ambit-base", "ambit-direct", "ambit-templates", "ambit-installs-direct"} {
		objects = append(objects, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bench-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: embedded.Namespace, Name: floorAccount}},
		})
	}

	if err := makeMany(ctx, c.admin, objects); err != nil {
		return nil, fmt.Errorf("giving the floor Ambit's rights: %w", err)
	}

	clients := make([]client.WithWatch, maxConnections)

	for i := range clients {
		var err error
		if clients[i], err = clientOf(ctx, c, embedded.Namespace, floorAccount); err != nil {
			return nil, err
		}
	}

	return clients, nil
}

// clientOf returns a client of a service account, with a connection of its own, which does not limit its own rate.
func clientOf(ctx context.Context, c *cluster, namespace, account string) (client.WithWatch, error) {
	config, err := embedded.ConfigFor(ctx, c.config, namespace, account)
	if err != nil {
		return nil, err
	}

	config.QPS = -1
	// Clients share a connection if all their settings are the same by which client-go tells transports apart; the dialer is one.
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext

	return newClient(config)
}
