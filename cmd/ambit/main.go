// Command ambit is Ambit's manager and its command line.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ambit-k8s/ambit/internal/cli"
)

func main() {
	os.Exit(cli.Run(ctrl.SetupSignalHandler(), os.Args[1:], os.Stdout, os.Stderr))
}
