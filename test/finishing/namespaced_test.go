package finishing_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestAMemberFinishesInNamespaced holds it where Ambit has no rights but those that the member's owner granted: by these it sees
// what waits, since nobody may write a rule that they do not hold.
func TestAMemberFinishesInNamespaced(t *testing.T) {
	bed := beds.Begin(t, "namespaced", "--restart-interval=1s", "--finish-grace="+grace.String())
	w := &world{World: bed, ops: embedded.Namespace, member: bed.Namespace("member"), other: bed.Namespace("other")}
	w.group = w.member + ".example.com"
	w.define()
	w.Operator(w.ops, "op")

	role := testbed.Role(w.ops, "widgets")
	role.Rules = []rbacv1.PolicyRule{w.rule()}
	w.Make(role, testbed.Bind(w.ops, "Role", "widgets", w.ops, "op"))

	w.scope = &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: "namespacescope"}}
	w.Eventually("the default scope", func() error {
		return w.Client.Get(w.Context(), client.ObjectKeyFromObject(w.scope), w.scope)
	})

	for _, name := range []string{w.member, w.other} {
		if out, code := w.Ambit("authorize", name, "--to", w.ops); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}

	w.works(w.member)
	w.listed(w.member, true)

	one := w.waiting(w.member, "one")
	w.leave()
	w.finishing(w.member, "waiting for a finalizer: widgets."+w.group+" one")

	if err := w.finish(one); err != nil {
		t.Fatal(err)
	}

	w.copiesGo(w.member, soon)
	w.listed(w.member, false)
}
