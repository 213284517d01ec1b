package predict_test

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// BenchmarkOf serves many new members with four roles.
func BenchmarkOf(b *testing.B) {
	for _, members := range []int{500, 2000, 10000} {
		for _, kind := range []string{"ambit", "delegate"} {
			b.Run(fmt.Sprintf("%s-%d", kind, members), func(b *testing.B) { benchmark(b, members, kind == "delegate") })
		}
	}
}

func benchmark(b *testing.B, members int, delegate bool) {
	b.Helper()
	b.ReportAllocs()

	var names []string
	for i := range members {
		names = append(names, fmt.Sprintf("m%05d", i))
	}

	w := newWorld(b, names...)
	if delegate {
		w.delegate()
	}

	for i := range 3 {
		name := fmt.Sprintf("role-%d", i)
		w.add(&rbacv1.Role{ObjectMeta: at("ops", name), Rules: []rbacv1.PolicyRule{
			ruleOf("get,list,watch", "", "secrets,configmaps,"+name), ruleOf("create,patch,delete", "apps", "deployments,statefulsets"),
			ruleOf("get", "batch", "jobs"),
		}})
		w.add(bindingOf("ops", name, name))
	}

	for b.Loop() {
		b.StopTimer()

		in, _ := w.begin()

		b.StartTimer()

		if out := predicted(w, in); len(out.Changes) != members*8 || out.Refused() {
			b.Fatalf("%d changes", len(out.Changes))
		}
	}
}
