package v1

import (
	"encoding/json"
	"errors"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// UnmarshalJSON reads a spec also where a part of it is not of the type that it should be, and says so in Unreadable. What was
// written under the definition of IBM's operator, which keeps whatever it does not know, stays; and one scope that cannot be
// decoded would keep everybody from listing any.
func (s *NamespaceScopeSpec) UnmarshalJSON(raw []byte) error {
	type plain NamespaceScopeSpec

	var (
		out   plain
		wrong *json.UnmarshalTypeError
	)

	err := utiljson.Unmarshal(raw, &out)
	if err != nil && !errors.As(err, &wrong) {
		return err //nolint:wrapcheck // The decoder that called this says what it decoded.
	}

	*s = NamespaceScopeSpec(out)
	if wrong != nil {
		s.Unreadable = wrong.Error()
	}

	return nil
}
