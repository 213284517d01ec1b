package printable

import (
	"encoding/json"
	"fmt"
)

// CompactJSON is JSON without line breaks, in which only what is printable stands for itself.
func CompactJSON(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}

	return escapeJSON(text, func(r rune) bool { return !Is(r) }), nil
}
