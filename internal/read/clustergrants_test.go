package read_test

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func clusterBinding(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func named(s *read.Store, a *read.Asked) (out []string, more int) {
	found, more := s.ClusterGrants(scope.NamespaceScopes.In("ops"), a)
	for i := range found {
		out = append(out, found[i].Name)
	}

	return out, more
}

// TestClusterGrants finds the bindings of accounts by namespace and by their groups, and those of users and groups by name.
func TestClusterGrants(t *testing.T) {
	t.Parallel()

	o := read.NewOnce([]string{"ops"})
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}
	other := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "x", Name: "op"}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reads", ResourceVersion: "1"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	o.Add(role)
	o.Add(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "empty", ResourceVersion: "1"}})

	for name, subject := range map[string]rbacv1.Subject{
		"account": account, "other": other, "user": {Kind: rbacv1.UserKind, Name: "system:serviceaccount:ops:op"},
		"group":  {Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:ops"},
		"all":    {Kind: rbacv1.GroupKind, Name: "system:authenticated"},
		"people": {Kind: rbacv1.GroupKind, Name: "people"}, "odd": {Kind: rbacv1.UserKind, Name: "system:serviceaccount:ops"},
	} {
		o.Add(clusterBinding(name, "reads", subject))
	}

	o.Add(clusterBinding("gives nothing", "empty", account))
	o.Add(clusterBinding("dangles", "nowhere", account))
	o.Add(clusterBinding("both", "reads", account, other))

	s := o.Store
	all := []string{"account", "all", "both", "group", "user"}
	if got, _ := named(s, &read.Asked{Namespaces: []string{"ops"}}); !slices.Equal(got, all) {
		t.Errorf("of the namespace: %q", got)
	}

	got, _ := named(s, &read.Asked{Others: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "people"}}})
	if !slices.Equal(got, []string{"people"}) {
		t.Errorf("of the group: %q", got)
	}

	if found, _ := s.ClusterGrants(scope.NamespaceScopes.In("ops"), &read.Asked{Namespaces: []string{"x"}}); len(found) != 3 ||
		len(found[1].Subjects) != 1 {
		t.Errorf("of another namespace: %+v", found)
	}

	// It follows what becomes of a binding.
	changed := clusterBinding("account", "reads", other)
	changed.ResourceVersion = "2"
	o.Add(changed)

	if got, _ := named(s, &read.Asked{Namespaces: []string{"ops"}}); slices.Contains(got, "account") {
		t.Errorf("after it changed: %q", got)
	}
}

// TestClusterGrantsOfManyBindings: what is kept of a binding is little, and a question about one namespace does not cost what all
// bindings would.
func TestClusterGrantsOfManyBindings(t *testing.T) {
	const many = 100_000

	o := read.NewOnce([]string{"ops"})

	o.Add(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reads", ResourceVersion: "1"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	})

	var before, after runtime.MemStats

	runtime.GC()
	runtime.ReadMemStats(&before)

	for i := range many {
		namespace := fmt.Sprint("ns-", i%10_000)
		if i < 1000 {
			namespace = "ops"
		}

		o.Add(clusterBinding(fmt.Sprint("binding-", i), "reads", rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "op",
		}))
	}

	runtime.GC()
	runtime.ReadMemStats(&after)

	if each := (after.HeapAlloc - before.HeapAlloc) / many; each > 800 {
		t.Errorf("a binding takes %d bytes", each)
	} else {
		t.Logf("a binding takes %d bytes", each)
	}

	fastest := time.Hour

	// A busy machine stops once in a while, and not each time.
	for range 10 {
		began := time.Now()
		got, more := named(o.Store, &read.Asked{Namespaces: []string{"ops"}})
		fastest = min(fastest, time.Since(began))

		if len(got) != 100 || more != 900 {
			t.Errorf("%d bindings and %d more", len(got), more)
		}
	}

	if fastest > time.Second {
		t.Errorf("it took %s", fastest)
	}

	runtime.KeepAlive(o)
}

// TestRulesOfClusterRolesAreBounded: whoever may write ClusterRoles decides what they say, and as which field manager. What large
// ones say is left out, and the bindings of these are counted; what small ones say is known.
func TestRulesOfClusterRolesAreBounded(t *testing.T) {
	const bindings = 60

	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}
	role := func(i, version, bytes int) *rbacv1.ClusterRole {
		r := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
		for n := range bytes / 18 {
			r.ResourceNames = append(r.ResourceNames, fmt.Sprintf("s-%04d-%08d", i, n))
		}

		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("role-", i), ResourceVersion: strconv.Itoa(version),
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: []string{"kubectl", scope.FieldManager}[i%2]}},
			},
			Rules: []rbacv1.PolicyRule{r},
		}
	}

	// most is how many megabytes they may take, and all that none of them is known.
	for name, tc := range map[string]struct {
		many, bytes int
		most        int64
		all         bool
	}{
		"as large as can be": {bindings, 1 << 20, 2, true}, "large": {600, 60_000, 22, false}, "small": {10_000, 4000, 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := read.NewOnce([]string{"ops"})

			remembers(t, tc.most, func() {
				for i := range tc.many {
					o.Add(role(i, 1, tc.bytes))
				}
			})

			o.Add(role(tc.many, 1, 160))
			o.Add(clusterBinding("small", fmt.Sprint("role-", tc.many), account))

			for i := range bindings {
				o.Add(clusterBinding(fmt.Sprint("binding-", i), fmt.Sprint("role-", i), account))
			}

			got, more := named(o.Store, &read.Asked{Namespaces: []string{"ops"}})
			if !slices.Contains(got, "small") || len(got)+more != bindings+1 || more == 0 || tc.all != (more == bindings) {
				t.Errorf("%q are known, and %d more are counted", got, more)
			}

			f, _ := o.Store.Facts(scope.TemplatesKey(), time.Now())
			if out := f.ClusterRoles["role-59"]; out.Aggregated == nil || out.Aggregated.Name != "" {
				t.Error("one that is left out looks like one that is not Ambit's, or not left out")
			}

			for i := range bindings {
				o.Add(role(i, 2, 400))
			}

			if got, more := named(o.Store, &read.Asked{Namespaces: []string{"ops"}}); len(got) != bindings+1 || more != 0 {
				t.Errorf("once they say little, %q are known, and %d more are counted", got, more)
			}
		})
	}
}

// TestSubjectsOfClusterRoleBindingsAreBounded: whoever may write ClusterRoleBindings decides whom they bind. Those of large
// ones are left out, and the bindings are counted for everybody; whom small ones bind is known.
func TestSubjectsOfClusterRoleBindingsAreBounded(t *testing.T) {
	const many, subjects = 30, 14_000

	large := func(i, version, subjects int) *rbacv1.ClusterRoleBinding {
		b := clusterBinding(fmt.Sprint("large-", i), "reader")
		b.ResourceVersion = strconv.Itoa(version)

		for n := range subjects {
			b.Subjects = append(b.Subjects, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: fmt.Sprintf("ns-%d-%d", i, n), Name: "op",
			})
		}

		return b
	}

	o := read.NewOnce([]string{"ops"})
	o.Add(&rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "reader", ResourceVersion: "1"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	})
	o.Add(clusterBinding("small", "reader", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}))

	remembers(t, 24, func() {
		for i := range many {
			o.Add(large(i, 1, subjects))
		}
	})

	count := func(namespace string) (known []string, more int) {
		return named(o.Store, &read.Asked{Namespaces: []string{namespace}})
	}

	if known, more := count("ops"); !slices.Equal(known, []string{"small"}) || more == 0 || more > many {
		t.Errorf("known are %q, and %d more are counted", known, more)
	}

	for i := range many {
		o.Add(large(i, 2, 1))
	}

	if known, more := count("ns-0-0"); !slices.Equal(known, []string{"large-0"}) || more != 0 {
		t.Errorf("once they bind few, known are %q, and %d more are counted", known, more)
	}
}

// remembers checks that no more than so many MiB stay of what is done.
func remembers(t *testing.T, most int64, done func()) {
	t.Helper()

	before := inUse()

	done()

	var took int64

	// Interned texts go by a goroutine, which on a busy machine waits for its turn, collections after nobody has them any more.
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if took = (inUse() - before) >> 20; took <= most {
			return
		}
	}

	t.Errorf("%d MiB are remembered", took)
}

// inUse is how many bytes of memory are in use.
func inUse() int64 {
	var m runtime.MemStats

	for range 3 {
		runtime.GC()
	}

	runtime.ReadMemStats(&m)

	return int64(m.HeapAlloc)
}
