package narrow

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unicode/utf16"
)

// TestReadUTF16 holds that files as PowerShell writes them are read as kubectl reads them, document by document.
func TestReadUTF16(t *testing.T) {
	t.Parallel()

	const (
		first = "kind: A\nmetadata: {name: ä}\n"
		text  = first + "---\nkind: B\n"
	)

	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var file []byte
		for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
			file = order.AppendUint16(file, unit)
		}

		var s Stream
		if err := s.Read("x.yaml", bytes.NewReader(file)); err != nil {
			t.Fatalf("%s: %v", order, err)
		}

		if len(s.docs) != 2 || s.docs[0].Name != "ä" || s.docs[1].Kind != "B" || string(s.docs[0].raw) != first {
			t.Errorf("%s: read %d documents, the first is %q", order, len(s.docs), s.docs[0].raw)
		}
	}
}
