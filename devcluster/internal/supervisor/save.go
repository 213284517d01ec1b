package supervisor

import (
	"context"
	"errors"
	"fmt"

	"github.com/ambit-k8s/ambit/devcluster/internal/store"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// Save implements control.Handler.
func (s *Supervisor) Save(ctx context.Context, name string) error {
	client, err := s.storage()
	if err != nil {
		return err
	}
	image, err := store.Save(ctx, client)
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
	client, err := s.storage()
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
	return image.Restore(ctx, client)
}

// storage is how to reach what a running cluster stores.
func (s *Supervisor) storage() (*store.Client, error) {
	if s.State().Phase != workdir.Running {
		return nil, errors.New("the cluster is not ready; try again when it is")
	}
	return store.NewClient(s.etcd()), nil
}
