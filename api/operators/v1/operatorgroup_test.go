package v1_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	olmv1 "github.com/operator-framework/api/pkg/operators/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// TestFieldsAreOLMs: a field that only one of the two has would be lost on the way.
func TestFieldsAreOLMs(t *testing.T) {
	t.Parallel()

	for name, pair := range map[string][2]any{
		"spec":   {operatorsv1.OperatorGroupSpec{}, olmv1.OperatorGroupSpec{}},
		"status": {operatorsv1.OperatorGroupStatus{}, olmv1.OperatorGroupStatus{}},
	} {
		if got, want := fields(pair[0]), fields(pair[1]); !slices.Equal(got, want) {
			t.Errorf("%s has the fields\n%v, OLM's has\n%v", name, got, want)
		}
	}
}

func fields(of any) []string {
	names := map[string]bool{}

	for field := range reflect.TypeOf(of).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}

	return slices.Sorted(maps.Keys(names))
}

// TestShorthandSurvives: OLM's own type would drop it, and the empty selector that is left would mean all namespaces.
func TestShorthandSurvives(t *testing.T) {
	t.Parallel()

	const written = `{"selector":{"cool.io/prod":"true"}}`

	spec := operatorsv1.OperatorGroupSpec{}
	if err := json.Unmarshal([]byte(written), &spec); err != nil {
		t.Fatal(err)
	}

	got, err := json.Marshal(spec.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}

	if string(got) != written {
		t.Errorf("got %s, want %s", got, written)
	}
}
