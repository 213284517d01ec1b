package faults_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// TestAPIServerRestarts kills the API server in the middle of a projection, and once more while a change is on its way.
func TestAPIServerRestarts(t *testing.T) {
	r := testcluster.Draws(t, 0)
	w := newWorld(t, "restart", 4, 20)
	w.scope(w.members...)
	time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
	w.restartAPIServer("KILL")
	w.settled()

	live := &rbacv1.Role{ObjectMeta: w.meta("operator-0-a")}
	w.edit(live, func() { live.Rules[0].Verbs = []string{"list"} })
	w.restartAPIServer("TERM")
	w.scope(w.members[:5]...)
	w.settled()
}

func (w *world) restartAPIServer(signal string) {
	w.t.Helper()

	if err := suite.cluster.Restart(w.t.Context(), "kube-apiserver", signal); err != nil {
		w.t.Fatal(err)
	}
}

// TestNamespacesGoWhileBeingServed deletes members, and makes one of them again, while Ambit projects into them.
func TestNamespacesGoWhileBeingServed(t *testing.T) {
	r := testcluster.Draws(t, 0)
	w := newWorld(t, "gone", 3, 8)
	w.scope(w.members...)
	time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)

	for _, m := range w.members[:4] {
		w.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m}})
	}

	again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.members[0]}}
	w.within(kubernetes, "the deleted namespace can be made again", func() bool {
		return suite.client.Create(t.Context(), again.DeepCopy()) == nil
	})
	w.within(kubernetes, "the other deleted namespaces are gone", func() bool {
		err := suite.client.Get(t.Context(), client.ObjectKey{Name: w.members[3]}, &corev1.Namespace{})

		return err != nil && client.IgnoreNotFound(err) == nil
	})
	w.settled()

	want := fmt.Sprintf("%s,%s,%s,%s,%s,%s", w.members[0], w.members[4], w.members[5], w.members[6], w.members[7], w.ops)
	w.eventually("the list has the members that exist", func() bool { return w.list() == want })
}

// TestConflictingWriters lets tenants write the same objects as Ambit, all the time.
func TestConflictingWriters(t *testing.T) {
	w := newWorld(t, "conflict", 2, 4)
	w.scope(w.members...)
	w.settled()

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()

	var writers sync.WaitGroup

	for i := range 3 {
		r := testcluster.Draws(t, 0)
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				w.disturb(ctx, i, n+r.IntN(10))
				time.Sleep(20 * time.Millisecond)
			}
		})
	}

	writers.Wait()
	w.settled()
}

// disturb writes to what Ambit writes to. Conflicts and objects that are gone are part of it.
func (w *world) disturb(ctx context.Context, writer, n int) {
	member := w.members[n%len(w.members)]

	switch writer {
	case 0:
		cm := &corev1.ConfigMap{}
		if suite.client.Get(ctx, client.ObjectKey{Namespace: w.ops, Name: "namespace-scope"}, cm) == nil {
			cm.Data["namespaces"], cm.Data["mine"] = "nothing", strconv.Itoa(n)
			_ = suite.client.Update(ctx, cm)
		}
	case 1:
		var bindings rbacv1.RoleBindingList
		if suite.client.List(ctx, &bindings, client.InNamespace(member)) == nil && len(bindings.Items) > 0 {
			_ = suite.client.Delete(ctx, &bindings.Items[n%len(bindings.Items)])
		}
	default:
		var roles rbacv1.RoleList
		if suite.client.List(ctx, &roles, client.InNamespace(member)) == nil && len(roles.Items) > 0 {
			role := &roles.Items[n%len(roles.Items)]
			role.Rules, role.Labels = nil, nil
			_ = suite.client.Update(ctx, role)
		}
	}
}

// TestRoleThatTheAPIServerRejects: what a policy refuses in one member keeps nobody else from being served.
func TestRoleThatTheAPIServerRejects(t *testing.T) {
	w := newWorld(t, "reject", 2, 4)
	refused := w.members[1]
	w.refuseRoles(refused, "operator-0-a-")
	w.scope(w.members...)

	w.eventually("the scope says what failed", func() bool {
		nss := w.status()
		ready := meta.FindStatusCondition(nss.Status.Conditions, report.ConditionReady)

		return ready != nil && ready.Reason == report.ReasonMembersFailed && len(nss.Status.FailedMembers) == 1 &&
			nss.Status.FailedMembers[0].Namespace == refused && len(nss.Status.ValidatedMembers) == len(w.members)
	})

	want := fmt.Sprintf("%s,%s,%s,%s", w.members[0], w.members[2], w.members[3], w.ops)
	if got := w.list(); got != want {
		t.Errorf("the list is %q, want %q: a member without all its permissions does not enter", got, want)
	}

	w.remove(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.ops}})
	// Nothing tells that a policy is gone; another change, or time, does.
	w.eventually("the policy is gone for the API server, and the scope heals", func() bool {
		nss := &operatorv1.NamespaceScope{ObjectMeta: w.meta(scopeName)}
		w.edit(nss, func() { metav1.SetMetaDataAnnotation(&nss.ObjectMeta, "nudge", time.Now().String()) })

		return len(w.status().Status.ValidatedMembers) == len(w.members)+1
	})
	w.settled()
}

func (w *world) status() *operatorv1.NamespaceScope {
	w.t.Helper()

	nss := &operatorv1.NamespaceScope{}
	if err := suite.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.ops, Name: scopeName}, nss); err != nil {
		w.t.Fatal(err)
	}

	return nss
}

// refuseRoles makes the API server refuse Roles in a namespace whose names begin with prefix.
func (w *world) refuseRoles(namespace, prefix string) {
	w.t.Helper()
	w.create(&admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.ops},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{rbacv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"roles"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("!object.metadata.name.startsWith(%q)", prefix), Message: "no such role here",
			}},
		},
	})
	w.create(&admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ops},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.ops, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
			}},
		},
	})

	w.eventually("the policy is in force", func() bool {
		err := suite.client.Create(w.t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: prefix + "probe"},
		}, client.DryRunAll)

		return err != nil
	})
}

// TestMemberIsTerminating holds a member in its deletion: it leaves the list, nothing is written to it, its permissions
// stay so that operators can finish, and it is served again once it is made anew.
func TestMemberIsTerminating(t *testing.T) {
	w := newWorld(t, "ending", 1, 2)
	w.scope(w.members...)
	w.settled()

	// An object with a finalizer keeps the namespace from ending.
	blocker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.members[0], Name: "blocker", Finalizers: []string{"ambit.dev/test"},
	}}
	w.create(blocker)
	w.remove(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.members[0]}})

	w.eventually("the list forgets it and the status names it", func() bool {
		failed := w.status().Status.FailedMembers

		return w.list() == w.members[1]+","+w.ops && len(failed) == 1 && failed[0].Reason == report.MemberTerminating
	})

	live := &rbacv1.Role{ObjectMeta: w.meta("operator-0-a")}
	w.edit(live, func() { live.Rules[0].Verbs = []string{"list"} })
	w.settled()

	w.edit(blocker, func() { blocker.Finalizers = nil })
	w.within(kubernetes, "the namespace can be made again", func() bool {
		return suite.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.members[0]}}) == nil
	})
	w.eventually("it is served again", func() bool {
		return w.list() == w.members[0]+","+w.members[1]+","+w.ops && len(w.status().Status.FailedMembers) == 0
	})
	w.settled()
}
