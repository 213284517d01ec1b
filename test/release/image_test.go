package release_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// pulled is an image for linux/amd64, as a container runtime would have it.
type pulled struct {
	digest string // of the index
	user   string
	files  map[string][]byte
}

// descriptor is how a manifest points to something; manifest is an index, a manifest or a configuration, as far as matters here.
type descriptor struct {
	Digest   string `json:"digest"`
	Platform struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

type manifest struct {
	Manifests []descriptor    `json:"manifests"`
	Config    json.RawMessage `json:"config"`
	Layers    []descriptor    `json:"layers"`
}

// pull gets an image with nothing but HTTP, and believes no digest.
func (w *world) pull(name, tag string) *pulled {
	w.Helper()

	content := w.get(name + "/manifests/" + tag)
	image := &pulled{digest: digestOf(content), files: map[string][]byte{}}

	for _, entry := range w.parse(content).Manifests {
		if entry.Platform.OS != "linux" || entry.Platform.Architecture != "amd64" {
			continue
		}

		m := w.parse(w.blob(name+"/manifests/", entry.Digest))

		var config descriptor
		if err := json.Unmarshal(m.Config, &config); err != nil {
			w.Fatal(err)
		}

		var run struct {
			User string `json:"User"` //nolint:tagliatelle // As the image format has it.
		}
		if err := json.Unmarshal(w.parse(w.blob(name+"/blobs/", config.Digest)).Config, &run); err != nil {
			w.Fatal(err)
		}

		image.user = run.User

		for _, layer := range m.Layers {
			w.unpack(w.blob(name+"/blobs/", layer.Digest), image.files)
		}
	}

	return image
}

func (w *world) parse(content []byte) manifest {
	w.Helper()

	var m manifest
	if err := json.Unmarshal(content, &m); err != nil {
		w.Fatal(err)
	}

	return m
}

func (w *world) blob(path, digest string) []byte {
	w.Helper()

	content := w.get(path + digest)
	if got := digestOf(content); got != digest {
		w.Fatalf("the registry gave %s for %s", got, digest)
	}

	return content
}

func (w *world) get(path string) []byte {
	w.Helper()

	host, dir, _ := strings.Cut(w.registry, "/")

	request, err := http.NewRequestWithContext(w.Context(), http.MethodGet, "http://"+host+"/v2/"+dir+"/"+path, nil)
	if err != nil {
		w.Fatal(err)
	}

	request.Header.Set("Accept", "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json")

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read.

	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		w.Fatalf("pulling %s: %s, %v", path, response.Status, err)
	}

	return content
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)

	return "sha256:" + hex.EncodeToString(sum[:])
}

func (w *world) unpack(layer []byte, files map[string][]byte) {
	w.Helper()

	unzipped, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		w.Fatal(err)
	}

	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}

		if err != nil {
			w.Fatal(err)
		}

		if files[header.Name], err = io.ReadAll(r); err != nil {
			w.Fatal(err)
		}
	}
}

// process is the program of the image, at work.
type process struct {
	cmd *exec.Cmd
	out *bytes.Buffer
	w   *world
}

const kubeconfig = "ambit-system-ambit.kubeconfig"

// rootOf is a folder with the image in it, and beside it what Kubernetes mounts: the account's credentials.
func (w *world) rootOf(image *pulled) string {
	w.Helper()

	if image.user != "65532:65532" {
		w.Errorf("the image runs as %q", image.user)
	}

	root := w.TempDir()

	for name, content := range image.files {
		if err := os.WriteFile(filepath.Join(root, name), content, 0o755); err != nil {
			w.Fatal(err)
		}
	}

	path, err := embedded.Kubeconfig(w.Context(), w.Config, root)
	if err != nil || path != filepath.Join(root, kubeconfig) {
		w.Fatalf("writing %s: %v", path, err)
	}

	if err := errors.Join(os.Chmod(path, 0o444), os.Chmod(root, 0o755)); err != nil {
		w.Fatal(err)
	}

	return root
}

// contained runs the program with that folder as its root, read-only, as the image's user, without any privilege. That takes
// root, or mounts that this user may make; without them it runs as whoever runs the test, and the test says so.
func (w *world) contained(root string, arguments ...string) *exec.Cmd {
	const inside = `mount --bind "$0" "$0" && mount -o remount,bind,ro,nosuid "$0" && ! touch "$0/x" 2>/dev/null && cd "$0" &&
		exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all chroot --userspec=65532:65532 "$0" /ambit "$@"`

	if os.Geteuid() == 0 {
		// setpriv would take away what chroot needs, so the privileges go with the user.
		shell := strings.Replace(inside, "--bounding-set=-all --inh-caps=-all ", "", 1)

		return exec.CommandContext(context.WithoutCancel(w.Context()), "unshare",
			append([]string{"--mount", "sh", "-c", shell, root}, arguments...)...)
	}

	w.Log("without root, the program runs as this user and sees the machine's files")

	cmd := exec.CommandContext(context.WithoutCancel(w.Context()), filepath.Join(root, "ambit"), arguments...)
	cmd.Dir = root

	return cmd
}

// run starts the manager that is in the image, with further arguments.
func (w *world) run(root string, arguments ...string) *process {
	w.Helper()

	address := testbed.FreeAddress(w)
	p := &process{out: &bytes.Buffer{}, w: w}
	p.cmd = w.contained(root, append([]string{
		"manager", "--kubeconfig=" + kubeconfig, "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=" + address,
	}, arguments...)...)
	p.cmd.Env = []string{"OPERATOR_NAMESPACE=" + embedded.Namespace}
	p.cmd.Env = append(p.cmd.Env, "PATH="+os.Getenv("PATH"))
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out

	if err := p.cmd.Start(); err != nil {
		w.Fatal("starting the manager:", err)
	}

	w.Cleanup(p.stop)
	w.Eventually("the manager says that it is ready", func() error { return ready(w.Context(), address) })

	return p
}

func ready(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}

	if response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}

	return errors.Join(err, response.Body.Close())
}

// stop asks the manager to end, as Kubernetes does.
func (p *process) stop() {
	if p.cmd.ProcessState != nil {
		return
	}

	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		p.w.Errorf("the manager that is in the image: %v\n%s", err, p.out)
	}
}
