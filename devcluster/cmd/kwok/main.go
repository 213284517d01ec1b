// Command kwok plays the nodes of the cluster: it reports nodes as ready and
// moves pods through their phases, without running any container. It is the
// upstream program, plus the lifeline to the process that started it, plus
// the stages which the upstream module ships.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"

	"github.com/ambit-k8s/ambit/devcluster/internal/lifeline"
)

// printStages is an argument of our own: it writes the built-in stages to
// standard output, in the form that --config reads.
const printStages = "print-stages"

func main() {
	lifeline.Watch()
	if len(os.Args) == 2 && os.Args[1] == printStages {
		fmt.Print(stages())
		return
	}
	os.Exit(run())
}

// run is what the main function of the upstream program does.
func run() int {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}

	ctx := signals.SetupSignalContext()
	ctx, logger := log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		fmt.Fprint(os.Stderr, flags.FlagUsages())
		logger.Error("Init config flags", "err", err)
		return 1
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		logger.Error("Execute exit", "err", err)
		return 1
	}
	return 0
}
