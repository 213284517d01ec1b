package narrow

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// yamlOf is the text of a document in JSON as YAML takes it, and any other as it is. kubectl reads JSON as such: strings have
// escapes and characters there that YAML refuses or reads otherwise, and tabs may stand between them.
func yamlOf(text []byte) []byte {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' || !json.Valid(text) {
		return text
	}

	out := make([]byte, 0, len(text))

	for len(text) > 0 {
		size := 1

		switch text[0] {
		case '\t':
			out = append(out, ' ')
		case '"':
			var value string

			size = stringIn(text)
			if err := json.Unmarshal(text[:size], &value); err != nil {
				value = string(text[:size]) // It is valid.
			}

			out = strconv.AppendQuoteToASCII(out, value)
		default:
			out = append(out, text[0])
		}

		text = text[size:]
	}

	return out
}

// apart separates objects in JSON that follow one another, as kubectl takes them.
func apart(parts []part) []part {
	out := make([]part, 0, len(parts))

	for _, p := range parts {
		for i, text := range objectsIn(p.text) {
			if i > 0 {
				p.before = nil
			}

			out = append(out, part{p.before, text})
		}
	}

	return out
}

// objectsIn are the objects in JSON of which a text consists, and otherwise the text.
func objectsIn(text []byte) [][]byte {
	if trimmed := bytes.TrimSpace(text); len(trimmed) == 0 || trimmed[0] != '{' {
		return [][]byte{text}
	}

	var out [][]byte

	for decoder, start := json.NewDecoder(bytes.NewReader(text)), 0; start < len(text); {
		var object map[string]json.RawMessage
		if err := decoder.Decode(&object); err != nil || object == nil {
			return [][]byte{text}
		}

		rest := text[decoder.InputOffset():]
		end := len(text) - len(bytes.TrimLeft(rest, " \t\r\n"))
		out, start = append(out, bytes.Clone(text[start:end])), end
	}

	return out
}

// stringIn is the length of the string with which a text in JSON begins.
func stringIn(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}

	return len(text)
}
