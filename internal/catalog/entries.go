package catalog

import (
	"fmt"
	"regexp"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// item is an entry of a list, with its place counted from one.
type item struct {
	number int
	value  map[string]any
}

// marker begins a further document, wherever it stands at the beginning of a line.
var marker = regexp.MustCompile(`(?m)^---(?:[ \t].*)?$`)

// entries reads the entries of a list in YAML. A syntax error anywhere makes the whole text unreadable, so then each entry is
// read alone, and only what is wrong is missing.
func entries(text string) (list []item, problems []string) {
	number := 0
	add := func(value any) {
		number++

		switch v := value.(type) {
		case nil:
		case map[string]any:
			list = append(list, item{number, v})
		default:
			problems = append(problems, fmt.Sprintf("entry %d is no object", number))
		}
	}

	documents := marker.Split(text, maxEntries+1)
	if len(documents) > maxEntries {
		return nil, []string{fmt.Sprintf("it is too large: it has more than %d documents", maxEntries)}
	}

	for _, document := range documents {
		whole, err := decode(document)
		if err != nil {
			readAlone(document, err, add, func(words string) {
				problems = append(problems, words)
			}, &number)

			continue
		}

		switch v := whole.(type) {
		case nil:
		case []any:
			for _, value := range v {
				add(value)
			}
		case map[string]any:
			add(v) // One object that nobody made a list of.
		default:
			problems = append(problems, "it is no list")
		}
	}

	if len(list) > maxEntries {
		problems = append(problems,
			fmt.Sprintf("it is too large: it has %d entries, of which the first %d count", len(list), maxEntries))
		list = list[:maxEntries]
	}

	return list, problems
}

// readAlone reads the entries of a list one by one. What begins an entry is a dash in the column of the first one: nothing
// else of a list can stand there.
func readAlone(document string, whole error, add func(any), problem func(string), number *int) {
	parts := split(document)

	switch {
	case len(parts) == 0:
		problem(whole.Error())

		return
	case len(parts) > maxEntries:
		problem(fmt.Sprintf("it is too large: it has %d entries, and this has room for %d", len(parts), maxEntries))

		return
	}

	for _, part := range parts {
		value, err := decode(part)
		if err != nil {
			*number++
			problem(fmt.Sprintf("entry %d%s cannot be read: %v", *number, named(part), err))

			continue
		}

		if one, ok := value.([]any); ok && len(one) == 1 {
			value = one[0]
		}

		add(value)
	}
}

func split(document string) []string {
	var (
		parts  []string
		dashes string
		at     int
		start  = -1
	)

	for line := range strings.Lines(document) {
		bare := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(bare)]
		begins := strings.HasPrefix(bare, "- ") || strings.TrimRight(bare, "\r\n") == "-"

		switch {
		case begins && start < 0:
			dashes, start = indent, at
		case begins && indent == dashes:
			parts = append(parts, document[start:at])
			start = at
		}

		at += len(line)
	}

	if start >= 0 {
		parts = append(parts, document[start:])
	}

	return parts
}

// nameLine finds what is probably the name of an object that cannot be read.
var nameLine = regexp.MustCompile(`(?m)^\s+(?:- )?(?:name|packageName): ["']?([a-z0-9][a-z0-9.-]{0,252})["']?\s*$`)

func named(part string) string {
	if m := nameLine.FindStringSubmatch(part); m != nil {
		return ", which may be " + m[1] + ","
	}

	return ""
}

// decode reads YAML into what JSON knows, with whole numbers as Kubernetes has them.
func decode(text string) (any, error) {
	if err := affordable(text); err != nil {
		return nil, err
	}

	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, oneLine(err)
	}

	var value any
	if err := utiljson.Unmarshal(raw, &value); err != nil {
		return nil, oneLine(err)
	}

	return value, nil
}

// oneLine makes an error fit into a list of problems.
func oneLine(err error) error {
	words := strings.Join(strings.Fields(err.Error()), " ")

	return fmt.Errorf("%s", strings.TrimPrefix(words, "error converting YAML to JSON: "))
}
