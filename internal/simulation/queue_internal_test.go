package simulation

import (
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestOnlyInstallsThatWereReadAreReconciled: of another team's operator, which brings the same API and has nothing to do with
// what is planned, little is in memory, and that it has no account would be taken for a reason to take its permissions away.
func TestOnlyInstallsThatWereReadAreReconciled(t *testing.T) {
	t.Parallel()

	own, scopes := scope.Installs.In("own"), scope.NamespaceScopes.In("ops")
	q := New(NewCluster(nil, nil, read.NewOnce(nil), time.Now())).queue
	q.began = time.Now()
	q.read[own] = struct{}{}

	for _, key := range []scope.Key{own, scopes, scope.Installs.In("another"), scope.Catalogs.In("another")} {
		q.AddAfter(key, time.Second)
	}

	if _, asked := q.asked[own]; !asked {
		t.Error("what was read is not reconciled")
	}

	if _, asked := q.asked[scopes]; !asked {
		t.Error("a scope is not reconciled")
	}

	if len(q.asked) != 2 || len(q.again) != 2 {
		t.Errorf("what was not read is reconciled: %v, %v", q.asked, q.again)
	}
}
