package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"
)

// What a catalog may cost is bounded, because whoever may write one ConfigMap decides what is in it. Its text is at most 1 MiB;
// these bound what may come of that.
const (
	// MaxSources is how many catalogs of a namespace are served, the oldest first: each is watched, and kept in memory.
	MaxSources = 10
	// MaxSubscriptions is how many Subscriptions of a namespace are served, the oldest first.
	MaxSubscriptions = 100
	// MaxSuperseded is how many InstallPlans that came to nothing a Subscription may leave behind.
	MaxSuperseded = 100

	// maxMarks bounds the values in a text that is read at once: a text has at most two for each mark that begins one. The manifests
	// of real operators have one mark in twenty bytes.
	maxMarks = 60_000
	// maxItems bounds the items of all lists in a ClusterServiceVersion: each may become a Deployment in Go's types, a thousand
	// times its text.
	maxItems = 10_000
	// maxEntries bounds the entries of a list, and the channels of all packages.
	maxEntries  = 5_000
	maxChannels = 1_000
	// maxProblems bounds the problems that are reported, maxWords the bytes of one, and maxRange those of a range of versions.
	maxProblems, maxWords, maxRange = 100, 400, 1_000
	// MaxName is how long a name of a package, channel or version may be, as any name of Kubernetes.
	MaxName = 253
)

var errAlias = errors.New(
	"it has an anchor (&name) and an alias (*name), by which a short text stands for a long one; write it out")

// affordable says why a text cannot be read at once; nil when it can.
func affordable(text string) error {
	switch marks := countMarks(text); {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return errors.New("it is no text in UTF-8")
	case marks > maxMarks:
		return fmt.Errorf("it is too large: it may have %d values, and this has room for %d", 2*marks, 2*maxMarks)
	case mayAlias(text):
		return errAlias
	default:
		return nil
	}
}

// countMarks counts what can begin a value in YAML, and more: marks within a block of text count, too. A dash begins a value only
// before white space, which may also be one of Unicode's; those begin with the bytes 0xc2 and 0xe2.
func countMarks(text string) int {
	marks := 0

	for i := range len(text) {
		switch text[i] {
		case ',', '[', '{', ':', '?':
			marks++
		case '-':
			if i+1 == len(text) || strings.IndexByte(" \t\r\n\xc2\xe2", text[i+1]) >= 0 {
				marks++
			}
		}
	}

	return marks
}

// mayAlias says whether some word of a text follows an ampersand and also a star, as an anchor and its alias do. It does not
// matter that the two may be in a comment or a description: that is rare.
func mayAlias(text string) bool {
	anchors := sets.New(slices.Collect(marked(text, '&'))...)

	return len(anchors) > 0 && anchors.HasAny(slices.Collect(marked(text, '*'))...)
}

// marked yields the words after a mark, made of the letters that YAML allows in the name of an anchor.
func marked(text string, mark byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for rest := text; ; {
			i := strings.IndexByte(rest, mark)
			if i < 0 {
				return
			}

			rest = rest[i+1:]

			end := strings.IndexFunc(rest, func(r rune) bool {
				return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && r != '_' && r != '-'
			})
			if end < 0 {
				end = len(rest)
			}

			if end > 0 && !yield(rest[:end]) {
				return
			}
		}
	}
}

func countItems(value any) int {
	n := 0

	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			n += countItems(inner)
		}
	case []any:
		n = len(v)
		for _, inner := range v {
			n += countItems(inner)
		}
	}

	return n
}
