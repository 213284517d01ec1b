package embedded

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// atStart is the name under which a cluster of a pool saved what it stored at its start.
const atStart = "default"

// LeaseInstalled is Lease with Ambit installed on the cluster, with a profile. A cluster of a pool saves what it stores then:
// restoring that costs a third of an installation.
func LeaseInstalled(ctx context.Context, profile string) (*Cluster, error) {
	c, err := leaseOne(ctx)
	if err != nil {
		return nil, err
	}

	if err := c.becomeInstalled(ctx, profile); err != nil {
		return nil, errors.Join(fmt.Errorf("installing the profile %s: %w", profile, err), c.Stop())
	}

	return c, nil
}

func (c *Cluster) becomeInstalled(ctx context.Context, profile string) error {
	if c.release == nil {
		return Install(ctx, c, profile)
	}

	image, err := imageOf(profile)
	if err != nil {
		return err
	}

	s, err := c.state(ctx)
	if err != nil {
		return err
	}

	if slices.Contains(s.Saved, image) {
		return c.reset(ctx, image)
	}

	if err := c.reset(ctx, atStart); err != nil {
		return err
	}

	if err := Install(ctx, c, profile); err != nil {
		return err
	}

	if err := c.withoutPods(ctx); err != nil {
		return err
	}

	_, err = c.devcluster(ctx, "save", "--name", image)

	return err
}

// withoutPods deletes the ReplicaSets and pods of Ambit's Deployment, and pauses it, so that no new ones are made: tests that
// need Ambit start a process. What is saved must not include them: Kubernetes' controllers have seen them go, and would delete
// them again after each reset.
func (c *Cluster) withoutPods(ctx context.Context) error {
	deployment := []string{"deployment", "ambit", "-n", Namespace}

	generation, err := c.Kubectl(ctx, slices.Concat([]string{"patch"}, deployment,
		[]string{"--type=merge", "-p", `{"spec":{"paused":true}}`, "-o", "jsonpath={.metadata.generation}"})...)
	if err != nil {
		return err
	}

	if _, err := c.Kubectl(ctx, slices.Concat([]string{"wait"}, deployment,
		[]string{"--for=jsonpath={.status.observedGeneration}=" + generation, "--timeout=1m"})...); err != nil {
		return err
	}

	_, err = c.Kubectl(ctx, "delete", "replicasets", "--all", "-n", Namespace, "--cascade=foreground")

	return err
}

// imageOf names what a cluster stores after installing a profile as config has it at present.
func imageOf(profile string) (string, error) {
	hash := sha256.New()
	if err := hashTree(hash, filepath.Join(Root(), "config")); err != nil {
		return "", err
	}

	return fmt.Sprintf("%s-%x", profile, hash.Sum(nil)[:8]), nil
}

func hashTree(into io.Writer, root string) error {
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}

		content, err := os.ReadFile(path) //nolint:gosec // It is a file of this repository.
		if err != nil {
			return err //nolint:wrapcheck // It names the file.
		}

		_, err = fmt.Fprintf(into, "%s %d\n%s", path, len(content), content)

		return err //nolint:wrapcheck // A hash takes whatever it is given.
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", root, err)
	}

	return nil
}

// reset restores what the cluster saved under a name. Its audit log begins then.
func (c *Cluster) reset(ctx context.Context, image string) error {
	if _, err := c.devcluster(ctx, "reset", "--name", image); err != nil {
		return err
	}

	start, err := LineFromNow(ctx, c.auditLog)
	if err != nil {
		return fmt.Errorf("finding the end of the audit log: %w", err)
	}

	c.auditStart = start

	return nil
}

// LineFromNow is where the first line of a file begins that nobody has begun to write yet.
func LineFromNow(ctx context.Context, path string) (start int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err //nolint:wrapcheck // The caller says what for.
	}
	defer file.Close() //nolint:errcheck // It was only read.

	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || end == 0 {
		return 0, err //nolint:wrapcheck // As above.
	}

	err = wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) {
		// It begins behind the line that the last byte belongs to, which may be half written.
		line, err := bufio.NewReader(io.NewSectionReader(file, end-1, math.MaxInt64-end)).ReadBytes('\n')
		start = end - 1 + int64(len(line))

		if errors.Is(err, io.EOF) {
			return false, nil
		}

		return err == nil, err //nolint:wrapcheck // As above.
	})

	return start, err //nolint:wrapcheck // As above.
}

// state is what devcluster says of the cluster.
type state struct {
	// Saved are the names under which the cluster has saved what it stored.
	Saved      []string `json:"saved"`
	Components []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	} `json:"components"`
}

func (c *Cluster) state(ctx context.Context) (s state, err error) {
	out, err := c.devcluster(ctx, "status", "--output", "json")
	if err != nil {
		return s, err
	}

	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("reading the status of the cluster in %s: %w", c.home, err)
	}

	return s, nil
}
