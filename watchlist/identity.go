package watchlist

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// pod is the one that this process runs in.
type pod struct {
	namespace, name string
	uid             types.UID
}

// self reads who this process is from its own token, which the API server wrote for one pod. Nothing is trusted for it here: it
// only says what to write into an object that the API server then lets this account write, or not.
func self(cfg *rest.Config) (pod, error) {
	token := cfg.BearerToken

	if cfg.BearerTokenFile != "" {
		raw, err := os.ReadFile(cfg.BearerTokenFile)
		if err != nil {
			return pod{}, fmt.Errorf("reading the account's token: %w", err)
		}

		token = string(raw)
	}

	parts := strings.Split(strings.TrimSpace(token), ".")
	if len(parts) != 3 {
		return pod{}, errors.New("the account has no token that names a pod")
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return pod{}, fmt.Errorf("decoding the account's token: %w", err)
	}

	var claims struct {
		Kubernetes struct {
			Namespace string `json:"namespace"`
			Pod       struct {
				Name string    `json:"name"`
				UID  types.UID `json:"uid"`
			} `json:"pod"`
		} `json:"kubernetes.io"` //nolint:tagliatelle // the name of the claim
	}

	if err := json.Unmarshal(payload, &claims); err != nil {
		return pod{}, fmt.Errorf("decoding the account's token: %w", err)
	}

	p := pod{namespace: claims.Kubernetes.Namespace, name: claims.Kubernetes.Pod.Name, uid: claims.Kubernetes.Pod.UID}
	if p.namespace == "" || p.name == "" || p.uid == "" {
		return pod{}, errors.New("the account's token is not bound to a pod")
	}

	return p, nil
}
