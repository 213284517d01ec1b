package picture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
)

// markup is what a browser reads as it stands. Only constants and embedded files of this package are markup, which a test checks.
// A page is not made by html/template because that calls methods by their names, so the linker would keep every method of every
// type, also in the manager.
type markup string

// document is a page or a drawing that is being written.
type document struct{ out bytes.Buffer }

// write adds markup, in which each %s stands for a dynamic value. A value may be in text and in quoted attributes only: there the
// escaping is right.
func (d *document) write(m markup, dynamic ...any) {
	for i := range dynamic {
		dynamic[i] = html.EscapeString(fmt.Sprint(dynamic[i]))
	}

	fmt.Fprintf(&d.out, string(m), dynamic...)
}

// file adds an embedded file, in which a % has no meaning.
func (d *document) file(m markup) { d.out.WriteString(string(m)) }

// json adds a value for the page's script. encoding/json escapes <, > and &, so that no name ends the element.
func (d *document) json(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing the page's data: %w", err)
	}

	d.out.Write(text)

	return nil
}

// flush writes the document, once it is complete.
func (d *document) flush(w io.Writer) error {
	if _, err := d.out.WriteTo(w); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}

	return nil
}
