package catalog

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// Bundle is a version of an operator as its author publishes it: a folder with its manifests.
type Bundle struct {
	Package, DefaultChannel string
	Channels                []string
	Definitions             []*unstructured.Unstructured
	Version                 *unstructured.Unstructured
	// Left are the objects that a catalog's ConfigMap has no place for.
	Left []string
}

// The keys of metadata/annotations.yaml (docs/design/operator-bundle.md in operator-registry).
const (
	bundlePackage  = "operators.operatorframework.io.bundle.package.v1"
	bundleChannels = "operators.operatorframework.io.bundle.channels.v1"
	bundleDefault  = "operators.operatorframework.io.bundle.channel.default.v1"
)

// defaultChannel is the channel of a bundle that names none.
const defaultChannel = "stable"

// ReadBundle reads the folder of a bundle.
func ReadBundle(dir fs.FS) (*Bundle, error) {
	b := &Bundle{}

	files, err := fs.Glob(dir, "manifests/*")
	if err != nil {
		return nil, fmt.Errorf("looking for manifests: %w", err)
	}

	for _, file := range files {
		if ext := path.Ext(file); ext != ".yaml" && ext != ".yml" && ext != ".json" {
			continue
		}

		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, fmt.Errorf("reading a manifest: %w", err)
		}

		list, problems := entries(string(text))
		if len(problems) > 0 {
			return nil, fmt.Errorf("reading %s: %s", file, problems[0])
		}

		for _, e := range list {
			if err := b.add(&unstructured.Unstructured{Object: e.value}); err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
		}
	}

	if b.Version == nil {
		return nil, fmt.Errorf("there is no %s in manifests", olmv1alpha1.ClusterServiceVersionKind)
	}

	return b, b.describe(dir)
}

func (b *Bundle) add(obj *unstructured.Unstructured) error {
	switch obj.GetKind() {
	case definitionKind:
		b.Definitions = append(b.Definitions, obj)
	case olmv1alpha1.ClusterServiceVersionKind:
		if b.Version != nil {
			return fmt.Errorf("a second %s, %s", obj.GetKind(), obj.GetName())
		}

		b.Version = obj
	default:
		b.Left = append(b.Left, obj.GetKind()+" "+obj.GetName())
	}

	return nil
}

// describe reads which package and channels a bundle is for. Without metadata, the name of its ClusterServiceVersion begins with
// the package, and the channel is stable.
func (b *Bundle) describe(dir fs.FS) error {
	text, err := fs.ReadFile(dir, "metadata/annotations.yaml")
	if err == nil {
		var m struct {
			Annotations map[string]string `json:"annotations"`
		}

		if err := yaml.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("reading metadata/annotations.yaml: %w", err)
		}

		b.Package, b.DefaultChannel = m.Annotations[bundlePackage], m.Annotations[bundleDefault]

		for name := range strings.SplitSeq(m.Annotations[bundleChannels], ",") {
			if name = strings.TrimSpace(name); name != "" {
				b.Channels = append(b.Channels, name)
			}
		}
	}

	if b.Package == "" {
		b.Package, _, _ = strings.Cut(b.Version.GetName(), ".")
	}

	if len(b.Channels) == 0 {
		b.Channels = []string{defaultChannel}
	}

	return nil
}

// Build makes the data of a catalog's ConfigMap from bundles.
func Build(bundles []*Bundle) (map[string]string, error) {
	var (
		definitions []any
		names       []string
		versions    = make([]any, 0, len(bundles))
		byPackage   = map[string][]*Bundle{}
	)

	for _, b := range bundles {
		if byPackage[b.Package] == nil {
			names = append(names, b.Package)
		}

		byPackage[b.Package] = append(byPackage[b.Package], b)
		versions = append(versions, b.Version.Object)

		for _, crd := range b.Definitions {
			definitions = append(definitions, crd.Object)
		}
	}

	packages := collect.Map(names, func(name string) any { return packageOf(name, byPackage[name]) })

	data := map[string]string{}

	for key, list := range map[string][]any{KeyDefinitions: definitions, KeyVersions: versions, KeyPackages: packages} {
		text, err := printable.YAMLWithBlocks(list)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", key, err)
		}

		data[key] = text
	}

	return data, nil
}

func packageOf(name string, bundles []*Bundle) map[string]any {
	var (
		channels []any
		seen     []string
		standard string
	)

	for _, b := range bundles {
		if b.DefaultChannel != "" {
			standard = b.DefaultChannel
		}

		for _, channel := range b.Channels {
			if !slices.Contains(seen, channel) {
				seen = append(seen, channel)
				channels = append(channels, map[string]any{"name": channel, "currentCSV": head(channel, bundles)})
			}
		}
	}

	p := map[string]any{"packageName": name, "channels": channels}
	if standard != "" {
		p["defaultChannel"] = standard
	} else if len(seen) == 1 {
		p["defaultChannel"] = seen[0]
	}

	return p
}

// head is the version of a channel that no other one there replaces or skips; of several, the last one given.
func head(channel string, bundles []*Bundle) string {
	newest, replaced := "", sets.Set[string]{}

	for _, b := range bundles {
		if slices.Contains(b.Channels, channel) {
			name, _, _ := unstructured.NestedString(b.Version.Object, "spec", "replaces")
			skips, _, _ := unstructured.NestedStringSlice(b.Version.Object, "spec", "skips")
			replaced.Insert(skips...).Insert(name)
		}
	}

	for _, b := range bundles {
		if name := b.Version.GetName(); !replaced.Has(name) && slices.Contains(b.Channels, channel) {
			newest = name
		}
	}

	return newest
}
