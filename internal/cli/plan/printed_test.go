package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
)

// TestTheSummary: it counts what would be written and what would be refused, each under its own word, and says nothing is changed
// only if that is known.
func TestTheSummary(t *testing.T) {
	t.Parallel()

	of := func(actions ...plan.Action) (out []Object) {
		for i, action := range actions {
			out = append(out, Object{Action: action, Kind: "Role", Namespace: "m", Name: fmt.Sprint("r-", i)})
		}

		return out
	}
	refused := of(plan.Create)
	refused[0].Refused = &predict.Refusal{Reason: "NameClash"}

	for reason, tc := range map[string]struct {
		data Data
		want string
	}{
		"nothing changes": {Data{}, "No Role or RoleBinding would change. Watch lists to write: 0. Restarts: 0."},
		"each action": {
			Data{Objects: of(plan.Create, plan.Create, plan.Update, plan.Delete, plan.Empty, plan.Delete)},
			"Roles and RoleBindings: 2 to create, 1 to change, 3 to delete. Watch lists to write: 0. Restarts: 0.",
		},
		"what is refused is not counted as written": {
			Data{Objects: append(of(plan.Update), refused...)},
			"Roles and RoleBindings: 1 to change, 1 refused. Watch lists to write: 0. Restarts: 0.",
		},
		"other objects, too": {
			Data{Objects: of(plan.Create), Installs: []Install{{}}}, "Objects: 1 to create. Watch lists to write: 0. Restarts: 0.",
		},
		"an install that goes has no status": {
			Data{Objects: append(of(plan.Delete), Object{Action: plan.Delete, Kind: "Deployment", Namespace: "m", Name: "op"})},
			"Objects: 2 to delete. Watch lists to write: 0. Restarts: 0.",
		},
		"ClusterRoles are Roles": {
			Data{Objects: []Object{{Action: plan.Create, Kind: "ClusterRole", Name: "c"}}},
			"Roles and RoleBindings: 1 to create. Watch lists to write: 0. Restarts: 0.",
		},
		"nothing of an install changes": {
			Data{Installs: []Install{{}}}, "No object would change. Watch lists to write: 0. Restarts: 0.",
		},
		"what changes is known, and there may be more": {
			Data{Objects: of(plan.Create), Unknown: []Unknown{{}}},
			"Roles and RoleBindings: 1 to create. Watch lists to write: 0. Restarts: 0.",
		},
		"lists and restarts": {
			Data{WatchLists: []predict.List{{}, {}}, Restarts: []Restart{{}, {}, {}}},
			"No Role or RoleBinding would change. Watch lists to write: 2. Restarts: 3.",
		},
		"nor are refused lists and restarts": {
			Data{
				WatchLists: []predict.List{{}, {Refusal: &predict.Refusal{}}},
				Restarts:   []Restart{{Refused: &predict.Refusal{}}, {}, {Refused: &predict.Refusal{}}},
			},
			"No Role or RoleBinding would change. Watch lists to write: 1, 1 refused. Restarts: 1, 2 refused.",
		},
	} {
		if got := (&printer{data: &tc.data}).summary(); got != tc.want {
			t.Errorf("%s: it says %q, want %q", reason, got, tc.want)
		}
	}
}

// TestRestartsByInjection: an injection that changes a pod template restarts its pods, which counts once, and only if it is
// allowed.
func TestRestartsByInjection(t *testing.T) {
	t.Parallel()

	rolls := Injection{Namespace: "ops", Target: "Deployment op", Rolls: true}
	refused, still, elsewhere := rolls, rolls, rolls
	refused.Refused = &predict.Refusal{Reason: "AuthorizationRequired"}
	still.Rolls = false
	elsewhere.Namespace = "other"

	for reason, tc := range map[string]struct {
		data Data
		want int
	}{
		"it rolls":                           {Data{Injections: []Injection{rolls}}, 1},
		"it is refused":                      {Data{Injections: []Injection{refused}}, 0},
		"it changes no pod":                  {Data{Injections: []Injection{still}}, 0},
		"another namespace has the same one": {Data{Injections: []Injection{rolls, elsewhere}}, 2},
		"it restarts for its list, too": {
			Data{Injections: []Injection{rolls}, Restarts: []Restart{{Namespace: "ops", Reader: "Deployment op"}}}, 1,
		},
		"another one restarts": {
			Data{Injections: []Injection{rolls}, Restarts: []Restart{
				{Namespace: "ops", Reader: "Deployment other"}, {Namespace: "other", Reader: "Deployment op"},
			}}, 3,
		},
	} {
		if got := (&printer{data: &tc.data}).summary(); !strings.HasSuffix(got, fmt.Sprintf(" Restarts: %d.", tc.want)) {
			t.Errorf("%s: it says %q, want %d restarts", reason, got, tc.want)
		}
	}
}

// printed is what a part of the printer says of data.
func printed(d *Data, part func(p *printer)) string {
	p := &printer{data: d}
	part(p)

	return p.Text().String()
}

// TestObjectsThatShareALine: a copy has the same name in every member, so all share a line; what differs in anything that the
// line says has its own.
func TestObjectsThatShareALine(t *testing.T) {
	t.Parallel()

	one := Object{
		Action: plan.Create, Purpose: predict.Granted, Kind: "Role", Namespace: "a", Name: "r", Source: "Role/ops/r",
	}
	same := one
	same.Namespace = "b"

	if got := printed(&Data{Objects: []Object{one, same}}, (*printer).objects); !strings.Contains(got, "in a, b") {
		t.Errorf("copies are shown as %q", got)
	}

	// Each scope has its own objects in order; those of the next one begin anew.
	if got := printed(&Data{Objects: []Object{same, one}}, (*printer).objects); !strings.Contains(got, "in a, b") {
		t.Errorf("copies of two scopes are shown as %q", got)
	}

	one.Refused, same.Refused = &predict.Refusal{Reason: "NameClash"}, &predict.Refusal{Reason: "NameClash"}
	if got := printed(&Data{Objects: []Object{same, one}}, (*printer).objects); !strings.Contains(got, "refused in a, b") {
		t.Errorf("refusals of two scopes are shown as %q", got)
	}

	one.Refused, same.Refused = nil, nil

	for what, change := range map[string]func(o *Object){
		"action":  func(o *Object) { o.Action = plan.Update },
		"purpose": func(o *Object) { o.Purpose = predict.Legacy },
		"kind":    func(o *Object) { o.Kind = "RoleBinding" },
		"name":    func(o *Object) { o.Name = "other" },
		"source":  func(o *Object) { o.Source = "Role/ops/other" },
		"refusal": func(o *Object) { o.Refused = &predict.Refusal{Reason: "NameClash"} },
	} {
		other := same
		change(&other)

		got := printed(&Data{Objects: []Object{one, other}}, (*printer).objects)
		if strings.Contains(got, "in a, b") || !strings.Contains(got, "in a ") || !strings.Contains(got, "in b ") && what != "refusal" {
			t.Errorf("with another %s, they are shown as %q", what, got)
		}
	}
}

// TestWhereObjectsComeFrom: each line says why the object is written, and which Role or RoleBinding it is a copy of.
func TestWhereObjectsComeFrom(t *testing.T) {
	t.Parallel()

	for purpose, want := range map[predict.Purpose]string{
		predict.Granted: "from Role ops/r", predict.Revoked: "from Role ops/r", predict.Pruned: "from Role ops/r",
		predict.Legacy: "IBM's operator projected it", predict.Orphaned: "its scope is gone",
		predict.Retired: "another one replaces it", predict.Collected: "what authorized it is gone",
	} {
		got := printed(&Data{Objects: []Object{
			{Action: plan.Delete, Purpose: purpose, Kind: "Role", Namespace: "m", Name: "r-1", Source: "Role/ops/r"},
		}}, (*printer).objects)
		if !strings.Contains(got, "delete   Role   r-1   in m   "+want) {
			t.Errorf("%s: it says %q, want %q", purpose, got, want)
		}
	}

	got := printed(&Data{Objects: []Object{{Action: plan.Update, Kind: "ClusterRole", Name: "c"}}}, (*printer).objects)
	if !strings.Contains(got, "update   ClusterRole   c   in the whole cluster") {
		t.Errorf("of one without a source it says %q", got)
	}
}

// TestWhatBecomesOfScopes: a scope is there if something becomes of it. Long lists are cut, and what is left out is counted.
func TestWhatBecomesOfScopes(t *testing.T) {
	t.Parallel()

	failed := func(n int) (out []predict.FailedMember) {
		for i := range n {
			out = append(out, predict.FailedMember{
				Namespace: fmt.Sprint("f-", i), Refusal: predict.Refusal{Reason: "Refused", Message: "no"},
			})
		}

		return out
	}
	finishes := func(n int) (out []Finish) {
		for i := range n {
			out = append(out, Finish{Namespace: fmt.Sprint("w-", i), Message: "one Kettle waits"})
		}

		return out
	}

	for reason, tc := range map[string]struct {
		scope Scope
		want  []string
		lines int
	}{
		"nothing becomes of it": {Scope{Served: []string{"a"}}, nil, 0},
		"it gains members":      {Scope{Joins: []string{"a", "b"}}, []string{"joins:  a, b"}, 2},
		"it loses members": {
			Scope{Leaves: []string{"a", "b", "c", "d", "e"}}, []string{"leaves: a, b, c, d and 1 more"}, 2,
		},
		"a member fails":     {Scope{Failed: failed(1)}, []string{"fails:  f-0: Refused: no"}, 2},
		"four members fail":  {Scope{Failed: failed(4)}, []string{"f-3: Refused"}, 5},
		"more members fail":  {Scope{Failed: failed(6)}, []string{"f-3: Refused", "fails:  2 more namespaces"}, 6},
		"it has a remark":    {Scope{Says: []string{"so it is"}}, []string{"note:    so it is"}, 2},
		"one that leaves":    {Scope{Leaves: []string{"w-0"}, Finishes: finishes(1)}, []string{"waits:  w-0: one Kettle waits"}, 3},
		"many that leave":    {Scope{Leaves: []string{"w-0"}, Finishes: finishes(5)}, []string{"waits:  1 more namespaces"}, 7},
		"the cluster itself": {Scope{Failed: []predict.FailedMember{{}}}, []string{"fails:  the whole cluster"}, 2},
	} {
		tc.scope.Scope = "NamespaceScope/ops/s"

		got := strings.TrimPrefix(printed(&Data{Scopes: []Scope{tc.scope}}, (*printer).scopes), "\n")
		for _, want := range append(tc.want, "NamespaceScope ops/s") {
			if tc.lines > 0 && !strings.Contains(got, want) {
				t.Errorf("%s: it says %q, want %q", reason, got, want)
			}
		}

		if lines := len(strings.Split(got, "\n")); got == "" && tc.lines != 0 || got != "" && lines != tc.lines {
			t.Errorf("%s: it says %d lines, want %d: %q", reason, lines, tc.lines, got)
		}
	}
}

// TestManyReasonsForRefusals: the first are told with the namespaces, each once, and the others are counted.
func TestManyReasonsForRefusals(t *testing.T) {
	t.Parallel()

	var objects []Object

	for i := range 6 {
		for _, name := range []string{"r", "b"} {
			objects = append(objects, Object{
				Action: plan.Create, Kind: "Role", Namespace: fmt.Sprint("n-", i), Name: name,
				Refused: &predict.Refusal{Reason: "Refused", Message: fmt.Sprint("because of ", i)},
			})
		}
	}

	got := printed(&Data{Objects: objects}, (*printer).refusals)
	if want := "  refused in n-0: Refused: because of 0\n  refused in n-1: Refused: because of 1\n" +
		"  refused in n-2: Refused: because of 2\n  refused in n-3: Refused: because of 3\n" +
		"  refused for 2 more reasons; -o yaml has all"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}

	got = printed(&Data{Objects: objects[:8]}, (*printer).refusals)
	if strings.Contains(got, "more reasons") || strings.Count(got, "\n") != 3 {
		t.Errorf("of four reasons it says %q", got)
	}
}
