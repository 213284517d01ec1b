package changes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// queue notes what is added to it; nothing waits.
type queue struct {
	Queue

	added, forgotten []string
	wait             time.Duration
	// failed are the retries of operator namespaces that are to come.
	failed map[string]int
}

func (q *queue) NumRequeues(key scope.Key) int { return q.failed[key.Namespace] }

func (q *queue) Forget(key scope.Key) { q.forgotten = append(q.forgotten, key.Namespace) }

func (q *queue) AddAfter(key scope.Key, wait time.Duration) {
	q.added, q.wait = append(q.added, key.Namespace), wait
}

func (q *queue) take() []string {
	added := q.added
	q.added = nil

	slices.Sort(added)

	return added
}

func TestChangesReachTheOperatorNamespacesThatTheyMatterTo(t *testing.T) {
	t.Parallel()

	c, q := New(), &queue{}
	c.Expect(scope.NamespaceScopes)
	c.KeyChanged(scope.NamespaceScopes.In("early"))
	c.Start(scope.NamespaceScopes, q)

	if got := q.take(); !slices.Equal(got, []string{"early"}) {
		t.Errorf("what changed before there was a queue is not lost: %v", got)
	}

	c.Follow(scope.NamespaceScopes.In("names"), []scope.Scope{{Members: scope.Members{Named: []string{"a"}}}})
	c.Follow(scope.NamespaceScopes.In("selects"), []scope.Scope{{
		Members: scope.Members{Selector: labels.SelectorFromSet(labels.Set{"prod": "yes"})},
	}})
	c.Refuse(scope.NamespaceScopes.In("names"), map[string]struct{}{"a": {}})

	twoNamespaces := map[string]struct{}{"b": {}, "a": {}}
	prod, test := &facts.Namespace{Labels: map[string]string{"prod": "yes"}}, &facts.Namespace{}
	prodToo := &facts.Namespace{Labels: map[string]string{"prod": "yes", "other": "1"}}
	other := &facts.Namespace{Labels: map[string]string{"other": "1"}}
	ending := &facts.Namespace{Labels: map[string]string{"prod": "yes"}, Terminating: true}

	for reason, tc := range map[string]struct {
		happens func()
		want    []string
	}{
		"a named namespace appears":            {func() { c.NamespaceChanged("a", nil, test) }, []string{"names"}},
		"a named namespace is gone":            {func() { c.NamespaceChanged("a", test, nil) }, []string{"names"}},
		"a label appears":                      {func() { c.NamespaceChanged("b", test, prod) }, []string{"selects"}},
		"a label disappears":                   {func() { c.NamespaceChanged("b", prod, test) }, []string{"selects"}},
		"a label that nobody selects by":       {func() { c.NamespaceChanged("b", prod, prodToo) }, nil},
		"a label of a named namespace":         {func() { c.NamespaceChanged("a", test, other) }, nil},
		"a selected namespace ends":            {func() { c.NamespaceChanged("b", prod, ending) }, []string{"selects"}},
		"a named namespace ends":               {func() { c.NamespaceChanged("a", test, ending) }, []string{"names", "selects"}},
		"an operator namespace changes itself": {func() { c.NamespaceChanged("names", test, test) }, []string{"names"}},
		"nobody's namespace changes":           {func() { c.NamespaceChanged("c", test, test) }, nil},
		"permissions where it was refused":     {func() { c.PermissionsChanged("a") }, []string{"names"}},
		"permissions elsewhere":                {func() { c.PermissionsChanged("b") }, nil},
		"permissions everywhere": {
			func() { c.ClusterPermissionsChanged(facts.ClusterPermissions{Everybody: true}) }, []string{"names"},
		},
		"Ambit's own where it was refused": {func() { c.Wrote(twoNamespaces, time.Second) }, []string{"names"}},
		"Ambit's own elsewhere":            {func() { c.Wrote(map[string]struct{}{"b": {}}, time.Second) }, nil},
		"everything":                       {c.EverythingChanged, []string{"names", "selects"}},
		"what it waited for":               {func() { c.KeyUnblocked(scope.NamespaceScopes.In("names")) }, []string{"names"}},
		"what nobody waits for":            {func() { c.KeyUnblocked(scope.NamespaceScopes.In("nobody")) }, nil},
		"marks that point nowhere":         {func() { c.KeyChanged(scope.Key{}) }, nil},
	} {
		tc.happens()

		if got := q.take(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: planned for %v, want %v", reason, got, tc.want)
		}
	}

	c.Refuse(scope.NamespaceScopes.In("names"), nil)
	c.Forget(scope.NamespaceScopes.In("selects"))
	c.PermissionsChanged("a")
	c.NamespaceChanged("b", nil, prod)

	if got := q.take(); len(got) != 0 {
		t.Errorf("what is over matters to nobody: %v", got)
	}
}

func TestChangesKnowWhenTheyWereObserved(t *testing.T) {
	t.Parallel()

	c := New()
	c.Start(scope.NamespaceScopes, &queue{})

	before := time.Now()

	c.KeyChanged(scope.NamespaceScopes.In("home"))

	first := c.Dequeue(scope.NamespaceScopes.In("home"))
	if first.Before(before) || !c.Dequeue(scope.NamespaceScopes.In("home")).IsZero() {
		t.Errorf("learned at %s, and only once", first)
	}

	c.EverythingChanged()

	if c.Dequeue(scope.NamespaceScopes.In("home")).IsZero() {
		t.Error("an operator namespace that was reconciled once hears of everything")
	}
}

func TestAnOperatorNamespaceThatDoesNotComeToRestIsPlannedCalmly(t *testing.T) {
	t.Parallel()

	c, q := New(), &queue{}
	c.Start(scope.NamespaceScopes, q)

	for range busyPlans {
		c.KeyChanged(scope.NamespaceScopes.In("fight"))
		c.Dequeue(scope.NamespaceScopes.In("fight"))
	}

	if q.wait != coalesce {
		t.Errorf("a burst is planned at once, not after %s", q.wait)
	}

	c.Dequeue(scope.NamespaceScopes.In("fight"))
	c.KeyChanged(scope.NamespaceScopes.In("fight"))

	if q.wait != debounce {
		t.Errorf("somebody who keeps writing what Ambit writes makes no hot loop: waits %s", q.wait)
	}

	c.KeyChanged(scope.NamespaceScopes.In("other"))

	if q.wait != coalesce {
		t.Errorf("others do not wait for it: %s", q.wait)
	}
}

// TestFailuresCountFromOneAgain: a change that may be what an operator namespace was waiting for is followed by quick retries;
// one that is of the operator namespace's own making is not.
func TestFailuresCountFromOneAgain(t *testing.T) {
	t.Parallel()

	c, q := New(), &queue{}
	c.Start(scope.NamespaceScopes, q)
	c.Follow(scope.NamespaceScopes.In("home"), []scope.Scope{{Members: scope.Members{Named: []string{"a"}}}})
	c.Refuse(scope.NamespaceScopes.In("home"), map[string]struct{}{"a": {}})

	for reason, tc := range map[string]struct {
		happens func()
		want    []string
	}{
		"permissions where it was refused": {func() { c.PermissionsChanged("a") }, []string{"home"}},
		"permissions elsewhere":            {func() { c.PermissionsChanged("b") }, nil},
		"a member changes":                 {func() { c.NamespaceChanged("a", nil, &facts.Namespace{}) }, []string{"home"}},
		"everything":                       {c.EverythingChanged, []string{"home"}},
		"the operator namespace itself":    {func() { c.KeyChanged(scope.NamespaceScopes.In("home")) }, nil},
	} {
		q.forgotten = nil
		tc.happens()

		if !slices.Equal(q.forgotten, tc.want) {
			t.Errorf("%s: failures are forgotten of %v, want %v", reason, q.forgotten, tc.want)
		}
	}
}

// TestWhatFailedIsTriedOnceTheServerAnswers: and nothing else is, of which there may be ten thousand.
func TestWhatFailedIsTriedOnceTheServerAnswers(t *testing.T) {
	t.Parallel()

	c, q := New(), &queue{failed: map[string]int{"fails": 7}}
	c.Start(scope.NamespaceScopes, q)
	c.Follow(scope.NamespaceScopes.In("fails"), nil)
	c.Follow(scope.NamespaceScopes.In("fine"), nil)
	c.Answered()

	want := []string{"fails"}
	if got := q.take(); !slices.Equal(got, want) || !slices.Equal(q.forgotten, want) {
		t.Errorf("planned for %q, and failures are forgotten of %q, want %q", got, q.forgotten, want)
	}
}

func TestAPlanCanBeAskedForAtATime(t *testing.T) {
	t.Parallel()

	c, q := New(), &queue{}
	c.Again(scope.NamespaceScopes.In("home"), time.Now()) // There is no queue yet, and nobody who could ask.
	c.Start(scope.NamespaceScopes, q)
	c.Again(scope.NamespaceScopes.In("home"), time.Time{})

	if got := q.take(); len(got) > 0 {
		t.Errorf("planned for %v", got)
	}

	c.Again(scope.NamespaceScopes.In("home"), time.Now().Add(time.Minute))

	if got := q.take(); !slices.Equal(got, []string{"home"}) || q.wait < 50*time.Second || q.wait > time.Minute {
		t.Errorf("planned for %v in %s", got, q.wait)
	}

	if c.Again(scope.NamespaceScopes.In("home"), time.Now().Add(-time.Minute)); q.wait <= 0 || q.wait > time.Second {
		t.Errorf("what is late is planned in %s", q.wait)
	}
}

// TestNothingIsKeptOfMadeUpKeys: whoever can write an annotation can name any number of namespaces, and families that are not
// served here. Nothing of them stays.
func TestNothingIsKeptOfMadeUpKeys(t *testing.T) {
	t.Parallel()

	c, q := New(), &queue{}
	c.Expect(scope.NamespaceScopes)
	c.Start(scope.NamespaceScopes, q)

	for i := range 1000 {
		name := fmt.Sprintf("made-up-%d", i)
		c.KeyChanged(scope.Installs.In(name))
		c.KeyChanged(scope.NamespaceScopes.In(name))
	}

	for _, name := range q.take() {
		c.Forget(scope.NamespaceScopes.In(name)) // As for a namespace that is not served.
	}

	if n := len(c.early) + len(c.firstEvent) + len(c.interests) + len(c.paces); n > 0 {
		t.Errorf("%d keys are kept", n)
	}
}

// TestAsked: what asks for a plan is known until the next one begins, whatever becomes of the request in the queue. That a key
// comes once more for another reason is no change.
func TestAsked(t *testing.T) {
	t.Parallel()

	c, home := New(), scope.NamespaceScopes.In("home")
	c.Start(scope.NamespaceScopes, &queue{})
	c.Refuse(home, map[string]struct{}{"a": {}})

	for reason, ask := range map[string]func(){
		"it changed":               func() { c.KeyChanged(home) },
		"everything changed":       c.EverythingChanged,
		"a permission was written": func() { c.Wrote(map[string]struct{}{"a": {}}, time.Second) },
	} {
		c.Dequeue(home)
		c.Return(home)
		c.KeyChanged(scope.NamespaceScopes.In("other"))

		if c.Asked(home) {
			t.Errorf("%s: asked before", reason)
		}

		if ask(); !c.Asked(home) {
			t.Errorf("%s: not asked", reason)
		}
	}
}
