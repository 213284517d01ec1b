package output

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// MaxSome is how many names a line has before it says "and 12 more".
const MaxSome = 4

// Some names as many as a line has room for.
func Some(names []string) string { return printable.Some(names, MaxSome) }

// Place is a namespace for users; the empty one stands for the whole cluster.
func Place(namespace string) string {
	if namespace == "" {
		return "the whole cluster"
	}

	return namespace
}

// Title names an object for users.
func Title(obj client.Object, kind string) string {
	return printable.Title(kind, obj.GetNamespace(), obj.GetName())
}

// QuotedTitle is a kind and a name for users, in one word each.
func QuotedTitle(title string) string {
	kind, name, found := strings.Cut(title, " ")
	if !found {
		return printable.Name(title)
	}

	return kind + " " + printable.Name(name)
}

// Places are namespaces for users.
func Places(namespaces []string) []string { return collect.Map(namespaces, Place) }
