package read

import (
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

func TestGroupIndex(t *testing.T) {
	t.Parallel()

	group := func(namespace, name, account string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       operatorsv1.OperatorGroupSpec{ServiceAccountName: account},
		}
	}

	leaving := func(namespace, name, account string) any {
		g := group(namespace, name, account)
		g.DeletionTimestamp = new(metav1.Now())

		return g
	}

	x := NewGroupIndex(nil)
	g := x.groups()

	if err := x.index().Replace([]any{&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: GroupIndexName, Annotations: map[string]string{"account.ambit.dev/a": "writer", "note": "x"},
		},
	}}, ""); err != nil {
		t.Fatal(err)
	}

	if _, written, known := x.Accounts(); known || !maps.Equal(written, map[string]string{"account.ambit.dev/a": "writer"}) {
		t.Errorf("written down is %v; known: %t, and the groups were not listed yet", written, known)
	}

	for _, step := range []struct {
		reason string
		do     func() error
		want   map[string]string
	}{
		{
			"a group with an account, and one without",
			func() error { return g.Replace([]any{group("a", "one", "writer"), group("b", "one", "")}, "") },
			map[string]string{"a": "writer"},
		},
		{
			"another group of the same account",
			func() error { return g.Add(group("a", "two", "writer")) }, map[string]string{"a": "writer"},
		},
		{
			"a group of another account: neither counts",
			func() error { return g.Update(group("a", "two", "other")) }, map[string]string{},
		},
		{
			"a group without an account: Ambit itself might install",
			func() error { return g.Update(group("a", "two", "")) }, map[string]string{},
		},
		{"the other is gone", func() error { return g.Delete(group("a", "two", "")) }, map[string]string{"a": "writer"}},
		{
			"an account from now on",
			func() error { return g.Update(group("b", "one", "b")) }, map[string]string{"a": "writer", "b": "b"},
		},
		{
			"a finalizer keeps the last group, for which nothing is installed",
			func() error { return g.Update(leaving("a", "one", "writer")) }, map[string]string{"b": "b"},
		},
		{
			"so it is when it is listed",
			func() error { return g.Replace([]any{leaving("a", "one", "writer"), group("b", "one", "b")}, "") },
			map[string]string{"b": "b"},
		},
		{"the last group is gone", func() error { return g.Delete(group("a", "one", "")) }, map[string]string{"b": "b"}},
		{"all are gone", func() error { return g.Replace(nil, "") }, map[string]string{}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}

		if got, _, known := x.Accounts(); !known || !maps.Equal(got, step.want) {
			t.Errorf("%s: got %v (known: %t), want %v", step.reason, got, known, step.want)
		}
	}
}

// TestContradicts: a group that another watch brings is believed, unless another account or no such group is known.
func TestContradicts(t *testing.T) {
	t.Parallel()

	group := func(name, account string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Spec: operatorsv1.OperatorGroupSpec{ServiceAccountName: account},
		}
	}
	long := strings.Repeat("x", 300)

	x := NewGroupIndex(nil)
	if x.Contradicts([]*operatorsv1.OperatorGroup{group("one", "")}) {
		t.Error("nothing was listed yet, so no guard goes by it")
	}

	if err := x.groups().Replace([]any{group("one", "writer"), group("none", ""), group("long", long)}, ""); err != nil {
		t.Fatal(err)
	}

	for reason, tc := range map[string]struct {
		groups []*operatorsv1.OperatorGroup
		want   bool
	}{
		"there is none":                       {nil, false},
		"it is the same":                      {[]*operatorsv1.OperatorGroup{group("one", "writer")}, false},
		"it names none in both":               {[]*operatorsv1.OperatorGroup{group("none", "")}, false},
		"no account can be called so in both": {[]*operatorsv1.OperatorGroup{group("long", long[:254])}, false},
		"it names one by now":                 {[]*operatorsv1.OperatorGroup{group("one", "")}, true},
		"it names another one":                {[]*operatorsv1.OperatorGroup{group("one", "other")}, true},
		"it is gone by now":                   {[]*operatorsv1.OperatorGroup{group("gone", "writer")}, true},
		"several install nothing":             {[]*operatorsv1.OperatorGroup{group("gone", ""), group("one", "")}, false},
	} {
		if got := x.Contradicts(tc.groups); got != tc.want {
			t.Errorf("%s: %t", reason, got)
		}
	}

	if (*GroupIndex)(nil).Contradicts([]*operatorsv1.OperatorGroup{group("one", "")}) {
		t.Error("without an index, nothing is contradicted")
	}
}
