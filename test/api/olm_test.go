package api

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// olmClient returns a client of a cluster that has OLM's kinds.
func olmClient(t *testing.T) client.Client {
	t.Helper()

	cfg := testcluster.Config(t)
	testcluster.InstallCRDs(t, cfg)

	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	return c
}

func olmObject(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion("operators.coreos.com/" + version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)

	return u
}

// applySpec applies an object with a spec in JSON, as kubectl does, and reads into the object what it has become.
func applySpec(t *testing.T, c client.Client, object *unstructured.Unstructured, spec string, opts ...client.PatchOption) error {
	t.Helper()

	body := maps.Clone(object.Object)
	body["spec"] = json.RawMessage(spec)

	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}

	opts = append(opts, client.FieldOwner("test"), client.FieldValidation("Strict"))

	return c.Patch(t.Context(), object, client.RawPatch(types.ApplyPatchType, raw), opts...)
}

var groupVersions = []string{"v1", "v1alpha2", "v1alpha1"}

func TestOperatorGroupVersions(t *testing.T) {
	c := olmClient(t)
	namespace := testcluster.Namespace(t, testcluster.Config(t), "api-groups")

	const spec = `{"selector":{"cool.io/prod":"true"},"serviceAccountName":"writer","staticProvidedAPIs":true,` +
		`"targetNamespaces":["b","a"],"upgradeStrategy":"TechPreviewUnsafeFailForward"}`

	for _, written := range groupVersions {
		group := olmObject(written, "OperatorGroup", namespace, "as-"+written)
		if err := applySpec(t, c, group, spec); err != nil {
			t.Fatalf("writing a group as %s: %v", written, err)
		}

		// A condition may be all that there is to say, before the group was ever served.
		status := `{"status":{"conditions":[{"type":"MultipleOperatorGroup","status":"True","reason":"MultipleOperatorGroupsFound",` +
			`"message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}`
		if err := c.Status().Patch(t.Context(), group, client.RawPatch(types.MergePatchType, []byte(status)),
			client.FieldValidation("Strict")); err != nil {
			t.Errorf("writing a condition as %s: %v", written, err)
		}

		// Each version writes in turn; nothing that another wrote may be lost by it.
		for _, read := range groupVersions {
			group := olmObject(read, "OperatorGroup", namespace, "as-"+written)
			if err := c.Patch(t.Context(), group,
				client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"read":"as-`+read+`"}}}`))); err != nil {
				t.Fatalf("writing what was written as %s as %s: %v", written, read, err)
			}

			if got := asJSON(t, group.Object["spec"]); got != spec {
				t.Errorf("written as %s and read as %s\ngot  %s\nwant %s", written, read, got, spec)
			}

			conditions, _, _ := unstructured.NestedSlice(group.Object, "status", "conditions")
			if len(conditions) != 1 {
				t.Errorf("written as %s and read as %s, the group lost its condition: %v", written, read, group.Object["status"])
			}
		}
	}
}

func TestOperatorGroupSelectorIsKept(t *testing.T) {
	c := olmClient(t)

	for name, selector := range map[string]string{
		"labels":      `{"matchLabels":{"cool.io/prod":"true"}}`,
		"expressions": `{"matchExpressions":[{"key":"tier","operator":"In","values":["gold"]}]}`,
		"shorthand":   `{"cool.io/prod":"true"}`,
		"mixed":       `{"cool.io/prod":"true","matchLabels":{"tier":"gold"}}`,
		"empty":       `{}`,
	} {
		for _, version := range groupVersions {
			group := olmObject(version, "OperatorGroup", "default", name)
			if err := applySpec(t, c, group, `{"selector":`+selector+`}`, client.DryRunAll); err != nil {
				t.Errorf("%s as %s: %v", name, version, err)

				continue
			}

			got, _, _ := unstructured.NestedFieldNoCopy(group.Object, "spec", "selector")
			if asJSON(t, got) != selector {
				t.Errorf("%s as %s\ngot  %s\nwant %s", name, version, asJSON(t, got), selector)
			}
		}
	}
}

// The documents are those that OLM's handbook and its design of scoped installation print.
func TestOLMSamplesApply(t *testing.T) {
	for name, namespaces := range map[string][]string{
		"seed-002": {"scoped"},
		"seed-004": {"my-namespace", "own-namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			c := olmClient(t)

			for _, n := range namespaces {
				makeNamespace(t, c, n)
			}

			kubectl(t, "apply", "--server-side", "--dry-run=server", "-f", filepath.Join("testdata", name+".yaml"))
		})
	}
}

// makeNamespace makes a namespace with a name that others have had, too: what an earlier run deleted may still be on its way out.
func makeNamespace(t *testing.T, c client.Client, name string) {
	t.Helper()

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}

	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, testbed.Patience, true,
		func(ctx context.Context) (bool, error) {
			err := c.Create(ctx, namespace.DeepCopy())
			if !apierrors.IsAlreadyExists(err) {
				return err == nil, err
			}

			if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
				return false, client.IgnoreNotFound(err)
			}

			return namespace.DeletionTimestamp == nil, nil
		})
	if err != nil {
		t.Fatalf("making the namespace %s: %v", name, err)
	}

	t.Cleanup(func() { _ = c.Delete(context.Background(), namespace) })
}

func TestUntidyCSVsApply(t *testing.T) {
	olmClient(t)
	kubectl(t, "apply", "--server-side", "--validate=ignore", "--dry-run=server", "-n", "default",
		"-f", filepath.Join("testdata", "untidy-csvs.yaml"))
}

// TestBundlesApply applies the ClusterServiceVersions of real bundles, which are not part of this repository.
func TestBundlesApply(t *testing.T) {
	dir := cmp.Or(os.Getenv("AMBIT_BUNDLES"), filepath.Join(testcluster.Root(), "..", "shared", "bundles"))

	found, err := filepath.Glob(filepath.Join(dir, "*", "manifests", "csv.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	if len(found) == 0 {
		t.Skipf("NOT TESTED: there are no bundles in %s; set AMBIT_BUNDLES to a folder of <name>/manifests/csv.yaml", dir)
	}

	olmClient(t)

	for _, file := range found {
		kubectl(t, "apply", "--server-side", "--validate=ignore", "--dry-run=server", "-n", "default", "-f", file)
	}
}

func TestStatusOfSubscriptionsAndPlansCanBeginAnywhere(t *testing.T) {
	c := olmClient(t)
	namespace := testcluster.Namespace(t, testcluster.Config(t), "api-olm")

	for kind, tc := range map[string]struct{ spec, status string }{
		"Subscription": {
			spec:   `{"name":"etcd","source":"catalog"}`,
			status: `{"installPlanRef":{"name":"install-4plp8","namespace":"scoped"}}`,
		},
		"InstallPlan": {
			spec:   `{"approval":"Automatic","approved":true,"clusterServiceVersionNames":["etcdoperator.v0.9.4"]}`,
			status: `{"phase":"Failed","conditions":[{"type":"Installed","status":"False","reason":"InstallComponentFailed"}]}`,
		},
	} {
		object := olmObject("v1alpha1", kind, namespace, "sample")
		if err := applySpec(t, c, object, tc.spec); err != nil {
			t.Errorf("%s: %v", kind, err)

			continue
		}

		if err := c.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"status":`+tc.status+`}`)),
			client.FieldValidation("Strict")); err != nil {
			t.Errorf("the status of %s: %v", kind, err)
		}
	}
}

// kubectl runs kubectl as a cluster administrator, and fails the test with what it said.
func kubectl(t *testing.T, arguments ...string) {
	t.Helper()

	arguments = slices.Concat([]string{"--kubeconfig", testcluster.Kubeconfig(t)}, arguments)

	out, err := exec.CommandContext(t.Context(), testcluster.Kubectl(), arguments...).CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %s: %v\n%s", strings.Join(arguments[2:], " "), err, out)
	}
}
