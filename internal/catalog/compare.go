package catalog

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
)

// Verdict is what to do about a definition that exists.
type Verdict int

// The verdicts: the definition will do, it has to be changed, or it is in the way.
const (
	Fits Verdict = iota
	Differs
	Clashes
)

// Compare says whether a definition that is there will do in place of that of a catalog. versions are those that the operator
// works with, and made says that Ambit wrote it. A definition is everybody's: one that somebody else made is never changed,
// and no version is ever taken away from one that Ambit made, because other namespaces may use it.
func Compare(live, want *unstructured.Unstructured, versions []string, made bool) (Verdict, string) {
	if isPart(stored(want.Object["spec"]), stored(live.Object["spec"])) {
		return Fits, ""
	}

	there, wanted := facts.ReadDefinition(live), facts.ReadDefinition(want).Versions
	lacks := slices.DeleteFunc(slices.Clone(versions), func(v string) bool { return slices.Contains(there.Served, v) })
	takes := slices.DeleteFunc(there.Versions, func(v string) bool { return slices.Contains(wanted, v) })

	switch {
	case made && len(takes) == 0:
		return Differs, ""
	case len(lacks) == 0:
		return Fits, ""
	case made:
		return Clashes, fmt.Sprintf("the one that is there does not serve %s, and has %s, which the catalog's would take away",
			strings.Join(lacks, ", "), strings.Join(takes, ", "))
	default:
		return Clashes, fmt.Sprintf("one that Ambit did not make is there, and does not serve %s", strings.Join(lacks, ", "))
	}
}

// stored is the spec of a definition as the API server stores it: without values that mean the same as leaving them out, such as
// a false or an empty list, but with those that mean something, such as an empty schema or a default. A spec that does not fit
// the Go type stays as it is.
func stored(spec any) any {
	var (
		typed apiextensionsv1.CustomResourceDefinitionSpec
		out   map[string]any
	)

	text, err := json.Marshal(spec)
	if err != nil || json.Unmarshal(text, &typed) != nil {
		return spec
	}

	if text, err = json.Marshal(&typed); err != nil || json.Unmarshal(text, &out) != nil {
		return spec
	}

	return out
}

// isPart says whether everything that is wanted is there. What the API server filled in besides is no difference.
func isPart(want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			return false
		}

		for key, value := range want {
			if !isPart(value, have[key]) {
				return false
			}
		}

		return true
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			return false
		}

		for i := range want {
			if !isPart(want[i], have[i]) {
				return false
			}
		}

		return true
	default:
		return reflect.DeepEqual(want, have)
	}
}

// Wants are the versions of a definition that the operator owns.
func (s *Steps) Wants(definition string) []string {
	var versions []string

	for _, o := range s.CSV.Spec.CustomResourceDefinitions.Owned {
		if o.Name == definition && o.Version != "" {
			versions = append(versions, o.Version)
		}
	}

	return versions
}

// Tries are what to try in dry runs, to learn what is refused first: the steps that are to be written, and then the Roles that
// the install will write once its ClusterServiceVersion exists. Its ClusterRoles come before all, because an account is refused
// most often for what it may not hand out in the cluster, and that is what OLM's documentation shows.
func Tries(s *Steps, write []*unstructured.Unstructured, targets []string) []*unstructured.Unstructured {
	csv := s.CSV.DeepCopy()
	csv.Namespace = s.Namespace
	compiled := compile.ClusterServiceVersion(csv, compile.Install{Targets: targets})

	var out []*unstructured.Unstructured

	add := func(kind, namespace, name string, rules []rbacv1.PolicyRule) {
		// The fields of both kinds of roles are the same.
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&rbacv1.ClusterRole{Rules: rules})
		if err != nil {
			return
		}

		obj := &unstructured.Unstructured{Object: content}
		unstructured.RemoveNestedField(content, "metadata")
		obj.SetAPIVersion(rbacv1.SchemeGroupVersion.String())
		obj.SetKind(kind)
		obj.SetNamespace(namespace)
		obj.SetName(name)

		out = append(out, obj)
	}

	for _, r := range compiled.Defines {
		add("ClusterRole", "", r.Name, r.Rules)
	}

	out = append(out, write...)

	for _, r := range compiled.Roles {
		for _, namespace := range compiled.Members.Named {
			add("Role", namespace, r.Name, r.Rules)
		}
	}

	return out
}
