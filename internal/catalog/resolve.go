package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// Request is what a Subscription asks of a catalog.
type Request struct {
	// Subscription is its name, for words.
	Subscription string
	Package      string
	// Channel is empty for the default channel.
	Channel string
	// StartingCSV is what is installed first; empty for the newest.
	StartingCSV string
	// Installed is the ClusterServiceVersion that is there; empty before the first install. InstalledNumber is its version.
	Installed, InstalledNumber string
	// InstalledReplaces is what the installed version says that it replaces.
	InstalledReplaces string
}

// Choice is what a Subscription gets.
type Choice struct {
	Package, Channel string
	// Head is the newest version of the channel.
	Head string
	// Next is the version to install now; nil when Head is installed.
	Next *Version
	// Replaces is the version that Next replaces; empty at the first install.
	Replaces string
}

// ErrUnsatisfiable is in every error that says that a catalog does not have what a Subscription asks for.
var ErrUnsatisfiable = errors.New("constraints not satisfiable")

// Choose returns what a Subscription gets next. The words of its errors begin as OLM's do (pkg/controller/registry/resolver),
// because scripts look for them.
func (c *Catalog) Choose(r *Request) (*Choice, error) {
	p := c.packages[r.Package]
	if p == nil {
		return nil, unsatisfiable("no operators found in package %s in the catalog referenced by subscription %s; it has %s",
			r.Package, r.Subscription, some("package", "packages", c.Packages()))
	}

	name := cmp.Or(r.Channel, p.defaultChannel())
	if name == "" {
		return nil, unsatisfiable("no operators found in package %s in the catalog referenced by subscription %s: it has no "+
			"default channel, and spec.channel is empty; it has %s", p.Name, r.Subscription,
			some("channel", "channels", p.channelNames()))
	}

	ch := p.channel(name)
	if ch == nil {
		return nil, unsatisfiable("no operators found in channel %s of package %s in the catalog referenced by subscription %s; "+
			"it has %s", name, p.Name, r.Subscription, some("channel", "channels", p.channelNames()))
	}

	if c.versions[ch.CurrentCSV] == nil {
		return nil, unsatisfiable("no operators found in channel %s of package %s in the catalog referenced by subscription %s: %s",
			name, p.Name, r.Subscription, c.notThere(ch.CurrentCSV))
	}

	line, others, err := c.line(ch)
	if err != nil {
		return nil, unsatisfiable("channel %s of package %s: %v", name, p.Name, err)
	}

	choice := &Choice{Package: p.Name, Channel: name, Head: ch.CurrentCSV, Replaces: r.Installed}

	return choice, c.next(choice, ch, line, others, r)
}

// next fills in what comes next.
func (c *Catalog) next(choice *Choice, ch *Channel, line, others []string, r *Request) error {
	switch {
	case r.Installed == choice.Head:
		return nil
	case r.Installed == "" && r.StartingCSV == "":
		choice.Next = c.versions[choice.Head]

		return nil
	case r.Installed == "":
		if all := slices.Concat(line, others); !slices.Contains(all, r.StartingCSV) {
			return unsatisfiable("no operators found with name %s in channel %s of package %s in the catalog referenced by "+
				"subscription %s; it has %s", r.StartingCSV, choice.Channel, choice.Package, r.Subscription,
				some("version", "versions", all))
		}

		choice.Next = c.versions[r.StartingCSV]
	default:
		return c.upgrade(choice, ch, line, r)
	}

	return nil
}

// upgrade fills in what comes after the installed version.
func (c *Catalog) upgrade(choice *Choice, ch *Channel, line []string, r *Request) error {
	number, err := semver.ParseTolerant(r.InstalledNumber)

	// A version behind the installed one is older, whatever it says of itself: nothing is downgraded, or goes in circles.
	for _, name := range line[:behind(line, r.Installed)] {
		v := c.versions[name]

		switch {
		case !c.follows(ch, v, r.Installed, number, err == nil):
		case name == r.InstalledReplaces:
			return unsatisfiable("channel %s of package %s goes round in a circle: %s replaces %s, which is installed and says that it "+
				"replaces %s", choice.Channel, choice.Package, name, r.Installed, name)
		default:
			choice.Next = v

			return nil
		}
	}

	return unsatisfiable("nothing in channel %s of package %s replaces %s, which is installed; it has %s",
		choice.Channel, choice.Package, r.Installed, some("version", "versions", line))
}

// line are the versions of a channel, the newest first: each one and what it replaces. others are the further versions that the
// channel lists. One of them can be installed first, but no upgrade leads to it.
func (c *Catalog) line(ch *Channel) (line, others []string, err error) {
	seen := sets.Set[string]{}

	for name := ch.CurrentCSV; name != ""; {
		if seen.Has(name) {
			return line, nil, fmt.Errorf("it goes round in a circle: %s is replaced by a version that it replaces itself", name)
		}

		seen.Insert(name)

		e := c.entry(ch, name)
		if e == nil {
			break // Catalogs mostly begin with a version that replaces an older one, which they do not hold.
		}

		if c.versions[name] != nil {
			line = append(line, name)
		}

		name = e.Replaces
	}

	for i := range ch.Entries {
		name := ch.Entries[i].Name
		if !seen.Has(name) && c.versions[name] != nil {
			seen.Insert(name)

			others = append(others, name)
		}
	}

	return line, others, nil
}

// behind is the index at which the versions end that are newer than the installed one.
func behind(line []string, installed string) int {
	if i := slices.Index(line, installed); i >= 0 {
		return i
	}

	return len(line)
}

// follows says whether a version may be installed over the installed one, by what the channel says. number is the number of the
// installed version, if it is known.
func (c *Catalog) follows(ch *Channel, v *Version, installed string, number semver.Version, known bool) bool {
	e := c.entry(ch, v.Name)
	if e.Replaces == installed || slices.Contains(e.Skips, installed) {
		return true
	}

	covers, err := rangeOf(e.SkipRange)

	return err == nil && known && number.LT(v.Number) && covers(number)
}

// Belongs says whether a ClusterServiceVersion of that name is a version of a package: in one of its channels, or replaced or
// skipped there.
func (c *Catalog) Belongs(name, pkg string) bool {
	p := c.packages[pkg]

	return p != nil && name != "" && p.belongs.Has(name)
}

// Where returns the places in which the CatalogSource of a Subscription is looked for, in their order: its own namespace, and the
// global one, whose catalogs are for everybody. A Subscription gets nothing from another namespace's catalog: whoever reads the
// InstallPlan would read what that catalog holds.
func Where(namespace, global string, spec *olmv1alpha1.SubscriptionSpec) ([]types.NamespacedName, error) {
	name, from := spec.CatalogSource, spec.CatalogSourceNamespace

	switch {
	case name == "":
		return nil, errors.New("spec.source names no CatalogSource")
	case spec.Package == "":
		return nil, errors.New("spec.name names no package")
	case from != "" && from != namespace && from != global:
		return nil, fmt.Errorf("spec.sourceNamespace is %s; a CatalogSource has to be in the Subscription's own namespace, or in %s, "+
			"whose catalogs are for all namespaces", from, global)
	case from != "":
		return []types.NamespacedName{{Namespace: from, Name: name}}, nil
	}

	places := []types.NamespacedName{{Namespace: namespace, Name: name}}
	if global != "" && global != namespace {
		places = append(places, types.NamespacedName{Namespace: global, Name: name})
	}

	return places, nil
}

func unsatisfiable(format string, a ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUnsatisfiable}, a...)...)
}

// maxNames bounds the names in a sentence.
const maxNames = 5

// some lists names, as far as they fit into a sentence.
func some(one, many string, names []string) string {
	switch len(names) {
	case 0:
		return "no " + one
	case 1:
		return "the " + one + " " + names[0]
	default:
		return "the " + many + " " + printable.Some(names, maxNames)
	}
}
