package changes

import (
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestClusterPermissionsMatterToWhoeverWrites: what was refused is tried again by those that may be allowed it now, and by no
// others. There may be thousands, and each operator that somebody installs brings ClusterRoles.
func TestClusterPermissionsMatterToWhoeverWrites(t *testing.T) {
	t.Parallel()

	c, installs, catalogs := New(), &queue{}, &queue{}
	c.Start(scope.Installs, installs)
	c.Start(scope.Catalogs, catalogs)

	for key, refused := range map[scope.Key][]string{
		scope.Installs.In("clusterwide"): {""},
		scope.Installs.In("both"):        {"", "member"},
		scope.Installs.In("member"):      {"member"},
		scope.Installs.In("content"):     nil,
		scope.Catalogs.In("plan"):        {""},
	} {
		places := map[string]struct{}{}
		for _, place := range refused {
			places[place] = struct{}{}
		}

		c.Refuse(key, places)
	}

	for name, tc := range map[string]struct {
		reason string
		of     facts.ClusterPermissions
		want   []string
	}{
		"Nobody": {"a binding of people gives no account anything", facts.ClusterPermissions{}, nil},
		"Everybody": {
			"it may be any account", facts.ClusterPermissions{Everybody: true}, []string{"both", "clusterwide", "member", "plan"},
		},
		"Accounts": {
			"an account of the namespace writes", facts.ClusterPermissions{
				Namespaces: map[string]struct{}{"clusterwide": {}, "content": {}, "stranger": {}},
			}, []string{"clusterwide"},
		},
		"Role": {
			"somebody may be bound to it in a member, and an InstallPlan may bind somebody to it",
			facts.ClusterPermissions{Bound: true}, []string{"both", "member", "plan"},
		},
		"Gone": {
			"it may have had the name of something cluster-scoped", facts.ClusterPermissions{Freed: true},
			[]string{"both", "clusterwide", "plan"},
		},
	} {
		c.ClusterPermissionsChanged(tc.of)

		got := append(installs.take(), catalogs.take()...)
		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %v, want %v; %s", name, got, tc.want, tc.reason)
		}
	}
}
