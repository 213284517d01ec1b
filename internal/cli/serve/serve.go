// Package serve is "ambit serve": a page that answers a browser as the other commands answer a terminal.
package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/page"
)

// Options are the flags and arguments of "ambit serve".
type Options struct {
	reading.Options

	// Address and Port are where the page is served; port 0 is one that is free.
	Address string
	Port    int
	// Open opens the page in a browser.
	Open bool
	// Files hold what would be applied, or with Delete deleted; Recursive reads folders below folders, too.
	Files             []string
	Recursive, Delete bool

	// flags are those of the command line by which other commands reach the same cluster as the same user.
	flags []string
}

// Command returns "ambit serve".
func Command() *cobra.Command {
	o := &Options{Options: reading.Options{Forms: []string{output.Table}}}
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve a local web page about scopes and operators, with your rights",
		Long: `Serve a local web page about scopes and operators: a map from operators to namespaces, the matrix,
what is wrong and what changed, and for each operator in each namespace the reason, with the command
that prints the same in a terminal. The page shows a change in the cluster within two seconds.

The page is for you alone. The command serves it on loopback only, to the browser that opens the
printed link; each link admits one browser, once. It reads with your rights, asks for nothing that
you may not see, and changes nothing. It stores nothing on disk, and fetches nothing from
elsewhere. Only --open makes a file, with the link, which nobody else can read. The command deletes
it when the browser has come in, or when the command ends.

With -f the same map shows what "ambit plan -f" prints: who would join and leave, what would be
written and refused. While a tab is open, the page plans again when the cluster changes. Like that
command, it has the API server try each object of the files by a dry run, which stores nothing. It
reads the files once.

Ctrl-C ends it.`,
		Example: `  # Print a link, and serve the page until Ctrl-C
  ambit serve

  # Open it in a browser
  ambit serve --open

  # Draw what applying a file would change
  ambit serve -f test/demo/3-scope.yaml

  # What somebody else may see, if you may impersonate them
  ambit serve --as jane@example.com --port 8888`,
		Args: command.NoArguments,
		RunE: command.InSteps(o),
	}

	o.Bind(c)

	f := c.Flags()
	f.StringVar(&o.Address, "address", "127.0.0.1", "address of loopback to serve the page on: 127.0.0.1 or ::1")
	f.IntVar(&o.Port, "port", 0, "port to serve the page on; 0 is one that is free")
	files.Bind(f, &o.Files, &o.Recursive, "draw what applying this file, folder or URL would change")
	f.BoolVar(&o.Delete, "delete", false, "draw what deleting the objects of the files would do")
	f.BoolVar(&o.Open, "open", false, "open the page in a browser")

	return c
}

// Complete takes the flags that commands need which are to say the same in a terminal.
func (o *Options) Complete(c *cobra.Command, args []string) error {
	o.flags = command.ClusterArguments(c)

	command.NoticeLostConnections()

	return o.Options.Complete(c, args)
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	if err := page.CheckAddress(o.Address); err != nil {
		return fmt.Errorf("--address is %w", err)
	}

	if o.Port < 0 || o.Port > math.MaxUint16 {
		return fmt.Errorf("--port is %d; give 0 to %d", o.Port, math.MaxUint16)
	}

	if len(o.Files) == 0 && (o.Delete || o.Recursive) {
		return errors.New("--delete and --recursive are about files; name them with -f")
	}

	if err := files.Validate(o.Files); err != nil {
		return err
	}

	return o.Options.Validate()
}

// Run serves the page until the context ends.
func (o *Options) Run(ctx context.Context) error {
	source, err := o.source(ctx)
	if err != nil {
		return err
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(o.Address, strconv.Itoa(o.Port)))
	if err != nil {
		return fmt.Errorf("serving the page: %w; --port 0 takes a free port", err)
	}

	server, err := page.New(listener.Addr().String(), source)
	if err != nil {
		return errors.Join(err, listener.Close())
	}

	go server.Run(ctx)

	return o.serve(ctx, server, listener)
}

// serve prints the links and serves the page until the context ends.
func (o *Options) serve(ctx context.Context, server *page.Server, listener net.Listener) error {
	file, forget := "", func() {}

	if o.Open {
		var err error
		if file, forget, err = linkFile(server); err != nil {
			_ = output.Say(o.ErrOut, "Note: no browser is started: %v", err) // The link is printed.
		}
	}

	defer forget()

	go o.printLinks(ctx, server, file, forget)

	return server.Serve(ctx, listener)
}

// linkFile makes a file that leads a browser to the link, and that nobody else can read. forget deletes it.
func linkFile(server *page.Server) (file string, forget func(), err error) {
	folder, err := os.MkdirTemp("", "ambit-serve-")
	if err != nil {
		return "", func() {}, fmt.Errorf("making a file for it: %w", err)
	}

	forget = func() { _ = os.RemoveAll(folder) }
	file = filepath.Join(folder, "open.html")

	if err := os.WriteFile(file, []byte(server.LinkPage()), 0o600); err != nil {
		return "", forget, fmt.Errorf("making a file for it: %w", err)
	}

	return file, forget, nil
}

// printLinks prints the link, and another each time that one was used up. It opens the file that leads to the first, and has it
// forgotten then.
func (o *Options) printLinks(ctx context.Context, server *page.Server, file string, forget func()) {
	what := "Open"

	for {
		link := server.Link()
		if err := output.Say(o.Out, "%s %s", what, link); err != nil {
			return
		}

		o.Out.Flush()

		if file != "" && what == "Open" {
			if err := browse(ctx, file); err != nil {
				_ = output.Say(o.ErrOut, "Note: no browser could be started: %v", err) // The link is printed.
			}
		}

		what = "For another browser, once:"

		select {
		case <-server.Used():
			forget()
		case <-ctx.Done():
			return
		}
	}
}

// browse opens a file in the browser that the system prefers.
func browse(ctx context.Context, file string) error {
	program, arguments := "xdg-open", []string{file}

	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, arguments = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}

	//nolint:gosec // The programs are named here, and the file is this program's own.
	if err := exec.CommandContext(ctx, program, arguments...).Start(); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}

	return nil
}
