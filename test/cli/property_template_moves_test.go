package cli_test

import "fmt"

// drawTemplate makes a ScopeTemplate and a ScopeInstance, or changes them.
func (w *drawn) drawTemplate() *move {
	name := one(w, "t-", "t-", "t-", "u-") + w.tag
	spec := map[string]any{}

	var roles []any
	for i := range w.random.IntN(4) {
		roles = append(roles, w.templated(i))
	}

	spec["clusterRoles"] = roles
	w.choose(5, spec, "bindingTemplate", map[string]any{"subjects": []any{w.subject()}})

	template := object(templateAPI, "ScopeTemplate", "", name, manifest{"spec": spec})
	instance := w.instance(name)

	switch w.random.IntN(4) {
	case 0:
		return &move{name: "a template", objects: []manifest{template}}
	case 1:
		return &move{name: "an instance", objects: []manifest{instance}}
	default:
		return &move{name: "a template and an instance", objects: []manifest{template, instance}}
	}
}

// templated is an entry of a template.
func (w *drawn) templated(i int) map[string]any {
	rules := []any{ruleOf(one(w, roleRules...))}
	if w.oneIn(4) {
		rules = append(rules, ruleOf(one(w, "list nodes", "get pods", "list namespaces"))) // Some have no effect in a namespace.
	}

	out := map[string]any{"generateName": fmt.Sprintf("t%s-%d-", w.tag, i), "rules": rules}

	subjects := []any{w.subject()}
	if w.oneIn(3) {
		subjects = append(subjects, w.subject())
	}

	if w.oneIn(4) {
		out["bindingTemplate"] = map[string]any{"subjects": subjects}
	} else {
		out["subjects"] = subjects
	}

	return out
}

// subject draws who gets something.
func (w *drawn) subject() map[string]any {
	switch w.random.IntN(8) {
	case 0:
		return map[string]any{"kind": "User", "name": "jane"}
	case 1:
		return map[string]any{"kind": "Group", "name": "cooks", "apiGroup": "rbac.authorization.k8s.io"}
	}

	out := map[string]any{"kind": "ServiceAccount", "name": fmt.Sprintf("op-%d", w.random.IntN(3))}
	if !w.oneIn(6) {
		out["namespace"] = w.ops
	}

	return out
}

// instance draws where a template has an effect.
func (w *drawn) instance(template string) manifest {
	spec := map[string]any{"scopeTemplateName": template}
	if !w.oneIn(4) {
		spec["namespaces"] = list(append(w.some(append([]string{w.absent()}, w.members...)), w.members[0]))
	}

	label := "team-" + w.tag
	w.choose(4, spec, "namespaceSelector", one(w, map[string]any{label: "1"}, map[string]any{label: "0"}, map[string]any{label: "2"},
		map[string]any{}))

	instance := object(templateAPI, "ScopeInstance", "", one(w, "i-", "j-")+w.tag, manifest{"spec": spec})
	if w.oneIn(4) {
		instance.annotate("ambit.dev/allow-cluster-wide", one(w, "true", "true", "false"))
	}

	return instance
}
