package manager

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestReplicasEndWhereTheClusterWentBack: where a backup of the cluster was restored, versions count again from an earlier one. A
// replica that knows later ones misses what is taken away from then on.
func TestReplicasEndWhereTheClusterWentBack(t *testing.T) {
	t.Parallel()

	version := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"ambit-manager","namespace":` +
			`"ambit-system","resourceVersion":"` + version + `"},"spec":{"holderIdentity":"me"}}`))
	}))
	t.Cleanup(server.Close)

	ended := 0

	held, err := newLock(&rest.Config{Host: server.URL}, "ambit-system", nil, func() { ended++ })
	if err != nil {
		t.Fatal(err)
	}

	read := func() error {
		_, _, err := held.Get(t.Context())

		return err
	}
	renew := func() error { return held.Update(t.Context(), resourcelock.LeaderElectionRecord{}) }
	take := func() error { return held.Create(t.Context(), resourcelock.LeaderElectionRecord{}) }

	for _, step := range []struct {
		reason, version string
		do              func() error
		ends            bool
	}{
		{"the first version says nothing", "20", read, false},
		{"nor does the same one", "20", read, false},
		{"a renewal is newer", "21", renew, false},
		{"a backup was restored, as who works or stands by reads", "19", read, true},
		{"and another one, as who works writes", "18", renew, true},
		{"and one of before there was a lease", "17", take, true},
	} {
		version, ended = step.version, 0

		if err := step.do(); err != nil {
			t.Fatal(err)
		}

		if (ended > 0) != step.ends {
			t.Errorf("%s: it ends: %t, want %t", step.reason, ended > 0, step.ends)
		}
	}
}
