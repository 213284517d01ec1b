// Package kubeconfig writes the files by which clients find the API server
// and prove who they are.
package kubeconfig

import (
	"encoding/base64"
	"fmt"
	"os"

	"github.com/ambit-k8s/ambit/devcluster/internal/pki"
)

// format is plain text because its few values need no quoting: base64, a URL
// and a user name of our own.
const format = `apiVersion: v1
kind: Config
clusters:
- name: devcluster
  cluster:
    certificate-authority-data: %s
    server: %s
users:
- name: %s
  user:
    client-certificate-data: %s
    client-key-data: %s
contexts:
- name: devcluster
  context:
    cluster: devcluster
    user: %s
current-context: devcluster
`

// Write stores a kubeconfig that holds its certificates itself, so it can be
// copied anywhere. The file appears whole or not at all: tests wait for it.
func Write(file, server, user string, authority []byte, client pki.Pair) error {
	encode := base64.StdEncoding.EncodeToString
	content := fmt.Sprintf(format, encode(authority), server,
		user, encode(client.Certificate), encode(client.Key), user)
	temporary := file + ".new"
	if err := os.WriteFile(temporary, []byte(content), 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	if err := os.Rename(temporary, file); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
