package served

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// matcher matches any of some patterns, such as "team-*"; nil for no patterns, which lets everything through.
func matcher(patterns []string) func(string) bool {
	if len(patterns) == 0 {
		return nil
	}

	return func(name string) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			matched, err := path.Match(p, name)

			// A pattern without a slash also matches the last part of an operator's name.
			if !matched && !strings.Contains(p, "/") {
				matched, err = path.Match(p, name[strings.LastIndex(name, "/")+1:])
			}

			return err == nil && matched
		})
	}
}

// validPatterns says which of the patterns cannot be read.
func validPatterns(flag string, patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("%s is %q, which is no pattern: a [ without its ]", flag, p)
		}
	}

	return nil
}
