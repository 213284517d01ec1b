package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// cluster is an embedded Kubernetes with Ambit installed in it, except for the manager.
type cluster struct {
	// dir holds the audit log, kubeconfigs and the manager's log.
	dir      string
	embedded *embedded.Cluster

	config *rest.Config
	admin  client.WithWatch
	audit  auditLog
	// server and etcd are the processes whose work is counted.
	server, etcd process
}

func startCluster(ctx context.Context) (*cluster, error) {
	dir, err := os.MkdirTemp("", "ambit-bench-")
	if err != nil {
		return nil, err
	}

	c := &cluster{dir: dir, audit: auditLog{path: filepath.Join(dir, "audit.log")}}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}

	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	var err error

	if c.embedded, err = startKubernetes(ctx, c.audit.path); err != nil {
		return err
	}

	if c.config, err = c.embedded.Config(); err != nil {
		return err
	}

	if c.admin, err = newClient(c.config); err != nil {
		return err
	}

	if err := c.findProcesses(ctx); err != nil {
		return err
	}

	if err := embedded.Install(ctx, c.embedded, "cluster"); err != nil {
		return err
	}

	_, err = c.embedded.Kubectl(ctx, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")

	return err
}

// serverMemory is the memory limit of the API server. The embedded one has a lower limit by default, at which it does little but
// collect garbage from 100,000 objects on: the second turn would then be slower than the first, whoever has it.
const serverMemory = "8GiB"

func startKubernetes(ctx context.Context, auditLog string) (*embedded.Cluster, error) {
	const variable = "GOMEMLIMIT"

	own, set := os.LookupEnv(variable)
	if err := os.Setenv(variable, serverMemory); err != nil {
		return nil, err
	}

	started, err := embedded.Start(ctx, "--audit-log", auditLog)

	// The limit is not for the manager, which has to bound its memory itself.
	if set {
		return started, errors.Join(err, os.Setenv(variable, own))
	}

	return started, errors.Join(err, os.Unsetenv(variable))
}

func (c *cluster) findProcesses(ctx context.Context) error {
	devcluster := embedded.Program("devcluster")

	out, err := exec.CommandContext(ctx, devcluster, "status", "--dir", c.embedded.Dir, "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("asking the cluster for its processes: %w", err)
	}

	var status struct {
		Components []struct {
			Name string `json:"name"`
			PID  int    `json:"pid"`
		} `json:"components"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return fmt.Errorf("reading the status of the cluster: %w", err)
	}

	for _, component := range status.Components {
		switch component.Name {
		case "kube-apiserver":
			c.server = process{component.PID}
		case "etcd":
			c.etcd = process{component.PID}
		}
	}

	return nil
}

// stop stops the cluster, waits for it, and removes what it left.
func (c *cluster) stop() error {
	var err error

	if c.embedded != nil {
		err = c.embedded.Stop()
	}

	return errors.Join(err, os.RemoveAll(c.dir))
}

// newClient returns a client that speaks protobuf where the API server does, and that does not limit its own rate: the
// API server's priority and fairness treats all clients alike.
func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(
		clientgoscheme.AddToScheme(scheme), operatorv1.AddToScheme(scheme), operatorsv1alpha1.AddToScheme(scheme),
		operatorsv1.AddToScheme(scheme), olm.AddToScheme(scheme),
	); err != nil {
		return nil, err
	}

	config.WarningHandler = rest.NoWarnings{}

	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}
