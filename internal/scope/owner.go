package scope

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
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

// Compare orders owners as the scopes of a plan are: by namespace and name.
func (o Owner) Compare(other Owner) int {
	return cmp.Or(cmp.Compare(o.Namespace, other.Namespace), cmp.Compare(o.Name, other.Name), cmp.Compare(o.Group, other.Group),
		cmp.Compare(o.Kind, other.Kind))
}

// The kinds of OLM that own what is installed.
const (
	KindCSV   = "ClusterServiceVersion"
	KindGroup = "OperatorGroup"
)

// OwnerKey returns the reconcile key that an annotation which String wrote points to; the zero Key when it is not of that form.
func OwnerKey(annotation string) Key {
	parts := strings.Split(annotation, "/")

	switch {
	case len(parts) != 3 || parts[0] == "" || parts[2] == "":
		return Key{}
	case parts[1] == "":
		return TemplatesKey()
	case parts[0] == KindCSV || parts[0] == KindGroup:
		return Installs.In(parts[1])
	default:
		return NamespaceScopes.In(parts[1])
	}
}

// ParseOwner reads what String wrote, but for the group, which is not in it. The annotation can hold anything, so what can be no
// kind or name is quoted.
func ParseOwner(annotation string) Owner {
	kind, rest, _ := strings.Cut(annotation, "/")
	namespace, name, _ := strings.Cut(rest, "/")

	return Owner{Kind: plain(kind), Namespace: plain(namespace), Name: plain(name)}
}

// plain is a word as it is if it has only what names have, and else quoted.
func plain(word string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."

	if strings.ContainsFunc(word, func(r rune) bool { return !strings.ContainsRune(allowed, r) }) {
		return strconv.QuoteToASCII(word)
	}

	return word
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
