package discovered

import (
	"errors"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

var errDown = errors.New("the API server is down")

// api is an API server that serves kinds, by "plural Kind", in one version.
type api struct {
	version string
	kinds   map[string]string
	err     error
	asked   int
}

func (a *api) ask() ([]*metav1.APIResourceList, error) {
	a.asked++

	if a.kinds == nil {
		return nil, a.err
	}

	list := &metav1.APIResourceList{GroupVersion: a.version}
	for plural, kind := range a.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural, Kind: kind})
	}

	return []*metav1.APIResourceList{list, {GroupVersion: "no/group/version"}}, a.err
}

func TestServed(t *testing.T) {
	t.Parallel()

	a := &api{version: "example.com/v1", kinds: map[string]string{"widgets": "Widget"}}
	now := time.Now()
	s := &Served{ask: a.ask, now: func() time.Time { return now }}

	has := func(when, definition, version, kind string, want bool, asked int) {
		t.Helper()

		is, err := s.Has(definition, version, kind)
		if err != nil || is != want || a.asked != asked {
			t.Errorf("%s: %s %s %s: %t (%v) after %d questions, want %t after %d", when, definition, version, kind, is, err,
				a.asked, want, asked)
		}
	}

	has("at first", "widgets.example.com", "v1", "Widget", true, 1)
	has("from memory", "widgets.example.com", "v1", "Widget", true, 1)

	for _, other := range [][3]string{
		{"widgets.example.com", "v2", "Widget"},
		{"widgets.example.org", "v1", "Widget"},
		{"widgets.example.com", "v1", "Gadget"},
		{"gadgets.example.com", "v1", "Widget"},
		{"widgets", "v1", "Widget"},
		{"", "", ""},
	} {
		has("another", other[0], other[1], other[2], false, 1)
	}

	a.kinds["gadgets"] = "Gadget"

	has("too soon", "gadgets.example.com", "v1", "Gadget", false, 1)

	now = now.Add(askAgainMissing)

	has("what is known is not asked for as often", "widgets.example.com", "v1", "Widget", true, 1)
	has("what was missing is looked for", "gadgets.example.com", "v1", "Gadget", true, 2)
	delete(a.kinds, "gadgets")

	now = now.Add(askAgain)

	has("what is known is asked for in the end", "gadgets.example.com", "v1", "Gadget", false, 3)
}

// TestServedWhileAGroupDoesNotAnswer: of a group whose own server is away is known what was, and of the others what is. Where
// nothing answers, nothing is said.
func TestServedWhileAGroupDoesNotAnswer(t *testing.T) {
	t.Parallel()

	a := &api{version: "example.com/v1", kinds: map[string]string{"widgets": "Widget"}}
	now := time.Now()
	s := &Served{ask: a.ask, now: func() time.Time { return now }}

	if is, err := s.Has("widgets.example.com", "v1", "Widget"); err != nil || !is {
		t.Fatalf("it is not served: %t, %v", is, err)
	}

	a.version, a.kinds = "example.org/v1", map[string]string{"gadgets": "Gadget"}
	a.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
		{Group: "example.com", Version: "v1"}: errDown, {Group: "example.net", Version: "v1"}: errDown,
	}}
	now = now.Add(askAgain)

	for definition, kind := range map[string]string{"widgets.example.com": "Widget", "gadgets.example.org": "Gadget"} {
		if is, err := s.Has(definition, "v1", kind); err != nil || !is {
			t.Errorf("%s is not served while another group does not answer: %t, %v", definition, is, err)
		}
	}

	if is, err := s.Has("things.example.net", "v1", "Thing"); err != nil || is {
		t.Errorf("what was never known is served: %t, %v", is, err)
	}

	a.kinds, a.err = nil, errDown
	now = now.Add(askAgain)

	if is, err := s.Has("widgets.example.com", "v1", "Widget"); !errors.Is(err, errDown) || is {
		t.Errorf("the API server is down, and it is %t, %v", is, err)
	}
}

// TestServes: what is missing is asked for again by whoever began later. What cannot be asked is as it was.
func TestServes(t *testing.T) {
	t.Parallel()

	a := &api{version: "example.com/v1", kinds: map[string]string{"widgets": "Widget", "widgets/scale": "Scale"}}
	now := time.Now()
	s := &Served{ask: a.ask, now: func() time.Time { return now }}
	before, began := now.Add(-time.Second), now

	serves := func(when string, at time.Time, version, kind string, want bool, asked int) {
		t.Helper()

		if is := s.Serves(at, "example.com", version, kind); is != want || a.asked != asked {
			t.Errorf("%s: %s %s: %t after %d questions, want %t after %d", when, version, kind, is, a.asked, want, asked)
		}
	}

	serves("at first", before, "v1", "Widget", true, 1)
	serves("in any version", before, "", "Widget", true, 1)
	serves("in another", before, "v2", "Widget", false, 1)
	serves("a subresource", before, "v1", "Scale", false, 1)

	a.kinds["gadgets"] = "Gadget"
	now = now.Add(time.Millisecond)

	serves("by who began before", before, "v1", "Gadget", false, 1)
	serves("by who begins now", began, "v1", "Gadget", true, 2)

	if !s.IsClusterScoped("example.com", "gadgets") {
		t.Error("what has no namespace is said to have one")
	}

	a.kinds, a.err = nil, errDown

	serves("what cannot be asked is as it was", now.Add(time.Hour), "v1", "Gadget", true, 2)
	serves("also what is missing", now.Add(time.Hour), "v1", "Thing", false, 3)
}

// TestDefined: what an established definition says is known before the API server's discovery has learned of its kind, while it
// is there. A definition whose names another one has says nothing.
func TestDefined(t *testing.T) {
	t.Parallel()

	a := &api{version: "example.com/v1", kinds: map[string]string{"widgets": "Widget"}}
	s := &Served{ask: a.ask, now: time.Now}
	crd := &apiextensionsv1.CustomResourceDefinition{}

	s.Ask(func(name string) (namespaced, known bool) {
		return crd.Spec.Scope != apiextensionsv1.ClusterScoped, IsEstablished(crd) && name == "gadgets.example.com"
	})

	is := func(when string, want bool) {
		t.Helper()

		if s.IsClusterScoped("example.com", "gadgets") != want || a.asked != 1 {
			t.Errorf("%s: it is not %t, after %d questions", when, want, a.asked)
		}
	}

	is("unknown", false)

	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
	}}
	is("under names of another", false)

	crd.Status.Conditions[0].Status = apiextensionsv1.ConditionTrue
	is("in no namespace", true)

	crd.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	is("deleted", false)

	crd.DeletionTimestamp, crd.Spec.Scope = nil, apiextensionsv1.NamespaceScoped
	is("in namespaces", false)
}
