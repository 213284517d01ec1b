package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	definitionKind    = "CustomResourceDefinition"
	definitionGroup   = "apiextensions.k8s.io"
	definitionVersion = definitionGroup + "/v1"

	// skipRange is the annotation of a ClusterServiceVersion that names the versions it can replace.
	skipRange = "olm.skipRange"
)

// Parse reads a catalog's ConfigMap. What cannot be read is named in Problems and stops nothing else.
func Parse(data map[string]string) *Catalog {
	c := &Catalog{
		packages: map[string]*Package{}, versions: map[string]*Version{}, unusable: map[string]string{},
		definitions: map[string][]*unstructured.Unstructured{},
	}

	// In the order in which one needs the other, so that problems are told in an order that explains.
	for _, part := range []struct {
		key string
		add func(map[string]any) (string, error)
	}{
		{KeyDefinitions, c.addDefinition}, {KeyVersions, c.addVersion}, {KeyPackages, c.addPackage},
	} {
		list, problems := entries(data[part.key])
		for _, p := range problems {
			c.problem(part.key, p)
		}

		for _, e := range list {
			if name, err := part.add(e.value); err != nil {
				if name == "" {
					name = fmt.Sprintf("entry %d", e.number)
				} else {
					c.unusable[name] = err.Error()
				}

				c.problem(part.key, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}

	c.check()

	return c
}

func (c *Catalog) problem(key, words string) { c.Problems = append(c.Problems, key+": "+words) }

// check names what refers to something that is not there. It stays usable as far as it goes.
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
	}
}

// notThere says why a ClusterServiceVersion cannot be had.
func (c *Catalog) notThere(name string) string {
	if why := c.unusable[name]; why != "" {
		return fmt.Sprintf("ClusterServiceVersion %s cannot be used: %s", name, why)
	}

	return fmt.Sprintf("the catalog holds no ClusterServiceVersion %s", name)
}

func (c *Catalog) addDefinition(value map[string]any) (string, error) {
	crd := &unstructured.Unstructured{Object: value}

	name, err := nameOf(crd, definitionKind)
	if err != nil {
		return name, err
	}

	if v := crd.GetAPIVersion(); v != definitionVersion {
		return name, fmt.Errorf("it is of %s, and Kubernetes serves %s alone; write it in that", orNothing(v), definitionVersion)
	}

	if len(versionsOf(crd)) == 0 {
		return name, fmt.Errorf("it has no spec.versions")
	}

	c.definitions[name] = append(c.definitions[name], crd)

	return name, nil
}

func (c *Catalog) addVersion(value map[string]any) (string, error) {
	csv := &unstructured.Unstructured{Object: value}

	name, err := nameOf(csv, olmv1alpha1.ClusterServiceVersionKind)
	if err != nil {
		return name, err
	}

	if v := csv.GetAPIVersion(); v != olmv1alpha1.ClusterServiceVersionAPIVersion {
		return name, fmt.Errorf("it is of %s, not %s", orNothing(v), olmv1alpha1.ClusterServiceVersionAPIVersion)
	}

	if c.versions[name] != nil {
		return "", fmt.Errorf("%s is there twice; the first one counts", name)
	}

	v := &Version{object: clean(csv), CSV: &olmv1alpha1.ClusterServiceVersion{}}

	text, err := json.Marshal(v.object.Object)
	if err == nil {
		err = json.Unmarshal(text, v.CSV)
	}

	if err != nil {
		return name, fmt.Errorf("it is no ClusterServiceVersion: %w", err)
	}

	spec := &v.CSV.Spec
	v.Number = spec.Version.Version
	v.Entry = Entry{Name: name, Replaces: spec.Replaces, Skips: spec.Skips, SkipRange: v.CSV.Annotations[skipRange]}

	if _, err := rangeOf(v.SkipRange); err != nil {
		c.problem(KeyVersions, fmt.Sprintf("%s: %s %q says nothing: %v", name, skipRange, v.SkipRange, err))
		v.SkipRange = ""
	}

	c.versions[name] = v
	delete(c.unusable, name)

	return name, nil
}

// manifest is a package as the ConfigMap has it.
type manifest struct {
	PackageName    string `json:"packageName"`
	DefaultChannel string `json:"defaultChannel"`
	Channels       []struct {
		Name       string  `json:"name"`
		CurrentCSV string  `json:"currentCSV"`
		Entries    []Entry `json:"entries"`
	} `json:"channels"`
}

func (c *Catalog) addPackage(value map[string]any) (string, error) {
	var m manifest

	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &m)
	}

	switch {
	case err != nil:
		return "", fmt.Errorf("it is no package: %w", err)
	case m.PackageName == "":
		return "", fmt.Errorf("it has no packageName")
	case c.packages[m.PackageName] != nil:
		return "", fmt.Errorf("package %s is there twice; the first one counts", m.PackageName)
	}

	p := &Package{Name: m.PackageName, DefaultChannel: m.DefaultChannel}

	for i, ch := range m.Channels {
		switch {
		case ch.Name == "" || ch.CurrentCSV == "":
			c.problem(KeyPackages, fmt.Sprintf("%s: channel %d needs a name and a currentCSV", p.Name, i+1))
		case p.channel(ch.Name) != nil:
			c.problem(KeyPackages, fmt.Sprintf("%s: channel %s is there twice; the first one counts", p.Name, ch.Name))
		default:
			p.Channels = append(p.Channels, Channel{Name: ch.Name, CurrentCSV: ch.CurrentCSV, Entries: c.usable(p.Name, ch.Entries)})
		}
	}

	if len(p.Channels) == 0 {
		c.problem(KeyPackages, p.Name+": it has no channel")
	}

	c.packages[p.Name] = p

	return p.Name, nil
}

// usable takes away from entries the ranges that cannot be read.
func (c *Catalog) usable(name string, list []Entry) []Entry {
	for i := range list {
		if _, err := rangeOf(list[i].SkipRange); err != nil {
			c.problem(KeyPackages, fmt.Sprintf("%s: skipRange %q says nothing: %v", name, list[i].SkipRange, err))
			list[i].SkipRange = ""
		}
	}

	return list
}

// rangeOf reads a range of versions. Without words, it has none in it.
func rangeOf(words string) (semver.Range, error) {
	if strings.TrimSpace(words) == "" {
		return func(semver.Version) bool { return false }, nil
	}

	r, err := semver.ParseRange(words)
	if err != nil {
		return nil, fmt.Errorf("reading a range of versions: %w", err)
	}

	return r, nil
}

// nameOf returns the name of an object after looking at what it claims to be.
func nameOf(obj *unstructured.Unstructured, kind string) (string, error) {
	name := obj.GetName()

	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return "", fmt.Errorf("metadata.name %q: %s", name, wrong[0])
	}

	if is := obj.GetKind(); is != kind {
		return name, fmt.Errorf("it is a %s, not a %s", orNothing(is), kind)
	}

	return name, nil
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}

	return s
}
