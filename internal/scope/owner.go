package scope

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Owner names the resource that a scope came from. Group is part of its identity, because two API groups serve a kind
// called NamespaceScope.
type Owner struct {
	Group, Kind, Namespace, Name string
}

// String is the value of the annotation ambit.dev/owner.
func (o Owner) String() string {
	return o.Kind + "/" + o.Namespace + "/" + o.Name
}

// Hash is the value of the label ambit.dev/scope: 16 hexadecimal digits over group, kind, namespace and name. The parts
// are separated by a byte that none of them can hold, so that no two owners run together.
func (o Owner) Hash() string {
	return Digest(16, o.Group, o.Kind, o.Namespace, o.Name)
}

// Cluster is the home of scopes that have no namespace. No namespace can be called so.
const Cluster = "(cluster)"

// OwnerHome returns the home that an annotation which String wrote points to, or "" when it is not of that form.
func OwnerHome(annotation string) string {
	parts := strings.Split(annotation, "/")

	switch {
	case len(parts) != 3 || parts[0] == "" || parts[2] == "":
		return ""
	case parts[1] == "":
		return Cluster
	default:
		return parts[1]
	}
}

// Digest returns the first n hexadecimal digits of a SHA-256 over the parts, each ended by a zero byte. Names in
// Kubernetes cannot hold one, so different parts never give the same input.
func Digest(n int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}

	return hex.EncodeToString(h.Sum(nil))[:n]
}
