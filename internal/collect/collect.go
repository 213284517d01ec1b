// Package collect makes lists from lists, and counts and finds in them, where package slices of Go's library has no function for
// it.
package collect

// Map returns what a function makes of each element.
func Map[E, R any](list []E, of func(E) R) []R {
	out := make([]R, len(list))
	for i := range list {
		out[i] = of(list[i])
	}

	return out
}

// Pointers returns where each element is.
func Pointers[E any](list []E) []*E {
	out := make([]*E, len(list))
	for i := range list {
		out[i] = &list[i]
	}

	return out
}

// Filter returns the elements for which something is so, and nil where there are none. It leaves the list as it is.
func Filter[E any](list []E, is func(E) bool) []E {
	var out []E

	for i := range list {
		if is(list[i]) {
			out = append(out, list[i])
		}
	}

	return out
}

// Count returns for how many elements something is so.
func Count[E any](list []E, is func(E) bool) int {
	n := 0

	for i := range list {
		if is(list[i]) {
			n++
		}
	}

	return n
}
