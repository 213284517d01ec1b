package projected

import "strings"

// Source is the object that a projected object mirrors.
type Source struct {
	Kind, Namespace, Name string
}

// String is the value of the annotation ambit.dev/source.
func (s Source) String() string { return s.Kind + "/" + s.Namespace + "/" + s.Name }

// ParseSource reads what String wrote. Names of RBAC objects hold no slash.
func ParseSource(annotation string) (Source, bool) {
	parts := strings.Split(annotation, "/")
	if len(parts) != 3 {
		return Source{}, false
	}

	return Source{Kind: parts[0], Namespace: parts[1], Name: parts[2]}, true
}
