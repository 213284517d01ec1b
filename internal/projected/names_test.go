package projected_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func newNames(t interface{ Fatal(args ...any) }, first byte) *projected.Names {
	key := make([]byte, projected.KeySize)
	key[0] = first

	names, err := projected.NewNames(key, time.Now())
	if err != nil {
		t.Fatal(err)
	}

	return names
}

// ops is the reconcile key that the names are given for.
func ops() scope.Key { return scope.NamespaceScopes.In("ops") }

// TestNamesEncodeTheirReconcileKey holds that every name is valid, tells the reconcile key that it was given for, and
// nowhere else: under another kind, in another namespace, with another beginning or with another key it is nobody's.
func TestNamesEncodeTheirReconcileKey(t *testing.T) {
	t.Parallel()

	names, others := newNames(t, 1), newNames(t, 2)

	rapid.Check(t, func(t *rapid.T) {
		s := source().Draw(t, "source")
		slot := projected.Slot("0123456789abcdef", s)
		kind := rapid.SampledFrom([]projected.Kind{projected.Role, projected.RoleBinding}).Draw(t, "kind")
		name := names.New(kind, "member", ops(), slot)

		if len(name) > 63 || !utf8.ValidString(name) || strings.ContainsAny(name, "/%") {
			t.Fatalf("%q is no name for a copy of %q", name, s.Name)
		}

		if tag, ok := names.TagOf(kind, "member", name); !ok || tag != names.Tag(ops()) {
			t.Fatalf("%q does not tell its operator namespace", name)
		}

		for reason, tag := range map[string]func() (uint32, bool){
			"another kind":      func() (uint32, bool) { return names.TagOf(projected.ClusterRole, "member", name) },
			"another namespace": func() (uint32, bool) { return names.TagOf(kind, "other", name) },
			"another beginning": func() (uint32, bool) { return names.TagOf(kind, "member", "x"+name) },
			"another end":       func() (uint32, bool) { return names.TagOf(kind, "member", name+"0") },
			"another key":       func() (uint32, bool) { return others.TagOf(kind, "member", name) },
			"capital letters": func() (uint32, bool) {
				return names.TagOf(kind, "member", name[:len(name)-16]+strings.ToUpper(name[len(name)-16:])+"A")
			},
		} {
			if tag, ok := tag(); ok && tag == names.Tag(ops()) {
				t.Fatalf("%s: %q is taken for one of ours", reason, name)
			}
		}
	})
}

// TestTagsStay: the tags are in the names of what is in clusters, where an Ambit that gave others would not know its own.
func TestTagsStay(t *testing.T) {
	t.Parallel()

	names := newNames(t, 1)

	for key, want := range map[scope.Key]uint32{
		ops(): 0x1a6f23a, scope.Installs.In("ops"): 0xa3b3310, scope.TemplatesKey(): 0x1f25130,
	} {
		if got := names.Tag(key); got != want {
			t.Errorf("the tag of %s is %#x, and was %#x", key, got, want)
		}
	}
}

// TestNamesNeverComeTwice holds also for names that are given for one slot as fast as can be, which is what somebody gets who
// deletes a copy over and over to see a name again.
func TestNamesNeverComeTwice(t *testing.T) {
	t.Parallel()

	names, seen := newNames(t, 1), map[string]struct{}{}
	slot := projected.Slot("h", projected.Source{Kind: "Role", Namespace: "ops", Name: "op"})

	for range 100_000 {
		name := names.New(projected.Role, "member", ops(), slot)
		if _, twice := seen[name]; twice {
			t.Fatalf("%s was given twice", name)
		}

		seen[name] = struct{}{}
	}

	for name := range seen {
		if tag, ok := names.TagOf(projected.Role, "member", name); !ok || tag != names.Tag(ops()) {
			t.Fatalf("%s, given in a burst, is not known any more", name)
		}
	}
}

func TestNamesNeedAWholeKey(t *testing.T) {
	t.Parallel()

	for _, size := range []int{0, 16, 31, 33} {
		if _, err := projected.NewNames(make([]byte, size), time.Now()); err == nil {
			t.Errorf("a key of %d bytes is taken", size)
		}
	}
}

// FuzzTagOf holds that whatever somebody calls an object, reading its name does not fail, and does not make it ours.
func FuzzTagOf(f *testing.F) {
	names := newNames(f, 1)

	for _, name := range []string{
		"", "x", "op-0123456789abcdef", "0123456789abcdef", "op-0123456789abcdeg", "\xff\xfe0123456789abcdef",
	} {
		f.Add("member", name)
	}

	f.Fuzz(func(t *testing.T, namespace, name string) {
		if tag, ok := names.TagOf(projected.Role, namespace, name); ok && tag == names.Tag(ops()) {
			t.Errorf("%q in %q is taken for one of ours", name, namespace)
		}
	})
}
