// Package reach says where a rule has an effect: in the namespaces in which it is bound, or in the whole cluster only.
package reach

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
)

//go:embed kinds.txt
var builtInKinds string

// Reach says where a resource is.
type Reach int

// The reaches. An unknown resource has neither of the last two.
const (
	Unknown Reach = iota
	Namespaced
	ClusterScoped
)

// wildcard stands for everything in the lists of a rule.
const (
	wildcard   = "*"
	verbCreate = "create"
)

// Resource names a resource, or a subresource as parent/name.
type Resource struct{ Group, Name string }

// String names it as --keep takes it.
func (r Resource) String() string {
	return cmp.Or(r.Group, "core") + "/" + r.Name
}

func (r Resource) parent() Resource {
	name, _, _ := strings.Cut(r.Name, "/")

	return Resource{r.Group, name}
}

func compareResources(a, b Resource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
}

// Kinds are the resources that are known, and where they are.
type Kinds struct {
	known map[Resource]Reach
	// ask says where a resource is that is not known. Optional.
	ask func(Resource) Reach
}

// NewKinds knows those of Kubernetes itself.
func NewKinds() *Kinds {
	k := &Kinds{known: map[Resource]Reach{}}

	for line := range strings.Lines(builtInKinds) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[0] == "#" {
			continue
		}

		group, name, _ := strings.Cut(fields[1], "/")
		if group == "core" {
			group = ""
		}

		k.Add(Resource{group, name}, fields[0] == "namespaced")
	}

	return k
}

// Add stores a resource. What is added later comes from closer to the cluster, so it wins.
func (k *Kinds) Add(r Resource, isNamespaced bool) {
	k.known[r] = ClusterScoped
	if isNamespaced {
		k.known[r] = Namespaced
	}
}

// AddCustom stores a resource of a CustomResourceDefinition, with the subresources that rules name: discovery does not list
// "finalizers", but OwnerReferencesPermissionEnforcement checks it. It stores nothing, and returns false, where the resource is
// known to be elsewhere: no definition can move it, and a file must not make of Deployments something without a namespace.
func (k *Kinds) AddCustom(r Resource, isNamespaced bool) bool {
	if known := k.known[r]; known != Unknown && isNamespaced != (known == Namespaced) {
		return false
	}

	for _, name := range []string{"", "/status", "/scale", "/finalizers"} {
		k.Add(Resource{r.Group, r.Name + name}, isNamespaced)
	}

	return true
}

// ReachOf says where a resource is. A subresource is where its parent is.
func (k *Kinds) ReachOf(r Resource) Reach {
	if reach, known := k.known[r]; known {
		return reach
	}

	if reach, known := k.known[r.parent()]; known || k.ask == nil {
		return reach
	}

	return k.ask(r.parent())
}

// matching returns the known resources of a reach that a rule's group and resource match, sorted.
func (k *Kinds) matching(group, name string, reach Reach) []Resource {
	var out []Resource

	for r, is := range k.known {
		if is == reach && means(Resource{group, name}, r) {
			out = append(out, r)
		}
	}

	slices.SortFunc(out, compareResources)

	return out
}

// knowsAnyOf says whether anything is known of the resources that a group and a resource with a wildcard stand for.
func (k *Kinds) knowsAnyOf(r Resource) bool {
	for known := range k.known {
		if known.Group == r.Group || r.Group == wildcard && means(r.parent(), known.parent()) {
			return true
		}
	}

	return false
}

// meansResource says whether a resource in a rule means one, as ResourceMatches of k8s.io/kubernetes/pkg/apis/rbac/v1 does.
func meansResource(inRule, name string) bool {
	_, sub, has := strings.Cut(name, "/")

	return inRule == wildcard || inRule == name || has && inRule == "*/"+sub
}
