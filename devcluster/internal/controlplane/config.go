package controlplane

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ambit-k8s/ambit/devcluster/internal/kubeconfig"
	"github.com/ambit-k8s/ambit/devcluster/internal/pki"
)

const (
	auditPolicy = "audit-policy.yaml"
	egress      = "egress.yaml"
	kwokStages  = "kwok.yaml"

	// nodeLeaseSeconds is the kubelet's default.
	nodeLeaseSeconds = 40
)

// auditRules log the metadata of every request once, when it is answered.
const auditRules = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages:
- RequestReceived
- ResponseStarted
- Panic
rules:
- level: Metadata
`

// egressSelection sends what is for services and pods to a socket. The network
// of a cluster is missing here; whoever listens there can play it.
const egressSelection = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      uds:
        udsName: %q
`

// kwokOptions let many pods move at once, for tests that make hundreds. A file
// with options gets none of kwok's defaults, so all that matter are here.
const kwokOptions = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 16
  nodePlayStageParallelism: 4
  nodeLeaseParallelism: 4
  podsOnNodeSyncParallelism: 4
  enablePodsOnNodeSyncListPager: false
  enablePodsOnNodeSyncStreamWatch: true
---
`

// WriteConfig writes the files which the command lines refer to.
func (p Plan) WriteConfig(ctx context.Context, bundle *pki.Bundle) error {
	if err := bundle.Write(p.Dir.PKI()); err != nil {
		return fmt.Errorf("storing the certificates of the cluster: %w", err)
	}
	if err := os.WriteFile(p.config(auditPolicy), []byte(auditRules), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	selection := fmt.Sprintf(egressSelection, p.Dir.ServicesSocket())
	if err := os.WriteFile(p.config(egress), []byte(selection), 0o600); err != nil {
		return fmt.Errorf("writing where services are reached: %w", err)
	}
	if err := p.writeStages(ctx); err != nil {
		return err
	}
	for component, pair := range map[string]pki.Pair{
		ControllerManager: bundle.ControllerManager,
		Scheduler:         bundle.Scheduler,
		Kwok:              bundle.Kwok,
	} {
		file := p.config(component + ".kubeconfig")
		if err := p.writeKubeconfig(file, component, bundle.CA, pair); err != nil {
			return err
		}
	}
	return nil
}

// WriteAdminKubeconfig writes the kubeconfig that users of the cluster take.
func (p Plan) WriteAdminKubeconfig(bundle *pki.Bundle) error {
	return p.writeKubeconfig(p.Dir.Kubeconfig(), "kubernetes-admin", bundle.CA, bundle.Admin)
}

func (p Plan) writeKubeconfig(file, user string, ca, client pki.Pair) error {
	server := p.URL()
	if err := kubeconfig.Write(file, server, user, ca.Certificate, client); err != nil {
		return fmt.Errorf("for %s: %w", user, err)
	}
	return nil
}

// writeStages asks our kwok for the stages that fit its version.
func (p Plan) writeStages(ctx context.Context) error {
	program := filepath.Join(p.Programs, Kwok)
	stages, err := exec.CommandContext(ctx, program, "print-stages").Output() //nolint:gosec // our own program
	if err != nil {
		return fmt.Errorf("asking %s for its stages: %w; build it again with: make devcluster-k8s", program, err)
	}
	if err := os.WriteFile(p.config(kwokStages), append([]byte(kwokOptions), stages...), 0o600); err != nil {
		return fmt.Errorf("writing the configuration of kwok: %w", err)
	}
	return nil
}
