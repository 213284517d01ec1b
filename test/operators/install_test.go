package operators_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// module is a line of the file modules.
type module struct{ path, version string }

// moduleOf reads which module an operator is built from.
func moduleOf(name string) (module, error) {
	list, err := os.ReadFile(filepath.Join(embedded.Root(), "test", "operators", "modules"))
	if err != nil {
		return module{}, fmt.Errorf("reading the list of modules: %w", err)
	}

	for line := range strings.Lines(string(list)) {
		if words := strings.Fields(line); len(words) == 4 && words[0] == name {
			return module{path: words[1], version: words[2]}, nil
		}
	}

	return module{}, fmt.Errorf("test/operators/modules has no %s", name)
}

// folder is where the module's files are.
func (m module) folder(t *testing.T) string {
	t.Helper()

	download := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", m.path+"@"+m.version)
	download.Dir = t.TempDir()
	download.Env = append(os.Environ(), "GOTOOLCHAIN=local")

	out, err := download.Output()
	if err != nil {
		t.Fatalf("looking for the files of %s: %v\n%s", m.path, err, out)
	}

	var found struct {
		Dir string `json:"Dir"`
	}

	if err := json.Unmarshal(out, &found); err != nil || found.Dir == "" {
		t.Fatalf("looking for the files of %s: %v\n%s", m.path, err, out)
	}

	return found.Dir
}

// world is an operator that runs in a namespace of its own.
type world struct {
	*testbed.World

	op *operator
	// byAuthorization says that Ambit uses what owners of namespaces grant and nothing else.
	byAuthorization bool
	ops             string
	scope           *operatorv1.NamespaceScope
	kubelet         *embedded.Kubelet
}

// of is the same world for a subtest.
func (w *world) of(t *testing.T) *world {
	t.Helper()

	out := *w
	out.World = &testbed.World{T: t, Bed: w.Bed}

	return &out
}

// install does what the documentation tells a user to: what the operator's authors ship goes through ambit narrow, and in the
// profile delegated the owner of the operator's namespace lets Ambit work there.
func install(t *testing.T, op *operator, profile string, arguments ...string) *world {
	t.Helper()

	w := &world{World: beds.Begin(t, profile, arguments...), op: op, byAuthorization: profile == "delegated", ops: op.namespace}
	if w.ops == "" {
		w.ops = w.Namespace(op.name)
	} else {
		w.MakeNamespace(w.ops)
	}

	program, folder := w.built()

	definitions, rest := sort(w.documents(op.manifests(w, folder)))
	w.apply(definitions...)
	w.established(definitions)

	narrowed := w.narrow(rest)
	image := w.adjust(narrowed)

	w.runs(&embedded.KubeletOptions{
		Programs: map[string]string{image: program}, Arguments: op.arguments, Environment: op.environment,
	})
	w.Cleanup(func() { _ = w.Client.Delete(context.WithoutCancel(w.Context()), w.scope) })

	w.apply(narrowed...)

	if w.byAuthorization {
		w.ambit("authorize", w.ops, "--to", w.ops)
	}

	w.listed(w.ops)
	w.restartedSince(0)
	w.ready()

	return w
}

// built is the program of the operator, and the folder of its module.
func (w *world) built() (program, folder string) {
	w.Helper()

	m, err := moduleOf(w.op.name)
	w.must(err)

	program = embedded.Program("operators/" + w.op.name + "@" + m.version)
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		w.Fatalf("%s is missing; run `make test-operators`", program)
	}

	return program, m.folder(w.T)
}

// runs has a kubelet run the operator until the test ends.
func (w *world) runs(o *embedded.KubeletOptions) {
	w.Helper()

	o.Dir, o.Namespace, o.Restart = w.TempDir(), w.ops, true

	var err error

	w.kubelet, err = embedded.StartKubelet(w.Config, o)
	w.must(err)
	w.Cleanup(w.stops)
}

func (w *world) stops() {
	if w.Failed() {
		for _, run := range w.kubelet.Runs() {
			w.Logf("pod %s ran from %s to %s", run.Pod, run.Began.Format("15:04:05.0"), run.Ended.Format("15:04:05.0"))
		}

		w.Logf("the operator's log ends with\n%s", w.log(8000))
	}

	if err := w.kubelet.Stop(); err != nil {
		w.Error(err)
	}
}

// ready waits until the operator works, of which its log has to tell.
func (w *world) ready() {
	w.Helper()
	w.Within(patience, "the operator says "+w.op.ready, func() error {
		if log := w.log(math.MaxInt); !strings.Contains(log, w.op.ready) {
			return errors.New("it does not")
		}

		return nil
	})
}

// log is the end of what the program of the last pod said.
func (w *world) log(length int) string {
	runs := w.kubelet.Runs()
	if len(runs) == 0 {
		return "it never ran"
	}

	log, err := os.ReadFile(w.kubelet.Log(runs[len(runs)-1].Pod))
	if err != nil {
		return err.Error()
	}

	return string(log[max(0, len(log)-length):])
}

func (w *world) must(err error) {
	w.Helper()

	if err != nil {
		w.Fatal(err)
	}
}

// ambit runs the command line as cluster-admin, and returns what it printed to its output.
func (w *world) ambit(arguments ...string) string {
	w.Helper()

	var out, complaints bytes.Buffer

	code := cli.Run(w.Context(), append(arguments, "--kubeconfig", w.Cluster.Kubeconfig), &out, &complaints)
	if code != 0 {
		w.Fatalf("ambit %s: exit code %d\n%s", strings.Join(arguments, " "), code, complaints.String())
	}

	return out.String()
}

// narrow has the rights in the whole cluster turned into those of a scope.
func (w *world) narrow(vendor []*unstructured.Unstructured) []*unstructured.Unstructured {
	w.Helper()

	file := filepath.Join(w.TempDir(), "vendor.yaml")
	w.must(os.WriteFile(file, marshal(w, vendor), 0o600))

	return w.documents([]byte(w.ambit("narrow", "-f", file, "--members", w.ops, "-q")))
}

// adjust has the scope use what owners grant and nothing else, if that is wanted. It leaves out what would be left in the whole
// cluster, which most operators work without, and returns the image of the operator.
func (w *world) adjust(narrowed []*unstructured.Unstructured) (image string) {
	w.Helper()

	for _, o := range narrowed {
		switch {
		case o.GetKind() == "NamespaceScope":
			w.must(unstructured.SetNestedField(o.Object, w.byAuthorization, "spec", "manualManagement"))
			w.scope = &operatorv1.NamespaceScope{}
			w.scope.SetNamespace(o.GetNamespace())
			w.scope.SetName(o.GetName())
		case o.GetName() == w.op.workload && (o.GetKind() == "Deployment" || o.GetKind() == "StatefulSet"):
			containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			w.must(err)

			if len(containers) != 1 {
				w.Fatalf("%s has %d containers", o.GetName(), len(containers))
			}

			container, _ := containers[0].(map[string]any)
			image, _, err = unstructured.NestedString(container, "image")
			w.must(err)
		case o.GetKind() == "ClusterRoleBinding" && !w.op.clusterWide:
			o.SetKind("") // apply leaves it out.
		}
	}

	if w.scope == nil || image == "" {
		w.Fatalf("narrowed, there is the scope %v and the image %q", w.scope, image)
	}

	return image
}

// documents reads manifests.
func (w *world) documents(text []byte) []*unstructured.Unstructured {
	w.Helper()

	var out []*unstructured.Unstructured

	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			w.Fatalf("reading manifests: %v", err)
		}

		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// sort splits CustomResourceDefinitions from the rest. The namespace is made by the test.
func sort(documents []*unstructured.Unstructured) (definitions, rest []*unstructured.Unstructured) {
	for _, o := range documents {
		switch o.GetKind() {
		case "CustomResourceDefinition":
			definitions = append(definitions, o)
		case "Namespace":
		default:
			rest = append(rest, o)
		}
	}

	return definitions, rest
}

func marshal(w *world, documents []*unstructured.Unstructured) []byte {
	w.Helper()

	var out bytes.Buffer

	for _, o := range documents {
		if o.GetKind() == "" {
			continue
		}

		text, err := json.Marshal(o.Object)
		w.must(err)
		fmt.Fprintf(&out, "---\n%s\n", text)
	}

	return out.Bytes()
}

// apply applies manifests as a user would.
func (w *world) apply(documents ...*unstructured.Unstructured) {
	w.Helper()

	file := filepath.Join(w.TempDir(), "apply.yaml")
	w.must(os.WriteFile(file, marshal(w, documents), 0o600))

	_, err := w.Cluster.Kubectl(w.Context(), "apply", "--server-side", "--force-conflicts", "-f", file)
	w.must(err)
}

// established waits until the API server serves what was defined.
func (w *world) established(definitions []*unstructured.Unstructured) {
	w.Helper()

	for _, d := range definitions {
		w.Eventually(d.GetName()+" is served", func() error {
			if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				return err
			}

			conditions, _, err := unstructured.NestedSlice(d.Object, "status", "conditions")
			for _, c := range conditions {
				if c, ok := c.(map[string]any); ok && c["type"] == string(apiextensionsv1.Established) && c["status"] == "True" {
					return nil
				}
			}

			return errors.Join(errors.New("it is not"), err)
		})
	}
}

// kustomize puts what a module ships into the operator's namespace.
func (w *world) kustomize(resources ...string) []byte {
	w.Helper()

	dir := w.TempDir()

	from, err := filepath.EvalSymlinks(dir)
	w.must(err)

	for i := range resources {
		resources[i], err = filepath.Rel(from, resources[i])
		w.must(err)
	}

	text := "namespace: " + w.ops + "\nresources: [" + strings.Join(resources, ", ") + "]\n"
	w.must(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))

	return w.tool("kustomize", "build", "--load-restrictor=LoadRestrictionsNone", dir)
}

// tool runs one of the tools in bin.
func (w *world) tool(name string, arguments ...string) []byte {
	w.Helper()

	var complaints bytes.Buffer

	command := exec.CommandContext(w.Context(), embedded.Program("tools/"+name), arguments...)
	command.Stderr = &complaints

	out, err := command.Output()
	if err != nil {
		w.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, complaints.String())
	}

	return out
}
