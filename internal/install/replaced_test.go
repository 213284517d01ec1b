package install_test

import (
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/install"
)

func TestReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		// all are the names, each with the name that it replaces.
		all, of string
		want    []string
	}{
		"nothing":               {all: "a: b:", of: "a"},
		"one that is not there": {all: "a:gone", of: "a"},
		"two in a row":          {all: "a: b:a c:b", of: "c", want: []string{"a", "b"}},
		"not what is newer":     {all: "a: b:a c:b", of: "b", want: []string{"a", "b"}},
		"itself alone":          {all: "a: b:a", of: "a", want: []string{"a"}},
		"not beside it":         {all: "a: b:a c:a", of: "c", want: []string{"a"}},
		"itself, never":         {all: "a:a", of: "a"},
		"one of a circle":       {all: "a:b b:a", of: "a"},
		"a circle as a whole":   {all: "a:b b:a c:a", of: "c", want: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*olm.ClusterServiceVersion

			for each := range strings.FieldsSeq(c.all) {
				name, replaces, _ := strings.Cut(each, ":")
				csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: name}}
				csv.Spec.Replaces = replaces
				all = append(all, csv)
			}

			at := slices.IndexFunc(all, func(csv *olm.ClusterServiceVersion) bool { return csv.Name == c.of })
			if got := install.Replaced(all[at], all); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
