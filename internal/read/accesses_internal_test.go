package read

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// heard is a listener that remembers what it was notified of.
type heard struct{ said []string }

func (h *heard) KeyChanged(key scope.Key)         { h.said = append(h.said, "key "+key.Namespace) }
func (h *heard) KeyUnblocked(key scope.Key)       { h.said = append(h.said, "unblocked "+key.Namespace) }
func (h *heard) PermissionsChanged(name string)   { h.said = append(h.said, "permissions "+name) }
func (h *heard) ClusterChanged([]scope.Key, bool) { h.said = append(h.said, "cluster") }
func (h *heard) ClusterPermissionsChanged(facts.ClusterPermissions) {
	h.said = append(h.said, "permissions")
}
func (h *heard) EverythingChanged() { h.said = append(h.said, "everything") }
func (h *heard) NamespaceChanged(name string, before, after *facts.Namespace) {
	h.said = append(h.said, name+" from "+before.Closed+" to "+after.Closed)
}

// asking are watches where each namespace is asked about at once: may are the namespaces that each user may read, and asked who
// asked about which.
type asking struct {
	*Watches

	store *Store
	asked []string
}

func newAsking(may map[string][]string) *asking {
	a := &asking{store: NewStore(&heard{})}
	a.Watches = NewNarrowOnce(a.store, func(user, namespace string) error {
		a.asked = append(a.asked, user+" "+namespace)

		if slices.Contains(may[user], namespace) {
			return nil
		}

		return apierrors.NewForbidden(rbacv1.Resource("roles"), "", errors.New("no"))
	})

	return a
}

// seen says what is seen for a key, closed namespaces in brackets.
func (a *asking) seen(key scope.Key) string {
	found, decided := a.store.inAccessible(key)
	if !decided {
		return "undecided"
	}

	var out []string

	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name].Closed != "" {
			name = "(" + name + ")"
		}

		out = append(out, name)
	}

	return strings.Join(out, " ")
}

const installsAsA, installsAsB = "system:serviceaccount:ops:a", "system:serviceaccount:ops:b"

// TestTargetsAreSeenAsTheAccountThatInstalls: what an owner granted to the account that installs lets in nobody else: neither
// what is installed elsewhere, nor scopes of the same namespace, nor an account that takes its place.
func TestTargetsAreSeenAsTheAccountThatInstalls(t *testing.T) {
	t.Parallel()

	a := newAsking(map[string][]string{"": {"ops", "other"}, installsAsA: {"m"}, installsAsB: {"n"}})
	installs := scope.Installs.In("ops")

	steps := []struct {
		account string
		targets []string
		want    string
		asked   []string
		reason  string
	}{
		{"a", []string{"m", "n", "ops"}, "m (n) ops", []string{" ops", installsAsA + " m", installsAsA + " n"}, "it may read one"},
		{"a", []string{"m", "n", "ops"}, "m (n) ops", nil, "what is known is not asked again"},
		{"a", []string{"m", "ops"}, "m ops", nil, "one is no target any more"},
		{"b", []string{"m", "n", "ops"}, "(m) n ops", []string{installsAsB + " m", installsAsB + " n"}, "another one installs"},
		{"", []string{"m", "n", "ops"}, "ops", nil, "nobody installs, so only the namespace itself is seen"},
		{"a", []string{"m", "ops"}, "m ops", []string{installsAsA + " m"}, "it installs again"},
	}

	for _, step := range steps {
		a.asked = nil

		if err := a.Targets("ops", step.account, step.targets); err != nil {
			t.Fatal(err)
		}

		slices.Sort(a.asked)

		if got := a.seen(installs); got != step.want || !slices.Equal(a.asked, step.asked) {
			t.Errorf("%s: seen are %q, and asked was %q; want %q and %q", step.reason, got, a.asked, step.want, step.asked)
		}
	}

	// Scopes of the namespace look as Ambit itself, whoever installs there; so do installs elsewhere that name no account.
	a.asked = nil
	a.Members(scope.NamespaceScopes.In("ops"), []string{"m", "ops", "other"})

	if got, want := a.seen(scope.NamespaceScopes.In("ops")), "(m) ops other"; got != want {
		t.Errorf("for scopes, seen are %q, want %q", got, want)
	}

	if slices.Sort(a.asked); !slices.Equal(a.asked, []string{" m", " other"}) {
		t.Errorf("for scopes, asked was %q", a.asked)
	}

	if got, want := a.seen(installs), "m ops"; got != want {
		t.Errorf("for installs, seen are %q afterwards, want %q", got, want)
	}

	if got := a.seen(scope.Installs.In("other")); got != "" {
		t.Errorf("for installs of another namespace, seen are %q", got)
	}
}

// TestMembersThatLeaveAreNotSeen: what one key needs no longer is gone for that key, with what was read of it, and for no other;
// nobody watches it any more.
func TestMembersThatLeaveAreNotSeen(t *testing.T) {
	t.Parallel()

	a := newAsking(map[string][]string{"": {"m", "n"}})
	one, two := scope.NamespaceScopes.In("one"), scope.NamespaceScopes.In("two")

	a.Members(one, []string{"m", "n"})
	a.Members(two, []string{"m"})
	putCopy(t, a.store, "m")
	putCopy(t, a.store, "n")

	stopped := 0
	for _, of := range a.store.accesses {
		for _, d := range of {
			d.stop = func() { stopped++ }
		}
	}

	a.Members(one, []string{"n"})

	if got, other := a.seen(one), a.seen(two); got != "n one" || other != "m two" {
		t.Errorf("seen are %q and %q", got, other)
	}

	if stopped != 1 || copiesIn(a.store, "m") == 0 {
		t.Errorf("%d watches ended, and of what the second still sees %d are known", stopped, copiesIn(a.store, "m"))
	}

	a.Release(scope.NamespaceScopes.In("one"))

	if stopped != 2 || copiesIn(a.store, "n") != 0 {
		t.Errorf("%d watches ended, and of what nobody sees %d are known", stopped, copiesIn(a.store, "n"))
	}

	if got, other := a.seen(one), a.seen(two); got != "one" || other != "m two" {
		t.Errorf("after the release of the first, seen are %q and %q", got, other)
	}
}

// TestWhatAClosedAccessBrought: copies in a namespace are forgotten once nobody may see it any more, and not while another key
// may.
func TestWhatAClosedAccessBrought(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		other *access
		kept  bool
	}{
		"nobody else asks":                 {nil, false},
		"another key may see it":           {&access{decided: true}, true},
		"to another key it is closed, too": {&access{decided: true, closed: noAccess}, false},
		"for another key it is not known":  {&access{}, false},
		"another key sees another one":     {&access{accessKey: accessKey{namespace: "n"}, decided: true}, false},
	} {
		a := newAsking(nil)
		closed := &access{accessKey: accessKey{scope.NamespaceScopes.In("one"), "m"}, decided: true}
		a.store.put(closed)

		if tc.other != nil {
			tc.other.reconcileKey = scope.NamespaceScopes.In("two")
			if tc.other.namespace == "" {
				tc.other.namespace = "m"
			}

			a.store.put(tc.other)
		}

		putCopy(t, a.store, "m")
		putCopy(t, a.store, "n")
		a.store.forget(closed)

		if got := copiesIn(a.store, "m") > 0; got != tc.kept {
			t.Errorf("%s: what is there is known: %t", reason, got)
		}

		if copiesIn(a.store, "n") == 0 {
			t.Errorf("%s: what is elsewhere is forgotten", reason)
		}
	}
}

// TestWhoIsNotifiedOfAnAccess: the first answer is news to the key that waits for it, and each later one to all who go by the
// namespace; the same answer again is no news.
func TestWhoIsNotifiedOfAnAccess(t *testing.T) {
	t.Parallel()

	h := &heard{}
	s := NewStore(h)
	d := &access{accessKey: accessKey{scope.NamespaceScopes.In("ops"), "m"}}

	for _, step := range []struct{ closed, want string }{
		{"", "key ops; m from  to "}, {"", ""}, {"no", "m from  to no"}, {"no", ""}, {"why", "m from no to why"},
		{"", "m from why to "},
	} {
		h.said = nil
		s.decide(d, step.closed)

		if got := strings.Join(h.said, "; "); got != step.want || d.closed != step.closed || !d.decided {
			t.Errorf("once it is %q, it says %q, want %q", step.closed, got, step.want)
		}
	}
}

// TestUndecidedNamespaces: as long as one namespace of a key is not decided, nothing is planned for it; those of others do not
// matter.
func TestUndecidedNamespaces(t *testing.T) {
	t.Parallel()

	a := newAsking(map[string][]string{"": {"m"}})
	key := scope.NamespaceScopes.In("ops")

	a.Members(key, []string{"m"})
	a.store.put(&access{accessKey: accessKey{scope.NamespaceScopes.In("other"), "n"}})

	if got := a.seen(key); got != "m ops" {
		t.Errorf("seen are %q", got)
	}

	a.store.put(&access{accessKey: accessKey{key, "n"}})

	if got := a.seen(key); got != "undecided" {
		t.Errorf("with one that is not known, seen are %q", got)
	}
}

// TestManyClosedAccessesAskRarely: the more are closed for an operator namespace, the longer each waits, so that all of its
// together ask no more often. Those of others do not wait for them.
func TestManyClosedAccessesAskRarely(t *testing.T) {
	t.Parallel()

	a := newAsking(map[string][]string{"": {"open-1", "open-2"}})
	a.Members(scope.NamespaceScopes.In("ops"), []string{"open-1", "open-2"})

	if got := a.checkWait("ops"); got != 0 {
		t.Errorf("with none closed, they wait for %s", got)
	}

	a.Members(scope.NamespaceScopes.In("ops"), []string{"open-1", "open-2", "closed-1", "closed-2", "closed-3"})

	if got, want := a.checkWait("ops"), 150*time.Millisecond; got != want {
		t.Errorf("with three closed, they wait for %s, want %s", got, want)
	}

	if got := a.checkWait("other"); got != 0 {
		t.Errorf("those of another operator namespace wait for %s", got)
	}

	a.Members(scope.NamespaceScopes.In("ops"), []string{"open-1", "closed-1"})
	a.Members(scope.Installs.In("ops"), []string{"closed-1"})

	if got, want := a.checkWait("ops"), 100*time.Millisecond; got != want {
		t.Errorf("with two closed, they wait for %s, want %s", got, want)
	}

	a.Members(scope.NamespaceScopes.In("ops"), nil)
	a.Members(scope.Installs.In("ops"), nil)

	if got := a.checkWait("ops"); got != 0 || len(a.store.closed) > 0 {
		t.Errorf("with none left, they wait for %s, and %d numbers are kept", got, len(a.store.closed))
	}
}

// putCopy adds a copy of a Role in a namespace.
func putCopy(t *testing.T, s *Store, namespace string) {
	t.Helper()

	owner := scope.Owner{Group: "operator.ibm.com", Kind: "NamespaceScope", Namespace: "one", Name: "s"}
	slot := projected.Slot(owner.Hash(), projected.Source{Kind: "Role", Namespace: "one", Name: "r"})
	o := projected.Object{
		Kind: projected.Role, Slot: slot, Name: slot, ScopeHash: owner.Hash(), Owner: owner.String(), Source: "Role/one/r",
	}
	k := s.projected.sink(projected.Role)
	obj := o.In(namespace)
	obj.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: scope.FieldManager}})

	record, keep := k.convert(obj)
	if !keep {
		t.Fatalf("%+v is no copy", obj)
	}

	k.put(client.ObjectKeyFromObject(obj), record, arrival{version: 1})
}

func copiesIn(s *Store, namespace string) (n int) {
	for key := range s.projected.bucketOf {
		if key.namespace == namespace {
			n++
		}
	}

	return n
}
