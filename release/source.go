package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Release is what is released: one commit of the repository, under one version. Nothing else reaches what is built, no clock
// and no folder, so that whoever builds it again gets the same bytes.
type Release struct {
	Root     string // of the repository
	Dist     string // where everything is written
	Version  string // v0.2.0
	Registry string // ghcr.io/ambit-k8s
	// Kustomize is the program that builds the manifests.
	Kustomize string
	Commit    string    // with -dirty, if the files are not those of the commit
	Created   time.Time // of the commit
	// Images are the platforms of the image, Binaries those of the archives.
	Images, Binaries []Platform
}

// Platform is what Go calls GOOS and GOARCH.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// Everything that a cluster of ours may run on, and that its users sit at.
//
//nolint:gochecknoglobals // Tables.
var (
	imagePlatforms = []Platform{{linux, "amd64"}, {linux, "arm64"}, {linux, "ppc64le"}, {linux, "s390x"}}
	userPlatforms  = []Platform{{"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}
)

// Names that many things have.
const (
	ambit   = "ambit"
	linux   = "linux"
	version = "version"
)

// Where the project is, whatever the registry is that a release of it goes to.
const (
	homepage    = "https://github.com/ambit-k8s/ambit"
	description = "Decides where an operator watches, what it may do there, and who may use its API"
	license     = "Apache-2.0"
	vendor      = "The Ambit authors"
)

type settings struct{ root, dist, version, registry, platforms, kustomize string }

// releaseFrom is what the flags of a command say.
func releaseFrom(ctx context.Context, command string, args []string) (*Release, error) {
	s, flags := &settings{}, flag.NewFlagSet(command, flag.ContinueOnError)
	flags.StringVar(&s.root, "root", ".", "the repository")
	flags.StringVar(&s.dist, "dist", "dist", "where to write")
	flags.StringVar(&s.version, version, "v0.0.0-dev", "the version, such as v0.2.0")
	flags.StringVar(&s.registry, "registry", "ghcr.io/ambit-k8s", "the registry, and the folder in it")
	flags.StringVar(&s.kustomize, "kustomize", "bin/tools/kustomize", "the program kustomize")
	flags.StringVar(&s.platforms, "platforms", "", "only these, such as linux/amd64,darwin/arm64, to try something")

	if err := flags.Parse(args); err != nil {
		return nil, fmt.Errorf("reading the flags: %w", err)
	}

	return s.release(ctx)
}

// semantic is what a version has to look like: the chart, krew and OLM take no other.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func (s *settings) release(ctx context.Context) (*Release, error) {
	if !semantic.MatchString(s.version) {
		return nil, fmt.Errorf("the version %q is none; give one like v0.2.0 or v0.2.0-rc.1", s.version)
	}

	root, err := filepath.Abs(s.root)
	if err != nil {
		return nil, fmt.Errorf("finding the repository: %w", err)
	}

	r := &Release{Root: root, Dist: s.dist, Version: s.version, Registry: strings.TrimSuffix(s.registry, "/")}
	// It runs in the repository.
	if r.Kustomize, err = filepath.Abs(s.kustomize); err != nil {
		return nil, fmt.Errorf("finding kustomize: %w", err)
	}

	if err := r.choose(s.platforms); err != nil {
		return nil, err
	}

	return r, r.readCommit(ctx)
}

func (r *Release) choose(list string) error {
	r.Images, r.Binaries = imagePlatforms, slices.Concat(imagePlatforms, userPlatforms)
	if list == "" {
		return nil
	}

	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(r.Binaries, func(p Platform) bool { return p.String() == name }) {
			return fmt.Errorf("nothing is built for %q", name)
		}
	}

	other := func(p Platform) bool { return !slices.Contains(wanted, p.String()) }
	r.Images = slices.DeleteFunc(slices.Clone(r.Images), other)
	r.Binaries = slices.DeleteFunc(slices.Clone(r.Binaries), other)

	if len(r.Images) == 0 {
		return errors.New("an image needs a platform of linux")
	}

	return nil
}

// readCommit asks git what is built.
func (r *Release) readCommit(ctx context.Context) error {
	out, err := r.output(ctx, "git", "log", "-1", "--format=%H %cI")
	if err != nil {
		return err
	}

	commit, at, _ := strings.Cut(strings.TrimSpace(out), " ")

	r.Commit = commit
	if r.Created, err = time.Parse(time.RFC3339, at); err != nil {
		return fmt.Errorf("reading the time of the commit: %w", err)
	}

	r.Created = r.Created.UTC()

	changed, err := r.output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return err
	}

	if changed != "" {
		r.Commit += "-dirty"
	}

	return nil
}

// output runs a program in the repository and returns what it prints.
func (r *Release) output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // git, and the tools of this repository.
	cmd.Dir = r.Root

	var stderr bytes.Buffer

	cmd.Stderr = &stderr

	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", program, strings.Join(args, " "), err, stderr.String())
	}

	return string(out), nil
}

// image is the name of the image.
func (r *Release) image() string { return r.Registry + "/ambit" }

// number is the version as charts and OLM write it.
func (r *Release) number() string { return strings.TrimPrefix(r.Version, "v") }

// path is that of a file that is released.
func (r *Release) path(name string) string { return filepath.Join(r.Dist, name) }

// labels say, in the words of the OCI, what something is made of.
func (r *Release) labels(title, about string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":         title,
		"org.opencontainers.image.description":   about,
		"org.opencontainers.image.version":       r.Version,
		"org.opencontainers.image.revision":      r.Commit,
		"org.opencontainers.image.created":       r.Created.Format(time.RFC3339),
		"org.opencontainers.image.source":        homepage,
		"org.opencontainers.image.url":           homepage,
		"org.opencontainers.image.documentation": homepage + "/blob/" + r.Version + "/docs/install.md",
		"org.opencontainers.image.licenses":      license,
		"org.opencontainers.image.vendor":        vendor,
	}
}

func choices() string { return strings.Join(slices.Sorted(maps.Keys(commands)), ", ") }
