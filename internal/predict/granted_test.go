package predict_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestCopyOfAnotherScopeGrants holds that an account which lacks something at first is served where a copy of another scope, from
// the same plan, gives it that.
func TestCopyOfAnotherScopeGrants(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()
	w.holds = []rbacv1.PolicyRule{
		ruleOf("create,patch,delete", rbacv1.GroupName, "roles,rolebindings"), ruleOf("*", "", "configmaps"),
		ruleOf("patch", "apps", "deployments"),
	}

	alone := w.predict()
	if failed := failedIn(alone); !slices.Equal(failed, []string{"a"}) {
		t.Fatalf("the account lacks nothing: %v", failed)
	}

	binding := bindingOf("ops", "for-delegate", "r")
	binding.Subjects[0].Name = "delegate"
	w.add(binding)

	other := &operatorv1.NamespaceScope{ObjectMeta: at("ops", "t"), Spec: operatorv1.NamespaceScopeSpec{
		ConfigmapName: "other", NamespaceMembers: []string{"a"}, ServiceAccountMembers: []string{"delegate"},
	}}
	other.UID, other.Finalizers = "6", []string{operatorv1.Finalizer}
	w.declared = []client.Object{w.scope, other}

	out := w.predict()
	if failed := failedIn(out); len(failed) > 0 || !slices.Contains(out.Scopes[0].Served, "a") {
		t.Errorf("failed %+v, served %v", out.Scopes[0].Failed, out.Scopes[0].Served)
	}
}
