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

// First joins the first of some words, and counts the others as one more: "a; b; and 12 more".
func First(words []string, between string, most int) string {
	text := strings.Join(words[:min(most, len(words))], between)
	if more := len(words) - most; more > 0 {
		text += fmt.Sprintf("%sand %d more", between, more)
	}

	return text
}

// Number is a number with what it counts, in words for one and for any other number.
func Number(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}

	return fmt.Sprintf("%d %s", n, many)
}

// Cut makes a text fit into a message, however long the names are that it quotes: no more than so many bytes of it, and a sign
// that there was more.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}

	return strings.ToValidUTF8(text[:most], "") + "…"
}
