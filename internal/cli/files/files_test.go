package files_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/controllers"
)

const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: "

// folder has files of each kind that a flag may name, and one that is no manifest.
func folder(t *testing.T) string {
	t.Helper()

	dir := t.TempDir()
	for path, text := range map[string]string{
		"a.yaml": manifest + "a\n---\n" + manifest + "b", "c.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
		"below/d.yml": manifest + "d", "e.txt": manifest + "e",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	return dir
}

func TestRead(t *testing.T) {
	t.Parallel()

	dir := folder(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/u.yaml" {
			http.NotFound(w, r)

			return
		}

		_, _ = io.WriteString(w, manifest+"u")
	}))
	t.Cleanup(server.Close)

	for name, tc := range map[string]struct {
		names     []string
		recursive bool
		want      string
		refused   string
	}{
		"a file, of whatever extension": {names: []string{"a.yaml", "e.txt"}, want: "a b e"},
		"a folder":                      {names: []string{"."}, want: "a b c"},
		"folders below":                 {names: []string{"."}, recursive: true, want: "a b d c"},
		"a pattern":                     {names: []string{"*.json"}, want: "c"},
		"a URL":                         {names: []string{server.URL + "/u.yaml", "c.json"}, want: "u c"},
		"a URL that is not there": {
			names: []string{server.URL + "/v.yaml"}, refused: "server reported 404 Not Found",
		},
		"no URL":                      {names: []string{"http://a b"}, refused: `the URL passed to filename "http://a b" is not valid`},
		"a file that is not there":    {names: []string{"x.yaml"}, refused: `x.yaml" does not exist`},
		"a pattern that matches none": {names: []string{"*.xml"}, refused: `*.xml" does not exist`},
		"no pattern":                  {names: []string{"[.yaml"}, refused: `[.yaml" is not valid`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			paths := slices.Clone(tc.names)
			for i, path := range paths {
				if !strings.Contains(path, "://") {
					paths[i] = filepath.Join(dir, path)
				}
			}

			found, err := files.Read(paths, tc.recursive)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("the error is %v, want %q", err, tc.refused)
				}

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			var names []string
			for i := range found {
				names = append(names, found[i].GetName())
			}

			if got := strings.Join(names, " "); got != tc.want {
				t.Errorf("read %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWrongTypesAreNamed: whoever wrote the file finds the field.
func TestWrongTypesAreNamed(t *testing.T) {
	t.Parallel()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	legacy := schema.GroupVersionKind{Group: "namespacescope.ibm.com", Version: "v1alpha1", Kind: "NamespaceScope"}
	csv := schema.GroupVersionKind{Group: "operators.coreos.com", Version: "v1alpha1", Kind: "ClusterServiceVersion"}

	for spec, tc := range map[string]struct {
		kind schema.GroupVersionKind
		want string
	}{
		"{configmap-name: 5}":   {legacy, "spec.configmap-name: number where string is expected"},
		"{namespaceMembers: a}": {legacy, "spec.namespaceMembers: string where []string is expected"},
		"[]":                    {legacy, "spec: array where v1alpha1.NamespaceScopeSpec is expected"},
		`{install: {spec: {deployments: [{spec: {replicas: "1"}}]}}}`: {
			csv, "spec.install.spec.deployments.spec.replicas: string where int32 is expected",
		},
	} {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("metadata: {name: x}\nspec: "+spec), &obj.Object); err != nil {
			t.Fatal(err)
		}

		obj.SetGroupVersionKind(tc.kind)

		want := tc.kind.Kind + " x has fields of the wrong type: " + tc.want
		if _, err = files.Typed(scheme, obj); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}
