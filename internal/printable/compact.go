package printable

import (
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// CompactJSON is JSON without line breaks, in which only what is printable stands for itself.
func CompactJSON(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}

	return escapeJSON(text, func(r rune) bool { return !Is(r) }, func(r rune) string {
		high, low := utf16.EncodeRune(r)

		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}), nil
}
