// Package catalog says what a catalog holds, which ClusterServiceVersion a Subscription gets from it, and what users see of
// that. It is pure: ConfigMaps and times are handed in, and nothing is written.
package catalog

import (
	"maps"
	"slices"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// The keys of a catalog's ConfigMap. Each holds a list in YAML.
const (
	KeyDefinitions = "customResourceDefinitions"
	KeyVersions    = "clusterServiceVersions"
	KeyPackages    = "packages"
)

// Catalog is what can be used of a catalog's ConfigMap.
type Catalog struct {
	// Problems say what cannot be used, in the order of the ConfigMap.
	Problems []string

	packages map[string]*Package
	versions map[string]*Version
	// definitions are the CustomResourceDefinitions by name: the versions of an operator may bring different versions of one.
	definitions map[string][]*definition
	// owners are the packages to which a CustomResourceDefinition belongs.
	owners map[string]string
	// channels is how many channels all packages have.
	channels int
	// unusable says why a ClusterServiceVersion, or a CustomResourceDefinition, that is there cannot be used.
	unusable map[string]string
}

// Package is an operator with its channels.
type Package struct {
	Name           string
	DefaultChannel string
	Channels       []Channel

	// named are the indexes of the channels by name. belongs are the names of all versions that are in a channel, or replaced or
	// skipped there.
	named   map[string]int
	belongs sets.Set[string]
}

// Channel is a line of versions. The last one is CurrentCSV, and each one says what it replaces.
type Channel struct {
	Name       string
	CurrentCSV string
	// Entries say for this channel what its versions replace; without them, the versions themselves do.
	Entries []Entry

	// named are the indexes of the entries by name.
	named map[string]int
}

// Entry is a version in a channel. The field names are those of file-based catalogs.
type Entry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces"`
	Skips     []string `json:"skips"`
	SkipRange string   `json:"skipRange"`
}

// Version is a ClusterServiceVersion of the catalog.
type Version struct {
	Entry

	// Number is the version of the operator.
	Number semver.Version

	// owned are the names of the CustomResourceDefinitions that it brings.
	owned []string
	// text is the whole object in JSON: in Go's types it would take many times that memory, and only an install needs it.
	text []byte
}

// definition is a CustomResourceDefinition of the catalog.
type definition struct {
	versions []string
	text     []byte
}

// Packages returns the names of the packages, sorted.
func (c *Catalog) Packages() []string { return slices.Sorted(maps.Keys(c.packages)) }

// Versions is how many ClusterServiceVersions can be used.
func (c *Catalog) Versions() int { return len(c.versions) }

// definition returns the CustomResourceDefinition of a name that has a version. Of several, the last one counts, as in OLM's
// loader (operator-registry, pkg/sqlite/configmap.go), which overwrites.
func (c *Catalog) definition(name, version string) *unstructured.Unstructured {
	for _, crd := range slices.Backward(c.definitions[name]) {
		if version == "" || slices.Contains(crd.versions, version) {
			return read(crd.text)
		}
	}

	return nil
}

func (p *Package) channel(name string) *Channel {
	if i, found := p.named[name]; found {
		return &p.Channels[i]
	}

	return nil
}

func (p *Package) channelNames() []string {
	return slices.Sorted(slices.Values(collect.Map(p.Channels, func(c Channel) string { return c.Name })))
}

// defaultChannel is the channel of a Subscription that names none: the package's default, or its only one.
func (p *Package) defaultChannel() string {
	if p.DefaultChannel == "" && len(p.Channels) == 1 {
		return p.Channels[0].Name
	}

	return p.DefaultChannel
}

// entry returns what a channel says about one of its versions, or else what the version says itself; nil when there is neither.
func (c *Catalog) entry(ch *Channel, name string) *Entry {
	if i, found := ch.named[name]; found {
		return &ch.Entries[i]
	}

	if v := c.versions[name]; v != nil {
		return &v.Entry
	}

	return nil
}
