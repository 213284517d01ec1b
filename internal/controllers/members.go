package controllers

import (
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// readersOfMembers are the clients that look into members for the homes in whose name Ambit acts as another account there. As its
// own user it would see what was granted for another home.
func readersOfMembers(config *rest.Config, options client.Options, s Settings) (map[string]client.WithWatch, error) {
	readers := map[string]client.WithWatch{}

	for _, home := range s.Homes {
		name := scope.GrantedAccount(s.User, s.Homes, home)
		if name == "" {
			continue
		}

		as := rest.CopyConfig(config)
		as.Impersonate = rest.ImpersonationConfig{UserName: scope.AccountUser(home, name)}

		reader, err := client.NewWithWatch(as, options)
		if err != nil {
			return nil, fmt.Errorf("making the client that looks into members for namespace %s: %w", home, err)
		}

		readers[home] = reader
	}

	return readers, nil
}
