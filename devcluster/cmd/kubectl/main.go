// Command kubectl is the upstream program. It is not a part of the one that
// holds the control plane: tests start kubectl a thousand times, and that
// one takes twice as long to start.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // credential plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"

	_ "github.com/ambit-k8s/ambit/devcluster/internal/english"
	"github.com/ambit-k8s/ambit/devcluster/internal/lifeline"
)

func main() {
	lifeline.Watch()
	// kubectl logs while it puts its commands together, before it has parsed
	// its flags; without this -v would not reach those lines.
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		kubectlutil.CheckErr(err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err)
		os.Exit(1)
	}
}
