package narrow

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// utf8Of is a text that begins with the mark of UTF-16 in UTF-8, as which everything is written, and any other as it is.
func utf8Of(text []byte) []byte {
	var order binary.ByteOrder

	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order = binary.BigEndian
	}

	if order == nil || len(text)%2 != 0 {
		return text
	}

	units := make([]uint16, len(text)/2-1)
	for i := range units {
		units[i] = order.Uint16(text[2*i+2:])
	}

	return []byte(string(utf16.Decode(units)))
}
