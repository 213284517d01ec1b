package cli_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// scopeMoves are those of the kinds that ask for scopes, and of what these are made from.
func scopeMoves() []weighted {
	return []weighted{
		{8, (*drawn).drawScope},
		{2, (*drawn).drawLegacy},
		{3, (*drawn).removeScope},
		{3, (*drawn).drawRole},
		{2, (*drawn).drawBinding},
		{2, (*drawn).removeRBAC},
		{2, (*drawn).drawWorkload},
		{1, (*drawn).removeWorkload},
		{2, (*drawn).drawPod},
		{1, (*drawn).drawAccount},
		{2, (*drawn).occupyList},
		{1, (*drawn).occupyRole},
		{3, (*drawn).authorize},
		{1, (*drawn).drawFollower},
		{2, (*drawn).drawOldCopies},
	}
}

const (
	scopeAPI    = "operator.ibm.com/v1"
	legacyAPI   = "namespacescope.ibm.com/v1alpha1"
	templateAPI = "operators.coreos.com/v1alpha1"
	defaultList = "namespace-scope"
)

// writers are the accounts that scopes name in a world.
func (w *drawn) writers() []any {
	switch w.profile {
	case "delegated":
		return []any{"delegate", "delegate", "delegate", "weak", nil, "nobody"}
	case "namespaced":
		return []any{nil, nil, "delegate", "weak"}
	default:
		return []any{nil, nil, nil, "delegate", "weak", "nobody"}
	}
}

// drawScope makes a NamespaceScope, or changes it.
func (w *drawn) drawScope() *move {
	spec := map[string]any{
		"namespaceMembers": list(w.some(append([]string{w.absent()}, w.members...))), "allowSubsetProjection": w.oneIn(3),
	}
	if by := one(w, w.writers()...); by != nil {
		spec["serviceAccountName"] = by
	}

	label := "team-" + w.tag
	w.choose(3, spec, "namespaceSelector", one(w,
		map[string]any{label: "1"}, map[string]any{"matchLabels": map[string]any{label: "0"}}, map[string]any{},
		map[string]any{label: "1", "matchLabels": map[string]any{label: "0"}}))
	w.choose(4, spec, "serviceAccountMembers", list([]string{"extra", "nobody"}))
	w.choose(4, spec, "configmapName", "other-list")
	w.choose(6, spec, "manualManagement", true)
	w.choose(4, spec, "workloadInjector", w.injector())
	w.choose(8, spec, "restartLabels", one(w, map[string]any{"name": "op-0"}, map[string]any{}))

	if w.oneIn(8) || w.installs && w.oneIn(3) {
		spec["csvInjector"] = map[string]any{"enable": !w.oneIn(6)}
	}

	return &move{name: "a scope", objects: []manifest{
		object(scopeAPI, "NamespaceScope", w.ops, one(w, "a", "a", "b", "c"), manifest{"spec": spec}),
	}}
}

// drawLegacy makes a scope of the older group.
func (w *drawn) drawLegacy() *move {
	spec := map[string]any{"namespaceMembers": list(w.some(w.members))}
	w.choose(2, spec, "projected-serviceaccounts", list([]string{"op-0", "op-1"}))
	w.choose(2, spec, "configmap-name", one(w, defaultList, defaultList, "other-list"))
	w.choose(4, spec, "restartLabels", map[string]any{"name": "op-0"})
	w.choose(4, spec, "manualManagement", true)

	return &move{name: "an older scope", objects: []manifest{
		object(legacyAPI, "NamespaceScope", w.ops, "old", manifest{"spec": spec}),
	}}
}

// removeScope deletes what asks for a scope.
func (w *drawn) removeScope() *move {
	return w.removeOne("what asks for a scope", w.of("NamespaceScope", "ScopeInstance", "ScopeTemplate"))
}

// drawRole changes what an operator may do.
func (w *drawn) drawRole() *move {
	of := role(w.ops, fmt.Sprintf("op-%d", w.random.IntN(3)), w.some(roleRules)...)
	if w.oneIn(2) {
		of = of.and(w.onKettles())
	}

	return &move{name: "a Role", objects: []manifest{of}}
}

// drawBinding changes who is bound to a Role, to others, or not at all.
func (w *drawn) drawBinding() *move {
	n := w.random.IntN(3)
	name := fmt.Sprintf("op-%d", n)
	b := bind(w.ops, name, "Role", name, w.ops, name)

	switch w.random.IntN(5) {
	case 0:
		b.annotate("ambit.dev/project", "disabled")
	case 1:
		b = bind(w.ops, "more", "ClusterRole", "view", w.ops, name)
	case 2:
		b = bind(w.ops, "dangling", "Role", "nosuch", w.ops, name)
	case 3:
		b["subjects"] = []any{map[string]any{
			"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:" + w.ops,
		}}
	}

	return &move{name: "a RoleBinding", objects: []manifest{b}}
}

// removeRBAC deletes a Role or a RoleBinding of the operator namespace.
func (w *drawn) removeRBAC() *move {
	var out []manifest

	for _, obj := range w.of("Role", "RoleBinding") {
		if idOf(obj).namespace == w.ops || w.oneIn(4) {
			out = append(out, obj)
		}
	}

	return w.removeOne("RBAC", out)
}

// removeWorkload deletes an operator.
func (w *drawn) removeWorkload() *move {
	var out []manifest

	for _, obj := range w.of("Deployment", "StatefulSet", "DaemonSet", "CronJob") {
		if idOf(obj).namespace == w.ops {
			out = append(out, obj)
		}
	}

	return w.removeOne("an operator", out)
}

// drawPod makes a pod that no workload made, or deletes it.
func (w *drawn) drawPod() *move {
	template := testbed.Reader(w.ops, one(w, "op-0", "op-1")).Spec.Template
	name, intent := one(w, "pod-0", "pod-1"), one(w, "projected", "projected", "none")
	pod := w.manifestOf("v1", "Pod", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: name, Labels: map[string]string{"intent": intent}}, Spec: template.Spec,
	})

	if w.oneIn(5) {
		pod.annotate("ambit.dev/restart", "disabled")
	}

	return &move{name: "a pod", objects: []manifest{pod}, delete: w.there[idOf(pod)] != nil}
}

// delegates are the accounts that may write for scopes. The one that writes where only authorized rights count is Ambit itself in
// the profile namespaced.
func (w *drawn) delegates() []string {
	if w.confined() {
		return []string{"delegate", "weak"}
	}

	return []string{"delegate", "weak", "ambit"}
}

// drawAccount makes or deletes an account.
func (w *drawn) drawAccount() *move {
	obj := serviceAccount(w.ops, one(w, append([]string{"nobody", "extra"}, w.delegates()...)...))

	return &move{name: "an account", objects: []manifest{obj}, delete: w.there[idOf(obj)] != nil}
}

// occupyList has a ConfigMap be where a watch list goes, or deletes it.
func (w *drawn) occupyList() *move {
	obj := object("v1", "ConfigMap", w.ops, one(w, defaultList, "other-list"), manifest{"data": map[string]any{"theirs": "1"}})

	if w.oneIn(3) {
		return &move{name: "a list", objects: []manifest{obj}, delete: true}
	}

	if w.oneIn(4) {
		obj["immutable"] = true
	}

	return &move{name: "somebody's ConfigMap", objects: []manifest{obj}}
}

// occupyRole has a ClusterRole be where one of Ambit's was.
func (w *drawn) occupyRole() *move {
	for _, u := range w.copies("ClusterRole") {
		w.made[idOf(u.Object)] = struct{}{}
	}

	var gone []manifest

	now := w.look()

	for of := range w.made {
		if now.objects[of] == nil {
			gone = append(gone, object(rbacAPI, of.kind, "", of.name, manifest{"rules": []any{ruleOf("get pods")}}))
		}
	}

	w.sort(gone)

	if len(gone) == 0 {
		return nil
	}

	return &move{name: "somebody's ClusterRole", objects: []manifest{gone[0]}}
}
