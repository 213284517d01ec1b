package explain_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
)

// TestPeopleAreFoundByAPartOfTheirNames: in whatever case, wherever they are bound, and nobody else of the same binding.
func TestPeopleAreFoundByAPartOfTheirNames(t *testing.T) {
	t.Parallel()

	bindings := []rbacv1.RoleBinding{
		binding("b", nil, subject("User", "", "Eddy@example.com"), subject("User", "", "zoe"), subject("Group", "", "friends of eddy")),
		binding("a", nil, subject("User", "", "Eddy@example.com"), subject("ServiceAccount", "eddys", "op")),
	}
	everywheres := []rbacv1.ClusterRoleBinding{everywhere("c", "reader", subject("User", "", "amy"), subject("User", "", "eddy"))}

	found := explain.Bound("eDDy", bindings, everywheres)
	want := []string{
		"Group  friends of eddy b", "ServiceAccount eddys op a", "User  Eddy@example.com a", "User  Eddy@example.com b", "User  eddy c",
	}

	if got := listed(found); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}

	for i := range found {
		if r := &found[i].Right; r.Problem != "" || r.Role.Name == "" || r.Everywhere != (r.Binding.Kind == "ClusterRoleBinding") {
			t.Errorf("%+v", r)
		}
	}

	if found := explain.Bound("nobody", bindings, everywheres); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}
