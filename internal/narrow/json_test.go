package narrow

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
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

// TestObjectsThatFollowOneAnother: kubectl takes objects in JSON without anything between them, and so does this.
func TestObjectsThatFollowOneAnother(t *testing.T) {
	t.Parallel()

	object := func(name string) string {
		return `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"` + name + `"}}`
	}

	for text, want := range map[string]string{
		object("a") + object("b") + "\n":               object("a") + "\n---\n" + object("b") + "\n",
		object("a") + "\n" + object("b") + object("c"): object("a") + "\n---\n" + object("b") + "\n---\n" + object("c"),
		"---\n" + object("a") + object("b"):            "---\n" + object("a") + "\n---\n" + object("b"),
		object("a") + "\n---\n" + object("b") + "\n":   object("a") + "\n---\n" + object("b") + "\n",
	} {
		var s Stream
		if err := s.Read("in.json", strings.NewReader(text)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}

		got, err := s.Bytes()
		if err != nil || string(got) != want {
			t.Errorf("%s becomes\n%s\nwant\n%s (%v)", text, got, want, err)
		}

		objects := slices.Collect(s.objects())
		last := objects[len(objects)-1]
		before, _, _ := strings.Cut(text, object(last.Name))

		if len(objects) != strings.Count(text, "metadata") || last.Line != 1+strings.Count(before, "\n") {
			t.Errorf("%s: %d objects, the last one in line %d", text, len(objects), last.Line)
		}
	}

	for _, text := range []string{object("a") + "x", object("a") + "[]", object("a") + "null", object("a") + "{a: b}"} {
		var s Stream
		if err := s.Read("in.json", strings.NewReader(text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}
