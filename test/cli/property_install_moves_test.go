package cli_test

import "strings"

// installMoves are those of OLM's kinds.
func installMoves() []weighted {
	return []weighted{
		{4, (*drawn).drawGroup},
		{6, (*drawn).drawCSV},
		{3, (*drawn).removeInstall},
		{1, (*drawn).occupyInstall},
		{1, (*drawn).drawInstaller},
		{1, (*drawn).drawDefinition},
	}
}

func (w *drawn) api() string { return "g" + w.tag + ".example.com" }

// installers are the definitions of which operators say that they bring them, and the accounts that install.
func (w *drawn) installers() []manifest {
	out := []manifest{w.definition("kettles", "Kettle"), w.definition("pots", "Pot")}

	for _, namespace := range []string{w.own, w.rivals} {
		out = append(out, serviceAccount(namespace, "installer"), serviceAccount(namespace, "weak"),
			bind(namespace, "installer", "ClusterRole", "cluster-admin", namespace, "installer"))

		for _, m := range w.members[:2] {
			out = append(out, bind(m, "installs-for-"+namespace, "ClusterRole", "cluster-admin", namespace, "installer"))
		}
	}

	return out
}

func (w *drawn) definition(plural, kind string) manifest {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+w.api(), manifest{"spec": map[string]any{
		"group": w.api(), "scope": "Namespaced",
		"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": strings.ToLower(kind)},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}},
	}})
}

// installNamespace is where the next install move is.
func (w *drawn) installNamespace() string { return one(w, w.own, w.own, w.own, w.rivals) }

// drawGroup makes an OperatorGroup, or changes it.
func (w *drawn) drawGroup() *move {
	namespace := w.installNamespace()
	spec := map[string]any{}

	switch w.random.IntN(7) {
	case 0, 1:
		spec["targetNamespaces"] = list([]string{namespace})
	case 2:
		spec["targetNamespaces"] = list([]string{one(w, w.members...)})
	case 3:
		spec["targetNamespaces"] = list(append(w.some(w.members), namespace))
	case 4:
		label := "team-" + w.tag
		spec["selector"] = one(w, map[string]any{"matchLabels": map[string]any{label: one(w, "0", "1", "2")}},
			map[string]any{label: one(w, "0", "1")}, map[string]any{},
			map[string]any{label: "1", "matchLabels": map[string]any{label: "0"}})
	case 5:
		spec["targetNamespaces"] = list([]string{w.absent(), w.members[0]})
	}

	if by := w.installer(namespace); by != "" {
		spec["serviceAccountName"] = by
	}

	w.choose(8, spec, "staticProvidedAPIs", true)
	w.choose(8, spec, "upgradeStrategy", "TechPreviewUnsafeFailForward")

	name := "og"
	if w.oneIn(8) {
		name = "another"
	}

	group := object("operators.coreos.com/v1", "OperatorGroup", namespace, name, manifest{"spec": spec})
	if w.oneIn(8) {
		group.annotate("olm.providedAPIs", one(w, "Pot.v1."+w.api(), "Kettle.v1."+w.api()))
	}

	return &move{name: "a group", objects: []manifest{group}}
}

// installer draws the account that a group names. Where an account takes back what it gave, a group keeps the one that it named:
// if another may not take that away, the manager alone remembers whose it is, and no plan knows.
func (w *drawn) installer(namespace string) string {
	if w.profile == "cluster" {
		return one(w, "", "", "installer", "weak", "nobody")
	}

	if w.gives[namespace] == "" || w.gives[namespace] == "nobody" {
		w.gives[namespace] = one(w, "installer", "installer", "installer", "weak", "", "nobody")
	}

	return w.gives[namespace]
}

// drawCSV makes a ClusterServiceVersion, or changes it.
func (w *drawn) drawCSV() *move {
	namespace := w.installNamespace()
	name := one(w, "op.v1", "op.v1", "op.v2", "tea.v1")

	csv := object("operators.coreos.com/v1alpha1", "ClusterServiceVersion", namespace, name, manifest{"spec": w.csv(name)})
	if w.scopes && w.oneIn(2) {
		csv.annotate("nss.operator.ibm.com/managed-operators", one(w, "op", "tea", "op,tea,pan"))
	}

	if w.scopes && w.oneIn(3) {
		csv.annotate("nss.operator.ibm.com/managed-webhooks", "")
	}

	return &move{name: "a ClusterServiceVersion", objects: []manifest{csv}}
}

func (w *drawn) csv(name string) map[string]any {
	of, version, _ := strings.Cut(name, ".v")
	var modes []any
	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		modes = append(modes, map[string]any{"type": mode, "supported": !w.oneIn(5)})
	}

	permissions := []any{map[string]any{"serviceAccountName": of, "rules": []any{ruleOf(one(w, roleRules...))}}}
	if w.oneIn(4) {
		permissions = append(permissions, map[string]any{
			"serviceAccountName": one(w, of, of+"-more"), "rules": []any{ruleOf(one(w, roleRules...)), w.onKettles()},
		})
	}

	container := map[string]any{"name": "op", "image": "example.com/" + name}
	w.choose(2, container, "env", []any{map[string]any{"name": "WATCH_NAMESPACE", "valueFrom": map[string]any{
		"fieldRef": map[string]any{"fieldPath": "metadata.annotations['olm.targetNamespaces']"},
	}}})

	deployments := []any{deployed(of, of, container)}
	if w.oneIn(5) {
		deployments = append(deployments, deployed(of+"-more", of, map[string]any{"name": "more", "image": "example.com/more"}))
	}

	strategy := map[string]any{"permissions": permissions, "deployments": deployments}
	if w.oneIn(10) {
		delete(strategy, "permissions")
	}

	w.choose(3, strategy, "clusterPermissions", []any{map[string]any{
		"serviceAccountName": of, "rules": []any{map[string]any{
			"apiGroups": []any{""}, "resources": []any{"nodes"}, "verbs": list(one(w, []string{"get"}, []string{"get", "list"})),
		}},
	}})

	spec := map[string]any{
		"displayName": of, "version": version + ".0.0", "installModes": modes,
		"install": map[string]any{"strategy": "deployment", "spec": strategy},
	}

	if version == "2" {
		spec[one(w, "replaces", "replaces", "replaces", "other")] = of + ".v1"
		delete(spec, "other")
	}

	w.choose(12, spec, "minKubeVersion", "99.0.0")

	definitions := map[string]any{}
	w.choose(2, definitions, "owned", []any{w.described(one(w, "kettles", "pots"))})
	w.choose(6, definitions, "required", []any{w.described(one(w, "pots", "cups"))})
	spec["customresourcedefinitions"] = definitions

	w.choose(3, spec, "webhookdefinitions", one(w, []any{w.webhook(of)}, []any{w.webhook(of)}, []any{w.webhook(of), w.webhook(of)}))

	if w.oneIn(10) {
		w.convert(spec, of)
	}

	return spec
}

// convert makes a version convert a definition of its own that has one version, so that nobody asks it. Only who works everywhere
// may.
func (w *drawn) convert(spec map[string]any, deployment string) {
	plural := one(w, "kettles", "pots")
	spec["installModes"] = []any{map[string]any{"type": "AllNamespaces", "supported": true}}
	spec["customresourcedefinitions"] = map[string]any{"owned": []any{w.described(plural)}}
	spec["webhookdefinitions"] = []any{map[string]any{
		"type": "ConversionWebhook", "generateName": "c" + deployment + ".example.com", "deploymentName": deployment,
		"containerPort": 443, "targetPort": 9443, "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
		"webhookPath": "/convert", "conversionCRDs": list([]string{plural + "." + w.api()}),
	}}
}

func (w *drawn) described(plural string) map[string]any {
	kind := map[string]string{"kettles": "Kettle", "pots": "Pot", "cups": "Cup", "pans": "Pan"}[plural]

	return map[string]any{"name": plural + "." + w.api(), "version": "v1", "kind": kind}
}

// deployed is a Deployment of a ClusterServiceVersion.
func deployed(name, account string, container map[string]any) map[string]any {
	labels := map[string]any{"app": name}

	return map[string]any{"name": name, "spec": map[string]any{
		"replicas": 1, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"serviceAccountName": account, "terminationGracePeriodSeconds": 0, "containers": []any{container},
		}},
	}}
}

// webhook is asked about nothing that anybody makes here.
func (w *drawn) webhook(deployment string) map[string]any {
	out := map[string]any{
		"type": one(w, "ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"), "generateName": deployment + ".example.com",
		"deploymentName": deployment, "containerPort": 443, "targetPort": 9443, "sideEffects": "None",
		"admissionReviewVersions": []any{"v1"}, "webhookPath": "/validate", "failurePolicy": "Ignore",
		"objectSelector": map[string]any{"matchLabels": map[string]any{"asked-" + w.tag: "true"}},
		"rules": []any{map[string]any{
			"operations": []any{"CREATE"}, "apiGroups": []any{w.api()}, "apiVersions": []any{"v1"},
			"resources": []any{one(w, "kettles", "pots")},
		}},
	}
	if w.oneIn(5) {
		out["deploymentName"] = "nosuch"
	}

	return out
}

// removeInstall deletes an object of OLM's kinds.
func (w *drawn) removeInstall() *move {
	return w.removeOne("of an install", w.of("OperatorGroup", "ClusterServiceVersion", "Subscription", "CatalogSource"))
}

// occupyInstall has something of somebody else's be where an install would write.
func (w *drawn) occupyInstall() *move {
	namespace, name := w.installNamespace(), one(w, "op", "tea", "pan")
	labels := map[string]any{"app": "theirs"}
	deployment := object("apps/v1", "Deployment", namespace, name, manifest{"spec": map[string]any{
		"replicas": 0, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "example.com/theirs"}},
		}},
	}})

	obj := one(w, deployment, serviceAccount(namespace, name))
	if _, is := w.there[idOf(obj)]; !is && w.look().objects[idOf(obj)] != nil {
		return nil // Ambit made it: what somebody else makes of that is no new object.
	}

	return &move{name: "somebody's object", objects: []manifest{obj}, delete: w.there[idOf(obj)] != nil}
}

// drawInstaller makes or deletes an account that installs.
func (w *drawn) drawInstaller() *move {
	obj := serviceAccount(w.installNamespace(), one(w, "nobody", "installer", "weak"))

	return &move{name: "an account", objects: []manifest{obj}, delete: w.there[idOf(obj)] != nil}
}

// drawDefinition makes or deletes a definition, which operators need or bring.
func (w *drawn) drawDefinition() *move {
	obj := one(w, w.definition("cups", "Cup"), w.definition("cups", "Cup"), w.definition("pots", "Pot"))
	gone := w.there[idOf(obj)] != nil

	if gone && w.confined() {
		return nil // Nothing tells a manager that knows them by discovery: it asks again after minutes.
	}

	return &move{name: "a definition", objects: []manifest{obj}, delete: gone}
}
