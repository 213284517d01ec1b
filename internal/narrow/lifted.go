package narrow

import (
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// policies are the admission policies of a stream that refuse, such as fences, and their bindings.
func (s *Stream) policies() map[string]*Document {
	out := map[string]*Document{}

	for d := range s.objects() {
		if strings.HasPrefix(d.APIVersion, admissionv1.GroupName+"/") && (d.Kind == kindPolicy || d.Kind == kindPolicyBinding) {
			out[identity(d.Kind, "", d.Name)] = d
		}
	}

	return out
}

// ownerReferences are metadata that matters: the garbage collector deletes an object whose owner is not there.
const ownerReferences = "ownerReferences"

// beyondPolicies are the policies that limited before, and that the new version changes or, of those of the old one, leaves out:
// whoever holds a right may use it then where they refused that.
func beyondPolicies(before, after *Stream, o *Options) (out []More, err error) {
	had, has := before.policies(), after.policies()

	for key, d := range o.fences().policies() {
		if had[key] == nil && has[key] != nil {
			had[key] = d
		}
	}

	for _, key := range slices.Sorted(maps.Keys(had)) {
		was, is := had[key], has[key]

		m := newMore(was)
		m.Whose, m.Says = "whoever "+was.String()+" limits", []string{"what it refused: the new version leaves it out"}

		if is != nil {
			same, err := isSame(was, is, ownerReferences)
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

// fences are the admission policies and their bindings that the cluster has.
func (o *Options) fences() *Stream {
	if o.Fences == nil {
		return &Stream{}
	}

	return o.Fences()
}

// beyondParameters are the objects that say what policies refuse, such as the list of a fence, and that the new version writes
// otherwise.
func beyondParameters(before *Stream, old, young *version, o *Options) (out []More, err error) {
	limits := o.fences().policies()
	maps.Copy(limits, before.policies())

	var params []*Document

	for _, key := range slices.Sorted(maps.Keys(young.identities)) {
		if d := young.identities[key]; key == identity(d.Kind, young.at(d), d.Name) {
			params = append(params, d)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(limits)) {
		binding := limits[key]

		ref := at(binding.body, "spec", "paramRef")
		if binding.Kind != kindPolicyBinding || ref == nil {
			continue
		}

		policy := limits[identity(kindPolicy, "", text(binding.body, "spec", "policyName"))]
		namespace, name, says := text(ref, "namespace"), text(ref, "name"), []string{ownerReferences}

		if name == "" {
			says = append(says, "labels") // A selector selects by them, and may select any.
		}

		for _, is := range params {
			switch {
			case policy != nil && text(policy.body, "spec", "paramKind", "kind") != is.Kind,
				namespace != "" && namespace != young.at(is), name != "" && name != is.Name:
				continue
			}

			if was := old.identities[identity(is.Kind, young.at(is), is.Name)]; was != nil {
				same, err := isSame(was, is, says...)
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

// isSame says whether two objects say the same, their status aside, and of their metadata all but some fields.
func isSame(a, b *Document, metadata ...string) (bool, error) {
	var contents [2]map[string]any

	for i, d := range []*Document{a, b} {
		content, err := d.content()
		if err != nil {
			return false, err
		}

		delete(content, "apiVersion")

		for _, field := range metadata {
			if of := at(d.body, "metadata", field); of != nil {
				var value any
				if err := of.Decode(&value); err != nil {
					return false, d.failed(err)
				}

				content["metadata."+field] = value
			}
		}

		contents[i] = content
	}

	return equality.Semantic.DeepEqual(contents[0], contents[1]), nil
}
