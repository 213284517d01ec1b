package watchlist

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestContainersOfOnePod: they have one Lease, which tells a list when all of them have taken it in, whoever is the last.
func TestContainersOfOnePod(t *testing.T) {
	o := newPod(t)
	http, err := rest.HTTPClientFor(o.cfg)
	must(t, err)

	container := func(name, configMap string) *handshake {
		h := newHandshake(o.cfg, http, &List{source: &fileSource{}, configMap: configMap})
		must(t, h.err)
		h.container = name

		return h
	}
	one, other := container("one", "namespace-scope"), container("other", "namespace-scope")

	take := func(h *handshake, list string, told ...string) {
		t.Helper()

		parsed, err := parse(list)
		must(t, err)
		must(t, h.write(t.Context(), hashOf(parsed)))

		for _, value := range []string{"", o.member, "elsewhere"} {
			if want := len(told) > 0 && told[0] == value; o.told(value)() != want {
				t.Errorf("after %s took in %q, told %q is %t", h.container, list, value, !want)
			}
		}
	}

	take(one, o.member, o.member)
	take(other, o.member, o.member)
	take(one, "")
	take(one, "elsewhere")
	take(one, "")
	take(other, "", "")
	take(other, o.member)
	// A container that began again goes on where the one before it was.
	take(container("one", "namespace-scope"), o.member, o.member)

	// Of another list it says nothing.
	must(t, container("third", "other").write(t.Context(), hashOf(namespaces{})))
	take(one, "")
	take(other, "", "")
}

// TestLeaseOfAnEarlierVersion: what a container wrote that told for all of them is replaced.
func TestLeaseOfAnEarlierVersion(t *testing.T) {
	o := newPod(t)
	http, err := rest.HTTPClientFor(o.cfg)
	must(t, err)

	h := newHandshake(o.cfg, http, &List{source: &fileSource{}, configMap: "namespace-scope"})
	must(t, h.err)

	lease := h.lease(map[string]string{listAnnotation: "namespace-scope", hashAnnotation: hashOf(namespaces{})})
	_, err = o.all.CoordinationV1().Leases(o.namespace).Create(t.Context(), lease, metav1.CreateOptions{})
	must(t, err)

	member, err := parse(o.member)
	must(t, err)
	must(t, h.write(t.Context(), hashOf(member)))

	if !o.told(o.member)() {
		t.Error("the list is not told")
	}
}

// TestContainersAreKnownByWhatRuns: two programs of one pod are often called alike, and are two all the same. One that
// began again is the same one.
func TestContainersAreKnownByWhatRuns(t *testing.T) {
	const one, other = "example.com/one/cmd", "example.com/other/cmd"

	manager := []string{"/manager"}
	first := containerOf(one, manager)

	if containerOf(other, manager) == first {
		t.Error("two programs that are called alike are known as one")
	}

	if containerOf(one, []string{"/manager", "--of=b"}) == first {
		t.Error("a program that runs twice, for different ends, is known as one")
	}

	if containerOf(one, []string{"/manager"}) != first {
		t.Error("what began again is not known")
	}
}
