package imports

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// TestFilesWithoutALegacyScope: whoever gives a scope of another group or version sees that it is read, and what is converted.
func TestFilesWithoutALegacyScope(t *testing.T) {
	t.Parallel()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	v := &reading.Cluster{Reader: snapshot.New(fake.NewClientBuilder().WithScheme(scheme).Build())}

	for _, version := range []string{"namespacescope.ibm.com/v1", "operator.ibm.com/v1"} {
		document := "apiVersion: " + version + "\nkind: NamespaceScope\nmetadata: {name: x, namespace: ops}\n"

		file := filepath.Join(t.TempDir(), "scope.yaml")
		if err := os.WriteFile(file, []byte(document), 0o600); err != nil {
			t.Fatal(err)
		}

		o := &Options{}
		o.Files = []string{file}

		_, _, err := o.fromFiles(t.Context(), v)
		want := "no NamespaceScope of namespacescope.ibm.com/v1alpha1 was found in the files; they hold NamespaceScope ops/x of "

		if err == nil || err.Error() != want+version {
			t.Errorf("got %v, want %s", err, want+version)
		}
	}
}
