package discovered

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// ErrAmbiguous is wrapped by the error where several API groups serve what somebody asks for.
var ErrAmbiguous = errors.New("several API groups serve that name")

// Resource is what somebody asks for by a name.
type Resource struct {
	schema.GroupResource

	Subresource string
	// Known says that the API server serves it, and ClusterScoped that it is then in no namespace.
	Known, ClusterScoped bool
}

// Path is the resource with its subresource, as rules name it.
func (r *Resource) Path() string {
	if r.Subresource == "" {
		return r.Resource
	}

	return r.Resource + "/" + r.Subresource
}

// Notes are what there is to say about a question whether somebody may do a verb with the resource.
func (r *Resource) Notes(verb string) []string {
	return slices.DeleteFunc([]string{r.Note(), VerbNote(verb)}, func(note string) bool { return note == "" })
}

// Note says that the API server does not know the resource: an answer is then about a word in rules, which may be a misspelled
// one. It says the same of a subresource, because kubectl writes an object as RESOURCE/NAME, and whoever may read all of a
// resource may read that object, and is not in an answer about a subresource. It is empty where there is nothing to say. A
// wildcard is no resource.
func (r *Resource) Note() string {
	switch {
	case r.Resource == "*":
		return ""
	case !r.Known:
		return "the API server knows no resource " + r.String() + ", so the answer is about rules that name it"
	case r.Subresource == "" || isSubresource(r):
		return ""
	}

	return fmt.Sprintf("%s is taken for a subresource, and Ambit knows none of that name of %s; "+
		"to ask about an object, give --name %s", r.Path(), r.String(), r.Subresource)
}

// isSubresource says whether Kubernetes has the subresource, or rules name it for resources of any definition.
func isSubresource(r *Resource) bool {
	return slices.Contains([]string{"*", "status", "scale", "finalizers"}, r.Subresource) ||
		reach.IsBuiltIn(reach.Resource{Group: r.Group, Name: r.Path()})
}

// Resolve finds the resource that somebody asks for: RESOURCE or RESOURCE.GROUP, by any name that the mapper knows, and with
// /SUBRESOURCE. The mapper also returns groups that only begin as the given one, and all in an order of its own, so what it would
// choose differs between two runs (k8s.io/apimachinery/pkg/api/meta, ResourcesFor). Here a group is what it is called, if one is;
// without a group, the core group comes first; and where several remain, none is chosen.
func Resolve(mapper meta.RESTMapper, asked string) (*Resource, error) {
	name, subresource, _ := strings.Cut(asked, "/")
	out := &Resource{GroupResource: schema.ParseGroupResource(name), Subresource: subresource}

	found, err := mapper.ResourcesFor(out.WithVersion(""))

	switch {
	case meta.IsNoMatchError(err):
		return out, nil
	case err != nil:
		return nil, fmt.Errorf("asking the API server for the resource %s: %w", name, err)
	}

	matches := collect.Map(found, schema.GroupVersionResource.GroupResource)
	slices.SortFunc(matches, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	matches = slices.Compact(matches)

	if exact := slices.DeleteFunc(slices.Clone(matches), func(gr schema.GroupResource) bool {
		return gr.Group != out.Group
	}); len(exact) > 0 {
		matches = exact
	}

	if len(matches) > 1 {
		names := collect.Map(matches, schema.GroupResource.String)

		return nil, fmt.Errorf("which %s is meant: %w; give one of %s", name, ErrAmbiguous, strings.Join(names, ", "))
	}

	out.GroupResource = matches[0]
	out.ClusterScoped, _ = IsClusterScoped(mapper, out.GroupResource)
	out.Known = true

	return out, nil
}
