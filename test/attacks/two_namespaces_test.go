package attacks_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ambit-k8s/ambit/internal/testbed"
)

// other is the second namespace whose scopes the manager of beginTwo serves, beside its own.
const other = "team-b"

// beginTwo starts a test in the profile namespaced, with a manager that serves two namespaces.
func beginTwo(t *testing.T) *testbed.World {
	t.Helper()

	return beds.Begin(t, "namespaced", "--namespaces="+other)
}

// cleanup outlives a test.
func cleanup() context.Context { return context.Background() }

func isInvalid(err error) bool { return apierrors.IsInvalid(err) }
