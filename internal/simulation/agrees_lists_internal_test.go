package simulation

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestRefusesListsAsTheAPIServer: a watch list for which somebody's ConfigMap has no room is refused in memory as by the API
// server.
func TestRefusesListsAsTheAPIServer(t *testing.T) {
	t.Parallel()

	a := newAgreement(t, 200)

	for name, there := range map[string]corev1.ConfigMap{
		"takes":  {Data: map[string]string{"other": "x"}, BinaryData: map[string][]byte{"bytes": {1}}},
		"bytes":  {BinaryData: map[string][]byte{scope.ListKey: {1}}},
		"full":   {Data: map[string]string{"other": strings.Repeat("x", corev1.MaxSecretSize)}},
		"filled": {BinaryData: map[string][]byte{"other": make([]byte, corev1.MaxSecretSize)}},
	} {
		said := [2]string{}

		for i, c := range a.admins {
			cm := there.DeepCopy()
			cm.Namespace, cm.Name = a.namespace, name

			if err := c.Create(t.Context(), cm); err != nil {
				t.Fatal(err)
			}

			list := client.RawPatch(types.ApplyPatchType, fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{%q:"a"}}`, name, scope.ListKey))
			said[i] = fmt.Sprint(c.Patch(t.Context(), cm, list, client.FieldOwner(scope.FieldManager)))
		}

		if said[0] != said[1] || (said[0] == fmt.Sprint(nil)) != (name == "takes") {
			t.Errorf("%s: the API server says %s, and in memory the answer is %s", name, said[0], said[1])
		}
	}
}
