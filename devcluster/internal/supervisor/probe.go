package supervisor

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/ambit-k8s/ambit/devcluster/internal/apiclient"
	"github.com/ambit-k8s/ambit/devcluster/internal/controlplane"
)

// probe returns a function that says whether a component is ready.
func (s *Supervisor) probe(component string) (func(context.Context) error, error) {
	if component == controlplane.Etcd {
		return func(ctx context.Context) error { return s.etcd().Get(ctx, "/health", nil) }, nil
	}
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error { return client.Get(ctx, "/readyz", nil) }
	return map[string]func(context.Context) error{
		controlplane.APIServer: ready,
		// Without it no pod can be made in the namespace.
		controlplane.ControllerManager: func(ctx context.Context) error {
			return client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
		},
		controlplane.Scheduler: ready,
		controlplane.Kwok: func(ctx context.Context) error {
			return nodesReady(ctx, client, s.Nodes)
		},
	}[component], nil
}

func (s *Supervisor) etcd() *apiclient.Client { return apiclient.NewLocal(s.plan.EtcdSocket) }

func (s *Supervisor) client() (*apiclient.Client, error) {
	client, err := apiclient.New(s.plan.URL(), s.bundle.CA.Certificate, s.bundle.Admin)
	if err != nil {
		return nil, fmt.Errorf("making a client for the API server: %w", err)
	}
	return client, nil
}

func (s *Supervisor) createNodes(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	for number := 1; number <= s.Nodes; number++ {
		name := fmt.Sprintf("node-%d", number)
		node := map[string]any{
			"apiVersion": "v1",
			"kind":       "Node",
			"metadata": map[string]any{
				"name":        name,
				"annotations": map[string]string{"kwok.x-k8s.io/node": "fake"},
				"labels": map[string]string{
					"kubernetes.io/arch":     runtime.GOARCH,
					"kubernetes.io/hostname": name,
					"kubernetes.io/os":       "linux",
					"type":                   "kwok",
				},
			},
		}
		if err := client.Post(ctx, "/api/v1/nodes", node, nil); err != nil {
			return fmt.Errorf("creating the node %s: %w", name, err)
		}
	}
	return nil
}

// nodeList is the part of a list of nodes that tells whether pods can run.
type nodeList struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Taints []struct {
				Key string `json:"key"`
			} `json:"taints"`
		} `json:"spec"`
		Status struct {
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
	} `json:"items"`
}

// nodesReady says whether pods can run on the nodes: they are ready, and the
// controller has noticed it and taken the taint of new nodes away.
func nodesReady(ctx context.Context, client *apiclient.Client, want int) error {
	var nodes nodeList
	if err := client.Get(ctx, "/api/v1/nodes", &nodes); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	usable := 0
	for _, node := range nodes.Items {
		ready := false
		for _, condition := range node.Status.Conditions {
			ready = ready || condition.Type == "Ready" && condition.Status == "True"
		}
		for _, taint := range node.Spec.Taints {
			ready = ready && taint.Key != "node.kubernetes.io/not-ready"
		}
		if ready {
			usable++
		}
	}
	if usable < want {
		return errors.New("its nodes are not ready")
	}
	return nil
}
