package picture_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/picture"
)

// fragment is a piece of a name that means something to a browser somewhere, or to whoever writes for one.
func fragment() *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom([]string{
		`"`, `'`, "`", "<", ">", "&", "</script>", "<script>alert(1)</script>", "<!--", "-->", "]]>", "<![CDATA[", "</title>",
		"</style>", "<svg onload=alert(1)>", ` onfocus="alert(1)`, "{{.}}", "${x}", "%s", "%!s(MISSING)", "%", "\\", "&#34;", "&lt;",
		"\x00", "\n", "\u2028", "\u202e", "\xff", "javascript:alert(1)",
	}), rapid.String())
}

func name(letter string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return letter + strings.Join(rapid.SliceOfN(fragment(), 0, 4).Draw(t, "fragments"), "")
	})
}

// hostileMatrix is one of which everything that comes from a cluster is what name returns for it. Its shape is always the same.
func hostileMatrix(name func(letter string) string) (*overview.Matrix, []string) {
	operators := []overview.Operator{
		{Kind: "ServiceAccount", Namespace: name("a"), Name: name("b")},
		{Kind: "ServiceAccount", Namespace: name("c"), Name: name("d")},
	}
	namespaces := []string{name("m"), name("n"), name("o")}
	states := []overview.State{overview.Served, overview.Failed, overview.Idle}

	var services []overview.Service

	for o := range operators {
		for n := range namespaces[:2+o] {
			services = append(services, overview.Service{
				Operator: operators[o], Namespace: namespaces[n], Scope: name("s"), State: states[n],
				Reason: name("r"), Message: name("t"),
				Roles: []overview.Role{{Name: name("u"), Binding: name("v"), Rules: []rbacv1.PolicyRule{
					{Verbs: []string{name("w")}, APIGroups: []string{name("x")}, Resources: []string{name("y")}},
				}}},
			})
		}
	}

	m := overview.New(nil, services, []string{name("p"), name("q")}).Matrix()
	m.ClusterWide = []overview.ClusterWide{{Operator: operators[0], Role: name("e"), Binding: name("f"), WayOut: name("g")}}

	return m, []string{name("k"), name("l")}
}

// element is one of a document, with the names of its attributes. Values are dynamic.
func element(name string, attributes []string) string {
	return "<" + name + " " + strings.Join(attributes, " ") + ">"
}

// htmlShape lists the elements of a page as a browser sees them, and what its scripts and styles hold.
func htmlShape(page []byte) (shape, raw []string, err error) {
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, nil, fmt.Errorf("parsing the page: %w", err)
	}

	for n := range root.Descendants() {
		switch n.Type {
		case html.ElementNode:
			names := make([]string, 0, len(n.Attr))
			for _, a := range n.Attr {
				names = append(names, a.Key)
			}

			shape = append(shape, element(n.Data, names))
		case html.TextNode:
			if p := n.Parent.Data; p == "script" || p == "style" {
				raw = append(raw, n.Data)
			}
		case html.CommentNode, html.DoctypeNode, html.DocumentNode, html.ErrorNode, html.RawNode:
			shape = append(shape, fmt.Sprint(n.Type, n.Data))
		}
	}

	return shape, raw, nil
}

// xmlShape lists the elements of a drawing.
func xmlShape(drawing []byte) ([]string, error) {
	var shape []string

	for d := xml.NewDecoder(bytes.NewReader(drawing)); ; {
		read, err := d.Token()
		if errors.Is(err, io.EOF) {
			return shape, nil
		}

		if err != nil {
			return nil, fmt.Errorf("parsing the drawing: %w", err)
		}

		switch x := read.(type) {
		case xml.StartElement:
			names := make([]string, 0, len(x.Attr))
			for _, a := range x.Attr {
				names = append(names, a.Name.Local)
			}

			shape = append(shape, element(x.Name.Local, names))
		case xml.Comment, xml.ProcInst, xml.Directive:
			shape = append(shape, fmt.Sprintf("%T", x))
		}
	}
}

func bothOf(m *overview.Matrix, notes []string) (page, drawing []byte, err error) {
	var p, d bytes.Buffer
	if err := (&picture.Page{Matrix: m, NotRead: notes, Notes: notes, Taken: time.Unix(0, 0)}).HTML(&p); err != nil {
		return nil, nil, err
	}

	if err := picture.SVG(&d, m); err != nil {
		return nil, nil, err
	}

	return p.Bytes(), d.Bytes(), nil
}

// TestNamesAddNoElements holds that whatever names are, a page and a drawing have the elements and attributes that they have with
// harmless ones, and that scripts and styles hold nothing of them but in JSON.
func TestNamesAddNoElements(t *testing.T) {
	t.Parallel()

	shapes := func(t rapid.TB, m *overview.Matrix, notes []string) ([]string, []string, []string) {
		page, drawing, err := bothOf(m, notes)
		if err != nil {
			t.Fatal(err)
		}

		ofPage, raw, err := htmlShape(page)
		if err != nil {
			t.Fatal(err)
		}

		ofDrawing, err := xmlShape(drawing)
		if err != nil {
			t.Fatal(err)
		}

		return ofPage, raw, ofDrawing
	}

	next := 0
	harmless, notes := hostileMatrix(func(letter string) string {
		next++

		return fmt.Sprint(letter, next)
	})
	wantPage, wantRaw, wantDrawing := shapes(t, harmless, notes)

	if len(wantPage) < 60 || len(wantRaw) != 3 || len(wantDrawing) < 20 {
		t.Fatalf("the harmless page has %d elements and %d texts of scripts, the drawing %d", len(wantPage), len(wantRaw),
			len(wantDrawing))
	}

	rapid.Check(t, func(t *rapid.T) {
		// Numbers keep names apart, so that the shape is the same.
		next := 0
		m, notes := hostileMatrix(func(letter string) string {
			next++

			return name(fmt.Sprint(letter, next)).Draw(t, letter)
		})
		page, raw, drawing := shapes(t, m, notes)

		if !slices.Equal(page, wantPage) {
			t.Errorf("the page has other elements than with harmless names:\n%v\n%v", page, wantPage)
		}

		if !slices.Equal(drawing, wantDrawing) {
			t.Errorf("the drawing has other elements than with harmless names:\n%v\n%v", drawing, wantDrawing)
		}

		if len(raw) != 3 || raw[0] != wantRaw[0] || raw[2] != wantRaw[2] || !json.Valid([]byte(raw[1])) {
			t.Errorf("a name is in a style or a script: %q", raw)
		}
	})
}

// TestOnlyConstantsBecomeMarkup holds what the type is for: a conversion would let anything through unescaped, and so would
// writing past document.write.
func TestOnlyConstantsBecomeMarkup(t *testing.T) {
	t.Parallel()

	files := token.NewFileSet()

	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}

		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.CallExpr:
				if f, ok := x.Fun.(*ast.Ident); ok && f.Name == "markup" {
					t.Errorf("%s converts to markup", files.Position(x.Pos()))
				}
			case *ast.SelectorExpr:
				if x.Sel.Name == "out" && path != "document.go" {
					t.Errorf("%s writes past document.write", files.Position(x.Pos()))
				}
			}

			return true
		})
	}
}
