// Package guard_test describes who may write which NamespaceScope where the policies of config/guard are in force, on a
// real API server, as real users under real RBAC.
package guard_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// The policies, by the names that the API server quotes in a refusal.
const (
	ownIdentity      = "ambit-own-identity"
	delegateIdentity = "ambit-delegate-identity"
	finalizerGuard   = "ambit-finalizer"
)

// The scopes of both groups.
var (
	scopes       = operatorv1.GroupVersion.WithResource("namespacescopes")
	legacyScopes = namespacescopev1alpha1.GroupVersion.WithResource("namespacescopes")
)

func resourceOf(group string) schema.GroupVersionResource {
	if group == legacyScopes.Group {
		return legacyScopes
	}

	return scopes
}

// house is a namespace with scopes, on a cluster where the policies are in force. Its own rights are those of
// system:masters.
type house struct {
	*testing.T

	config    *rest.Config
	clients   kubernetes.Interface
	namespace string
	// elsewhere is another namespace, where a test needs one.
	elsewhere string
	// furnished are the resource versions of the scopes that furnish made, by group and name.
	furnished map[string]string
}

var install sync.Once

// begin installs the cluster profile at the first call, and makes a house.
func begin(t *testing.T) *house {
	t.Helper()

	h := &house{T: t, config: testcluster.Config(t), furnished: map[string]string{}}
	install.Do(h.install)

	clients, err := kubernetes.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}

	h.clients = clients
	h.namespace = testcluster.Namespace(t, h.config, "guard")
	for _, resource := range []schema.GroupVersionResource{scopes, legacyScopes} {
		h.untilInForce(resource, ownIdentity, delegateIdentity)
		h.untilHeld(resource)
	}

	return h
}

// install applies config/cluster in one go, which holds the CustomResourceDefinition as well as the policies about it.
func (h *house) install() {
	h.Helper()

	cluster := &embedded.Cluster{Kubeconfig: testcluster.Kubeconfig(h)}
	h.eventually("installing the cluster profile", func(ctx context.Context) error {
		// Another package may be installing the same at this moment.
		return embedded.Install(ctx, cluster, "cluster")
	})
	testcluster.InstallCRDs(h, h.config)
}

// untilInForce waits until both policies refuse somebody who may do no more than write scopes.
func (h *house) untilInForce(resource schema.GroupVersionResource, own, delegate string) {
	h.Helper()

	nobody := h.welcome(h.user("nobody-"+resource.Group, h.here(rule(resource.Group, resource.Resource, "*"))))

	// Each group takes the field that it has.
	for policy, spec := range map[string]map[string]any{own: {}, delegate: {account: writer, manualField: true}} {
		h.untilRefused(policy, nobody, resource, object(resource, "probe", spec))
	}
}

// untilHeld waits until the policy about the finalizer refuses somebody who may do no more than write scopes.
func (h *house) untilHeld(resource schema.GroupVersionResource) {
	h.Helper()

	const name = "held"

	scope := object(resource, name, map[string]any{})
	if _, err := h.as(nil, resource).Create(h.Context(), scope, metav1.CreateOptions{}); err != nil {
		h.Fatal(err)
	}

	defer h.remove(resource, name)

	h.hold(resource, name)

	nobody := h.welcome(h.user("nobody-"+resource.Group, h.here(rule(resource.Group, resource.Resource, "*"))))

	h.eventually("waiting for "+finalizerGuard, func(ctx context.Context) error {
		_, err := h.as(nobody, resource).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{DryRun: dryRun})

		return refusal(err, finalizerGuard)
	})
}

// untilRefused waits until a policy refuses to let somebody create an object that no other policy refuses. Each policy is in
// force at a moment of its own.
func (h *house) untilRefused(
	policy string, who *somebody, resource schema.GroupVersionResource, probe *unstructured.Unstructured,
) {
	h.Helper()
	h.eventually("waiting for "+policy, func(ctx context.Context) error {
		_, err := h.as(who, resource).Create(ctx, probe, metav1.CreateOptions{DryRun: dryRun})

		return refusal(err, policy)
	})
}

// refusal complains of anything but a refusal by a policy, with these words.
func refusal(err error, policy string, words ...string) error {
	if err == nil {
		return errNotYet
	}

	if refusedBy(err) != policy {
		return fmt.Errorf("refused by something else: %w", err)
	}

	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			return fmt.Errorf("nothing of %q: %w", word, err)
		}
	}

	return nil
}

// errNotYet is what a wait waits to go away.
var errNotYet = errors.New("not yet")

func (h *house) eventually(what string, check func(context.Context) error) {
	h.Helper()

	if err := testbed.Until(testbed.Patience, func() error { return check(h.Context()) }); err != nil {
		h.Fatalf("%s: %v", what, err)
	}
}

// as returns a client for the resources in the house's namespace, of somebody, or of the test itself.
func (h *house) as(who *somebody, resource schema.GroupVersionResource) dynamic.ResourceInterface {
	h.Helper()

	config := rest.CopyConfig(h.config)
	if who != nil {
		config.Impersonate = rest.ImpersonationConfig{UserName: who.user, Groups: who.groups}
	}

	// The API server warns about the finalizer's name; the name is IBM's.
	config.WarningHandler = rest.NoWarnings{}

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		h.Fatal(err)
	}

	return client.Resource(resource).Namespace(h.namespace)
}

// request makes requests of somebody, or of the test itself.
func (h *house) request(who *somebody, resource schema.GroupVersionResource, dryRun []string) *request {
	h.Helper()

	return &request{Context: h.Context(), ResourceInterface: h.as(who, resource), resource: resource, dryRun: dryRun}
}

// account is the field that names the delegate.
const account = "serviceAccountName"

var dryRun = []string{metav1.DryRunAll}

// object makes a scope; without a spec if spec is nil.
func object(resource schema.GroupVersionResource, name string, spec map[string]any) *unstructured.Unstructured {
	scope := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	scope.SetGroupVersionKind(resource.GroupVersion().WithKind("NamespaceScope"))

	if spec != nil {
		scope.Object["spec"] = spec
	}

	return scope
}

// hold puts Ambit's finalizer on a scope, as Ambit does, where there is no manager to do so, and returns the resource version.
func (h *house) hold(resource schema.GroupVersionResource, name string) string {
	h.Helper()

	held, err := h.as(nil, resource).Patch(h.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":["finalizer.nss.operator.ibm.com"]}}`), metav1.PatchOptions{})
	if err != nil {
		h.Fatalf("holding the scope %s of %s: %v", name, resource.Group, err)
	}

	return held.GetResourceVersion()
}

// remove deletes a scope, also where a manager holds it.
func (h *house) remove(resource schema.GroupVersionResource, name string) {
	h.Helper()

	client := h.as(nil, resource)
	// The test's own context is cancelled by now. Deleted first, so that a manager does not put its finalizer back.
	ctx := context.Background()

	if err := client.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		h.Errorf("deleting the scope %s: %v", name, err)
	}

	_, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		h.Errorf("releasing the scope %s: %v", name, err)
	}
}

// refusedBy names the policy that refused a request; "" for anything else.
func refusedBy(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}

	_, quoted, _ := strings.Cut(err.Error(), "ValidatingAdmissionPolicy '")
	policy, _, _ := strings.Cut(quoted, "'")

	return policy
}
