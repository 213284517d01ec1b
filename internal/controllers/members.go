package controllers

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// readersOfMembers are the clients that look into members for the operator namespaces in whose name Ambit acts as another
// account there. As its own user it would see what was granted for another operator namespace.
func readersOfMembers(
	impersonate func(user string) (client.WithWatch, error), writers *writer.Manager,
) (map[string]client.WithWatch, error) {
	readers := map[string]client.WithWatch{}

	for _, namespace := range writers.Namespaces {
		name := writers.GrantedAccount(namespace)
		if name == "" {
			continue
		}

		reader, err := impersonate(scope.AccountUser(namespace, name))
		if err != nil {
			return nil, fmt.Errorf("making the client that looks into members for namespace %s: %w", namespace, err)
		}

		readers[namespace] = reader
	}

	return readers, nil
}

// impersonating makes clients that watch as another user.
func impersonating(config *rest.Config, options client.Options) func(user string) (client.WithWatch, error) {
	return func(user string) (client.WithWatch, error) {
		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{UserName: user}

		return client.NewWithWatch(as, options)
	}
}
