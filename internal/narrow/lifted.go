package narrow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// policies are the admission policies of a stream that refuse, such as fences, and their bindings.
func (s *Stream) policies() map[string]*Document {
	out := map[string]*Document{}

	s.each(func(d *Document) {
		if strings.HasPrefix(d.APIVersion, admissionv1.GroupName+"/") && (d.Kind == kindPolicy || d.Kind == kindPolicyBinding) {
			out[identity(d.Kind, "", d.Name)] = d
		}
	})

	return out
}

// beyondPolicies are the policies of an old version that the new one changes or leaves out: whoever holds a right may use it then
// where they refused that.
func beyondPolicies(before, after *Stream) (out []More, err error) {
	had, has := before.policies(), after.policies()

	for _, key := range slices.Sorted(maps.Keys(had)) {
		was, is := had[key], has[key]

		m := newMore(was)
		m.Whose, m.Says = "whoever "+was.String()+" limits", []string{"what it refused: the new version leaves it out"}

		if is != nil {
			same, err := isSame(was, is)
			if err != nil {
				return nil, err
			}

			if same {
				continue
			}

			m.Source, m.Line, m.Says = is.Source, is.Line, []string{"what it refused: the new version changes it"}
		}

		out = append(out, m)
	}

	return out, nil
}

// beyondParameters are the objects that say what policies of an old version refuse, such as the list of a fence, and that the new
// version writes otherwise.
func beyondParameters(old, young *version) (out []More, err error) {
	for _, key := range slices.Sorted(maps.Keys(old.identities)) {
		binding := old.identities[key]

		ref := at(binding.body, "spec", "paramRef")
		if binding.Kind != kindPolicyBinding || ref == nil {
			continue
		}

		kind := kindConfigMap
		if policy := old.identities[identity(kindPolicy, "", text(binding.body, "spec", "policyName"))]; policy != nil {
			kind = text(policy.body, "spec", "paramKind", "kind")
		}

		for _, param := range slices.Sorted(maps.Keys(young.identities)) {
			is := young.identities[param]
			if is.Kind != kind || param != identity(kind, young.at(is), is.Name) || !mayBeParameter(ref, young.at(is), is.Name) {
				continue
			}

			if was := old.identities[param]; was != nil {
				same, err := isSame(was, is)
				if err != nil {
					return nil, err
				}

				if same {
					continue
				}
			}

			m := newMore(is)
			m.Whose = "whoever " + binding.String() + " limits"
			m.Says = []string{"what it refused, as " + is.String() + " says: the new version changes that"}
			out = append(out, m)
		}
	}

	return out, nil
}

// mayBeParameter says whether the reference of a binding may mean an object. By a selector it may mean any.
func mayBeParameter(ref *yaml.Node, namespace, name string) bool {
	return slices.Contains([]string{"", namespace}, text(ref, "namespace")) && slices.Contains([]string{"", name}, text(ref, "name"))
}

// isSame says whether two objects say the same, their metadata and status aside.
func isSame(a, b *Document) (bool, error) {
	var contents [2]map[string]any

	for i, d := range []*Document{a, b} {
		if err := d.makePlain(); err != nil {
			return false, fmt.Errorf("%s of %s, line %d: %w", d, d.Source, d.Line, err)
		}

		content, err := d.content()
		if err != nil {
			return false, err
		}

		delete(content, "apiVersion")
		contents[i] = content
	}

	return equality.Semantic.DeepEqual(contents[0], contents[1]), nil
}
