package reconcile_test

import (
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestDelegatesOnly: a manager that writes as delegates only writes nothing for a scope that names none.
func TestDelegatesOnly(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		spec string
		want seen
	}{
		"a scope that names no account is refused": {
			spec: `{"namespaceMembers":["a>"]}`,
			want: seen{list: "-", ready: "False AuthorizationRequired", failed: []string{"a AuthorizationRequired"},
				copies: map[string][]string{"a": {}}},
		},
		"an account that does not exist is refused": {
			spec: `{"namespaceMembers":["a>"],"serviceAccountName":"nobody"}`,
			want: seen{list: "-", ready: "False AuthorizationRequired", failed: []string{"a AuthorizationRequired"},
				copies: map[string][]string{"a": {}}},
		},
		"an account that holds everything serves": {
			spec: `{"namespaceMembers":["a>"],"serviceAccountName":"delegate"}`,
			want: seen{list: "a,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one, "b": {}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := beginWith(t, "delegated")
			w.common()
			w.Delegate(w.ns(ops), nil)
			w.grant("a", "in-member", "delegate", append(testbed.InMember(), "get secrets")...)
			w.May(w.ns(ops), "delegate", w.ns("a"), "patch rolebindings")

			w.scope(tc.spec)
			w.settle()
			w.sees(tc.want)
		})
	}
}
