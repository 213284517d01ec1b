package scope

import (
	"cmp"
	"strings"
)

// Key is what is reconciled at a time: the resources of one family in one namespace. The zero Key is none.
type Key struct {
	Family Family
	// Namespace is the operator namespace of those resources, or Cluster for what has none.
	Namespace string
}

// Family is which resources are reconciled together. The zero Family is none.
type Family uint8

// The families: NamespaceScopes; ScopeTemplates and ScopeInstances; OperatorGroups and ClusterServiceVersions; CatalogSources,
// Subscriptions and InstallPlans. Where two have something to do in a namespace, those that are sooner done come first.
const (
	NamespaceScopes Family = iota + 1
	Templates
	Installs
	Catalogs
)

// Cluster stands for the namespace of what has none where one has to be named: in a Key, in metrics, and in a question about
// what is held in the cluster as a whole. No namespace can be called so.
const Cluster = "(cluster)"

// In is the key of the family's resources in a namespace.
func (f Family) In(namespace string) Key { return Key{f, namespace} }

// TemplatesKey is the one key of all ScopeTemplates and ScopeInstances, which have no namespace.
func TemplatesKey() Key { return Templates.In(Cluster) }

// String is what the controller of the family is called, in the log and in metrics.
func (f Family) String() string {
	switch f {
	case NamespaceScopes:
		return "namespacescope"
	case Templates:
		return "template"
	case Catalogs:
		return "catalog"
	case Installs:
		return "operatorgroup"
	default:
		return ""
	}
}

// String is the key in the log. It is stored, too: the names of copies hold a hash of it, by which Ambit knows them again (see
// projected.Names). So it never changes. No two keys have the same, because a namespace's name has neither a slash nor a
// parenthesis.
func (k Key) String() string {
	switch k.Family {
	case Catalogs:
		return k.Namespace + "/catalogs"
	case Installs:
		return k.Namespace + "/installs"
	default:
		return k.Namespace
	}
}

// Compare sorts keys by namespace, and those of a namespace by family.
func (k Key) Compare(other Key) int {
	return cmp.Or(strings.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Family, other.Family))
}

// IsZero says whether the key is none.
func (k Key) IsZero() bool { return k == Key{} }
