package v1

import "encoding/json"

// NamespaceSelector chooses namespaces by their labels.
//
// It is written in one of two forms. The Kubernetes form has matchLabels and matchExpressions. The shorthand form has
// plain labels as its keys and means matchLabels:
//
//	namespaceSelector:
//	  cool.io/prod: "true"
//
// The API server accepts any object here, because the keys of the shorthand form cannot be listed in a schema. An
// object that mixes the two forms, or that cannot be read, selects nothing, and the status says so. The same holds for
// an empty object: it selects nothing, never everything.
//
// +kubebuilder:validation:Type=object
// +kubebuilder:validation:XPreserveUnknownFields
type NamespaceSelector struct {
	// Raw is the selector as it was written, in JSON.
	Raw json.RawMessage `json:"-"`
}

// MarshalJSON returns the selector as it was written.
func (s NamespaceSelector) MarshalJSON() ([]byte, error) {
	if len(s.Raw) == 0 {
		return []byte("{}"), nil
	}

	return s.Raw, nil
}

// UnmarshalJSON keeps the selector as it was written; reading it is the compiler's work, so that a selector that
// cannot be read is an error in status and not a resource that cannot be decoded.
func (s *NamespaceSelector) UnmarshalJSON(raw []byte) error {
	s.Raw = append(s.Raw[:0:0], raw...)

	return nil
}
