package printable

import "strings"

// Word is an argument for a command line that users copy, as a POSIX shell reads it.
func Word(s string) string {
	if s != "" && strings.Trim(s, shellLetters) == "" {
		return s
	}

	// Escapes need not be undone: no object can have such a name.
	return "'" + strings.ReplaceAll(Text(s), "'", `'\''`) + "'"
}

const shellLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:@+"
