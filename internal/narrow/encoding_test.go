package narrow

import (
	"bytes"
	"encoding/binary"
	"testing"
	"unicode/utf16"
)

// TestReadMarkedText holds that files as PowerShell writes them are read as kubectl reads them, document by document.
func TestReadMarkedText(t *testing.T) {
	t.Parallel()

	const (
		mark  = "\ufeff"
		first = "kind: A\nmetadata: {name: ä}\n"
		text  = first + "---\nkind: B\n"
	)

	files := map[string][]byte{"UTF-8": []byte(mark + text), "UTF-8 without a mark": []byte(text)}
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, unit := range utf16.Encode([]rune(mark + text)) {
			files[order.String()] = order.AppendUint16(files[order.String()], unit)
		}
	}

	for encoding, file := range files {
		var s Stream
		if err := s.Read("x.yaml", bytes.NewReader(file)); err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}

		if len(s.docs) != 2 || s.docs[0].Name != "ä" || s.docs[1].Kind != "B" || string(s.docs[0].raw) != first {
			t.Errorf("%s: read %d documents, the first is %q", encoding, len(s.docs), s.docs[0].raw)
		}
	}
}
