package narrow

import (
	"maps"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// labelsSelected are the labels by which declarations of a stream select namespaces.
func labelsSelected(s *Stream) map[string]bool {
	out := map[string]bool{}

	for d := range s.objects() {
		for n := range nodes(d.body) {
			for key, value := range pairs(n) {
				if followed(key).Value == "namespaceSelector" {
					addKeys(followed(value), out)
				}
			}
		}
	}

	return out
}

// addKeys adds the keys of a selector, also of one that consists of labels alone.
func addKeys(selector *yaml.Node, found map[string]bool) {
	for key := range entries(selector) {
		switch key {
		case "matchLabels":
			for label := range entries(child(selector, key)) {
				found[label] = true
			}
		case "matchExpressions":
			for _, of := range child(selector, key).Content {
				found[text(followed(of), "key")] = true
			}
		default:
			found[key] = true
		}
	}
}

// beyondLabels are Namespaces that get, change or lose a label by which one of the versions selects namespaces: what selects them
// has an effect there from now on, or has none any more.
func beyondLabels(before, after *Stream) (out []More) {
	selected := labelsSelected(before)
	maps.Copy(selected, labelsSelected(after))

	was := map[string]*Document{}

	for d := range before.objects() {
		if isNamespace(d) {
			was[d.Name] = d
		}
	}

	for d := range after.objects() {
		if !isNamespace(d) {
			continue
		}

		had, has := labelsAmong(selected, was[d.Name]), labelsAmong(selected, d)

		m := newMore(d)
		m.Whose, m.Places = "whatever selects namespaces by labels", []string{"in namespace " + d.Name}

		either := maps.Clone(had)
		maps.Copy(either, has)

		for _, key := range slices.Sorted(maps.Keys(either)) {
			before, had := had[key]

			switch after, has := has[key]; {
			case has && (!had || before != after):
				m.Says = append(m.Says, "label "+key+": "+after)
			case !has:
				m.Says = append(m.Says, "no label "+key)
			}
		}

		if len(m.Says) > 0 {
			out = append(out, m)
		}
	}

	return out
}

// labelsAmong are those of the labels of an object that have some keys.
func labelsAmong(keys map[string]bool, d *Document) map[string]string {
	if d == nil {
		return map[string]string{}
	}

	out := entries(at(d.body, "metadata", "labels"))
	maps.DeleteFunc(out, func(key, _ string) bool { return !keys[key] })

	return out
}

func isNamespace(d *Document) bool { return d.APIVersion == "v1" && d.Kind == "Namespace" }
