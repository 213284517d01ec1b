package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	tenantNamespace = "bench-tenant"
	tenantName      = "controller"
	// tenantEvery is how often the tenant's controller writes.
	tenantEvery = time.Second / 20
)

// tenant is a controller of somebody else's, which writes at a steady rate and has nothing to do with Ambit.
type tenant struct{ client client.Client }

func newTenant(ctx context.Context, c *cluster) (*tenant, error) {
	meta := metav1.ObjectMeta{Namespace: tenantNamespace, Name: tenantName}

	// What the others are in comes first.
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenantNamespace}}
	if err := c.admin.Create(ctx, ns); err != nil {
		return nil, fmt.Errorf("creating the tenant: %w", err)
	}

	err := makeMany(ctx, c.admin, []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&corev1.ConfigMap{ObjectMeta: meta},
		testbed.Role(tenantNamespace, tenantName, "patch configmaps"),
		bind(&meta, "Role", tenantName, tenantNamespace, tenantName),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the tenant: %w", err)
	}

	writer, err := clientOf(ctx, c, tenantNamespace, tenantName)
	if err != nil {
		return nil, err
	}

	return &tenant{writer}, nil
}

// write begins to write at a steady rate, whether or not the write before has been answered: a slow answer must not hide how slow
// the next ones are. The function that it returns ends that, and returns how long each write waited, and how many failed.
func (t *tenant) write(ctx context.Context) func() ([]time.Duration, int) {
	var (
		done    = make(chan struct{})
		writers sync.WaitGroup
		mu      sync.Mutex
		waits   []time.Duration
		failed  int
	)

	one := func(n int) {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: tenantName}}
		began := time.Now()
		err := t.client.Patch(ctx, cm, mergePatch(fmt.Sprintf(`{"data":{"n":"%d"}}`, n)))
		took := time.Since(began)

		mu.Lock()
		defer mu.Unlock()

		if waits = append(waits, took); err != nil {
			failed++
		}
	}

	writers.Go(func() {
		ticks := time.NewTicker(tenantEvery)
		defer ticks.Stop()

		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-ticks.C:
				writers.Go(func() { one(n) })
			}
		}
	})

	return func() ([]time.Duration, int) {
		close(done)
		writers.Wait()

		return waits, failed
	}
}
