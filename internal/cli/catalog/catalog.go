// Package catalog is "ambit catalog": it makes a catalog in a ConfigMap from the folders of operator bundles.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// Options are the flags and arguments of "ambit catalog".
type Options struct {
	output.Streams

	// Name is the name of the CatalogSource and of its ConfigMap. Namespace is where they go; if it is empty, kubectl decides.
	Name, Namespace string
	// Bundles are folders.
	Bundles []string
	// Package and Channels replace what the bundles say, or do not say, of them.
	Package  string
	Channels []string
}

// Command returns "ambit catalog".
func Command() *cobra.Command {
	o := &Options{}
	c := &cobra.Command{
		Use:   "catalog NAME -f BUNDLE",
		Short: "Make a catalog in a ConfigMap from the folders of operator bundles",
		Long: `Make a catalog from the folders of operator bundles, each with the manifests of one version in
"manifests" and, if it has any, its "metadata". The command prints a ConfigMap, and a CatalogSource
that names it, for kubectl to apply. Ambit serves such catalogs, and runs no catalog images.

The command reads only files, and no cluster.`,
		Example: `  # A catalog with two versions of an operator
  ambit catalog operators -n scoped -f etcd/0.9.2 -f etcd/0.9.4 | kubectl apply --server-side -f -

  # A bundle that does not say which package it is, and in which channel
  ambit catalog operators -n scoped -f etcd --package etcd --channel alpha`,
		RunE: command.InSteps(o),
	}

	f := c.Flags()
	f.StringArrayVarP(&o.Bundles, "filename", "f", nil, "folder of a bundle; give one for each version, the oldest first")
	f.StringVarP(&o.Namespace, "namespace", "n", "", "namespace that the catalog is for; without it kubectl decides")
	f.StringVar(&o.Package, "package", "", "name of the package, instead of what the bundles say")
	f.StringSliceVar(&o.Channels, "channel", nil, "channels (a,b), instead of what the bundles say")

	return c
}

// Complete takes the name.
func (o *Options) Complete(c *cobra.Command, args []string) error {
	o.Streams = output.StreamsOf(c)

	if len(args) != 1 {
		return command.Usagef("%s takes the name of the catalog; see %s --help", c.CommandPath(), c.CommandPath())
	}

	o.Name = args[0]

	return nil
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	if wrong := validation.IsDNS1123Subdomain(o.Name); len(wrong) > 0 {
		return fmt.Errorf("%q is no name for a catalog: %s", o.Name, wrong[0])
	}

	if wrong := validation.IsDNS1123Label(o.Namespace); o.Namespace != "" && len(wrong) > 0 {
		return fmt.Errorf("--namespace: %q is no namespace: %s", o.Namespace, wrong[0])
	}

	// What a Subscription installs bears the package in the name of a label.
	if wrong := validation.IsConfigMapKey(o.Package); o.Package != "" && len(wrong) > 0 {
		return fmt.Errorf("--package: %q is no name for a package: %s", o.Package, wrong[0])
	}

	if slices.Contains(o.Channels, "") {
		return errors.New("--channel: a channel needs a name")
	}

	if len(o.Bundles) == 0 {
		return errors.New("give the folders of bundles with -f")
	}

	return nil
}

// Run prints the catalog.
func (o *Options) Run(_ context.Context) error {
	bundles := make([]*catalog.Bundle, 0, len(o.Bundles))

	for _, dir := range o.Bundles {
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("looking for a bundle: %w", err)
		}

		b, err := catalog.ReadBundle(os.DirFS(dir))
		if err != nil {
			return fmt.Errorf("bundle %s: %w", dir, err)
		}

		for _, left := range b.Left {
			if err := output.Say(o.ErrOut, "%s: %s is left out: a catalog in a ConfigMap has no place for it", dir, left); err != nil {
				return err
			}
		}

		if o.Package != "" {
			b.Package = o.Package
		}

		if len(o.Channels) > 0 {
			b.Channels, b.DefaultChannel = slices.Clone(o.Channels), o.Channels[0]
		}

		bundles = append(bundles, b)
	}

	data, err := catalog.Build(bundles)
	if err != nil {
		return fmt.Errorf("making the catalog: %w", err)
	}

	problems := catalog.Parse(data).Problems
	for _, problem := range problems {
		if err := output.Say(o.ErrOut, "not usable: %s", problem); err != nil {
			return err
		}
	}

	if err := o.print(data); err != nil || len(problems) == 0 {
		return err
	}

	return errors.New("not all of the catalog is usable, see above")
}

func (o *Options) print(data map[string]string) error {
	size := 0
	for _, text := range data {
		size += len(text)
	}

	if size > corev1.MaxSecretSize {
		return fmt.Errorf("the catalog has %d bytes, and a ConfigMap holds %d: make one of fewer bundles", size, corev1.MaxSecretSize)
	}

	meta := metav1.ObjectMeta{Name: o.Name, Namespace: o.Namespace}

	for _, obj := range []client.Object{
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta, Data: data},
		&olm.CatalogSource{
			TypeMeta:   metav1.TypeMeta{APIVersion: olm.CatalogSourceCRDAPIVersion, Kind: olm.CatalogSourceKind},
			ObjectMeta: meta, Spec: olm.CatalogSourceSpec{SourceType: olm.SourceTypeConfigmap, ConfigMap: o.Name},
		},
	} {
		content, err := output.Content(obj)
		if err != nil {
			return err
		}

		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "spec", "icon")

		text, err := terminal.YAMLWithBlocks(content)
		if err != nil {
			return fmt.Errorf("writing the catalog: %w", err)
		}

		if err := output.Print(o.Out, terminal.Textf("---\n%s", text)); err != nil {
			return err
		}
	}

	return nil
}
