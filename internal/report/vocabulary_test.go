package report_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestNoWordIsMissingFromItsList reads the vocabulary's own source: a constant that its list forgets would escape the
// documentation.
func TestNoWordIsMissingFromItsList(t *testing.T) {
	t.Parallel()

	file, err := parser.ParseFile(token.NewFileSet(), "vocabulary.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}

	lists := map[string][]string{
		"Reason": report.Reasons(), "Event": report.Events(), "Member": report.MemberReasons(),
		"Condition": report.Conditions(),
	}
	found := 0

	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}

		for i, name := range spec.Names {
			for prefix, list := range lists {
				if !strings.HasPrefix(name.Name, prefix) {
					continue
				}

				found++

				if word := wordOf(spec.Values[i]); !slices.Contains(list, word) {
					t.Errorf("%s is missing from the list of its kind", name.Name)
				}
			}
		}

		return true
	})

	if all := len(report.Reasons()) + len(report.Events()) + len(report.MemberReasons()) + len(report.Conditions()); found != all {
		t.Errorf("found %d constants for %d words", found, all)
	}
}

// wordOf is the value of a constant: a word, or the name of one that another package has.
func wordOf(value ast.Expr) string {
	switch value := value.(type) {
	case *ast.BasicLit:
		word, _ := strconv.Unquote(value.Value)

		return word
	case *ast.SelectorExpr:
		return map[string]string{"ConditionCSVsInjected": scope.ConditionCSVsInjected}[value.Sel.Name]
	default:
		return ""
	}
}
