package narrow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// Run narrows, or compares.
func (o *Options) Run(ctx context.Context, n *narrow.Options) error {
	var c *cluster

	if !o.Offline {
		var err error
		if c, err = o.connect(n); err != nil {
			return err
		}
	}

	if o.Check != "" {
		if err := c.serveCheck(ctx, n); err != nil {
			return err
		}

		return o.check(n, c)
	}

	s, err := o.input(ctx, c, n)
	if err != nil {
		return err
	}

	if config := s.FunctionConfig(); len(config) > 0 {
		if len(o.flagged) > 0 {
			return command.Usagef("the input is a ResourceList with a functionConfig, which says how to narrow, and so does --%s; leave "+
				"one of them out", o.flagged[0])
		}

		if n, err = o.configured(n, config); err != nil {
			return command.Usage(err)
		}
	}

	c.serve(ctx, n)

	report, err := narrow.Narrow(s, n)
	if err != nil {
		return fmt.Errorf("narrowing: %w", err)
	}

	if o.From != "" {
		s.OnlyChanged()
	}

	if len(s.FunctionConfig()) > 0 {
		report.Notes = append(report.Notes, "how to narrow is said by the functionConfig of the input")
	}

	report.Notes = append(report.Notes, c.notes()...)

	if err := o.printReport(report); err != nil {
		return err
	}

	if o.Strict && len(report.Warnings) > 0 {
		return errors.New("something needs a decision, see above; nothing was printed")
	}

	return o.printManifests(s)
}

// configured reads the configuration of a kustomize function, by the names of the flags.
func (o *Options) configured(n *narrow.Options, config map[string]string) (*narrow.Options, error) {
	for key, value := range config {
		if err := o.configure(key, value); err != nil {
			return nil, err
		}
	}

	kinds := n.Kinds

	n, err := o.narrowing()
	if err != nil {
		return nil, fmt.Errorf("functionConfig: %w", err)
	}

	n.Kinds = kinds

	return n, nil
}

// configure sets what one flag says. Where a flag takes a list, what the shell would take as one value is a line or, without
// spaces, a word.
func (o *Options) configure(key, value string) error {
	if !slices.Contains(howFlags, key) {
		return fmt.Errorf("functionConfig: data has %q, which is no flag of this command", key)
	}

	flag := o.flags.Lookup(key).Value
	list, isList := flag.(pflag.SliceValue)
	separates := func(r rune) bool { return r == '\n' || flag.Type() == "stringSlice" && (r == ',' || r == ' ') }

	switch {
	case isList:
		return list.Replace(strings.FieldsFunc(value, separates)) //nolint:wrapcheck // Strings are taken as they are.
	case flag.Type() == "bool":
		value = strings.TrimSpace(value)
	}

	// What is neither is no "no": there would be no fence where one is wanted.
	if err := flag.Set(value); err != nil {
		return fmt.Errorf("functionConfig: %s is %q; give true or false", key, value)
	}

	return nil
}

func (o *Options) input(ctx context.Context, c *cluster, n *narrow.Options) (*narrow.Stream, error) {
	if o.From != "" {
		return c.read(ctx, n.Accounts[len(n.Accounts)-1])
	}

	s := &narrow.Stream{}

	for _, name := range o.Files {
		if err := o.readInto(s, name); err != nil {
			return nil, err
		}
	}

	return s, nil
}

// readInto reads a file, a folder or the standard input.
func (o *Options) readInto(s *narrow.Stream, name string) error {
	if name == files.Stdin {
		return s.Read("standard input", o.In)
	}

	paths, err := o.filesOf(name)
	if err != nil {
		return err
	}

	for _, path := range paths {
		if err := readFile(s, path); err != nil {
			return err
		}
	}

	return nil
}

func readFile(s *narrow.Stream, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the files: %w", err)
	}
	defer f.Close() //nolint:errcheck // It was only read.

	return s.Read(path, f)
}

// filesOf returns a file, or the files of a folder that kubectl would read.
func (o *Options) filesOf(name string) ([]string, error) {
	var out []string

	err := filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != name && !o.Recursive:
			return fs.SkipDir
		case !d.IsDir() && (path == name || slices.Contains(resource.FileExtensions, filepath.Ext(path))):
			out = append(out, path)
		}

		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the files: %w", err)
	}

	if len(out) == 0 {
		return nil, fmt.Errorf("reading the files: there is no .yaml, .yml or .json in %s", name)
	}

	return out, nil
}

// printManifests prints them as they are: comments, and whatever else was not touched.
func (o *Options) printManifests(s *narrow.Stream) error {
	switch o.Output {
	case output.Table:
		return nil
	case output.JSON:
		objects, err := s.Objects()
		if err != nil {
			return err
		}

		return output.Data(o.Out, output.JSON, map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	}

	text, err := s.Bytes()
	if err != nil {
		return err
	}

	if _, err := o.Data.Write(text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}

	return nil
}

func (o *Options) check(n *narrow.Options, c *cluster) error {
	before, after := &narrow.Stream{}, &narrow.Stream{}
	if err := o.readInto(before, o.Check); err != nil {
		return err
	}

	for _, name := range o.Files {
		if err := o.readInto(after, name); err != nil {
			return err
		}
	}

	more, notes, err := narrow.Check(before, after, n)
	if err != nil {
		return fmt.Errorf("comparing: %w", err)
	}

	notes = append(notes, c.notes()...)

	switch o.Output {
	case formSarif:
		err = output.Data(o.Out, output.JSON, narrow.SarifOf(more, o.Version))
	case output.Table:
		err = o.printMore(more)
	default:
		err = output.Data(o.Out, o.Output, map[string]any{"more": more, "notes": notes})
	}

	err = errors.Join(err, output.Notes(o.ErrOut, notes))
	if err == nil && len(more) > 0 {
		return ErrMore
	}

	return err
}

func (o *Options) printMore(all []narrow.More) error {
	var b terminal.Builder

	paint := terminal.PaintFor(o.Out)

	for i := range all {
		m := &all[i]
		isNew, by := "", ""

		if m.New {
			isNew = ", which the old version does not have,"
		}

		if m.Binding != "" {
			by = m.Binding + " and "
		}

		b.Linef("%s%s may do more %s, by %s%s (%s, line %d):", m.Who(), isNew, m.Where(), by, printable.Text(m.Role), m.Source, m.Line)

		if m.Unknown {
			b.Linef("  anything: nobody knows the rules of %s  %s", printable.Text(m.Role), paint.Bad("sensitive"))
		}

		for j := range m.Rights {
			r := &m.Rights[j]
			line := terminal.Of("  " + r.String())

			if r.Sensitive {
				line = terminal.Textf("%s  %s", line, paint.Bad("sensitive"))
			}

			b.Linef("%s", line)
		}

		for _, of := range m.Says {
			b.Linef("  %s  %s", of, paint.Bad("sensitive"))
		}
	}

	if len(all) == 0 {
		b.Linef("The new version asks for nothing more.")
	}

	return o.Out.Print(terminal.Textf("%s\n", b.Text()))
}
