// Package delegates_test describes the profiles in which Ambit holds no rights of its own on what it writes: what a
// delegate lacks is told all at once, and the scope heals as soon as it is granted.
package delegates_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/embedded"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

func begin(t *testing.T, profile string) *testbed.World {
	t.Helper()

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

// failure finds what status says of a member.
func failure(w *testbed.World, nss *operatorv1.NamespaceScope, namespace string) operatorv1.FailedMember {
	w.Helper()

	for _, f := range nss.Status.FailedMembers {
		if f.Namespace == namespace {
			return f
		}
	}

	w.Fatalf("status says nothing of member %s: %+v", namespace, nss.Status)

	return operatorv1.FailedMember{}
}

func testRoot() string { return embedded.Root() }
