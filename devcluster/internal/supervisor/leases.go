package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-k8s/ambit/devcluster/internal/apiclient"
)

// leases is where the leases of the nodes are. kwok moves no pod on a node
// whose lease it does not hold.
const leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

// dropLeases removes the leases of a kwok that is gone. The next one has
// another name and would wait until they run out, most of a minute.
func (s *Supervisor) dropLeases(ctx context.Context) error {
	client, err := s.client()
	if err != nil {
		return err
	}
	if err := client.Delete(ctx, leases); err != nil {
		return fmt.Errorf("removing the leases of the nodes: %w", err)
	}
	return nil
}

// leasesHeld says whether kwok has taken the leases of all nodes.
func (s *Supervisor) leasesHeld(ctx context.Context, client *apiclient.Client) error {
	var held struct {
		Items []struct{} `json:"items"`
	}
	if err := client.Get(ctx, leases, &held); err != nil {
		return fmt.Errorf("listing the leases of the nodes: %w", err)
	}
	if len(held.Items) < s.Nodes {
		return errors.New("it does not hold the leases of its nodes")
	}
	return nil
}
