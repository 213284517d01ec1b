package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-k8s/ambit/devcluster/internal/controlplane"
	"github.com/ambit-k8s/ambit/devcluster/internal/store"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// Save implements control.Handler.
func (s *Supervisor) Save(ctx context.Context, name string) error {
	client, ask, err := s.storage()
	if err != nil {
		return err
	}
	image, err := store.Save(ctx, client, ask)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved[name] = image
	return nil
}

// Reset implements control.Handler. One reset at a time: an image notes what
// it wrote.
func (s *Supervisor) Reset(ctx context.Context, name string) error {
	client, ask, err := s.storage()
	if err != nil {
		return err
	}
	s.resetting.Lock()
	defer s.resetting.Unlock()
	s.mu.Lock()
	image := s.saved[name]
	s.mu.Unlock()
	if image == nil {
		return fmt.Errorf("nothing was saved in this cluster under the name %q; save it first", name)
	}
	return image.Restore(ctx, client, ask)
}

// storage is how to reach what a running cluster stores, and how to ask its API
// server whether it works.
func (s *Supervisor) storage() (*store.Client, store.Asking, error) {
	if s.State().Phase != workdir.Running {
		return nil, nil, errors.New("the cluster is not ready; try again when it is")
	}
	ask, err := s.probe(controlplane.APIServer)
	if err != nil {
		return nil, nil, err
	}
	return store.NewClient(s.etcd()), ask, nil
}
