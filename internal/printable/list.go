package printable

import (
	"fmt"
	"strings"
)

// Some are the first names of a list, and how many more there are: "a, b and 12 more".
func Some(names []string, most int) string {
	shown := names[:min(most, len(names))]

	return Counted(shown, ", ", len(names)-len(shown))
}

// Counted joins words, and says how many more there are.
func Counted(shown []string, between string, more int) string {
	text := strings.Join(shown, between)
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}
