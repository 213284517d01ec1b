package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/devcluster/internal/control"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

func newSave() *cobra.Command {
	return onStore("save", "Remember what the cluster stores, for reset",
		"What the cluster stores is remembered until it stops or save is called again.", "saved", control.Save)
}

func newReset() *cobra.Command {
	return onStore("reset", "Put back what save remembered",
		`Put back what save remembered: what was made since goes, without waiting for
finalizers, and what was changed or deleted is as it was. Stop what writes to
the cluster first.

The cluster's own components go on running.`, "as it was saved", control.Reset)
}

// onStore is a command about what a running cluster stores.
func onStore(verb, short, long, done string, do func(context.Context, workdir.Dir) error) *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   verb + " --dir DIR",
		Short: short,
		Long:  long,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			started := time.Now()
			dir, err := running(path)
			if err == nil {
				err = do(command.Context(), dir)
			}
			if err != nil {
				return failure{err}
			}
			fmt.Printf("The cluster is %s, after %.1fs.\n", done, time.Since(started).Seconds())
			return nil
		},
	}
	dirFlag(command, &path)
	return command
}
