package slow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestMemberWhoseWebhookHangsHoldsUpNoOther: an admission webhook is asked about what is written in one member, as a tenant's own
// may be where an administrator has it so, and never answers. Members beside it come and go as if it were not there, from the
// first write on, and it is served itself once nobody asks the webhook any more.
func TestMemberWhoseWebhookHangsHoldsUpNoOther(t *testing.T) {
	w := beds.Begin(t, "cluster")
	ops, member, slow, joins := w.Namespace("home"), w.Namespace("member"), w.Namespace("slow"), w.Namespace("joins")
	w.Operator(ops, "op", "get secrets", "list pods")

	named := func(names ...string) operatorv1.NamespaceScopeSpec {
		return operatorv1.NamespaceScopeSpec{NamespaceMembers: names}
	}
	nss := w.Scope(ops, named(member))
	w.Reports(nss, yes, "Reconciled")

	webhook, asked := hang(w, slow)
	before := asked.Load()

	edit := func(names ...string) func() {
		return func() { w.Change(nss, func() { nss.Spec = named(names...) }) }
	}

	servedBeside(w, edit(member, slow, joins), func() bool { return w.Allowed(ops, "op", joins, "get secrets") })
	servedBeside(w, edit(member, slow), func() bool { return !w.Allowed(ops, "op", joins, "get secrets") })
	servedBeside(w, edit(member, slow, joins), func() bool {
		cm := &corev1.ConfigMap{}
		err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: ops, Name: "namespace-scope"}, cm)

		return err == nil && slices.Contains(strings.Split(cm.Data["namespaces"], ","), joins) &&
			w.Allowed(ops, "op", joins, "list pods")
	})

	if asked.Load() == before {
		t.Fatal("the webhook was not asked about anything of Ambit's")
	}

	w.Reports(nss, no, "MembersFailed", "1 of 4 members")

	if f := nss.Status.FailedMembers; len(f) != 1 || f[0].Namespace != slow {
		t.Errorf("failed members are %+v, want %s alone", f, slow)
	}

	w.Remove(webhook)
	w.Within(3*time.Minute, "the member is served once nobody asks the webhook", func() error {
		if !w.Allowed(ops, "op", slow, "get secrets") {
			return errMissing
		}

		return nil
	})
}

// TestDryRunsThatHangHoldUpNoOther: in a member that grants less than what its scope projects, everything is tried by a dry run,
// and the webhook there never answers. It is one that mutates: the API server asks others only about what RBAC lets through. What
// is taken back in another member goes as if that were not there.
func TestDryRunsThatHangHoldUpNoOther(t *testing.T) {
	const bindings = 12

	w := beds.Begin(t, "delegated")
	ops, member, slow := w.Namespace("home"), w.Namespace("member"), w.Namespace("slow")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets", "bind clusterroles"}, member)
	w.Grant(slow, "in-member", ops, "delegate", testbed.InMember()...)

	source := func(i int) *rbacv1.RoleBinding {
		b := testbed.Bind(ops, "ClusterRole", "view", ops, "op")
		b.Name = fmt.Sprintf("view-%02d", i)

		return b
	}

	for i := range bindings {
		w.Make(source(i))
	}

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", member))
	w.Reports(nss, yes, "Reconciled")

	url, asked := w.Silent()
	webhook := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: slow},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "hangs.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: slow}},
			AdmissionReviewVersions: []string{"v1"}, FailurePolicy: new(admissionv1.Fail),
			SideEffects: new(admissionv1.SideEffectClassNone), TimeoutSeconds: new(int32(hangTime / time.Second)),
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.OperationAll},
				Rule: admissionv1.Rule{
					APIGroups: []string{rbacv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"rolebindings"},
				},
			}},
		}},
	}

	w.Make(webhook)
	w.Eventually("the webhook is asked about what an administrator writes", func() error {
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()

		err := w.Client.Create(ctx, testbed.Bind(slow, "Role", "probe", ops, "op"), client.DryRunAll)
		if err == nil || asked.Load() == 0 {
			return errMissing
		}

		return nil
	})

	before := asked.Load()

	w.Change(nss, func() { nss.Spec = testbed.DelegatedBy("delegate", member, slow) })
	w.Eventually("the webhook is asked", func() error {
		if asked.Load() == before {
			return errMissing
		}

		return nil
	})

	for i := range 4 {
		copied := func() bool {
			list := &rbacv1.RoleBindingList{}
			if err := w.Client.List(t.Context(), list, client.InNamespace(member)); err != nil {
				t.Fatal(err)
			}

			return slices.ContainsFunc(list.Items, func(b rbacv1.RoleBinding) bool {
				return strings.HasSuffix(b.Annotations["ambit.dev/source"], "/"+source(i).Name)
			})
		}

		servedBeside(w, func() { w.Remove(source(i)) }, func() bool { return !copied() })
	}

	w.Remove(webhook)
}

// TestOperatorNamespacesWhoseWebhookHangsHoldUpNoOther: an admission webhook that never answers is asked about the watch lists of
// more operator namespaces than are reconciled at once. Other operator namespaces are served as if it were not there, and what is
// revoked in one of these is revoked.
func TestOperatorNamespacesWhoseWebhookHangsHoldUpNoOther(t *testing.T) {
	const many = 20

	w := beds.Alone(t, "cluster")
	home, member, joins := w.Namespace("home"), w.Namespace("member"), w.Namespace("joins")

	hanging := make([]string, many)
	scopes := make([]*operatorv1.NamespaceScope, many)
	labels := map[string]string{"hangs": member}

	for i := range many {
		hanging[i] = w.Namespace("hanging", "hangs="+member)
		w.Operator(hanging[i], "op", "get secrets")
		scopes[i] = w.Scope(hanging[i], testbed.Members(member))
	}

	w.Operator(home, "op", "get secrets")
	others := w.Scope(home, testbed.Members(member))
	w.Reports(others, yes, "Reconciled")

	for _, nss := range scopes {
		w.Reports(nss, yes, "Reconciled")
	}

	webhook, asked := hangs(w, labels,
		admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hanging[0], Name: "probe"}})

	everyWorkerHangs(w, asked, func() {
		for _, nss := range scopes {
			w.Change(nss, func() { nss.Spec = testbed.Members(member, joins) })
		}
	})

	isServed(w, others, member, joins)

	w.May(hanging[0], "op", member, "get secrets")
	w.Remove(testbed.Bind(hanging[0], "Role", "op-role", hanging[0], "op"))
	w.MayNot(hanging[0], "op", member, "get secrets")

	w.Reports(scopes[1], no, "WatchListFailed")
	w.Remove(webhook)
	w.Within(3*time.Minute, "the list is written once nobody asks the webhook", func() error {
		cm := &corev1.ConfigMap{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: hanging[1], Name: "namespace-scope"}, cm); err != nil {
			return err
		}

		if !slices.Contains(strings.Split(cm.Data["namespaces"], ","), joins) {
			return errMissing
		}

		return nil
	})
}

// everyWorkerHangs does what leads to more reconciles than there are at once, and waits until a webhook that never answers was
// asked by as many.
func everyWorkerHangs(w *testbed.World, asked *atomic.Int64, do func()) {
	w.Helper()

	before := asked.Load()

	do()

	w.Eventually("every worker hangs", func() error {
		if n := asked.Load() - before; n < 16 {
			return fmt.Errorf("the webhook was asked %d times", n)
		}

		return nil
	})
}

// isServed has a namespace join a scope and leave it, both of which has an effect soon.
func isServed(w *testbed.World, nss *operatorv1.NamespaceScope, member, joins string) {
	w.Helper()

	edit := func(names ...string) func() {
		return func() { w.Change(nss, func() { nss.Spec = testbed.Members(names...) }) }
	}

	servedBeside(w, edit(member, joins), func() bool { return w.Allowed(nss.Namespace, "op", joins, "get secrets") })
	servedBeside(w, edit(member), func() bool { return !w.Allowed(nss.Namespace, "op", joins, "get secrets") })
}

// hangTime is for how long the API server waits for a webhook, which may be told no more.
const hangTime = 30 * time.Second

// servedBeside fails the test unless another tenant is served in less time than one write hangs.
func servedBeside(w *testbed.World, ask func(), is func() bool) {
	w.Helper()

	if took := w.Serves(ask, is); took >= hangTime {
		w.Errorf("another tenant waited %v, and a write hangs for %v", took, hangTime)
	}
}

// hang has the API server ask a webhook that never answers about every write of RBAC in a namespace, and waits until it does. It
// returns how often that was asked.
func hang(w *testbed.World, namespace string) (client.Object, *atomic.Int64) {
	w.Helper()

	return hangs(w, map[string]string{corev1.LabelMetadataName: namespace},
		admissionv1.Rule{
			APIGroups: []string{rbacv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"roles", "rolebindings"},
		},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}})
}

// hangs does the same for other writes, in namespaces with labels; probe is a write of that kind.
func hangs(
	w *testbed.World, labels map[string]string, of admissionv1.Rule, probe client.Object,
) (client.Object, *atomic.Int64) {
	w.Helper()

	url, asked := w.Silent()
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: probe.GetNamespace()},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hangs.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: labels}, AdmissionReviewVersions: []string{"v1"},
			FailurePolicy: new(admissionv1.Fail), TimeoutSeconds: new(int32(hangTime / time.Second)),
			SideEffects: new(admissionv1.SideEffectClassNone),
			Rules:       []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll}, Rule: of}},
		}},
	}

	w.Make(webhook)

	w.Eventually("the webhook is asked", func() error {
		ctx, cancel := context.WithTimeout(w.Context(), 2*time.Second)
		defer cancel()

		written, _ := probe.DeepCopyObject().(client.Object) // A copy has the type of its original.
		_ = w.Client.Create(ctx, written, client.DryRunAll)

		if asked.Load() == 0 {
			return errMissing
		}

		return nil
	})

	return webhook, asked
}

// TestInstallsWhoseWebhookHangsHoldUpNoOther: an admission webhook that never answers is asked about the Deployments of more
// OperatorGroups than are reconciled at once. Other groups are served as if it were not there, and lose what is taken from them.
func TestInstallsWhoseWebhookHangsHoldUpNoOther(t *testing.T) {
	const many = 20

	w := beds.Alone(t, "cluster")
	own, leaves := w.Namespace("own"), w.Namespace("leaves")
	group, running := testbed.GroupOf(own, ""), testbed.ReadsSecrets(own)
	group.Spec.TargetNamespaces = []string{own, leaves}
	w.Make(group, running)
	w.Succeeded(running)

	hanging := make([]*olm.ClusterServiceVersion, many)
	labels := map[string]string{"hangs": own}

	for i := range hanging {
		namespace := w.Namespace("hanging", "hangs="+own)
		hanging[i] = testbed.ReadsSecrets(namespace)
		w.Make(testbed.GroupOf(namespace, ""), hanging[i])
	}

	for _, csv := range hanging {
		w.Succeeded(csv)
	}

	webhook, asked := hangsAboutDeployments(w, labels, hanging[0].Namespace)

	everyWorkerHangs(w, asked, func() { upgrade(w, hanging) })

	edit := func(names ...string) func() {
		return func() { w.Change(group, func() { group.Spec.TargetNamespaces = names }) }
	}

	servedBeside(w, edit(own), func() bool { return !w.Allowed(own, "op", leaves, "get secrets") })
	servedBeside(w, edit(own, leaves), func() bool { return w.Allowed(own, "op", leaves, "get secrets") })

	w.Remove(webhook)
	w.Within(3*time.Minute, "what hung is installed once nobody asks the webhook", func() error { return upgraded(w, hanging[1]) })
}

// TestScopesWhoseWebhookHangsHoldUpNoOther: an admission webhook that never answers is asked about the status of scopes, in more
// operator namespaces than are reconciled at once. Other operator namespaces are served as if it were not there.
func TestScopesWhoseWebhookHangsHoldUpNoOther(t *testing.T) {
	const many = 40

	w := beds.Alone(t, "cluster")
	home, member, joins := w.Namespace("home"), w.Namespace("member"), w.Namespace("joins")
	labels := map[string]string{"hangs": member}
	selects := operatorv1.NamespaceScopeSpec{
		NamespaceSelector: &operatorv1.NamespaceSelector{Raw: fmt.Appendf(nil, `{"matchLabels":{"of":%q}}`, member)},
	}

	var (
		hanging string
		scopes  []*operatorv1.NamespaceScope
	)

	for range many {
		hanging = w.Namespace("hanging", "hangs="+member)
		w.Operator(hanging, "op", "get secrets")
		scopes = append(scopes, w.Scope(hanging, selects))
	}

	w.Operator(home, "op", "get secrets")
	others := w.Scope(home, testbed.Members(member))

	for _, nss := range append(scopes, others) {
		w.Reports(nss, yes, "Reconciled")
	}

	webhook, asked := hangs(w, labels, admissionv1.Rule{
		APIGroups: []string{operatorv1.GroupVersion.Group}, APIVersions: []string{"*"},
		Resources: []string{"namespacescopes", "namespacescopes/status"},
	}, &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: hanging, Name: "probe"}})
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: joins}}

	everyWorkerHangs(w, asked, func() { w.Change(space, func() { space.Labels["of"] = member }) })

	isServed(w, others, member, joins)

	w.May(hanging, "op", joins, "get secrets")
	w.Change(space, func() { delete(space.Labels, "of") })
	w.MayNot(hanging, "op", joins, "get secrets")

	w.Remove(webhook)
}
