// Command release builds what is published of Ambit, without Docker, a registry or the network, and the same bytes from the
// same commit wherever it runs.
//
//	release image -version VERSION -registry REGISTRY [-platforms LIST] [-dist DIR]   the image alone
//	release all   with the same flags                                                 everything
//	release publish [-dist DIR] [-from REGISTRY -to REGISTRY]                         push what release all wrote
//	release registry [-listen ADDRESS]                                                a registry on loopback, to try it
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// commands are what the program can do.
//
//nolint:gochecknoglobals // A table.
var commands = map[string]func(context.Context, []string, io.Writer) error{
	"image":    runImage,
	"all":      runAll,
	"publish":  runPublish,
	"registry": runRegistry,
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("give a command: %s", choices())
	}

	do, known := commands[args[0]]
	if !known {
		return fmt.Errorf("unknown command %q; there are %s", args[0], choices())
	}

	return do(ctx, args[1:], out)
}

func runImage(ctx context.Context, args []string, out io.Writer) error {
	r, err := releaseFrom(ctx, "release image", args)
	if err != nil {
		return err
	}

	image, err := assemble(ctx, r, buildBinary)
	if err != nil {
		return err
	}

	if err := writeImage(r, image); err != nil {
		return err
	}

	return say(out, "%s@%s\n  %s   OCI layout\n  %s   for docker load\n",
		r.image(), image.digest, r.path(imageLayout), r.path(r.dockerArchive("*")))
}

func say(out io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(out, format, args...); err != nil {
		return fmt.Errorf("writing what was done: %w", err)
	}

	return nil
}
