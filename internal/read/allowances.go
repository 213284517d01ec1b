package read

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// allowances bound what is remembered of one namespace, by the kinds of what it holds.
type allowances map[string]*allowance

// add makes an allowance for the kind that a list is of.
func (a allowances) add(list client.ObjectList, limit int) *allowance {
	kind := kindName(list)
	a[kind] = newAllowance(limit)

	return a[kind]
}

// kindName is what the objects of a list are called.
func kindName(list client.ObjectList) string {
	name := reflect.TypeOf(list).Elem().Name()
	if u, is := list.(*unstructured.UnstructuredList); is {
		name = u.GetKind()
	}

	return strings.TrimSuffix(name, "List") + "s"
}

// hasRoom says whether there is room for something that is left out.
func (a allowances) hasRoom() bool {
	for _, of := range a {
		if _, room := of.leftOut(); room {
			return true
		}
	}

	return false
}

// leftOut says how many objects of which kinds are left out, in words; empty when none are.
func (a allowances) leftOut() string {
	var words []string

	for _, kind := range slices.Sorted(maps.Keys(a)) {
		switch n, _ := a[kind].leftOut(); {
		case n > maxLeft:
			words = append(words, fmt.Sprintf("more than %d %s", maxLeft, kind))
		case n > 0:
			words = append(words, fmt.Sprintf("%d %s", n, kind))
		}
	}

	return strings.Join(words, ", ")
}
