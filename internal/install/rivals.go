package install

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Place is what is installed in a namespace, as far as operators of other namespaces care.
type Place struct {
	// APIs are those that operators there bring, as kind.version.group.
	APIs []string
	// Reach are the namespaces, besides its own, in which they may work; the empty name stands for all.
	Reach []string
}

// WithRivals adds to namespaces those whose operators may keep operators there from a namespace, or be kept from one: they bring
// the same API, and may work where the others do. These have rivals of their own, so it takes all that are linked. The result is
// sorted.
func WithRivals(namespaces []string, places map[string]*Place) []string {
	linked := map[string]struct{}{}
	bringing := map[string][]string{}

	for name, p := range places {
		for _, api := range p.APIs {
			bringing[api] = append(bringing[api], name)
		}
	}

	for left := slices.Clone(namespaces); len(left) > 0; {
		name := left[len(left)-1]
		left = left[:len(left)-1]

		if _, known := linked[name]; known {
			continue
		}

		linked[name] = struct{}{}

		if here := places[name]; here != nil {
			for _, api := range here.APIs {
				for _, other := range bringing[api] {
					if _, known := linked[other]; !known && meet(name, here, other, places[other]) {
						left = append(left, other)
					}
				}
			}
		}
	}

	return slices.Sorted(maps.Keys(linked))
}

// meet says whether operators of two namespaces may work in the same one.
func meet(a string, in *Place, b string, and *Place) bool {
	work := func(p *Place, own, name string) bool {
		return name == own || slices.Contains(p.Reach, name) || slices.Contains(p.Reach, corev1.NamespaceAll)
	}

	return work(in, a, b) || work(and, b, a) || slices.Contains(in.Reach, corev1.NamespaceAll) ||
		slices.ContainsFunc(in.Reach, func(name string) bool { return work(and, b, name) })
}
