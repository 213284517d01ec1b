// Command kubernetes is the Kubernetes control plane and etcd in one program.
// Which of them it is depends on the name it is called by, in the way of
// busybox: one program links the shared packages once, which makes the build
// several times faster and the result several times smaller than four
// programs would be.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/devcluster/internal/lifeline"
)

// programs are the names this program answers to. Each function returns the
// exit code of its program, or does not return at all.
var programs = map[string]func() int{
	"etcd":                    runEtcd,
	"kube-apiserver":          runAPIServer,
	"kube-controller-manager": runControllerManager,
	"kube-scheduler":          runScheduler,
}

func main() {
	lifeline.Watch()

	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	run, ok := programs[name]
	if !ok && len(os.Args) > 1 {
		// `kubernetes etcd --version` serves file systems without symbolic links.
		name = os.Args[1]
		if run, ok = programs[name]; ok {
			os.Args = os.Args[1:]
		}
	}
	if !ok {
		fmt.Fprintf(os.Stderr, "this program is known by its name: call it through a link, or give a name as the first argument: %s\n",
			strings.Join(names(), ", "))
		os.Exit(2)
	}
	os.Exit(run())
}

func names() []string {
	known := make([]string, 0, len(programs))
	for name := range programs {
		known = append(known, name)
	}
	slices.Sort(known)
	return known
}
