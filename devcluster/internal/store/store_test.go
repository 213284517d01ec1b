package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// memory stores what it is told to, and lets a component of the cluster do
// something before each look.
type memory struct {
	entries   map[string]entry
	revision  int64
	component func(looks int)
	looks     int
	// ask is how the API server answers.
	ask Asking
}

func newMemory(keys ...string) *memory {
	m := &memory{entries: map[string]entry{}, component: func(int) {}, ask: func(context.Context) error { return nil }}
	for _, key := range keys {
		m.write(key, "saved")
	}
	return m
}

func (m *memory) write(key, value string) {
	m.revision++
	m.entries[key] = entry{value: []byte(value), revision: m.revision}
}

func (m *memory) list(context.Context, bool) (map[string]entry, error) {
	m.looks++
	m.component(m.looks)
	return maps.Clone(m.entries), nil
}

func (m *memory) get(_ context.Context, key string) (entry, error) { return m.entries[key], nil }

func (m *memory) delete(_ context.Context, keys []string) error {
	for _, key := range keys {
		delete(m.entries, key)
	}
	return nil
}

func (m *memory) put(_ context.Context, values map[string][]byte) (map[string]int64, error) {
	revisions := map[string]int64{}
	for key, value := range values {
		m.write(key, string(value))
		revisions[key] = m.revision
	}
	return revisions, nil
}

func TestLateComponent(t *testing.T) {
	for name, heard := range map[string]int{
		"at once": 1, "before it is believed": yields, "when it is believed": yields + 1, "after the reset": yields + 3,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testLateComponent(t, heard) }) })
	}
}

func testLateComponent(t *testing.T, heard int) {
	t.Helper()
	const service = "/registry/apiregistration.k8s.io/apiservices/v1.example.com"
	m := newMemory("/registry/configmaps/default/kept")
	image, err := Save(t.Context(), m, m.ask)
	if err != nil {
		t.Fatal(err)
	}
	delete(m.entries, "/registry/configmaps/default/kept")
	m.looks = 0
	// What hears late that a definition is gone creates its APIService again, and deletes it in the end.
	m.component = func(looks int) {
		if _, there := m.entries[service]; there && looks > heard {
			delete(m.entries, service)
		} else if !there && looks <= heard {
			m.write(service, "created")
		}
	}
	for range 2 {
		if err := image.Restore(t.Context(), m, m.ask); err != nil {
			t.Fatal(err)
		}
		if _, there := m.entries["/registry/configmaps/default/kept"]; !there {
			t.Error("what was saved and deleted is not there again")
		}
	}
	if _, there := m.entries[service]; there {
		t.Error("what the component deleted in the end is there again")
	}
}

func TestComponentThatInsists(t *testing.T) {
	synctest.Test(t, testComponentThatInsists)
}

func testComponentThatInsists(t *testing.T) {
	const role, certificates = "/registry/clusterroles/view", "/registry/configmaps/default/kube-root-ca.crt"
	m := newMemory(role)
	image, err := Save(t.Context(), m, m.ask)
	if err != nil {
		t.Fatal(err)
	}
	m.component = func(int) {
		for _, key := range []string{role, certificates} {
			if string(m.entries[key].value) != "summed up" {
				m.write(key, "summed up")
			}
		}
	}
	if err := image.Restore(t.Context(), m, m.ask); err != nil {
		t.Fatalf("a component that writes the same again and again is believed in the end: %v", err)
	}
	// What was there when the state was saved is put back as it was believed.
	m.component = func(int) {}
	delete(m.entries, role)
	if err := image.Restore(t.Context(), m, m.ask); err != nil {
		t.Fatal(err)
	}
	if got := string(m.entries[role].value); got != "summed up" {
		t.Errorf("the ClusterRole is put back as %q", got)
	}
}

func TestStillServer(t *testing.T) {
	for name, still := range map[string]time.Duration{"slow": 3 * time.Second, "out of reach": 30 * time.Second} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testStillServer(t, still) }) })
	}
}

// testStillServer holds that nothing is taken for settled as long as the API
// server stands still: no component can write then.
func testStillServer(t *testing.T, still time.Duration) {
	t.Helper()
	const key = "/registry/serviceaccounts/default/default"
	m := newMemory()
	writesLate := func() {
		moves, written := time.Now().Add(still), false
		m.component = func(int) {
			if !written && time.Now().After(moves) {
				written = true
				m.write(key, "late")
			}
		}
		m.ask = func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Until(moves)):
				return nil
			}
		}
	}
	empty, err := Save(t.Context(), m, m.ask)
	if err != nil {
		t.Fatal(err)
	}
	writesLate()
	if image, err := Save(t.Context(), m, m.ask); err != nil {
		t.Fatal(err)
	} else if _, saved := image.entries[key]; !saved {
		t.Error("what a component wrote late was not saved")
	}
	writesLate()
	if err := empty.Restore(t.Context(), m, m.ask); err != nil {
		t.Fatal(err)
	}
	m.component(0)
	if _, there := m.entries[key]; there {
		t.Error("what a component wrote late is there after the reset")
	}
}

func TestServerThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := errors.New("silent")
		ask := func(context.Context) error { return silent }
		if _, err := Save(t.Context(), newMemory(), ask); !errors.Is(err, silent) {
			t.Errorf("saving said %v", err)
		}
	})
}

// TestManyLateComponents holds that a reset waits for components of which each
// does something, one after the other, for longer than a second or two.
func TestManyLateComponents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		image, err := Save(t.Context(), m, m.ask)
		if err != nil {
			t.Fatal(err)
		}
		busy := time.Now().Add(20 * time.Second)
		m.component = func(looks int) {
			if time.Now().Before(busy) {
				m.write(fmt.Sprintf("/registry/events/default/%d", looks), "late")
			}
		}
		if err := image.Restore(t.Context(), m, m.ask); err != nil {
			t.Fatal(err)
		}
	})
}
