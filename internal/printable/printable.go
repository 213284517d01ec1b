// Package printable shows strings of a cluster as what they are: whatever does not show itself, or changes how something else
// shows, is written as an escape sequence. Names of Roles, rules and subjects may hold anything, so nothing that comes from a
// cluster reaches a terminal, a page or a script in any other way. It is pure.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// blank is a symbol that shows nothing (U+2800, the Braille pattern without dots).
const blank = '\u2800'

// Is says whether a character shows itself and nothing else. Not printable are control and format characters, which move the
// cursor or turn the direction of text; marks, which are drawn on the character before them; spaces other than the usual one; and
// letters and symbols that are empty.
func Is(r rune) bool {
	if r < utf8.RuneSelf {
		return ' ' <= r && r <= '~'
	}

	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point) && r != blank && r != utf8.RuneError
}

// Text is a string in one line. What is not printable is escaped as Go does; bytes that are no text are \x and two digits.
func Text(s string) string { return escape(s, func(rune) bool { return false }) }

// Lines is Text for what has lines and columns of its own: line feeds and tabs stay.
func Lines(s string) string { return escape(s, func(r rune) bool { return r == '\n' || r == '\t' }) }

// IsText says whether Text has nothing to escape.
func IsText(s string) bool {
	for i, r := range s {
		if !Is(r) && !isReplacement(s[i:], r) {
			return false
		}
	}

	return true
}

// Name is a name in a list or a sentence. One that might be taken for more than a name, such as "a, b", is quoted.
func Name(s string) string {
	if s != "" && strings.IndexFunc(s, isPunctuation) < 0 {
		return s
	}

	return quote(s)
}

// isPunctuation says whether a character makes Name quote a name. Letters, digits, and the characters of Kubernetes' names and of
// rules do not.
func isPunctuation(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._:/*@+~", r) || !Is(r)
}

// Title names an object by its kind, its namespace if it has one, and its name.
func Title(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + Name(name)
	}

	return kind + " " + namespace + "/" + Name(name)
}

// Names are names for a list.
func Names(names []string) []string {
	return collect.Map(names, Name)
}

// quote is a string in double quotes as Go, YAML and, for the most part, JSON read them.
func quote(s string) string {
	var b strings.Builder

	b.WriteByte('"')

	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case Is(r) || isReplacement(s[i:], r):
			b.WriteRune(r)
		default:
			b.WriteString(sequence(s[i:], r))
		}
	}

	b.WriteByte('"')

	return b.String()
}

func escape(s string, keep func(rune) bool) string {
	if IsText(s) {
		return s
	}

	var b strings.Builder

	for i, r := range s {
		if Is(r) || isReplacement(s[i:], r) || keep(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(sequence(s[i:], r))
		}
	}

	return b.String()
}

// isReplacement says whether a string begins with the replacement character itself, and not with bytes that are no text.
func isReplacement(s string, r rune) bool {
	return r == utf8.RuneError && strings.HasPrefix(s, string(utf8.RuneError))
}

// sequence is the escape sequence of the character with which a string begins.
func sequence(s string, r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r == utf8.RuneError:
		return fmt.Sprintf(`\x%02x`, s[0])
	case r > maxBasic:
		return fmt.Sprintf(`\U%08x`, r)
	default:
		return fmt.Sprintf(`\u%04x`, r)
	}
}
