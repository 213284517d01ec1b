// Package delegates_test describes the profiles in which Ambit holds no rights of its own on what it writes: what a
// delegate lacks is told all at once, and the scope heals as soon as it is granted.
package delegates_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

func begin(t *testing.T, profile string) *testbed.World {
	t.Helper()

	if profile == "namespaced" {
		// The tests share one operator namespace: a scope of it that goes waits for the restarts that others have caused there.
		return beds.Begin(t, profile, "--restart-interval=1s")
	}

	return beds.Begin(t, profile)
}

// The statuses of the condition Ready.
const (
	yes = metav1.ConditionTrue
	no  = metav1.ConditionFalse
)

func members(names ...string) operatorv1.NamespaceScopeSpec {
	return operatorv1.NamespaceScopeSpec{NamespaceMembers: names}
}

// failure waits until status says of a member that it failed, in these words: what it said before the last change to the
// cluster may still be there.
func failure(w *testbed.World, nss *operatorv1.NamespaceScope, namespace string, words ...string) operatorv1.FailedMember {
	w.Helper()

	var found operatorv1.FailedMember

	w.Eventually(fmt.Sprintf("status says %q of member %s", words, namespace), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		for _, found = range nss.Status.FailedMembers {
			if found.Namespace == namespace && containsAll(found.Message, words) {
				return nil
			}
		}

		return fmt.Errorf("status is %+v", nss.Status)
	})

	return found
}

func containsAll(message string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(message, word) })
}

func testRoot() string { return embedded.Root() }
