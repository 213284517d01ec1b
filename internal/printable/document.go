package printable

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// maxBasic is the last character that four hexadecimal digits can express.
const maxBasic = 0xffff

// JSON is a value as indented JSON, in which only what is printable stands for itself. A program that reads it gets the value.
func JSON(value any) (string, error) {
	text, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return "", fmt.Errorf("writing JSON: %w", err)
	}

	return string(escapeJSON(text, func(r rune) bool { return !Is(r) && r != '\n' })), nil
}

// Body is a value as JSON for a server that reads it as YAML, as the API server does what is applied. YAML allows fewer
// characters than JSON does, and takes some for the end of a line; and it knows no pairs of surrogates.
func Body(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}

	return escapeJSON(text, func(r rune) bool { return !Is(r) && r <= maxBasic }), nil
}

// escapeJSON escapes characters of a JSON text. Those beyond ASCII are in strings only, and encoding/json has escaped the control
// characters of ASCII, except for DEL.
func escapeJSON(text []byte, is func(rune) bool) []byte {
	if bytes.IndexFunc(text, is) < 0 {
		return text
	}

	var b bytes.Buffer

	for _, r := range string(text) {
		if !is(r) || r == utf8.RuneError {
			b.WriteRune(r)

			continue
		}

		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}

	return b.Bytes()
}

// YAML is a value as YAML, in which only what is printable stands for itself, so that a string never takes more than one line. A
// program that reads it gets the value.
func YAML(value any) (string, error) {
	return yamlOf(value, func(s string) bool { return IsText(s) && (len(s) <= foldedAt || !strings.Contains(s, " ")) })
}

// foldedAt is a length from which the YAML library may break a plain string into lines, at a space.
const foldedAt = 40

// YAMLWithBlocks is YAML in which texts of several lines are blocks: for files that hold files.
func YAMLWithBlocks(value any) (string, error) {
	return yamlOf(value, func(s string) bool { return Lines(s) == s })
}

// merge is a key that stands for itself in quotes only: plain, it merges a map into the one that it is in.
const merge = "<<"

// yamlOf writes each string that is not plain in double quotes. The YAML library cannot be told to, so it gets placeholders that
// occur nowhere else, and these are replaced.
func yamlOf(value any, isPlain func(string) bool) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()

	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}

	w := &words{mark: "escaped" + rand.Text() + "x", isPlain: isPlain}

	if text, err = json.Marshal(w.in(tree)); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}

	if text, err = yaml.JSONToYAML(text); err != nil {
		return "", fmt.Errorf("writing YAML: %w", err)
	}

	return strings.NewReplacer(w.pairs...).Replace(string(text)), nil
}

// words are placeholders for strings.
type words struct {
	mark    string
	isPlain func(string) bool
	// pairs are a placeholder and what it stands for, in turn.
	pairs []string
}

func (w *words) in(value any) any {
	switch value := value.(type) {
	case string:
		return w.of(value)
	case []any:
		for i := range value {
			value[i] = w.in(value[i])
		}
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, of := range value {
			out[w.of(key)] = w.in(of)
		}

		return out
	}

	return value
}

func (w *words) of(s string) string {
	if s != merge && w.isPlain(s) {
		return s
	}

	// The x at the end keeps the first placeholder from being the beginning of the tenth.
	word := w.mark + strconv.Itoa(len(w.pairs)) + "x"
	w.pairs = append(w.pairs, word, quote(s))

	return word
}
