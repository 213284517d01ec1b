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
		`Remember what the cluster stores, for reset: until the cluster stops, or save
is called again with the same name.`, "saved", control.Save)
}

func newReset() *cobra.Command {
	return onStore("reset", "Put back what save remembered",
		`Put back what save remembered: what was made since goes, without waiting for
finalizers, and what was changed or deleted is as it was. Stop what writes to
the cluster first. devcluster status -o json lists the names that were saved.

The cluster's own components go on running.`, "as it was saved", control.Reset)
}

// onStore is a command about what a running cluster stores.
func onStore(verb, short, long, done string, do func(ctx context.Context, dir workdir.Dir, name string) error) *cobra.Command {
	var path, name string
	command := &cobra.Command{
		Use:   verb + " --dir DIR",
		Short: short,
		Long:  long,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			started := time.Now()
			dir, err := running(path)
			if err == nil {
				err = do(command.Context(), dir, name)
			}
			if err != nil {
				return failure{err}
			}
			fmt.Printf("The cluster is %s, after %.1fs.\n", done, time.Since(started).Seconds())
			return nil
		},
	}
	dirFlag(command, &path)
	command.Flags().StringVar(&name, "name", "default", "name of what is remembered; a cluster remembers as many as there are names")
	return command
}
