package served

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/picture"
)

// MatrixOptions are the flags and arguments of "ambit matrix".
type MatrixOptions struct {
	reading.Options

	// In and Operators are patterns of namespaces and of operators.
	In, Operators []string
	// Failed shows only what is not fully served; All folds nothing.
	Failed, All bool
}

// MatrixCommand returns "ambit matrix".
func MatrixCommand() *cobra.Command {
	o := &MatrixOptions{Options: reading.Options{Forms: []string{output.Table, output.JSON, output.YAML, output.HTML, output.SVG}}}
	c := &cobra.Command{
		Use:   "matrix",
		Short: "Show operators by namespaces",
		Long: `Show operators by namespaces: who is served where, and what is wrong. -n limits it to the
operators of one namespace.

Namespaces with the same content share one column, and operators of a namespace with the same
content share one row. -o json and yaml print all of them, and so does the page of -o html: one
self-contained file, in which a click on a cell, or Enter, shows the rules and their origin.
-o svg is a drawing for documents.

The command reads with your rights, and names what you may not read. A question mark means that you
may read too little, and NAMESPACE/* stands for accounts that you may not read.`,
		Example: `  # All operators and namespaces
  ambit matrix

  # Only some namespaces, and only what is wrong there
  ambit matrix --in 'cloudpak*' --failed

  # An interactive page, and a drawing
  ambit matrix -o html >matrix.html
  ambit matrix -o svg >matrix.svg`,
		Args: command.NoArguments,
		RunE: command.InSteps(o),
	}

	o.Bind(c)

	f := c.Flags()
	f.StringSliceVar(&o.In, "in", nil, "only namespaces of these names; * stands for anything")
	f.StringSliceVar(&o.Operators, "operator", nil,
		"only operators of these names, as NAME or NAMESPACE/NAME; * stands for anything")
	f.BoolVar(&o.Failed, "failed", false, "only what is not fully served")
	f.BoolVar(&o.All, "all", false, "show each namespace and each operator by itself")

	return c
}

// Validate says what is wrong with the options, before anything is read.
func (o *MatrixOptions) Validate() error {
	if err := validPatterns("--in", o.In); err != nil {
		return err
	}

	if err := validPatterns("--operator", o.Operators); err != nil {
		return err
	}

	return o.Options.Validate()
}

// MatrixData is what "ambit matrix" prints for programs.
type MatrixData struct {
	*overview.Matrix

	NotRead []string `json:"notRead,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// Run shows the matrix.
func (o *MatrixOptions) Run(ctx context.Context) error {
	v, all, err := once(ctx, &o.Options)
	if err != nil {
		return err
	}

	return o.print(v, all.Keep(overview.Filter{
		Namespace: matcher(o.In), Operator: matcher(o.Operators), OnlyFailed: o.Failed,
	}).Matrix())
}

func (o *MatrixOptions) print(v *reading.Cluster, m *overview.Matrix) error {
	switch o.Output {
	case output.JSON, output.YAML:
		return o.PrintData(&MatrixData{m, v.NotRead(), v.Notes})
	case output.HTML:
		return (&picture.Page{Matrix: m, NotRead: v.NotRead(), Notes: v.Notes, Taken: time.Now()}).HTML(o.Out)
	case output.SVG:
		if err := picture.SVG(o.Out, m); err != nil {
			return err
		}

		return o.PrintNotes(v)
	}

	if err := o.table(v, m); err != nil {
		return err
	}

	return o.PrintNotes(v)
}
