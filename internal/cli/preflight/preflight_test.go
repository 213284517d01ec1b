package preflight

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

func TestDocumentsAreReadOnce(t *testing.T) {
	const (
		secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: one}\n"
		csv    = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: op.v1}\n"
	)

	dir := t.TempDir()

	for name, content := range map[string]string{
		"plain/one.yaml": secret, "empty.yaml": "# Nothing\n",
		"bundle/manifests/csv.yaml": csv, "bundle/notes.yaml": "annotations: {}\n",
		"folder/manifests/one.yaml": secret, "folder/one.yaml": strings.ReplaceAll(secret, "one", "beside"),
		"broken/manifests/csv.yaml": "kind: [",
		"stdin.yaml":                secret,
	} {
		path := filepath.Join(dir, name)

		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for name, tc := range map[string]struct {
		reason  string
		files   []string
		want    string
		problem string
	}{
		"none":            {"without files there is nothing to read", nil, "", ""},
		"a folder":        {"it holds objects", []string{"plain"}, "Secret one", ""},
		"standard input":  {"it gives its objects once", []string{"-", "plain"}, "Secret one, Secret one", ""},
		"a bundle":        {"its manifests are meant, and nothing beside them", []string{"bundle"}, "ClusterServiceVersion op.v1", ""},
		"no bundle":       {"a folder that installs nothing is taken as it is", []string{"folder"}, "Secret beside", ""},
		"one of two":      {"a file without objects is no harm beside another", []string{"empty.yaml", "plain"}, "Secret one", ""},
		"nothing in them": {"that is an error where there is no other", []string{"empty.yaml"}, "", "there is no object in them"},
		"a broken bundle": {"it is said what cannot be read", []string{"broken"}, "", "csv.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			stdin, err := os.Open(filepath.Join(dir, "stdin.yaml"))
			if err != nil {
				t.Fatal(err)
			}

			before := os.Stdin
			os.Stdin = stdin

			defer func() { os.Stdin = before }()

			o := &Options{}

			for _, path := range tc.files {
				if path != "-" {
					path = filepath.Join(dir, path)
				}

				o.Files = append(o.Files, path)
			}

			documents, err := o.documents()
			names := make([]string, 0, len(documents))

			for _, d := range documents {
				names = append(names, d.GetKind()+" "+d.GetName())
			}

			said := ""
			if err != nil {
				said = err.Error()
			}

			if got := strings.Join(names, ", "); got != tc.want || !strings.Contains(said, tc.problem) ||
				(said == "") != (tc.problem == "") {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestWhatIsBesideScopesIsNamed(t *testing.T) {
	t.Parallel()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	nss := files.Document{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.ibm.com/v1", "kind": "NamespaceScope", "metadata": map[string]any{"name": "s", "namespace": "ops"},
	}}, Source: "x.yaml"}
	secret := files.Document{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "one", "namespace": "ops"},
	}}, Source: "x.yaml"}

	for name, tc := range map[string]struct {
		reason    string
		options   Options
		documents []files.Document
		scopes    int
		note      string
	}{
		"a scope":  {"nothing is beside it", Options{}, []files.Document{nss}, 1, ""},
		"mixed":    {"the rest is no part of the answer", Options{}, []files.Document{nss, secret}, 1, ": Secret ops/one;"},
		"a user":   {"users are asked about all objects alike", Options{User: "jane"}, []files.Document{nss, secret}, 0, ""},
		"no files": {"the scope is in the cluster", Options{}, nil, 0, ""},
	} {
		scopes, left, err := tc.options.scopesIn(scheme, tc.documents)
		note := strings.Join(noteLeftOut(left), "")

		if err != nil || len(scopes) != tc.scopes || !strings.Contains(note, tc.note) || (note == "") != (tc.note == "") {
			t.Errorf("%s: %s: got %d scopes, %q, %v", name, tc.reason, len(scopes), note, err)
		}
	}
}

// TestWhoIsAskedAbout: the caller's word counts before the scope's. Where neither names an account, it says who writes, or why
// nobody does.
func TestWhoIsAskedAbout(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		given, named string
		manager      writer.Manager
		want, says   string
	}{
		"an account of the scope's namespace": {given: "one", named: "writer", want: "ops/one"},
		"an account of another namespace":     {given: "other/one", named: "writer", want: "other/one"},
		"the account of the scope":            {named: "writer", want: "ops/writer"},
		"none":                                {says: "names no service account, so Ambit itself writes"},
		"none, where one has to be named": {
			manager: writer.Manager{NeedDelegate: true}, says: "the scope names no service account, and this Ambit writes only as one",
		},
		"none, elsewhere": {
			manager: writer.Manager{Namespaces: []string{"other"}}, says: "this Ambit serves scopes in the namespaces other only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := scope.Scope{Key: scope.NamespaceScopes.In("ops"), Delegate: tc.named}
			o := &Options{Account: tc.given}

			namespace, account, err := o.account(&s, tc.manager.Of(&s, &facts.OperatorNamespace{}), "")
			if tc.want != "" && (err != nil || namespace+"/"+account != tc.want) {
				t.Errorf("asks about %s/%s (%v), and not about %s", namespace, account, err, tc.want)
			}

			if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("it says %v, and not %q", err, tc.says)
			}
		})
	}
}
