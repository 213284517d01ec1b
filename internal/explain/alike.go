package explain

import (
	"slices"
	"strings"
)

// alike are verbs of requests that come to the same as those of another verb, and what they do.
//
//nolint:gochecknoglobals // It never changes.
var alike = map[string]struct {
	verbs []string
	does  string
}{
	"get":    {[]string{"list", "watch"}, "which gives what is in them"},
	"update": {[]string{"patch"}, "which changes them, too"},
	"patch":  {[]string{"update"}, "which changes them, too"},
	"delete": {[]string{"deletecollection"}, "which deletes them, too"},
}

// Alike are questions about other requests that come to the same: whoever asks who may get Secrets wants to know who reads them,
// and lists give the same content. does says what such requests do.
func (q *Question) Alike() (questions []Question, does string) {
	of, isSub := alike[q.Verb], strings.Contains(q.Resource, "/")

	for _, verb := range of.verbs {
		names := []string{q.Name}

		// These name no object, or with a field selector one, and there are none about subresources.
		ofAll := slices.Contains([]string{"list", "watch", "deletecollection"}, verb)
		if ofAll && isSub {
			continue
		}

		if ofAll {
			names = slices.Compact([]string{"", q.Name})
		}

		for _, name := range names {
			other := *q
			other.Verb, other.Name = verb, name
			other.ClusterScoped = q.ClusterScoped || ofAll && q.Group == "" && q.Resource == namespacesResource
			questions = append(questions, other)
		}
	}

	return questions, of.does
}
