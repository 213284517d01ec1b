package narrow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// Bytes writes the stream.
func (s *Stream) Bytes() ([]byte, error) {
	if s.function != nil {
		return s.functionBytes()
	}

	var out bytes.Buffer

	err := writeAll(&out, slices.Concat(s.docs, s.made))

	return out.Bytes(), err
}

// functionBytes writes the one ResourceList, with everything in it.
func (s *Stream) functionBytes() ([]byte, error) {
	items := listAt(s.function.body, "items")
	s.function.settle()

	for _, d := range s.made {
		items.Content = append(items.Content, d.body)
	}

	items.Style &^= yaml.FlowStyle

	return encode(s.function.root)
}

func (d *Document) write(out *bytes.Buffer) error {
	if !d.touched() {
		endLine(out, len(d.before) > 0 || isSeparator(d.raw))
		out.Write(d.before)
		out.Write(d.raw)

		return writeAll(out, d.after)
	}

	if len(d.items) > 0 {
		d.settle()
	}

	if !d.dropped && (len(d.items) == 0 || len(child(d.body, "items").Content) > 0) {
		if err := d.encodeTo(out); err != nil {
			return err
		}
	}

	return writeAll(out, d.after)
}

func writeAll(out *bytes.Buffer, docs []*Document) error {
	for _, d := range docs {
		if err := d.write(out); err != nil {
			return err
		}
	}

	return nil
}

// settle updates the items of a list: dropped ones go, and documents that follow an item become items.
func (d *Document) settle() {
	list := child(d.body, "items")
	if list == nil {
		return
	}

	var content []*yaml.Node

	known := map[*yaml.Node]*Document{}
	for _, item := range d.items {
		known[item.body] = item
	}

	for _, node := range list.Content {
		item := known[node]
		if item == nil {
			content = append(content, node)

			continue
		}

		if !item.dropped {
			item.settle()
			content = append(content, node)
		}

		for _, after := range item.after {
			content = append(content, after.body)
		}
	}

	list.Content = content
}

func (d *Document) encodeTo(out *bytes.Buffer) error {
	text, err := encode(d.root)
	if err != nil {
		return fmt.Errorf("writing %s: %w", d, err)
	}

	before := d.before
	if len(before) == 0 && out.Len() > 0 {
		before = []byte("---\n")
	}

	endLine(out, len(before) > 0)
	out.Write(before)
	out.Write(text)

	return nil
}

// endLine ends the last line, where a document did not, before another begins.
func endLine(out *bytes.Buffer, begins bool) {
	if begins && out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
}

func encode(root *yaml.Node) (text []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be written as YAML: %v", r)
		}
	}()

	var out bytes.Buffer

	encoder := yaml.NewEncoder(&out)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}

	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}

	return out.Bytes(), nil
}

// made returns the document of an object that was not in the input.
func made(obj any) (*Document, error) {
	body, err := nodeOf(obj)
	if err != nil {
		return nil, err
	}

	// What only the API server fills in.
	for _, mapping := range []*yaml.Node{body, child(body, "metadata"), at(body, "spec", "template", "metadata")} {
		remove(mapping, "creationTimestamp")
	}

	remove(body, "status")

	d := &Document{root: &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{body}}, changed: true}
	if err := d.adopt(body); err != nil {
		return nil, err
	}

	return d, nil
}

// saysAllOf says whether a document says all that another one says, metadata aside.
func (d *Document) saysAllOf(other *Document) bool {
	for key, want := range pairs(other.body) {
		if key.Value == "metadata" {
			continue
		}

		var here, there any
		if has := child(d.body, key.Value); has == nil || has.Decode(&here) != nil || want.Decode(&there) != nil ||
			!equality.Semantic.DeepEqual(here, there) {
			return false
		}
	}

	return true
}

// Objects are those of the stream as it is now, as JSON has them.
func (s *Stream) Objects() ([]json.RawMessage, error) {
	text, err := s.Bytes()
	if err != nil {
		return nil, err
	}

	var (
		again Stream
		out   []json.RawMessage
	)

	if err := again.Read("output", bytes.NewReader(text)); err != nil {
		return nil, err
	}

	for d := range again.objects() {
		raw, err := d.json()
		if err != nil {
			return nil, fmt.Errorf("writing JSON: %w", err)
		}

		out = append(out, raw)
	}

	return out, nil
}

// OnlyChanged leaves out the documents that were read and not changed.
func (s *Stream) OnlyChanged() {
	s.docs = collect.Filter(s.docs, func(d *Document) bool { return d.touched() || len(d.after) > 0 })
}

// FunctionConfig is the configuration of a kustomize function, by the names of flags; nil for anything else.
func (s *Stream) FunctionConfig() map[string]string {
	if s.function == nil {
		return nil
	}

	return entries(at(s.function.body, "functionConfig", "data"))
}
