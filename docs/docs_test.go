// Package docs_test holds the documentation against the code, and against itself.
package docs_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// root is the folder of the repository, as seen from this one.
const root = ".."

func TestStatusNamesEveryWord(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("status.md")
	if err != nil {
		t.Fatal(err)
	}

	for what, words := range map[string][]string{
		"condition":                 vocabulary(t, "Condition"),
		"reason of a condition":     vocabulary(t, "Reason"),
		"reason of a failed member": vocabulary(t, "Member"),
		"reason of an event":        vocabulary(t, "Event"),
		"metric":                    metricNames(t),
	} {
		if len(words) == 0 {
			t.Errorf("the code has no %s, which cannot be", what)
		}

		for _, word := range words {
			if !strings.Contains(string(text), "`"+word+"`") && !strings.Contains(string(text), "# Condition "+word+"\n") {
				t.Errorf("docs/status.md does not say what the %s %s means", what, word)
			}
		}
	}
}

// vocabulary returns the words of a kind, read from their own source: a list beside the constants could miss one.
func vocabulary(t *testing.T, kind string) []string {
	t.Helper()

	source, err := os.ReadFile(filepath.Join(root, "internal/report/vocabulary.go"))
	if err != nil {
		t.Fatal(err)
	}

	var words []string

	for _, m := range constant.FindAllStringSubmatch(string(source), -1) {
		if m[1] != kind {
			continue
		}

		switch {
		case m[2] != "":
			words = append(words, m[2])
		case m[3] == "scope.ConditionCSVsInjected":
			words = append(words, scope.ConditionCSVsInjected)
		default:
			t.Errorf("%s is no word that can be read", m[0])
		}
	}

	return words
}

// collectors is a registry that only remembers what was registered.
type collectors struct {
	prometheus.Registerer

	all []prometheus.Collector
}

func (c *collectors) MustRegister(all ...prometheus.Collector) { c.all = append(c.all, all...) }

func metricNames(t *testing.T) []string {
	t.Helper()

	registered := &collectors{}
	report.NewMetrics(registered)

	var names []string

	for _, c := range registered.all {
		descriptions := make(chan *prometheus.Desc, 8)
		c.Describe(descriptions)
		close(descriptions)

		for d := range descriptions {
			// The name has no accessor; it is the first string in the text form.
			_, rest, _ := strings.Cut(d.String(), `"`)
			name, _, found := strings.Cut(rest, `"`)

			if !found {
				t.Fatalf("no name in %s", d)
			}

			names = append(names, name)
		}
	}

	return names
}

var (
	constant = regexp.MustCompile(`(?m)^\t(Condition|Reason|Member|Event)\w+ += (?:"(\w+)"|(.*))$`)

	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} (.+)$`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()

	pages := markdownFiles(t)
	if len(pages) < 5 {
		t.Fatalf("found only %d Markdown files: %v", len(pages), pages)
	}

	for _, page := range pages {
		for _, target := range linksOf(t, page) {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}

			file, anchor, _ := strings.Cut(target, "#")

			path := page
			if file != "" {
				path = filepath.Join(filepath.Dir(page), file)
			}

			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link %s leads nowhere", page, target)

				continue
			}

			if anchor != "" && !anchorsOf(t, path)[anchor] {
				t.Errorf("%s: %s has no heading for the link %s", page, path, target)
			}
		}
	}
}

// kustomized is a folder of ours in a command that builds it.
var kustomized = regexp.MustCompile(`(?:kustomize build| -k) (config/[a-z/-]*[a-z])`)

// TestFoldersAreKustomizations: whoever types what a page says has something built.
func TestFoldersAreKustomizations(t *testing.T) {
	t.Parallel()

	found := 0

	for _, page := range markdownFiles(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, m := range kustomized.FindAllStringSubmatch(string(text), -1) {
			found++

			if _, err := os.Stat(filepath.Join(root, m[1], "kustomization.yaml")); err != nil {
				t.Errorf("%s builds %s: %v", page, m[1], err)
			}
		}
	}

	if found == 0 {
		t.Error("no page builds anything")
	}
}

// markdownFiles returns the repository's own, not those of what was built or fetched.
func markdownFiles(t *testing.T) []string {
	t.Helper()

	var pages []string

	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "bin" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".md"):
			pages = append(pages, path)
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return pages
}

func linksOf(t *testing.T, page string) []string {
	t.Helper()

	var targets []string

	for _, line := range proseOf(t, page) {
		for _, match := range link.FindAllStringSubmatch(line, -1) {
			targets = append(targets, match[1])
		}
	}

	return targets
}

// anchorsOf returns the anchors of a page's headings, made as GitHub makes them.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()

	anchors := map[string]bool{}

	for _, line := range proseOf(t, page) {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}

		anchors[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, match[1])] = true
	}

	return anchors
}

// proseOf returns the lines of a page that are not code.
func proseOf(t *testing.T, page string) []string {
	t.Helper()

	file, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // It was only read.

	var (
		lines  []string
		inCode bool
	)

	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		line := scanner.Text()
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		} else if !inCode {
			lines = append(lines, line)
		}
	}

	return lines
}
