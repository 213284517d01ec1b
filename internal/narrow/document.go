package narrow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// Document is one object of the input, or one that was made. What is not touched is written as it was read, byte by byte.
type Document struct {
	APIVersion, Kind, Namespace, Name string
	// Source and Line are where it was read.
	Source string
	Line   int

	// before is the line that separates the document from the previous one.
	before, raw []byte
	// root is the document as YAML has it, with comments; body is its mapping.
	root, body *yaml.Node
	changed    bool
	dropped    bool
	// items are the objects of a list.
	items []*Document
	// after are documents that were made, and follow this one.
	after []*Document
}

// String names it for users.
func (d *Document) String() string { return printable.Title(d.Kind, d.Namespace, d.Name) }

// Stream is what was read, in its order, with what was made at its end.
type Stream struct {
	docs []*Document
	made []*Document
	// function is the ResourceList of a kustomize function, into which everything is written back.
	function *Document
}

// maxInput is more than any API server stores in one object, many times over.
const maxInput = 256 << 20

// Read stores the documents of one source.
func (s *Stream) Read(source string, from io.Reader) error {
	// A mark of UTF-8 or UTF-16 counts as for kubectl (FileVisitor in k8s.io/cli-runtime). Everything is written in UTF-8.
	decoded := transform.NewReader(from, unicode.BOMOverride(transform.Nop))

	text, err := io.ReadAll(io.LimitReader(decoded, maxInput+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", source, err)
	}

	if len(text) > maxInput {
		return fmt.Errorf("reading %s: it is longer than 256 MiB", source)
	}

	line := 1

	for _, part := range apart(separate(text)) {
		// A new file, or an object in JSON, needs no separator in the input, but it needs one in the output.
		if len(s.docs) > 0 && len(part.before) == 0 && !isSeparator(part.text) {
			part.before, line = []byte("---\n"), line-1
		}

		d := &Document{Source: source, before: part.before, raw: part.text}
		line += bytes.Count(part.before, []byte("\n"))
		d.Line = line

		if err := d.parse(); err != nil {
			return fmt.Errorf("reading %s: line %d: %w", source, line, err)
		}

		line += bytes.Count(part.text, []byte("\n"))
		s.docs = append(s.docs, d)

		if d.Kind == "ResourceList" && strings.HasPrefix(d.APIVersion, "config.kubernetes.io/") {
			s.function = d
		}
	}

	return nil
}

// part is the text of a document, and of what separates it.
type part struct{ before, text []byte }

// separate cuts a stream into documents as kubectl does: at lines that begin with three dashes. Nothing is left out.
func separate(text []byte) []part {
	var (
		parts []part
		last  part
	)

	for line := range bytes.Lines(text) {
		if !isSeparator(line) {
			last.text = append(last.text, line...)

			continue
		}

		if len(last.before)+len(last.text) > 0 {
			parts = append(parts, last)
		}

		last = part{}

		// Content may begin in the line of the dashes.
		if tail := bytes.TrimSpace(line[3:]); len(tail) == 0 || tail[0] == '#' {
			last.before = bytes.Clone(line)
		} else {
			last.text = bytes.Clone(line)
		}
	}

	if len(last.before)+len(last.text) > 0 {
		parts = append(parts, last)
	}

	return parts
}

// isSeparator says whether a document begins with a line: for kubectl it does where three dashes are followed by space of any
// kind, of Unicode too, or by a comment (k8s.io/apimachinery/pkg/util/yaml, YAMLReader), for YAML where content follows a space.
func isSeparator(line []byte) bool {
	rest, dashes := bytes.CutPrefix(line, []byte("---"))
	tail := bytes.TrimSpace(rest)

	return dashes && (len(tail) == 0 || tail[0] == '#' || strings.IndexByte(" \t", rest[0]) >= 0)
}

func (d *Document) parse() error {
	decoder := yaml.NewDecoder(bytes.NewReader(yamlOf(d.raw)))
	root := &yaml.Node{}

	switch err := decode(decoder, root); {
	case errors.Is(err, io.EOF):
		return nil // Nothing, or comments only.
	case err != nil:
		return err
	}

	if err := decode(decoder, &yaml.Node{}); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("there is more than one document without a line of three dashes between them")
		}

		return err
	}

	switch {
	case len(root.Content) != 1 || root.Content[0].Tag == "!!null":
		return nil // Nothing, which kubectl skips.
	case root.Content[0].Kind != yaml.MappingNode:
		return errors.New("it is text or a list, and no object; leave it out") // Another reader may find objects in the text.
	}

	d.root = root

	return d.adopt(root.Content[0])
}

// decode turns a panic of the library, which some input causes, into an error.
func decode(decoder *yaml.Decoder, into *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is no YAML: %v", r)
		}
	}()

	if err = decoder.Decode(into); err != nil {
		return fmt.Errorf("it is no YAML: %w", err) // The end of the document is one, too.
	}

	return nil
}

// adopt reads what a mapping is, and what it lists.
func (d *Document) adopt(body *yaml.Node) error {
	if err := onlyPlain(body, headKeys); err != nil {
		return err
	}

	d.body = body
	metadata := child(body, "metadata")
	d.APIVersion, d.Kind = text(body, "apiVersion"), text(body, "kind")
	d.Namespace, d.Name = text(metadata, "namespace"), text(metadata, "name")

	// For kubectl, whatever has items is a list, of any kind (k8s.io/apimachinery/pkg/apis/meta/v1/unstructured, decode).
	items := child(body, "items")
	isList := items != nil && items.Kind == yaml.SequenceNode

	if isRead(d.Kind) || isList {
		if err := d.makePlain(); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
	}

	if !isList {
		return nil
	}

	list := child(body, "items") // Without aliases.

	for _, item := range list.Content {
		if item.Kind != yaml.MappingNode {
			continue
		}

		of := &Document{Source: d.Source, Line: d.Line + item.Line - 1}
		if err := of.adopt(item); err != nil {
			return err
		}

		if of.Kind == "" && of.APIVersion == "" {
			of.Kind, of.APIVersion = strings.TrimSuffix(d.Kind, "List"), d.APIVersion // The items of a typed list need not say it.
		}

		d.items = append(d.items, of)
	}

	return nil
}

// isRead says whether documents of a kind are decoded. Others pass as they are.
func isRead(kind string) bool {
	switch kind {
	case kindClusterRole, kindClusterRoleBinding, kindRole, kindRoleBinding, kindServiceAccount, kindScope, kindPod:
		return true
	default:
		return facts.WorkloadKind(kind).Type() != nil
	}
}

// objects are all objects, the items of lists one by one.
func (s *Stream) objects() iter.Seq[*Document] {
	return func(yield func(*Document) bool) { eachObject(s.docs, yield) }
}

func eachObject(docs []*Document, yield func(*Document) bool) bool {
	for _, d := range docs {
		if d.body != nil && len(d.items) == 0 && !yield(d) || !eachObject(d.items, yield) {
			return false
		}
	}

	return true
}

// hasObject says whether there is anything that names its kind, and is no empty list.
func (s *Stream) hasObject() bool {
	for d := range s.objects() {
		if d.Kind != "" && child(d.body, "items") == nil {
			return true
		}
	}

	return false
}

// touched says whether a document differs from what was read.
func (d *Document) touched() bool {
	return d.changed || d.dropped ||
		slices.ContainsFunc(d.items, func(item *Document) bool { return item.touched() || len(item.after) > 0 })
}

// into decodes an object.
func (d *Document) into(obj any) error {
	raw, err := d.json()
	if err == nil {
		// As the API server reads it, for which a key of another case is none.
		err = utiljson.Unmarshal(raw, obj)
	}

	return d.failed(err)
}

// json is an object as JSON has it.
func (d *Document) json() ([]byte, error) {
	var content map[string]any
	if err := d.body.Decode(&content); err != nil {
		return nil, err //nolint:wrapcheck // Callers say what was being done.
	}

	return json.Marshal(content) //nolint:wrapcheck // As above.
}

// failed says of which object an error is, and where that was read.
func (d *Document) failed(err error) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("%s of %s, line %d: %w", d, d.Source, d.Line, err)
}
