package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// cluster holds the flags which up and run share.
type cluster struct {
	dir          string
	programs     string
	auditLog     string
	nodes        int
	controllers  bool
	startTimeout time.Duration
}

func (c *cluster) addFlags(command *cobra.Command) {
	dirFlag(command, &c.dir)
	flags := command.Flags()
	flags.StringVar(&c.programs, "k8s-dir", "", "folder of the Kubernetes programs (default: k8s next to this program)")
	flags.StringVar(&c.auditLog, "audit-log", "", "file for the audit log, one JSON object a line (default: no audit log)")
	flags.IntVar(&c.nodes, "nodes", 2, "number of nodes")
	flags.BoolVar(&c.controllers, "controllers", true,
		"whether controllers, a scheduler and nodes run beside the API server; without them nothing writes by itself")
	flags.DurationVar(&c.startTimeout, "start-timeout", 3*time.Minute, "how long the cluster may take to be ready")
}

// check completes the flags. Paths become absolute, because the processes of
// the cluster run in a folder of their own.
func (c *cluster) check() error {
	if c.dir == "" {
		return fmt.Errorf("--dir is empty; name a folder for the cluster")
	}
	if c.nodes < 0 || c.nodes > 1000 {
		return fmt.Errorf("--nodes is %d; choose a number from 0 to 1000", c.nodes)
	}
	if c.startTimeout <= 0 {
		return fmt.Errorf("--start-timeout is %s; choose a time above zero", c.startTimeout)
	}
	var err error
	if c.programs == "" {
		if c.programs, err = programsFolder(); err != nil {
			return err
		}
	}
	for _, path := range []*string{&c.dir, &c.programs, &c.auditLog} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("finding %s: %w", *path, err)
		}
	}
	return nil
}

// args returns the command line by which another process of this program gets
// the same flags.
func (c *cluster) args() []string {
	return []string{
		"--dir=" + c.dir,
		"--k8s-dir=" + c.programs,
		"--audit-log=" + c.auditLog,
		"--nodes=" + strconv.Itoa(c.nodes),
		"--controllers=" + strconv.FormatBool(c.controllers),
		"--start-timeout=" + c.startTimeout.String(),
	}
}
