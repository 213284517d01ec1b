package watchlist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// all is how a list says that it means every namespace. An empty list never means that.
const all = "*"

// namespaces is a list that was understood: sorted names, or every namespace.
type namespaces struct {
	all   bool
	names []string
}

// String is the list as it is written, and as it is hashed: sorted names with commas between them.
func (n namespaces) String() string {
	if n.all {
		return all
	}

	return strings.Join(n.names, ",")
}

func (n namespaces) has(name string) bool {
	if n.all {
		return name == ""
	}

	_, found := slices.BinarySearch(n.names, name)

	return found
}

// spaces are the names of the caches that serve the list; the empty one is a cache of all namespaces.
func (n namespaces) spaces() []string {
	if n.all {
		return []string{""}
	}

	return n.names
}

// parse understands a list, or refuses it as a whole: to serve the half of it that could be read would be a guess.
func parse(list string) (namespaces, error) {
	var out namespaces

	for field := range strings.FieldsFuncSeq(list, func(r rune) bool { return strings.ContainsRune(", \n\t\r", r) }) {
		if field == all {
			out.all = true

			continue
		}

		if problems := validation.IsDNS1123Label(field); len(problems) > 0 {
			return namespaces{}, fmt.Errorf("%.70q is not the name of a namespace: %s", field, problems[0])
		}

		out.names = append(out.names, field)
	}

	if out.all && len(out.names) > 0 {
		return namespaces{}, errors.New(`"*" means all namespaces, and stands alone`)
	}

	slices.Sort(out.names)
	out.names = slices.Compact(out.names)

	return out, nil
}
