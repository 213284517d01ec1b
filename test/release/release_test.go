// Package release_test installs what make release writes as a user would: from a registry, with Helm and with kubectl, on a real
// API server. Nodes are played there, so the program that is in the image runs as a process, as much shut in as this machine
// allows.
package release_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// The client has nothing to log.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

const version = "v0.2.0-rc.1"

// The commit whose manifests are upgraded from: Ambit 0.1.0, before there were releases.
const before = "4c9f3ee"

// world is a release in a registry, and a cluster to install it on.
type world struct {
	*testbed.World

	dist, registry string
	published      map[string]string // by what follows the registry's name
	// helm is which of bin/tools installs.
	helm string
}

func TestReleaseIsInstalledAndUpgradedTo(t *testing.T) {
	r := released(t)

	image := r.pull("ambit", version)
	if len(image.files) != 1 || image.files["ambit"] == nil {
		t.Fatalf("the image holds %d files, want the program alone", len(image.files))
	}

	if image.digest != r.published["ambit"] {
		t.Errorf("the registry has %s, published was %s", image.digest, r.published["ambit"])
	}

	chart, program := r.archived(before)

	for _, helm := range []string{"helm", "helm4"} {
		t.Run(helm, func(t *testing.T) {
			w := &world{
				World: &testbed.World{T: t, Bed: &testbed.Bed{Program: r.Program}}, helm: helm,
				dist: r.dist, registry: r.registry, published: r.published,
			}
			w.upgraded(chart, program, image)
		})
	}
}

// upgraded installs the version before, lets it serve, and upgrades to the release, while somebody looks whether everybody still
// has what they had.
func (w *world) upgraded(chart string, program []byte, image *pulled) {
	w.Helper()
	w.startCluster()
	w.runHelm("install", "ambit", chart, "--namespace", embedded.Namespace, "--create-namespace", "--set", "profile=cluster")

	root := w.rootOf(image)
	manager := w.run(w.rootOf(&pulled{user: image.user, files: map[string][]byte{"ambit": program}}))
	rights, subject, grow := w.scopes()
	looks, missing := w.watchRights(rights)

	// What the documentation says about an upgrade.
	w.kubectl("apply", "--server-side", "--force-conflicts", "-f", filepath.Join(w.dist, "crds.yaml"),
		"-f", filepath.Join(w.dist, "crds-olm.yaml"))
	w.runHelm("upgrade", "ambit", "oci://"+w.registry+"/charts/ambit", "--version", strings.TrimPrefix(version, "v"), "--plain-http",
		"--namespace", embedded.Namespace, "--reset-then-reuse-values")
	manager.stop()

	manager = w.run(root, "--metrics-secure=false")

	// It works: what is new is served, by the new one.
	grow()

	if n, gaps := looks.Load(), missing(); n < 100 || gaps != "" {
		w.Errorf("in %d looks during the upgrade, somebody lost a right: %s", n, gaps)
	} else {
		w.Logf("%d looks, no right missing", n)
	}

	w.installed()
	w.accepted()
	w.tested(root)

	// Who looked would have seen it.
	w.Remove(subject)
	w.Eventually("the looks notice that a right is gone", func() error {
		if missing() == "" {
			return fmt.Errorf("nothing in %d looks", looks.Load())
		}

		return nil
	})
	manager.stop()
}

// released is a release for this machine's platform, in a registry on loopback.
func released(t *testing.T) *world {
	t.Helper()

	program := filepath.Join(t.TempDir(), "release")
	w := &world{World: &testbed.World{T: t, Bed: &testbed.Bed{Program: program}}, dist: filepath.Join(t.TempDir(), "dist")}
	w.command(filepath.Join(embedded.Root(), "release"), "go", "build", "-o", program, ".")

	w.registry = w.serveRegistry() + "/ambit"
	w.command(embedded.Root(), program, "all",
		"-version", version, "-platforms", "linux/amd64", "-registry", w.registry, "-dist", w.dist)
	w.command(embedded.Root(), program, "publish", "-dist", w.dist)

	w.published = map[string]string{}

	digests, err := os.ReadFile(filepath.Join(w.dist, "digests.txt"))
	if err != nil {
		t.Fatal(err)
	}

	for line := range strings.Lines(string(digests)) {
		name, digest, _ := strings.Cut(strings.TrimSpace(line), "@")
		w.published[strings.TrimPrefix(name, w.registry+"/")] = digest
	}

	return w
}

// serveRegistry runs a registry until the test is over, and returns its address.
func (w *world) serveRegistry() string {
	w.Helper()

	cmd := exec.CommandContext(w.Context(), w.Program, "registry")

	out, err := cmd.StdoutPipe()
	if err != nil {
		w.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}

	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		w.Fatal("the registry does not say where it is:", err)
	}

	return strings.TrimSpace(address)
}

func (w *world) startCluster() {
	w.Helper()

	cluster, err := embedded.Lease(w.Context())
	if err != nil {
		w.Fatal("starting a cluster:", err)
	}

	w.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			w.Error("stopping the cluster:", err)
		}
	})

	// Helm brings the definitions along, and takes those that are there for somebody else's.
	if err := cluster.Undefine(w.Context()); err != nil {
		w.Fatal(err)
	}

	w.Cluster = cluster
	if w.Config, err = cluster.Config(); err != nil {
		w.Fatal(err)
	}

	scheme, err := controllers.Scheme()
	if err != nil {
		w.Fatal(err)
	}

	w.Config.QPS, w.Config.Burst = 500, 500 // The looks must not wait for one another.
	if w.Client, err = client.NewWithWatch(w.Config, client.Options{Scheme: scheme}); err != nil {
		w.Fatal(err)
	}
}

// archived is the chart of another commit, and its program.
func (w *world) archived(commit string) (chart string, program []byte) {
	w.Helper()

	dir := w.TempDir()
	w.command(embedded.Root(), "sh", "-c", `git archive "$0" | tar -x -C "$1"`, commit, dir)
	w.command(dir, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-o", "built", "./cmd/ambit")

	program, err := os.ReadFile(filepath.Join(dir, "built"))
	if err != nil {
		w.Fatal(err)
	}

	return filepath.Join(dir, "charts", "ambit"), program
}

// installed looks for the published image in the Deployment that Helm upgraded.
func (w *world) installed() {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: embedded.Namespace, Name: "ambit"}, d); err != nil {
		w.Fatal(err)
	}

	applied := slices.ContainsFunc(d.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == "helm" && f.Operation == metav1.ManagedFieldsOperationApply
	})
	if w.helm == "helm4" && !applied {
		w.Errorf("Helm 4 did not write by server-side apply: %+v", d.ManagedFields)
	}

	want := w.registry + "/ambit:" + version + "@" + w.published["ambit"]
	if got := d.Spec.Template.Spec.Containers[0].Image; got != want {
		w.Errorf("Helm installed %s, want %s", got, want)
	}
}

// accepted has the API server look at everything else that installs Ambit.
func (w *world) accepted() {
	w.Helper()

	for _, profile := range []string{"namespaced", "delegated", "cluster"} {
		for _, suffix := range []string{"", "-beside-olm"} {
			w.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict",
				"-f", filepath.Join(w.dist, "install-"+profile+suffix+".yaml"))
		}
	}

	bundle := w.TempDir()
	w.command(bundle, "tar", "-xzf", filepath.Join(w.dist, "ambit-bundle-"+strings.TrimPrefix(version, "v")+".tgz"))
	// OLM puts it where it installs.
	w.command(bundle, "sed", "-i", "s/namespace: placeholder/namespace: "+embedded.Namespace+"/",
		"manifests/ambit.clusterserviceversion.yaml")
	w.kubectl("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-n", embedded.Namespace,
		"-f", filepath.Join(bundle, "manifests"))
}

func (w *world) runHelm(arguments ...string) string {
	w.Helper()

	home := w.TempDir() // What a user has set up for Helm must not matter here.
	arguments = append([]string{
		"env", "HELM_CONFIG_HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=" + w.Cluster.Kubeconfig,
		filepath.Join(embedded.Root(), "bin", "tools", w.helm),
	}, arguments...)

	return w.command(home, arguments[0], arguments[1:]...)
}

func (w *world) kubectl(arguments ...string) {
	w.Helper()

	if out, err := w.Cluster.Kubectl(w.Context(), arguments...); err != nil {
		w.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// command runs a program in a folder, and returns what it says.
func (w *world) command(dir, program string, arguments ...string) string {
	w.Helper()

	cmd := exec.CommandContext(w.Context(), program, arguments...)
	cmd.Dir = dir

	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, out)
	}

	return string(out)
}
