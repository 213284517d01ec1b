package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
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
		definitions: map[string][]*definition{}, owners: map[string]string{},
	}

	// In the order of dependencies, so that the problem of a definition comes before those that follow from it.
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
					c.unusable[name] = printable.Cut(err.Error(), maxWords)
				}

				c.problem(part.key, fmt.Sprintf("%s: %v", name, err))
			}
		}
	}

	c.check()

	return c
}

func (c *Catalog) problem(key, words string) {
	switch n := len(c.Problems); {
	case n < maxProblems:
		c.Problems = append(c.Problems, printable.Cut(key+": "+words, maxWords))
	case n == maxProblems:
		c.Problems = append(c.Problems, "there are more problems than these")
	}
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

	versions := facts.ReadDefinition(crd).Versions
	if len(versions) == 0 {
		return name, fmt.Errorf("it has no spec.versions")
	}

	text, err := write(clean(crd))
	if err != nil {
		return name, err
	}

	c.definitions[name] = append(c.definitions[name], &definition{versions: cloneAll(versions), text: text})

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

	// The parser of versions makes a list of their parts, which takes many times the memory of the text.
	if number, _, _ := unstructured.NestedString(value, "spec", "version"); len(number) > MaxName {
		return name, fmt.Errorf("its spec.version is longer than %d bytes", MaxName)
	}

	if n := countItems(value); n > maxItems {
		return name, fmt.Errorf("it is too large: its lists have %d items, and there is room for %d", n, maxItems)
	}

	text, err := write(clean(csv))
	if err != nil {
		return name, err
	}

	typed, err := readCSV(text)
	if err != nil {
		return name, err
	}

	spec := &typed.Spec
	v := &Version{
		Entry:  Entry{Name: name, Replaces: spec.Replaces, Skips: spec.Skips, SkipRange: typed.Annotations[skipRange]},
		Number: spec.Version.Version, text: text,
	}

	for i := range spec.CustomResourceDefinitions.Owned {
		v.owned = append(v.owned, spec.CustomResourceDefinitions.Owned[i].Name)
	}

	if _, err := rangeOf(v.SkipRange); err != nil {
		c.problem(KeyVersions, fmt.Sprintf("%s: %s %q says nothing: %v", name, skipRange, printable.Cut(v.SkipRange, MaxName), err))
		v.SkipRange = ""
	}

	c.versions[name] = v
	delete(c.unusable, name)

	return name, nil
}

// cloneAll copies names, so that they do not keep the object alive of which they are a part.
func cloneAll(names []string) []string {
	return collect.Map(names, strings.Clone)
}

// maxText is how large an object may be in JSON: etcd takes no larger request.
const maxText = 3 << 19

// write is an object in JSON, as short as possible.
func write(obj *unstructured.Unstructured) ([]byte, error) {
	var out bytes.Buffer

	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(obj.Object); err != nil {
		return nil, fmt.Errorf("writing it in JSON: %w", err)
	}

	if out.Len() > maxText {
		return nil, fmt.Errorf("it is too large: it has %d bytes in JSON, and the API server takes %d", out.Len(), maxText)
	}

	return bytes.Clone(out.Bytes()), nil
}

// read is an object that write wrote.
func read(text []byte) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	_ = utiljson.Unmarshal(text, &obj.Object) // What was written as JSON is JSON.

	return obj
}

// readCSV is a ClusterServiceVersion as types.
func readCSV(text []byte) (*olmv1alpha1.ClusterServiceVersion, error) {
	csv := &olmv1alpha1.ClusterServiceVersion{}
	if err := json.Unmarshal(text, csv); err != nil {
		return nil, fmt.Errorf("it is no ClusterServiceVersion: %w", err)
	}

	return csv, nil
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
	case len(m.PackageName) > MaxName:
		return "", fmt.Errorf("its packageName is longer than %d bytes", MaxName)
	case c.packages[m.PackageName] != nil:
		return "", fmt.Errorf("package %s is there twice; the first one counts", m.PackageName)
	}

	p := &Package{Name: m.PackageName, DefaultChannel: printable.Cut(m.DefaultChannel, MaxName), named: map[string]int{}}

	for i, ch := range m.Channels {
		switch {
		case ch.Name == "" || ch.CurrentCSV == "":
			c.problem(KeyPackages, fmt.Sprintf("%s: channel %d needs a name and a currentCSV", p.Name, i+1))
		case len(ch.Name) > MaxName || len(ch.CurrentCSV) > MaxName:
			c.problem(KeyPackages, fmt.Sprintf("%s: channel %d has a name longer than %d bytes", p.Name, i+1, MaxName))
		case c.channels == maxChannels:
			c.problem(KeyPackages, fmt.Sprintf("%s: channel %s: there are more than %d channels", p.Name, ch.Name, maxChannels))
		case p.channel(ch.Name) != nil:
			c.problem(KeyPackages, fmt.Sprintf("%s: channel %s is there twice; the first one counts", p.Name, ch.Name))
		default:
			c.channels++
			p.named[ch.Name] = len(p.Channels)
			p.Channels = append(p.Channels, newChannel(ch.Name, ch.CurrentCSV, c.usable(p.Name, ch.Entries)))
		}
	}

	if len(p.Channels) == 0 {
		c.problem(KeyPackages, p.Name+": it has no channel")
	}

	c.packages[p.Name] = p

	return p.Name, nil
}

// newChannel returns a channel. Of two entries of one name, the first counts.
func newChannel(name, head string, entries []Entry) Channel {
	ch := Channel{Name: name, CurrentCSV: head, Entries: entries, named: make(map[string]int, len(entries))}

	for i := range entries {
		if _, again := ch.named[entries[i].Name]; !again {
			ch.named[entries[i].Name] = i
		}
	}

	return ch
}

// usable empties ranges that cannot be read, and cuts names that are longer than any name can be.
func (c *Catalog) usable(name string, list []Entry) []Entry {
	for i := range list {
		e := &list[i]

		if _, err := rangeOf(e.SkipRange); err != nil {
			c.problem(KeyPackages, fmt.Sprintf("%s: skipRange %q says nothing: %v", name, printable.Cut(e.SkipRange, MaxName), err))
			e.SkipRange = ""
		}

		e.Name, e.Replaces = printable.Cut(e.Name, MaxName), printable.Cut(e.Replaces, MaxName)
	}

	return list
}

// rangeOf reads a range of versions. An empty text is a range with no version in it.
func rangeOf(words string) (semver.Range, error) {
	if strings.TrimSpace(words) == "" {
		return func(semver.Version) bool { return false }, nil
	}

	if len(words) > maxRange {
		return nil, fmt.Errorf("it is longer than %d bytes", maxRange)
	}

	r, err := semver.ParseRange(words)
	if err != nil {
		return nil, fmt.Errorf("reading a range of versions: %w", err)
	}

	return r, nil
}

// nameOf returns the name of an object, after checking the name and the kind.
func nameOf(obj *unstructured.Unstructured, kind string) (string, error) {
	name := obj.GetName()

	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		return "", fmt.Errorf("metadata.name %q: %s", printable.Cut(name, MaxName), wrong[0])
	}

	if is := obj.GetKind(); is != kind {
		return name, fmt.Errorf("it is a %s, not a %s", orNothing(printable.Cut(is, MaxName)), kind)
	}

	return name, nil
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}

	return s
}
