// Package controlplane knows the components of the cluster and their command
// lines.
package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ambit-k8s/ambit/devcluster/internal/pki"
	"github.com/ambit-k8s/ambit/devcluster/internal/process"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// The components, by the names of their programs and logs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
)

// Components returns all components in the order in which they start.
func Components() []string {
	return []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
}

// Plan holds what the command lines of the components depend on.
type Plan struct {
	// Programs is the folder of the programs.
	Programs string
	Dir      workdir.Dir
	// Port is the API server's.
	Port int
	// EtcdSocket is where etcd listens, for the API server and the supervisor.
	EtcdSocket string
	// AuditLog is the file for the audit log; empty means none.
	AuditLog string
}

// Spec returns how to start a component.
func (p Plan) Spec(component string) process.Spec {
	args := map[string]func() []string{
		Etcd:              p.etcd,
		APIServer:         p.apiServer,
		ControllerManager: p.controllerManager,
		Scheduler:         p.scheduler,
		Kwok:              p.kwok,
	}[component]()
	return process.Spec{
		Name:    component,
		Program: filepath.Join(p.Programs, component),
		Args:    args,
		Env:     p.environment(),
		Folder:  p.Dir.Data(),
		Log:     p.Dir.Log(component),
	}
}

// CheckPrograms says what is missing before anything is started.
func (p Plan) CheckPrograms() error {
	for _, component := range Components() {
		program := filepath.Join(p.Programs, component)
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("the program %s is missing; build it with: make devcluster-k8s", program)
		}
	}
	return nil
}

// environment returns the variables the components get. Every one of them
// reads variables of its own (ETCD_..., KWOK_..., KUBE_...), and a cluster
// must not depend on what happens to be set in a terminal.
func (p Plan) environment() []string {
	// Collecting garbage is half of what the API server works while it
	// starts, and a sixth after that; memory is cheaper than a core here.
	// Each request has goroutines of its own with deep stacks: that they begin
	// with as much as most need saves a tenth of what the API server works.
	env := []string{"HOME=" + p.Dir.Data(), "GOGC=400", "GOMEMLIMIT=2GiB", "GODEBUG=adaptivestackstart=1"}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "PATH", "TMPDIR", "TZ", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GODEBUG", "GOTRACEBACK":
			env = append(env, variable)
		}
	}
	return env
}

func (p Plan) certificate(name string) string { return pki.CertificateFile(p.Dir.PKI(), name) }

func (p Plan) key(name string) string { return pki.KeyFile(p.Dir.PKI(), name) }

func (p Plan) config(name string) string { return filepath.Join(p.Dir.Config(), name) }
