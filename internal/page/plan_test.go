//nolint:bodyclose // The cleanup of the test closes them.
package page_test

import (
	"bufio"
	"errors"
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/page"
)

// shownPlan is what the page is told of a plan.
type shownPlan struct {
	Version int
	Problem string
	NoFiles bool
	Plan    *struct {
		Chart   page.Chart
		Objects map[string]int
		Data    map[string]any
	}
}

// marks are what would become of each namespace.
func (s *shownPlan) marks() map[string]int {
	out := map[string]int{}

	for _, block := range s.Plan.Chart.Blocks {
		for _, name := range block.Namespaces {
			for _, link := range block.Links {
				out[name+" "+s.Plan.Chart.Operators[link[0]].Name] = link[5]
			}
		}
	}

	return out
}

func roles(verbs ...string) []overview.Role {
	return []overview.Role{{Name: "Role ops/a", Rules: []rbacv1.PolicyRule{{Verbs: verbs, Resources: []string{"pods"}}}}}
}

// TestPlanIsDrawn holds what is marked: what joins, changes, leaves and would be refused, and nothing else.
func TestPlanIsDrawn(t *testing.T) {
	t.Parallel()

	role := service("a", "changes", overview.Served)
	role.Roles = roles("get")
	other := service("a", "elsewhere", overview.Served)
	other.Scope = "NamespaceScope other/s"
	failing := service("a", "fails-still", overview.Failed)
	f := &fixture{services: []overview.Service{
		service("a", "stays", overview.Served), service("a", "leaves", overview.Served),
		service("a", "breaks", overview.Served), role, other, failing,
	}}

	more := role
	more.Roles = roles("get", "list")
	f.planned(&page.Plan{
		Data: map[string]any{"refused": true}, Planned: []string{"NamespaceScope ops/s", "NamespaceScope ops/new"},
		Scopes: []overview.Scope{{Name: "NamespaceScope ops/s", Group: "operator.ibm.com"}, {Name: "NamespaceScope ops/new"}},
		Services: []overview.Service{
			service("a", "stays", overview.Served), service("a", "joins", overview.Served), service("a", "refused", overview.Failed),
			service("a", "breaks", overview.Partial), more, failing,
		},
		Objects: []page.PlannedObject{
			{Action: "create", Kind: "Role", Namespace: "joins", Name: "a"},
			{Action: "create", Kind: "RoleBinding", Namespace: "joins", Name: "a"},
			{Action: "delete", Kind: "Role", Namespace: "leaves", Name: "a"},
			{Action: "create", Kind: "Role", Namespace: "refused", Name: "a", Refused: "MemberUnauthorized: no"},
		},
	}, nil)

	s := serve(t, f)
	stream := bufio.NewScanner(s.get("api/v1/live").Body)

	var got shownPlan
	for s.json("api/v1/plan", &got); got.Plan == nil; s.json("api/v1/plan", &got) {
		next(t, stream)
	}

	const none, created, changed, deleted, refused = 0, 1, 2, 3, 4

	marks := got.marks()
	for name, want := range map[string]int{
		"stays a": none, "joins a": created, "changes a": changed, "leaves a": deleted, "refused a": refused, "breaks a": refused,
		"elsewhere a": none, "fails-still a": none,
	} {
		if mark, is := marks[name]; !is || mark != want {
			t.Errorf("%s is marked %d, there %t, want %d", name, mark, is, want)
		}
	}

	if o := got.Plan.Objects; o["create"] != 2 || o["delete"] != 1 || o["refused"] != 1 || got.Plan.Data["refused"] != true {
		t.Errorf("there are %v of %v", o, got.Plan.Data)
	}

	if last := got.Plan.Chart.Scopes[len(got.Plan.Chart.Scopes)-1]; last.Name != "NamespaceScope other/s" &&
		last.Name != "NamespaceScope ops/new" {
		t.Errorf("the scopes are %+v", got.Plan.Chart.Scopes)
	}

	var in struct{ Objects []page.PlannedObject }
	if s.json("api/v1/plan?namespace=joins", &in); len(in.Objects) != 2 || in.Objects[1].Kind != "RoleBinding" {
		t.Errorf("in the namespace that joins there are %+v", in.Objects)
	}

	if r := s.get("api/v1/plan?namespace=A_B"); r.StatusCode != http.StatusBadRequest {
		t.Errorf("what is no namespace: %d", r.StatusCode)
	}
}

// TestPlanFollows holds that the plan is made anew when the cluster changes, that a plan that fails says why and leaves what was
// there, and that nobody plans without files.
func TestPlanFollows(t *testing.T) {
	t.Parallel()

	f := &fixture{services: []overview.Service{service("a", "team-a", overview.Served)}}
	f.planned(&page.Plan{Planned: []string{"NamespaceScope ops/s"}, Services: []overview.Service{
		service("a", "team-a", overview.Served), service("a", "joins", overview.Served),
	}}, nil)

	s := serve(t, f)
	stream := bufio.NewScanner(s.get("api/v1/live").Body)

	var got shownPlan

	wait := func(what string, is func() bool) {
		t.Helper()

		for s.json("api/v1/plan", &got); !is(); s.json("api/v1/plan", &got) {
			next(t, stream)
		}

		t.Logf("%s: version %d", what, got.Version)
	}

	wait("it joins", func() bool { return got.Plan != nil && got.marks()["joins a"] == 1 })
	f.become(service("a", "team-a", overview.Served), service("a", "joins", overview.Served))
	wait("it joined", func() bool { return got.marks()["joins a"] == 0 })

	f.planned(nil, errors.New("you may not list\x1b[31m roles"))
	f.become(service("a", "team-a", overview.Served))
	wait("it cannot be told", func() bool { return got.Problem == `you may not list\u001b[31m roles` })

	if got.Plan == nil {
		t.Error("what was planned before is gone")
	}

	none := serve(t, &fixture{})
	stream = bufio.NewScanner(none.get("api/v1/live").Body)

	for none.json("api/v1/plan", &got); !got.NoFiles; none.json("api/v1/plan", &got) {
		next(t, stream)
	}
}
