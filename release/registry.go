package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// layouts are what is pushed.
//
//nolint:gochecknoglobals // A table.
var layouts = []string{imageLayout, chartLayout, bundleLayout}

// runPublish pushes what a release wrote, under the names that it gave or, to try it, to another registry.
func runPublish(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release publish", flag.ContinueOnError)
	dist := flags.String("dist", "dist", "what release all wrote")
	from := flags.String("from", "", "the registry that the names begin with")
	to := flags.String("to", "", "the registry that they are to begin with")

	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}

	for _, folder := range layouts {
		ref, err := push(ctx, *dist+"/"+folder, func(ref string) string { return strings.Replace(ref, *from, *to, 1) })
		if err != nil {
			return err
		}

		if err := say(out, "%s\n", ref); err != nil {
			return err
		}
	}

	return nil
}

// push pushes the one thing that is in a layout, and returns its name with the digest.
func push(ctx context.Context, folder string, rename func(string) string) (string, error) {
	root, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", folder, err)
	}

	manifest, err := root.IndexManifest()
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", folder, err)
	}

	if len(manifest.Manifests) != 1 {
		return "", fmt.Errorf("%s holds %d things, want one", folder, len(manifest.Manifests))
	}

	entry := manifest.Manifests[0]

	ref, err := name.ParseReference(rename(entry.Annotations["org.opencontainers.image.ref.name"]))
	if err != nil {
		return "", fmt.Errorf("reading the name of %s: %w", folder, err)
	}

	if err := pushEntry(ctx, root, entry, ref); err != nil {
		return "", fmt.Errorf("pushing %s: %w", ref, err)
	}

	return ref.String() + "@" + entry.Digest.String(), nil
}

func pushEntry(ctx context.Context, root v1.ImageIndex, entry v1.Descriptor, ref name.Reference) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}

	if entry.MediaType.IsIndex() {
		index, err := root.ImageIndex(entry.Digest)
		if err != nil {
			return err //nolint:wrapcheck // push says what it was about.
		}

		return remote.WriteIndex(ref, index, options...) //nolint:wrapcheck // The same.
	}

	image, err := root.Image(entry.Digest)
	if err != nil {
		return err //nolint:wrapcheck // The same.
	}

	return remote.Write(ref, image, options...) //nolint:wrapcheck // The same.
}

// runRegistry is a registry on loopback that forgets everything, to try a release before it is one.
func runRegistry(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release registry", flag.ContinueOnError)
	address := flags.String("listen", "127.0.0.1:0", "where to listen, on loopback")

	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}

	host, _, err := net.SplitHostPort(*address)
	if err != nil {
		return fmt.Errorf("reading the address: %w", err)
	}

	// It asks nobody for a password.
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s is not on loopback", *address)
	}

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}

	server := &http.Server{
		Handler:           registry.New(registry.Logger(log.New(io.Discard, "", 0))),
		ReadHeaderTimeout: time.Minute,
	}

	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()

	if err := say(out, "%s\n", listener.Addr()); err != nil {
		return err
	}

	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}

	return nil
}
