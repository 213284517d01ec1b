package narrow

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// pairs are the keys of a mapping with their values. Whatever is no mapping has none.
func pairs(mapping *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if mapping == nil || mapping.Kind != yaml.MappingNode {
			return
		}

		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

// nodes are a node and everything below it, each with what it is in. What an alias stands for is found at its anchor.
func nodes(root *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(n, parent *yaml.Node) bool) { visit(root, nil, yield) }
}

func visit(n, parent *yaml.Node, yield func(n, parent *yaml.Node) bool) bool {
	return yield(n, parent) && !slices.ContainsFunc(n.Content, func(of *yaml.Node) bool { return !visit(of, n, yield) })
}

// indexOf is where the value of a key of a mapping is; -1 where there is none.
func indexOf(mapping *yaml.Node, name string) int {
	at := 1

	for key := range pairs(mapping) {
		if key.Value == name {
			return at
		}

		at += 2
	}

	return -1
}

// child is the value of a key of a mapping; nil where there is none.
func child(mapping *yaml.Node, key string) *yaml.Node {
	if i := indexOf(mapping, key); i >= 0 {
		return followed(mapping.Content[i])
	}

	return nil
}

// followed is what a node stands for, if it is an alias.
func followed(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}

	return n
}

func at(mapping *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		mapping = child(mapping, key)
	}

	return mapping
}

func text(mapping *yaml.Node, path ...string) string {
	if node := at(mapping, path...); node != nil && node.Kind == yaml.ScalarNode && node.Tag != "!!null" {
		return node.Value
	}

	return ""
}

// entries are the keys and the text of a mapping.
func entries(mapping *yaml.Node) map[string]string {
	out := map[string]string{}
	for key, value := range pairs(mapping) {
		out[followed(key).Value] = followed(value).Value
	}

	return out
}

// set sets a key of a mapping, at its place or at the end.
func set(mapping *yaml.Node, key string, value *yaml.Node) {
	if i := indexOf(mapping, key); i >= 0 {
		mapping.Content[i] = value
	} else {
		mapping.Content = append(mapping.Content, scalar(key), value)
	}
}

// replace writes a value at a key of an object.
func (d *Document) replace(key string, value any) error {
	node, err := nodeOf(value)
	if err != nil {
		return err
	}

	set(d.body, key, node)
	d.changed = true

	return nil
}

// remove takes a key of a mapping away, if it is there.
func remove(mapping *yaml.Node, key string) {
	if i := indexOf(mapping, key); i >= 0 {
		mapping.Content = slices.Delete(mapping.Content, i-1, i+1)
	}
}

// within returns the mapping at a key, made where there is none.
func within(mapping *yaml.Node, path ...string) *yaml.Node {
	for _, key := range path {
		of := child(mapping, key)
		if of == nil || of.Kind != yaml.MappingNode {
			of = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			set(mapping, key, of)
		}

		of.Style &^= yaml.FlowStyle
		mapping = of
	}

	return mapping
}

// listAt returns the list at a key, made where there is none.
func listAt(mapping *yaml.Node, key string) *yaml.Node {
	of := child(mapping, key)
	if of == nil || of.Kind != yaml.SequenceNode {
		of = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		set(mapping, key, of)
	}

	return of
}

func scalar(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)

	return n
}

// nodeOf turns a value into YAML, in the order in which its type has the fields.
func nodeOf(value any) (*yaml.Node, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}

	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}

	for n := range nodes(root.Content[0]) {
		plain(n)
		inOrder(n)
	}

	return root.Content[0], nil
}

// order is that of the fields that users look for first.
var order = []string{"apiVersion", "kind", "metadata", "apiGroups", "resources", "resourceNames", "nonResourceURLs", "verbs"}

// inOrder writes fields as users do: the types of Kubernetes have some in another order.
func inOrder(n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		return
	}

	var first, rest []*yaml.Node

	for _, name := range order {
		if i := indexOf(n, name); i >= 0 {
			first = append(first, n.Content[i-1], n.Content[i])
		}
	}

	for key, value := range pairs(n) {
		if !slices.Contains(order, key.Value) {
			rest = append(rest, key, value)
		}
	}

	n.Content = slices.Concat(first, rest)
}

// plain takes away the style of JSON. Strings that YAML would read as something else keep their quotes.
func plain(n *yaml.Node) {
	n.Style = 0

	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.SetString(n.Value)

		if !printable.IsText(n.Value) {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
}

var (
	errAliases = errors.New("its YAML aliases stand for more than 100,000 values")
	errMerge   = errors.New("it merges mappings by <<, which cannot be rewritten; write them out")
	errEncoded = errors.New("a key or a value has a tag of YAML, or is no text; write it as text, in quotes where need be")
	errDepth   = errors.New("it is nested more than 200 deep")
)

// The bounds of what aliases may stand for, and of how deep objects may be nested.
const (
	maxNodes = 100_000
	maxDepth = 200
)

// headKeys are the keys by which kubectl knows what an object is, and what it lists.
var headKeys = []string{"apiVersion", "kind", "metadata", "items"}

// onlyPlain refuses keys of a mapping that kubectl may read in another way: merges, keys that are no text, and among the given
// ones those that are there twice, or whose text is encoded. Something could pass as what it is not.
func onlyPlain(mapping *yaml.Node, keys []string) error {
	seen := map[string]bool{}

	for key, value := range pairs(mapping) {
		if !slices.Contains(keys, key.Value) {
			// Whether it is there twice does not matter.
			if err := refusal(key, true, map[string]bool{}); err != nil {
				return err
			}

			continue
		}

		if err := refusal(key, true, seen); err != nil {
			return err
		}

		if err := refusal(followed(value), false, nil); err != nil {
			return err
		}
	}

	return nil
}

// onlyPlainKeys refuses, in whatever kind, keys that are not what they look like: what is looked for by a key would not be found.
func (s *Stream) onlyPlainKeys() error {
	for d := range s.objects() {
		for n := range nodes(d.body) {
			for key := range pairs(n) {
				if isNoText(followed(key)) {
					return d.failed(errEncoded)
				}
			}
		}
	}

	return nil
}

// isEncoded says whether a scalar means something else than its text.
func isEncoded(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && !strings.HasPrefix(n.Tag, "!!") || n.Tag == "!!binary"
}

// isNoText says whether a key is not the text that it looks like.
func isNoText(key *yaml.Node) bool {
	return isEncoded(key) || key.Kind != yaml.ScalarNode || isReadOtherwise(key)
}

// isReadOtherwise says whether kubectl, which reads YAML 1.1, makes another text of a key: "true" of yes, or 8 of 010. What was
// made here has no line, and is quoted when it is written.
func isReadOtherwise(key *yaml.Node) bool {
	if key.Line == 0 || key.Style != 0 || !maybeNoText.MatchString(key.Value) {
		return false
	}

	var read map[string]any

	err := sigsyaml.Unmarshal([]byte(key.Value+": 0"), &read)
	_, is := read[key.Value]

	return err != nil || !is
}

// maybeNoText are words for true, false and nothing, and what begins like a number.
var maybeNoText = regexp.MustCompile(`(?i)^([yn]|yes|no|on|off|true|false|null|~|[-+.]?[0-9].*|[-+]?\.(inf|nan))?$`)

// makePlain writes out aliases, so that a change in one place is none in another, and refuses what two readers may read in two
// ways.
func (d *Document) makePlain() error {
	budget := maxNodes

	return unfold(d.body, &budget, 0, false)
}

func unfold(n *yaml.Node, budget *int, depth int, copied bool) error {
	if depth > maxDepth {
		return errDepth
	}

	n.Anchor = ""

	if copied {
		if *budget--; *budget < 0 {
			return errAliases
		}
	}

	seen := map[string]bool{}

	for i, of := range n.Content {
		if err := refusal(of, n.Kind == yaml.MappingNode && i%2 == 0, seen); err != nil {
			return err
		}

		// For kubectl a date is text, and for YAML a time: a name would become another one.
		if of.Kind == yaml.ScalarNode && of.Tag == "!!timestamp" {
			of.Tag = "!!str"
		}

		inCopy := copied

		if of.Kind == yaml.AliasNode {
			of, inCopy = shallow(of.Alias), true
			n.Content[i] = of
		} else if copied {
			of = shallow(of)
			n.Content[i] = of
		}

		if err := unfold(of, budget, depth+1, inCopy); err != nil {
			return err
		}
	}

	return nil
}

// refusal says why a key or a value may be read in two ways. seen are the keys of the mapping before it.
func refusal(of *yaml.Node, isKey bool, seen map[string]bool) error {
	switch {
	case isKey && of.Tag == "!!merge":
		return errMerge
	case isEncoded(of) || isKey && isNoText(of):
		return fmt.Errorf("line %d: %w", of.Line, errEncoded)
	case isKey && seen[of.Value]:
		return fmt.Errorf("line %d: the key %s is there twice", of.Line, printable.Name(of.Value))
	case isKey:
		seen[of.Value] = true
	}

	return nil
}

func shallow(n *yaml.Node) *yaml.Node {
	out := *n
	out.Anchor = ""
	out.Content = append([]*yaml.Node(nil), n.Content...)

	return &out
}
