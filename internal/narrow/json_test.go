package narrow

import (
	"encoding/json"
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestJSONIsReadAsSuch: what JSON says, the text that is read as YAML says, too.
func TestJSONIsReadAsSuch(t *testing.T) {
	t.Parallel()

	for reason, text := range map[string]string{
		"tabs":                        "\t{\n\t\t\"a\":\t[1,\t\"b\\tc\"]\n}\n",
		"an escaped slash":            `{"a": "b\/c", "d\/e": "\\/"}`,
		"two halves of a character":   `{"a": "\ud83d\ude00", "b": "\ud83d"}`,
		"escapes that hide":           `{"k\u0069nd": "\"\\\u0022"}`,
		"line ends of Unicode":        "{\"a\": \"b\u2028c\u0085d\"}",
		"what YAML takes otherwise":   `{"yes": "no", "a": "2001-01-01", "b": 1e3, "c": null, "d": "<<", "e": "\u007f\u0000"}`,
		"strings with what separates": `{"a": "}, {", "b": "# c", "d": ": ", "e": "*f &g !h"}`,
	} {
		var want, got any
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatalf("%s: %v", reason, err)
		}

		if err := yaml.Unmarshal(yamlOf([]byte(text)), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %#v, want %#v (%v)", reason, got, want, err)
		}
	}

	for reason, text := range map[string]string{
		"YAML": "a: b\tc\n", "flow style": "{a: \"b\"}", "two values": `{"a": 1}{"b": 2}`, "a list": `["a\/b"]`, "nothing": "",
	} {
		if got := string(yamlOf([]byte(text))); got != text {
			t.Errorf("%s becomes %q", reason, got)
		}
	}
}
