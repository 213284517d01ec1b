// Package release_test installs what make release writes as a user would: from a registry, with Helm and with kubectl, on a real
// API server. Nodes are played there, so the program that is in the image runs as a process, as much shut in as this machine
// allows.
package release_test

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/embedded"
	"github.com/ambit-k8s/ambit/internal/testbed"
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
}

func TestReleaseIsInstalledAndUpgradedTo(t *testing.T) {
	w := released(t)

	image := w.pull("ambit", version)
	if len(image.files) != 1 || image.files["ambit"] == nil {
		t.Fatalf("the image holds %d files, want the program alone", len(image.files))
	}

	if image.digest != w.published["ambit"] {
		t.Errorf("the registry has %s, published was %s", image.digest, w.published["ambit"])
	}

	w.startCluster()

	old := w.archived(before)
	w.helm("install", "ambit", old, "--namespace", embedded.Namespace, "--create-namespace", "--set", "profile=cluster")

	root := w.rootOf(image)
	manager := w.run(root)
	ops, a, b, subject := w.scopes()

	looks, missing := w.watchRights(ops, a, b)

	// What the documentation says about an upgrade.
	w.kubectl("apply", "--server-side", "--force-conflicts", "-f", filepath.Join(w.dist, "crds.yaml"),
		"-f", filepath.Join(w.dist, "crds-olm.yaml"))
	w.helm("upgrade", "ambit", "oci://"+w.registry+"/charts/ambit", "--version", strings.TrimPrefix(version, "v"), "--plain-http",
		"--namespace", embedded.Namespace, "--reset-then-reuse-values")
	manager.stop()

	manager = w.run(root)

	// It works: a new member is served, by the new one.
	w.Change(subject, func() { subject.Spec.NamespaceMembers = append(subject.Spec.NamespaceMembers, b) })
	w.May(ops, "op", b, "get secrets")

	if n, gaps := looks.Load(), missing(); n < 100 || gaps != "" {
		t.Errorf("in %d looks during the upgrade, somebody lost a right: %s", n, gaps)
	} else {
		t.Logf("%d looks, no right missing", n)
	}

	w.installed()
	w.accepted()
	w.listsAsTheTestOfTheChart(root)

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

	cluster, err := embedded.Start(w.Context())
	if err != nil {
		w.Fatal("starting a cluster:", err)
	}

	w.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			w.Error("stopping the cluster:", err)
		}
	})

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

// archived is the chart of another commit.
func (w *world) archived(commit string) string {
	w.Helper()

	dir := w.TempDir()
	w.command(embedded.Root(), "sh", "-c", `git archive "$0" charts/ambit | tar -x -C "$1"`, commit, dir)

	return filepath.Join(dir, "charts", "ambit")
}

// scopes makes one of everything that gives rights: a NamespaceScope from ops to a, and a template that an instance binds in b.
func (w *world) scopes() (string, string, string, *operatorv1.NamespaceScope) {
	w.Helper()

	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Operator(ops, "op", "get secrets")
	scope := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{a}})

	w.Make(testbed.Account(ops, "templated"), &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "t"},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
			GenerateName: "reader-", Rules: []rbacv1.PolicyRule{testbed.Rule("get configmaps")},
			Subjects: []operatorsv1alpha1.Subject{{Kind: "ServiceAccount", Namespace: ops, Name: "templated"}},
		}}},
	}, &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "i"},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: "t", Namespaces: []string{b}},
	})

	w.May(ops, "op", a, "get secrets")

	return ops, a, b, scope
}

// watchRights asks without a break whether everybody still has what they had, until the test is over.
func (w *world) watchRights(ops, a, b string) (*atomic.Int64, func() string) {
	w.Helper()

	var (
		looks atomic.Int64
		gap   atomic.Value
	)

	rights := map[string][2]string{"op": {a, "get secrets"}, "templated": {b, "get configmaps"}}
	for account, right := range maps.All(rights) {
		w.May(ops, account, right[0], right[1])
	}

	go func() {
		for w.Context().Err() == nil {
			for account, right := range rights {
				allowed, err := w.Review(ops, account, right[0], right[1])
				if err == nil && !allowed {
					gap.CompareAndSwap(nil, fmt.Sprintf("%s may not %s in %s at %s", account, right[1], right[0], time.Now()))
				}

				if err == nil {
					looks.Add(1)
				}
			}
		}
	}()

	return &looks, func() string {
		text, _ := gap.Load().(string)

		return text
	}
}

// installed looks for the published image in the Deployment that Helm upgraded.
func (w *world) installed() {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: embedded.Namespace, Name: "ambit"}, d); err != nil {
		w.Fatal(err)
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

func (w *world) helm(arguments ...string) {
	w.Helper()

	home := w.TempDir() // What a user has set up for Helm must not matter here.
	arguments = append([]string{
		"env", "HELM_CONFIG_HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_DATA_HOME=" + home, "KUBECONFIG=" + w.Cluster.Kubeconfig,
		filepath.Join(embedded.Root(), "bin", "tools", "helm"),
	}, arguments...)
	w.command(home, arguments[0], arguments[1:]...)
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
