package scope

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// A scope is part of a plan, which can be written down as JSON. All but its selectors is plain data; those are written as what
// they require.

// requirement is one of a selector's.
type requirement struct {
	Key      string
	Operator selection.Operator
	Values   []string
}

// selector is a selector as JSON; nil is null.
type selector struct{ labels.Selector }

// errUnselectable is returned for a selector that selects nothing, which no requirement can express.
var errUnselectable = errors.New("the selector cannot be written down")

// MarshalJSON writes the requirements.
func (s selector) MarshalJSON() ([]byte, error) {
	if s.Selector == nil {
		return []byte("null"), nil
	}

	all, selectable := s.Requirements()
	if !selectable {
		return nil, errUnselectable
	}

	out := make([]requirement, 0, len(all))
	for i := range all {
		out = append(out, requirement{all[i].Key(), all[i].Operator(), all[i].ValuesUnsorted()})
	}

	return json.Marshal(out) //nolint:wrapcheck,musttag // The package json says what it was. Nobody else reads it.
}

// UnmarshalJSON reads the requirements.
func (s *selector) UnmarshalJSON(data []byte) error {
	var in []requirement
	if err := json.Unmarshal(data, &in); err != nil { //nolint:musttag // Nobody else wrote it.
		return fmt.Errorf("reading a selector: %w", err)
	}

	if in == nil {
		return nil
	}

	s.Selector = labels.NewSelector()

	for i := range in {
		r, err := labels.NewRequirement(in[i].Key, in[i].Operator, in[i].Values)
		if err != nil {
			return fmt.Errorf("reading a selector: %w", err)
		}

		s.Selector = s.Add(*r)
	}

	return nil
}

// MarshalJSON writes the scope with its selector.
func (s Scope) MarshalJSON() ([]byte, error) {
	type plain Scope

	//nolint:wrapcheck,musttag // The package json says what it was. Nobody else reads it.
	return json.Marshal(struct {
		plain

		Operands selector
	}{plain(s), selector{s.Operands}})
}

// UnmarshalJSON reads the scope with its selector.
func (s *Scope) UnmarshalJSON(data []byte) error {
	type plain Scope

	in := struct {
		*plain

		Operands selector
	}{plain: (*plain)(s)}

	err := json.Unmarshal(data, &in) //nolint:musttag // Nobody else wrote it.
	s.Operands = in.Operands.Selector

	return err //nolint:wrapcheck // The package json says what it was.
}

// MarshalJSON writes the members with their selector.
func (m Members) MarshalJSON() ([]byte, error) {
	type plain Members

	//nolint:wrapcheck,musttag // The package json says what it was. Nobody else reads it.
	return json.Marshal(struct {
		plain

		Selector selector
	}{plain(m), selector{m.Selector}})
}

// UnmarshalJSON reads the members with their selector.
func (m *Members) UnmarshalJSON(data []byte) error {
	type plain Members

	in := struct {
		*plain

		Selector selector
	}{plain: (*plain)(m)}

	err := json.Unmarshal(data, &in) //nolint:musttag // Nobody else wrote it.
	m.Selector = in.Selector.Selector

	return err //nolint:wrapcheck // The package json says what it was.
}
