// Package authorize_test describes what a namespace's owner grants by "ambit authorize" and by the script that does the
// same with kubectl alone, on a real API server, as real users under real RBAC.
package authorize_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// tools are the two ways to authorization. They take the same flags, but for the dashes and the word for taking back.
var tools = []string{"command", "script"}

// house is a namespace with operators (ops) and one whose owner may let them in (ns).
type house struct {
	*testing.T

	client.Client

	config  *rest.Config
	ns, ops string
	// server is where the tools find the cluster; empty means where the tests do.
	server string
}

const (
	oldGroup = "namespacescope.ibm.com/"
)

func begin(t *testing.T) *house {
	t.Helper()

	h := &house{T: t, config: testcluster.Config(t)}
	h.config.WarningHandler = rest.NoWarnings{}
	testcluster.InstallCRDs(t, h.config)

	h.Client = h.as("")
	h.ns = testcluster.Namespace(t, h.config, "member")
	h.ops = testcluster.Namespace(t, h.config, "ops")

	return h
}

// withEachTool runs a test with each of the tools, in a house of its own.
func withEachTool(t *testing.T, test func(h *house, tool string)) {
	t.Helper()

	for _, tool := range tools {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			test(begin(t), tool)
		})
	}
}

// as returns a client that acts as somebody; "" is cluster-admin.
func (h *house) as(user string) client.Client {
	h.Helper()

	scheme, err := controllers.Scheme()
	if err != nil {
		h.Fatal(err)
	}

	config := rest.CopyConfig(h.config)
	config.Impersonate.UserName = user

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		h.Fatal(err)
	}

	return c
}

func (h *house) make(objects ...client.Object) {
	h.Helper()
	h.makeBy(h.Client, objects...)
}

func (h *house) makeBy(c client.Client, objects ...client.Object) {
	h.Helper()

	for _, obj := range objects {
		if err := c.Create(h.Context(), obj); err != nil {
			h.Fatalf("making %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// makeInMember makes objects in the namespace that authorizes, wherever they were meant to be.
func (h *house) makeInMember(c client.Client, objects ...client.Object) {
	h.Helper()

	for _, obj := range objects {
		obj.SetNamespace(h.ns)
	}

	h.makeBy(c, objects...)
}

// makeScope makes a scope in ops and deletes it after the test, also where a manager holds it.
func (h *house) makeScope(name string, spec operatorv1.NamespaceScopeSpec) *operatorv1.NamespaceScope {
	h.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: h.meta(name), Spec: spec}
	h.makeForTest(nss)

	return nss
}

// makeLegacy makes a scope of the legacy group.
func (h *house) makeLegacy(name string, spec namespacescopev1alpha1.NamespaceScopeSpec) *namespacescopev1alpha1.NamespaceScope {
	h.Helper()

	nss := &namespacescopev1alpha1.NamespaceScope{ObjectMeta: h.meta(name), Spec: spec}
	h.makeForTest(nss)

	return nss
}

func (h *house) makeForTest(nss client.Object) {
	h.Helper()
	h.make(nss)
	h.Cleanup(func() {
		// The test's own context is cancelled by now.
		ctx := context.Background()
		if err := client.IgnoreNotFound(h.Delete(ctx, nss)); err != nil {
			h.Error(err)
		}

		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := client.IgnoreNotFound(h.Patch(ctx, nss, patch)); err != nil {
			h.Error(err)
		}
	})
}

// members are those that a scope of ops names; its name follows on "namespacescope.ibm.com/" where it is of the legacy group.
func (h *house) members(name string) []string {
	h.Helper()

	var (
		usual operatorv1.NamespaceScope
		old   namespacescopev1alpha1.NamespaceScope
		nss   client.Object = &usual
	)

	name, isOlder := strings.CutPrefix(name, oldGroup)
	if isOlder {
		nss = &old
	}

	if err := h.Get(h.Context(), client.ObjectKey{Namespace: h.ops, Name: name}, nss); err != nil {
		h.Fatal(err)
	}

	return slices.Concat(usual.Spec.NamespaceMembers, old.Spec.NamespaceMembers)
}

// result is what a tool said, and how it ended.
type result struct {
	code     int
	out, err string
}

// run runs a tool as somebody, in the way of the command line: verb is authorize or revoke.
func (h *house) run(tool, user, verb string, args ...string) result {
	h.Helper()

	kubeconfig := h.kubeconfig(user)

	var out, errOut bytes.Buffer

	if tool == "command" {
		args = append([]string{verb, "--kubeconfig", kubeconfig}, args...)
		code := cli.Run(h.Context(), args, &out, &errOut)

		return result{code, out.String(), errOut.String()}
	}

	if verb == "revoke" {
		args = append(slices.Clone(args), "-delete")
	}

	c := exec.CommandContext(h.Context(), "/bin/sh", append([]string{script()}, args...)...)
	// A kubectl that ends within a second collects no garbage.
	c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECTL="+testcluster.Kubectl(), "GOGC=off")

	if os.Getenv("KUBECACHEDIR") == "" {
		c.Env = append(c.Env, "KUBECACHEDIR="+h.TempDir())
	}
	c.Stdout, c.Stderr = &out, &errOut

	err := c.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		h.Fatalf("running the script: %v", err)
	}

	return result{c.ProcessState.ExitCode(), out.String(), errOut.String()}
}

func script() string { return filepath.Join(testcluster.Root(), "scripts", "authorize-namespace.sh") }

// must runs a tool as cluster-admin and expects it to succeed.
func (h *house) must(tool, verb string, args ...string) string {
	h.Helper()

	r := h.run(tool, "", verb, args...)
	if r.code != 0 {
		h.Fatalf("%s %s %v: exit %d: %s%s", tool, verb, args, r.code, r.out, r.err)
	}

	return r.out
}

// kubeconfig writes one that acts as somebody, and whose current namespace is ns.
func (h *house) kubeconfig(user string) string {
	h.Helper()

	config, err := clientcmd.LoadFromFile(testcluster.Kubeconfig(h))
	if err != nil {
		h.Fatal(err)
	}

	for _, u := range config.AuthInfos {
		u.Impersonate = user
	}

	for _, c := range config.Clusters {
		if h.server != "" {
			c.Server, c.CertificateAuthorityData = h.server, nil
		}
	}

	for _, c := range config.Contexts {
		c.Namespace = h.ns
	}

	path := filepath.Join(h.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		h.Fatal(err)
	}

	return path
}

// may asks the API server whether a user may do something: "verb resource[/subresource][.group] [name]".
func (h *house) may(user, namespace, what string) bool {
	h.Helper()

	words := append(strings.Fields(what), "")
	resource, group, _ := strings.Cut(words[1], ".")
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: words[0], Resource: resource, Subresource: subresource, Group: group, Name: words[2],
		},
	}}
	h.make(review)

	return review.Status.Allowed
}

// settles waits until a user may do all of it, or none of it: the API server's authorizer hears of a grant, and of its end, a
// moment after the one who wrote it has the answer.
func (h *house) settles(user, namespace string, what []string, want bool) {
	h.Helper()

	for _, words := range what {
		err := testbed.Until(testbed.Patience, func() error {
			if h.may(user, namespace, words) != want {
				return errNotYet
			}

			return nil
		})
		if err != nil {
			h.Errorf("%s in namespace %s: may %s: got %t, want %t: %v", user, namespace, words, !want, want, err)
		}
	}
}

var errNotYet = errors.New("not yet")

// grants are the Roles and RoleBindings of ns, without those of a manager that may run beside.
func (h *house) grants() (roles []rbacv1.Role, bindings []rbacv1.RoleBinding) {
	h.Helper()

	return h.grantsIn(h.ns)
}

func (h *house) grantsIn(namespace string) (roles []rbacv1.Role, bindings []rbacv1.RoleBinding) {
	h.Helper()

	var (
		roleList    rbacv1.RoleList
		bindingList rbacv1.RoleBindingList
	)
	if err := errors.Join(h.List(h.Context(), &roleList, client.InNamespace(namespace)),
		h.List(h.Context(), &bindingList, client.InNamespace(namespace))); err != nil {
		h.Fatal(err)
	}

	for _, r := range roleList.Items {
		if grant.IsGrant(&r, h.ops) {
			roles = append(roles, r)
		}
	}

	for _, b := range bindingList.Items {
		if grant.IsGrant(&b, h.ops) {
			bindings = append(bindings, b)
		}
	}

	return roles, bindings
}

// untouched fails when something was granted or made.
func (h *house) untouched(reason string) {
	h.Helper()

	for _, namespace := range []string{h.ns, h.ops} {
		if roles, bindings := h.grantsIn(namespace); len(roles)+len(bindings) > 0 {
			h.Errorf("%s: it left %d roles and %d bindings in %s", reason, len(roles), len(bindings), namespace)
		}
	}

	err := h.Get(h.Context(), client.ObjectKey{Namespace: h.ops, Name: "ambit"}, &corev1.ServiceAccount{})
	if !apierrors.IsNotFound(err) {
		h.Errorf("%s: the service account is there (%v)", reason, err)
	}
}

func account(namespace, name string) string { return scope.AccountUser(namespace, name) }
