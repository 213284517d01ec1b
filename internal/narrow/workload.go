package narrow

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// workload is something that runs as an account.
type workload struct {
	doc             *Document
	namespace, name string
	account         Account
	spec            corev1.PodSpec
	// template is the pod template, or the pod itself where it is bare.
	template *yaml.Node
}

// String names it for users.
func (w *workload) String() string { return w.doc.Kind + " " + w.name }

// injectable says whether a scope's workloadInjector reaches it.
func (w *workload) injectable() bool {
	return facts.WorkloadKind(w.doc.Kind).Restarts() == facts.ByTemplate
}

// workloadOf reads a workload; nil for every other kind.
func workloadOf(d *Document, namespace string) (*workload, error) {
	var path []string

	if t := facts.WorkloadKind(d.Kind).Type(); t != nil {
		path = t.Path
	} else if d.Kind != kindPod {
		return nil, nil //nolint:nilnil // Most kinds are none.
	}

	template := at(d.body, path...)
	if template == nil {
		return nil, nil //nolint:nilnil // It runs nothing.
	}

	w := &workload{doc: d, namespace: namespace, name: d.Name, template: template}

	var pod struct {
		Spec corev1.PodSpec `json:"spec"`
	}

	if err := (&Document{Source: d.Source, Line: d.Line, Kind: d.Kind, Name: d.Name, body: template}).into(&pod); err != nil {
		return nil, err
	}

	w.spec = pod.Spec
	w.account = Account{Namespace: namespace, Name: facts.AccountOf(&pod.Spec)}

	return w, nil
}

func (w *workload) label(key, value string) {
	if text(w.template, "metadata", "labels", key) == value {
		return
	}

	set(within(w.template, "metadata", "labels"), key, scalar(value))
	w.doc.changed = true
}

func (w *workload) container(name string) *yaml.Node {
	list := at(w.template, "spec", "containers")
	if list == nil {
		return nil
	}

	for _, c := range list.Content {
		if text(c, "name") == name {
			return c
		}
	}

	return nil
}

// empty takes the value of a variable away, so that its source can be the watch list: an empty variable is in nobody's way.
func (w *workload) empty(container, variable string) {
	env := child(w.container(container), "env")
	if env == nil {
		return
	}

	for _, v := range env.Content {
		from := child(v, "valueFrom")
		if text(v, "name") != variable || text(v, "value") == "" && from == nil {
			continue
		}

		remove(v, "valueFrom")
		set(v, "value", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle})

		w.doc.changed = true
	}
}

func (w *workload) setVariable(container, variable, value string) {
	c := w.container(container)
	if c == nil {
		return
	}

	env := listAt(c, "env")
	w.doc.changed = true

	for _, v := range env.Content {
		if text(v, "name") == variable {
			remove(v, "valueFrom")
			set(v, "value", scalar(value))

			return
		}
	}

	of := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	set(of, "name", scalar(variable))
	set(of, "value", scalar(value))
	env.Content = append(env.Content, of)
}

// setArgument gives an argument of the form --name=value its value, in the arguments or the command, wherever it is; where it is
// missing, it is added at the end of the arguments.
func (w *workload) setArgument(container, name, value string) {
	c := w.container(container)
	if c == nil {
		return
	}

	whole := name + "=" + value

	for _, key := range []string{"args", "command"} {
		list := child(c, key)
		if list == nil {
			continue
		}

		for i, a := range list.Content {
			switch {
			case a.Value == whole:
				return
			case strings.HasPrefix(a.Value, name+"="):
				list.Content[i] = scalar(whole)
				w.doc.changed = true

				return
			case a.Value == name && i+1 < len(list.Content) && !strings.HasPrefix(list.Content[i+1].Value, "-"):
				list.Content[i] = scalar(whole)
				list.Content = slices.Delete(list.Content, i+1, i+2)
				w.doc.changed = true

				return
			}
		}
	}

	args := listAt(c, "args")
	args.Content = append(args.Content, scalar(whole))
	w.doc.changed = true
}
