package compile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// What can be wrong with a selector. Each of them selects nothing.
var (
	ErrSelectorEmpty      = errors.New("it is empty, which never means every namespace; give it labels")
	ErrSelectorMixed      = errors.New("it mixes matchLabels or matchExpressions with plain labels; use one of the two forms")
	ErrSelectorUnreadable = errors.New("it cannot be read")
)

// Selector reads a label selector in its Kubernetes form (matchLabels, matchExpressions) or in the shorthand form, whose
// keys are plain labels.
func Selector(raw []byte) (labels.Selector, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return nil, fmt.Errorf("%w: it must be an object with labels", ErrSelectorUnreadable)
	}

	plain := collect.Filter(slices.Sorted(maps.Keys(keys)), func(k string) bool {
		return k != "matchLabels" && k != "matchExpressions"
	})

	switch {
	case len(keys) == 0:
		return nil, ErrSelectorEmpty
	case len(plain) == 0:
		return standardSelector(raw)
	case len(plain) < len(keys):
		return nil, fmt.Errorf("%w (plain: %s)", ErrSelectorMixed, strings.Join(plain, ", "))
	default:
		return shorthandSelector(raw)
	}
}

func standardSelector(raw []byte) (labels.Selector, error) {
	var s metav1.LabelSelector
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: matchLabels takes labels, matchExpressions a list of key, operator and values",
			ErrSelectorUnreadable)
	}

	if len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return nil, ErrSelectorEmpty
	}

	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSelectorUnreadable, err)
	}

	return selector, nil
}

func shorthandSelector(raw []byte) (labels.Selector, error) {
	var set map[string]string
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("%w: the value of a label is a string; put quotes around true, false and numbers",
			ErrSelectorUnreadable)
	}

	selector, err := labels.ValidatedSelectorFromSet(set)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSelectorUnreadable, err)
	}

	return selector, nil
}
