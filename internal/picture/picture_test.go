package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/picture"
)

var update = flag.Bool("update", false, "write the golden files")

// hostile is a name that would run if it were not escaped.
const hostile = `"><script>document.title="pwned"</script>`

// matrix has so many operators and namespaces, and each state once at least.
func matrix(operators, namespaces int) *overview.Matrix {
	states := []overview.State{overview.Served, overview.Served, overview.Idle, overview.Partial, overview.Failed}
	rules := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
		{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
	}

	var services []overview.Service

	for o := range operators {
		operator := overview.Operator{Kind: "ServiceAccount", Namespace: "ops", Name: fmt.Sprintf("op-%02d", o)}
		role := overview.Role{
			Name: fmt.Sprintf("Role ops/op-%02d", o), Binding: fmt.Sprintf("RoleBinding ops/op-%02d", o), Rules: rules,
		}

		services = append(services, overview.Service{
			Operator: operator, Namespace: "ops", Scope: "NamespaceScope ops/s",
			State: overview.OwnNamespace, Roles: []overview.Role{role},
		})

		for n := range namespaces - 1 {
			s := overview.Service{
				Operator: operator, Namespace: fmt.Sprintf("team-%03d", n), Scope: "NamespaceScope ops/s",
				State: states[n%len(states)], Roles: []overview.Role{role},
			}

			if s.State == overview.Failed {
				s.Reason, s.Message = "AuthorizationRequired", hostile
				s.Roles = []overview.Role{{Name: role.Name, Rules: rules, Missing: true}}
			}

			if o%3 != 2 || n%2 == 0 {
				services = append(services, s)
			}
		}
	}

	return overview.New(nil, services, []string{"default", hostile}).Matrix()
}

func pageOf(t *testing.T, m *overview.Matrix) []byte {
	t.Helper()

	var out bytes.Buffer

	p := &picture.Page{
		Matrix: m, NotRead: []string{hostile}, Notes: []string{hostile}, Taken: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
	}
	if err := p.HTML(&out); err != nil {
		t.Fatal(err)
	}

	return out.Bytes()
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()

	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; look at the difference after go test -update", path)
	}
}

func TestPage(t *testing.T) {
	t.Parallel()

	page := pageOf(t, matrix(3, 6))
	golden(t, "matrix.html", page)

	for _, outside := range []string{"http:", "https:", "//", "url(", "@import", "<script>document", "src=", "href="} {
		if bytes.Contains(bytes.ReplaceAll(page, []byte("</"), nil), []byte(outside)) {
			t.Errorf("the page has %q", outside)
		}
	}
}

func TestDrawing(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer
	if err := picture.SVG(&out, matrix(5, 12)); err != nil {
		t.Fatal(err)
	}

	golden(t, "matrix.svg", out.Bytes())

	for d := xml.NewDecoder(&out); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}

		if err != nil {
			t.Fatalf("the drawing is no XML: %v", err)
		}
	}
}

// TestSize holds that a large page stays small enough to be sent to somebody.
func TestSize(t *testing.T) {
	t.Parallel()

	if size := len(pageOf(t, matrix(50, 200))); size > 3<<20 {
		t.Errorf("the page has %d bytes", size)
	}
}

func TestHostileNamesAreText(t *testing.T) {
	t.Parallel()

	if page := string(pageOf(t, matrix(1, 6))); strings.Contains(page, "<script>document") {
		t.Error("a name became a script")
	}
}
