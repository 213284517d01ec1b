package cli_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// weighted is a kind of move, and how often it is drawn. It makes nothing where it makes no sense.
type weighted struct {
	weight int
	draw   func(*drawn) *move
}

// draw draws a move, or now and then two that somebody makes at once.
func (w *drawn) draw() *move {
	w.Helper()

	m := w.drawOne()
	if !w.oneIn(4) {
		return m
	}

	other := w.drawOne()
	alone := func(obj manifest) bool { return runs(obj) || w.handsOver(obj) }
	clashes := func(obj manifest) bool { return alone(obj) || m.writes(idOf(obj)) || m.hasScopeBeside(obj) }

	if m.delete != other.delete || slices.ContainsFunc(m.objects, alone) || slices.ContainsFunc(other.objects, clashes) {
		return m
	}

	return &move{name: m.name + " and " + other.name, objects: slices.Concat(m.objects, other.objects), delete: m.delete}
}

// asking are the kinds by which somebody asks for something.
var asking = []string{
	"NamespaceScope", "ScopeTemplate", "ScopeInstance", "OperatorGroup", "ClusterServiceVersion", "CatalogSource", "Subscription",
}

// runs says whether an object is what operators run in: whether what begins together with a list has read it depends on who is
// faster.
func runs(obj manifest) bool {
	return slices.Contains([]string{"Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"}, idOf(obj).kind)
}

// handsOver says whether an object names another account to write as than before: what else changes meanwhile may be done as the
// former, since each kind has a watch of its own.
func (w *drawn) handsOver(obj manifest) bool {
	was := w.there[idOf(obj)]
	if was == nil {
		return false
	}

	before, _ := was["spec"].(map[string]any)
	after, _ := obj["spec"].(map[string]any)

	return before["serviceAccountName"] != after["serviceAccountName"] || before["manualManagement"] != after["manualManagement"]
}

// hasScopeBeside says whether an object is a scope, and the move has one of the other API: a list that one of them leaves and the
// other names is taken back in between if Ambit hears of them in that order, since each kind has a watch of its own.
func (m *move) hasScopeBeside(obj manifest) bool {
	return obj["kind"] == "NamespaceScope" && slices.ContainsFunc(m.objects, func(other manifest) bool {
		return other["kind"] == obj["kind"] && other["apiVersion"] != obj["apiVersion"]
	})
}

// writes says whether a move is about an object.
func (m *move) writes(of id) bool {
	return slices.ContainsFunc(m.objects, func(obj manifest) bool { return idOf(obj) == of })
}

func (w *drawn) drawOne() *move {
	w.Helper()

	all := w.kinds()
	sum := 0

	for i := range all {
		sum += all[i].weight
	}

	for {
		at := w.random.IntN(sum)
		for i := range all {
			if at -= all[i].weight; at >= 0 {
				continue
			}

			if m := all[i].draw(w); m != nil {
				return m
			}

			break
		}
	}
}

// kinds are the moves of a world.
func (w *drawn) kinds() []weighted {
	all := []weighted{
		{2, (*drawn).removeSeveral}, {2, (*drawn).grantWhatLacks}, {2, (*drawn).takeBack}, {1, (*drawn).undoCopy},
		{1, (*drawn).widenCopy},
	}

	if !w.confined() {
		all = append(all, weighted{3, (*drawn).labelMember}, weighted{1, (*drawn).comeAndGo}, weighted{3, (*drawn).drawClusterWide})
	}

	if w.scopes {
		all = append(all, scopeMoves()...)
		all = append(all, weighted{2, (*drawn).drawKettle})
		if !w.confined() {
			all = append(all, weighted{3, (*drawn).drawTemplate})
		}
	}

	if w.installs {
		all = append(all, installMoves()...)
		all = append(all, catalogMoves()...)
	}

	return all
}

// one draws one of some values.
func one[T any](w *drawn, of ...T) T { return of[w.random.IntN(len(of))] }

// oneIn is true once in n times.
func (w *drawn) oneIn(n int) bool { return w.random.IntN(n) == 0 }

// some draws some of the names.
func (w *drawn) some(names []string) []string {
	var out []string

	for _, name := range names {
		if w.oneIn(2) {
			out = append(out, name)
		}
	}

	return out
}

// of are the objects of a kind that somebody wrote, in an order that is the same in every run.
func (w *drawn) of(kinds ...string) []manifest {
	var out []manifest

	for of, obj := range w.there {
		if slices.Contains(kinds, of.kind) {
			out = append(out, obj)
		}
	}

	w.sort(out)

	return out
}

// sort sorts by names without what is drawn anew in each run.
func (w *drawn) sort(objects []manifest) {
	name := func(m manifest) string { return strings.ReplaceAll(fmt.Sprint(idOf(m)), w.tag, "") }
	slices.SortFunc(objects, func(a, b manifest) int { return cmp.Compare(name(a), name(b)) })
}

// removeOne deletes one of some objects.
func (w *drawn) removeOne(name string, objects []manifest) *move {
	objects = slices.DeleteFunc(slices.Clone(objects), w.isReplaceable)
	if len(objects) == 0 {
		return nil
	}

	return &move{name: name, objects: []manifest{objects[w.random.IntN(len(objects))]}, delete: true}
}

// isReplaceable says whether an object is an authorization in whose place another one is that does not suffice alone: where the
// account has the rest from elsewhere, nobody knows whether Ambit gives its copies to that before they are collected.
func (w *drawn) isReplaceable(obj manifest) bool {
	account := func(m manifest) string {
		u := &unstructured.Unstructured{Object: m}
		if idOf(m).kind != "RoleBinding" || u.GetLabels()[scope.LabelAuthorizationTo] == "" {
			return ""
		}

		return fmt.Sprint(u.GetNamespace(), m["subjects"])
	}

	part, whole := false, false

	for _, other := range w.of("RoleBinding") {
		if idOf(other) == idOf(obj) || account(other) == "" || account(other) != account(obj) {
			continue
		}

		role := idOf(other)
		role.kind = "Role"

		switch {
		case strings.Contains(role.name, "+") || w.there[role] == nil:
			part = true
		case role.name == scope.AuthorizationPrefix+w.ops:
			whole = true
		}
	}

	return account(obj) != "" && part && !whole
}

// removeSeveral deletes several things that ask for something at once.
func (w *drawn) removeSeveral() *move {
	all := w.of(append([]string{"Kettle"}, asking...)...)
	if len(all) < 2 {
		return nil
	}

	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })

	all = all[:2+w.random.IntN(min(2, len(all)-1))]
	if !slices.ContainsFunc(all, func(obj manifest) bool { return obj["kind"] != "Kettle" }) {
		return nil // No plan is about that alone.
	}

	return &move{name: "several things", objects: all, delete: true}
}

// authorize has the owner of a member grant everything to an account, for one scope or for none, besides what is granted there.
func (w *drawn) authorize() *move {
	g := grant.Grant{
		Namespace: one(w, w.members...), To: w.ops, Account: one(w, w.delegates()...), Rules: authority.GrantOfEverything(),
	}
	if w.oneIn(2) {
		g.Scope = scope.Owner{Group: "operator.ibm.com", Kind: "NamespaceScope", Namespace: w.ops, Name: "a"}
	}

	if !w.exists(g.Namespace) {
		return nil
	}

	objects := []manifest{
		w.manifestOf(rbacAPI, "Role", g.Role()), w.manifestOf(rbacAPI, "RoleBinding", g.RoleBinding()),
	}
	w.given = append(w.given, objects...)

	return &move{name: "an authorization", objects: objects}
}

// labelMember puts a label on a namespace, or takes it, or gives one to another namespace.
func (w *drawn) labelMember() *move {
	label := "team-" + w.tag
	labels := func() manifest { return one(w, manifest{}, manifest{label: "0"}, manifest{label: "1"}) }

	if w.oneIn(3) {
		flipped := one(w, "0", "1")
		other := map[string]string{"0": "1", "1": "0"}[flipped]

		return &move{name: "swap labels", objects: []manifest{
			w.namespaceOf(w.members[0], manifest{label: flipped}), w.namespaceOf(w.members[1], manifest{label: other}),
		}}
	}

	return &move{name: "label a member", objects: []manifest{w.namespaceOf(one(w, w.members...), labels())}}
}

// comeAndGo makes a namespace, or deletes it.
func (w *drawn) comeAndGo() *move {
	ns := w.namespaceOf(w.absent(), manifest{"team-" + w.tag: "1"})

	if _, ends := w.ending[w.absent()]; ends {
		return nil // While it ends, nobody can make it again.
	}

	return &move{name: "a namespace", objects: []manifest{ns}, delete: w.exists(w.absent())}
}

// drawClusterWide changes a ClusterRole, or who is bound to it in the cluster or in a namespace.
func (w *drawn) drawClusterWide() *move {
	name := "wide-" + w.tag
	rules := []any{ruleOf(one(w, roleRules...)), ruleOf(one(w, roleRules...))}
	wide := object(rbacAPI, "ClusterRole", "", name, manifest{"rules": rules})

	ops := cmp.Or(w.ops, w.own)
	in := bind(ops, "wide", "ClusterRole", name, ops, one(w, "op-0", "op-1", "weak", "delegate"))
	everywhere := object(rbacAPI, "ClusterRoleBinding", "", name, manifest{"roleRef": in["roleRef"], "subjects": in["subjects"]})

	switch w.random.IntN(4) {
	case 0:
		return &move{name: "a ClusterRole", objects: []manifest{wide}, delete: w.oneIn(3)}
	case 1:
		return &move{name: "a binding to a ClusterRole", objects: []manifest{wide, in}}
	case 2:
		return &move{name: "a ClusterRoleBinding", objects: []manifest{wide, everywhere}}
	default:
		return w.removeOne("a binding to a ClusterRole", w.of("ClusterRoleBinding"))
	}
}

// grantWhatLacks grants what the last plan said was missing. A plan speaks of all worlds that share a cluster: what it says of
// another one is not granted, or that would be given something that no plan of its own spoke of.
func (w *drawn) grantWhatLacks() *move {
	if len(w.grants) == 0 {
		return nil
	}

	var objects []manifest
	for _, g := range w.grants {
		of := idOf(g)
		if w.has(of.namespace, fmt.Sprint(g)) && !w.isEnding(of.namespace) && (of.namespace == "" || w.exists(of.namespace)) {
			objects = append(objects, g)
		}
	}

	w.grants = nil
	if len(objects) == 0 {
		return nil
	}

	w.given = append(w.given, objects...)

	return &move{name: "grant what lacks", objects: objects}
}

func (w *drawn) isEnding(namespace string) bool {
	_, is := w.ending[namespace]

	return is
}

// takeBack deletes a grant.
func (w *drawn) takeBack() *move {
	w.given = slices.DeleteFunc(w.given, func(m manifest) bool { return w.there[idOf(m)] == nil })

	return w.removeOne("a grant", w.given)
}

// copies are the objects of some kinds that Ambit made, in an order that is the same in every run as far as it can be.
func (w *drawn) copies(kinds ...string) []*unstructured.Unstructured {
	var (
		all []manifest
		out []*unstructured.Unstructured
	)

	for of, f := range w.look().objects {
		made := f.raw.GetLabels()["app.kubernetes.io/managed-by"] == "ambit"
		if made && slices.Contains(kinds, of.kind) && !w.isEnding(of.namespace) {
			all = append(all, f.raw.Object)
		}
	}

	w.sort(all)

	for _, obj := range all {
		out = append(out, &unstructured.Unstructured{Object: obj})
	}

	return out
}

// undoCopy deletes something that Ambit made.
func (w *drawn) undoCopy() *move {
	all := w.copies("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Service", "ServiceAccount", "Deployment")
	if len(all) == 0 {
		return nil
	}

	obj := bare(one(w, all...))

	return &move{name: "what Ambit made", objects: []manifest{obj}, delete: true}
}

// widenCopy changes a Role that Ambit made.
func (w *drawn) widenCopy() *move {
	all := w.copies("Role", "ClusterRole")
	if len(all) == 0 {
		return nil
	}

	of := one(w, all...)
	if of.Object["aggregationRule"] != nil {
		return nil // The API server itself fills in its rules.
	}

	obj := bare(of)
	obj["rules"] = []any{ruleOf("get pods")}

	return &move{name: "a change of what Ambit made", objects: []manifest{obj}}
}

// bare is an object as somebody writes it who names it and nothing else.
func bare(u *unstructured.Unstructured) manifest {
	return object(u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), nil)
}

// choose puts some of the fields into a spec: each with a chance of one in n.
func (w *drawn) choose(n int, spec map[string]any, field string, value any) {
	if w.oneIn(n) {
		spec[field] = value
	}
}
