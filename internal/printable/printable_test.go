package printable_test

import (
	"encoding/json"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// anyText draws what RBAC takes: mostly characters that do something to a terminal, to YAML or to a shell, and also bytes that
// are no text.
func anyText() *rapid.Generator[string] {
	bad := rapid.SampledFrom([]string{
		"\x1b[2J", "\x00", "\a", "\b", "\t", "\n", "\r", "\x7f", "\u0080", "\u0085", "\u009b", "\u00a0", "\u00ad", "\u061c", "\u0336",
		"\u115f",
		"\u200b", "\u200f", "\u2028", "\u202e", "\u2066", "\u2800", "\u3164", "\ue000", "\ufe0f", "\ufeff", "\ufffd", "\uffff",
		"\U0001ffff", "\U000e0041", `"`, `'`, `\`, "`", "$(x)", ": ", "- ", "#", "{", "*", "é", "\u65e5", "😀", " ", "a, b",
		"yes", "1e3",
	})

	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(bad, rapid.String()), 0, 6).Draw(t, "text"), "")
	})
}

func allPrintable(t *rapid.T, what, text string) {
	for _, r := range text {
		if r != '\n' && r != '\ufffd' && !printable.Is(r) {
			t.Fatalf("%s has %q: %q", what, r, text)
		}
	}
}

func TestTextIsOneLineOfPrintableCharacters(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		if rapid.Bool().Draw(t, "no text") {
			text += string([]byte{0x9b, 'm', 0xe2, 0x80})
		}

		shown := printable.Text(text)
		if allPrintable(t, "text", shown); strings.Contains(shown, "\n") || printable.Text(shown) != shown || !printable.IsText(shown) {
			t.Errorf("%q is shown as %q", text, shown)
		}

		name := printable.Name(text)
		if allPrintable(t, "a name", name); name != text && !strings.HasPrefix(name, `"`) {
			t.Errorf("%q is called %s", text, name)
		}
	})
}

func TestWhatIsEscaped(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct{ text, name string }{
		"":                          {"", `""`},
		"a.b:c-d/é":                 {"a.b:c-d/é", "a.b:c-d/é"},
		"*":                         {"*", "*"},
		"a, b":                      {"a, b", `"a, b"`},
		"a\nb":                      {`a\nb`, `"a\nb"`},
		"\x1b]8;;x\x07":             {`\u001b]8;;x\u0007`, `"\u001b]8;;x\u0007"`},
		"\u202ea\u009b\U000e0041":   {`\u202ea\u009b\U000e0041`, `"\u202ea\u009b\U000e0041"`},
		"\x9bm\xff":                 {`\x9bm\xff`, `"\x9bm\xff"`},
		"\ufffd":                    {"\ufffd", `"` + "\ufffd" + `"`},
		`say "\u001b"`:              {`say "\u001b"`, `"say \"\\u001b\""`},
		"a\u0336\u3164\u2800\u00a0": {`a\u0336\u3164\u2800\u00a0`, `"a\u0336\u3164\u2800\u00a0"`},
	} {
		if got := printable.Text(text); got != want.text {
			t.Errorf("Text(%q): got %s, want %s", text, got, want.text)
		}

		if got := printable.Name(text); got != want.name {
			t.Errorf("Name(%q): got %s, want %s", text, got, want.name)
		}
	}
}

// TestDocumentsHoldWhatTheyShow holds that each form is printable and gives back what it was made of, also to the API server,
// which reads what is applied as YAML.
func TestDocumentsHoldWhatTheyShow(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		value := map[string]any{
			"list": []any{anyText().Draw(t, "a"), anyText().Draw(t, "b")}, "escaped": anyText().Draw(t, "c"), "n": 1.5, "no": nil,
			"of": map[string]any{anyText().Draw(t, "key"): anyText().Draw(t, "d"), "yes": true},
		}

		for form, write := range map[string]func(any) (string, error){
			"JSON": printable.JSON, "YAML": printable.YAML, "YAML with blocks": printable.YAMLWithBlocks,
			"body": func(v any) (string, error) { b, err := printable.Body(v); return string(b), err },
		} {
			text, err := write(value)
			if err != nil {
				t.Fatal(err)
			}

			var back any

			read := func(b []byte, into any) error { return yaml.Unmarshal(b, into) }
			if form == "JSON" {
				read = json.Unmarshal
			}

			if err := read([]byte(text), &back); err != nil || !reflect.DeepEqual(back, any(value)) {
				t.Errorf("%s: %v: %#v is not %#v: %s", form, err, back, value, text)
			}

			if form == "JSON" || form == "YAML" {
				allPrintable(t, form, text)
			}
		}
	})
}

// TestAStringIsOneLineOfYAML holds that no string begins a line, also a long one, which YAML may fold.
func TestAStringIsOneLineOfYAML(t *testing.T) {
	t.Parallel()

	text, err := printable.YAML(map[string]any{"rules": []string{strings.Repeat("secrets ", 40), "a\nb"}})
	if err != nil || strings.Count(text, "\n") != 3 {
		t.Errorf("%v: %s", err, text)
	}
}

// TestWordsAreWhatTheShellReads holds that a shell reads a word that people copy as what it was, if that is printable, and never
// as more than one word.
func TestWordsAreWhatTheShellReads(t *testing.T) {
	t.Parallel()

	texts := []string{
		"", "plain", "ns/name", "a b", "$(touch x)", "`x`", "it's", `"`, `\`, "a;b", "~", "*", "=ls", "-n", "#", "!x", "a&b|c>d", "é",
	}
	words := []string{"printf '<%s>'"}

	for _, text := range texts {
		words = append(words, printable.Word(text))
	}

	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", strings.Join(words, " ")).Output()
	if want := "<" + strings.Join(texts, "><") + ">"; err != nil || string(out) != want {
		t.Errorf("%v: got %s, want %s", err, out, want)
	}

	if got := printable.Word("a\x1b'\n"); got != `'a\u001b'\''\n'` {
		t.Errorf("got %s", got)
	}
}

// TestDeletionsNameOneObject holds that what is not printable is deleted by its address, and never what is called by its escapes.
func TestDeletionsNameOneObject(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{
		"kept": "kubectl delete rolebinding -n a -- kept", `kept\u200b`: `kubectl delete rolebinding -n a -- 'kept\u200b'`,
		"it's\x00\u200b\n": `kubectl delete --raw '/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings/it%27s%00%E2%80%8B%0A'`,
	} {
		if got := printable.Deletion("rolebinding", "a", name); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}

	want := "kubectl delete --raw '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/%1B'"
	if got := printable.Deletion("clusterrolebinding", "", "\x1b"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCompactJSONHoldsWhatItShows: it is one line of printable characters, and a program that reads it gets the value.
func TestCompactJSONHoldsWhatItShows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := map[string]string{anyText().Draw(t, "key"): anyText().Draw(t, "value")}

		text, err := printable.CompactJSON(value)
		if err != nil {
			t.Fatal(err)
		}

		allPrintable(t, "JSON", string(text))

		plain, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}

		var got, want map[string]string
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}

		if err := json.Unmarshal(plain, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s is %q, want %q: %v", text, got, want, err)
		}
	})

	if text, err := printable.CompactJSON(func() {}); err == nil {
		t.Errorf("what is no JSON became %s", text)
	}
}

// TestNumbersStayWhatTheyAre: a number of a document is not rounded on its way.
func TestNumbersStayWhatTheyAre(t *testing.T) {
	t.Parallel()

	value := map[string]any{"large": int64(1<<60 + 1), "one": 1, "half": 0.5}

	if text, err := printable.YAML(value); err != nil || text != "half: 0.5\nlarge: 1152921504606846977\none: 1\n" {
		t.Errorf("got %s, %v", text, err)
	}
}

// TestBlocks: a file within a file keeps its lines, unless there is something in them that does not show.
func TestBlocks(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"a\nb\n": "f: |\n  a\n  b\n", "a\u202e\nb\n": `f: "a\u202e\nb\n"` + "\n", "a": "f: a\n",
	} {
		if got, err := printable.YAMLWithBlocks(map[string]string{"f": text}); err != nil || got != want {
			t.Errorf("%q became %q, want %q: %v", text, got, want, err)
		}
	}
}

// TestLists: a list that is cut says how many names it leaves out, and a text that is cut says that it was.
func TestLists(t *testing.T) {
	t.Parallel()

	names := []string{"a", "b", "c"}

	for most, want := range map[int]string{0: " and 3 more", 1: "a and 2 more", 2: "a, b and 1 more", 3: "a, b, c", 4: "a, b, c"} {
		if got := printable.Some(names, most); got != want {
			t.Errorf("%d of them are %q, want %q", most, got, want)
		}
	}

	for most, want := range map[int]string{4: "añb", 3: "añ…", 2: "a…", 1: "a…", 0: "…"} {
		if got := printable.Cut("añb", most); got != want {
			t.Errorf("in %d bytes it is %q, want %q", most, got, want)
		}
	}

	if got := printable.Names([]string{"a", "a, b", "", "kube-system", "a1"}); !reflect.DeepEqual(got, []string{
		"a", `"a, b"`, `""`, "kube-system", "a1",
	}) {
		t.Errorf("in a list they are %q", got)
	}
}

// TestWhatStaysAsItIs: what shows itself is not escaped, and a text of lines keeps these.
func TestWhatStaysAsItIs(t *testing.T) {
	t.Parallel()

	for text, want := range map[string][2]string{
		"plain":         {"plain", "plain"},
		"\ufffd":        {"\ufffd", "\ufffd"},
		"a\ufffd\x1b":   {"a\ufffd" + `\u001b`, "a\ufffd" + `\u001b`},
		"\xff":          {`\xff`, `\xff`},
		"a\n\tb":        {`a\n\tb`, "a\n\tb"},
		"a\r\n\x1b":     {`a\r\n\u001b`, `a\r` + "\n" + `\u001b`},
		"\U000e0041":    {`\U000e0041`, `\U000e0041`},
		"\u65e5 😀 é":    {"\u65e5 😀 é", "\u65e5 😀 é"},
		"e\u0301\u200b": {`e\u0301\u200b`, `e\u0301\u200b`},
	} {
		if got := [2]string{printable.Text(text), printable.Lines(text)}; got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}

		if got := printable.IsText(text); got != (want[0] == text) {
			t.Errorf("%q has nothing to escape: %t", text, got)
		}
	}

	if got := printable.Name("\ufffd \"\\"); got != `"`+"\ufffd"+` \"\\"` {
		t.Errorf("got %s", got)
	}
}
