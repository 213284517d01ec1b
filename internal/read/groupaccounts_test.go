package read

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

func TestGroupAccounts(t *testing.T) {
	t.Parallel()

	group := func(namespace, name, account string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       operatorsv1.OperatorGroupSpec{ServiceAccountName: account},
		}
	}

	g := NewGroupAccounts(nil)
	if _, listed := g.Accounts(); listed {
		t.Error("nothing was listed yet")
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
		{"the last group is gone", func() error { return g.Delete(group("a", "one", "")) }, map[string]string{"b": "b"}},
		{"all are gone", func() error { return g.Replace(nil, "") }, map[string]string{}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}

		if got, listed := g.Accounts(); !listed || !maps.Equal(got, step.want) {
			t.Errorf("%s: got %v (listed: %t), want %v", step.reason, got, listed, step.want)
		}
	}
}
