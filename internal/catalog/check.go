package catalog

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
)

// check names what refers to something that is not there. The rest of the catalog stays usable.
func (c *Catalog) check() {
	for _, name := range c.Packages() {
		p := c.packages[name]
		if d := p.DefaultChannel; d != "" && p.channel(d) == nil {
			c.problem(KeyPackages, fmt.Sprintf("%s: its default channel %s is not there", name, d))
		}

		for i := range p.Channels {
			if ch := &p.Channels[i]; c.versions[ch.CurrentCSV] == nil {
				c.problem(KeyPackages, fmt.Sprintf("%s: channel %s: %s", name, ch.Name, c.notThere(ch.CurrentCSV)))
			}
		}

		p.belongs = c.members(p)
		c.own(p)
	}
}

// own records a package as the owner of the definitions that its newest versions own, unless another package owns them already.
func (c *Catalog) own(p *Package) {
	seen := sets.Set[string]{}

	for i := range p.Channels {
		v := c.versions[p.Channels[i].CurrentCSV]
		if v == nil || seen.Has(v.Name) {
			continue
		}

		seen.Insert(v.Name)

		for _, name := range v.owned {
			if _, owned := c.owners[name]; !owned {
				c.owners[name] = p.Name
			}
		}
	}
}

// members are the names of all versions of a package: in one of its channels, or replaced or skipped there. A channel that goes
// round in a circle has versions all the same.
func (c *Catalog) members(p *Package) sets.Set[string] {
	all, walked := sets.Set[string]{}, sets.Set[string]{}
	add := func(e *Entry) { all.Insert(e.Name, e.Replaces).Insert(e.Skips...) }

	for i := range p.Channels {
		ch := &p.Channels[i]

		for j := range ch.Entries {
			if e := &ch.Entries[j]; ch.named[e.Name] == j && c.versions[e.Name] != nil {
				add(e)
			}
		}

		// Where the entries end, the versions themselves say what they replace. Channels that meet there go the same way from there on,
		// so it is walked once.
		for name := ch.end(); c.versions[name] != nil && !walked.Has(name); name = c.versions[name].Replaces {
			walked.Insert(name)
			add(&c.versions[name].Entry)
		}
	}

	return all
}

// end is the version to which the entries of a channel lead and about which they say nothing; empty when they go in a circle.
func (ch *Channel) end() string {
	name := ch.CurrentCSV

	for range len(ch.Entries) + 1 {
		i, listed := ch.named[name]
		if !listed {
			return name
		}

		name = ch.Entries[i].Replaces
	}

	return ""
}

// notThere says why a ClusterServiceVersion cannot be had.
func (c *Catalog) notThere(name string) string {
	if why := c.unusable[name]; why != "" {
		return fmt.Sprintf("ClusterServiceVersion %s cannot be used: %s", name, why)
	}

	return fmt.Sprintf("the catalog holds no ClusterServiceVersion %s", name)
}
