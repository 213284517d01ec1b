package terminal

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// Text is what is printed as it is. Everything in it was escaped, except for other texts and for what the program says itself, so
// that no name in it moves the cursor, changes a colour or begins a line. There is no other way to make one from a string.
type Text struct{ text string }

// String returns the text, with its colours. That is a string like any other: as a value of another text it is escaped again.
func (t Text) String() string { return t.text }

// Of is a value as text, in one line.
func Of(value any) Text {
	if text, is := value.(Text); is {
		return text
	}

	return Text{printable.Text(fmt.Sprint(value))}
}

// Textf makes a text: the format is as the program has it, and the values are escaped.
func Textf(format string, values ...any) Text {
	safe := collect.Map(values, safeValue)

	return Text{fmt.Sprintf(format, safe...)}
}

// safeValue leaves numbers as they are, so that a format can say how to write them.
func safeValue(value any) any {
	switch value.(type) {
	case Text, fmt.Stringer, error, nil:
		return Of(value)
	}

	switch reflect.TypeOf(value).Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return value
	default:
		return Of(value)
	}
}

// Join puts texts together.
func Join(texts []Text, between string) Text {
	parts := collect.Map(texts, func(t Text) string { return t.text })

	return Text{strings.Join(parts, Of(between).text)}
}

// YAML is a value for programs, and for users who read it before they apply it.
func YAML(value any) (Text, error) {
	text, err := printable.YAML(value)

	return Text{text}, err
}

// YAMLWithBlocks is YAML in which texts of several lines are blocks.
func YAMLWithBlocks(value any) (Text, error) {
	text, err := printable.YAMLWithBlocks(value)

	return Text{text}, err
}

// JSON is a value for programs.
func JSON(value any) (Text, error) {
	text, err := printable.JSON(value)

	return Text{text}, err
}

// Builder collects lines.
type Builder struct{ text strings.Builder }

// Linef adds a line.
func (b *Builder) Linef(format string, values ...any) { b.Add(Textf(format+"\n", values...)) }

// Add adds a text as it is.
func (b *Builder) Add(t Text) { b.text.WriteString(t.text) }

// Text returns the lines, the last without its end.
func (b *Builder) Text() Text { return Text{strings.TrimSuffix(b.text.String(), "\n")} }
