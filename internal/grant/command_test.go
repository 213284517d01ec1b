package grant_test

import (
	"testing"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func TestCommand(t *testing.T) {
	t.Parallel()

	usual := scope.Owner{Group: operatorv1.GroupVersion.Group, Kind: "NamespaceScope", Namespace: "ops", Name: "s"}
	old := usual
	old.Group = namespacescopev1alpha1.GroupVersion.Group

	for name, tc := range map[string]struct {
		reason, got, want string
	}{
		"usual": {
			"the group is said, because a scope of the other group may have the same name",
			grant.Command("cloudpak1", usual, ""), "ambit authorize cloudpak1 --to ops --scope operator.ibm.com/s",
		},
		"older": {
			"the older group is said",
			grant.Command("cloudpak1", old, ""), "ambit authorize cloudpak1 --to ops --scope namespacescope.ibm.com/s",
		},
		"home": {
			"a scope may miss something in the operator namespace, too",
			grant.Command("ops", usual, ""), "ambit authorize ops --to ops --scope operator.ibm.com/s",
		},
		"account": {
			"an account that is named is granted to",
			grant.Command("cloudpak1", usual, "writer"),
			"ambit authorize cloudpak1 --to ops --scope operator.ibm.com/s --service-account writer",
		},
		"named by the scope": {
			"authorize finds it by itself",
			grant.CommandFor("cloudpak1", &scope.Scope{Owner: usual, Delegate: "writer"}),
			"ambit authorize cloudpak1 --to ops --scope s",
		},
		"chosen by the manager": {
			"authorize cannot know it",
			grant.CommandFor("cloudpak1", &scope.Scope{Owner: usual, Delegate: "deputy", DelegateByDefault: true}),
			"ambit authorize cloudpak1 --to ops --scope s --service-account deputy",
		},
		"twin": {
			"its name alone means two scopes, which authorize refuses",
			grant.CommandFor("cloudpak1", &scope.Scope{Owner: usual, IsTwin: true}),
			"ambit authorize cloudpak1 --to ops --scope operator.ibm.com/s",
		},
		"leaving": {
			"a scope that removes what it projected gains no member by it",
			grant.LeavingCommandFor("cloudpak1", &scope.Scope{Owner: usual}), "ambit authorize cloudpak1 --to ops --scope s --grant-only",
		},
		"installs": {
			"a grant to installs is for no scope",
			grant.InstallCommand("cloudpak1", "ops"), "ambit authorize cloudpak1 --to ops --installs",
		},
		"installs, back": {
			"what is granted to installs can be taken back",
			grant.RevokeInstallsCommand("cloudpak1", "ops"), "ambit revoke cloudpak1 --to ops --installs",
		},
		"hostile": {
			"a line that is copied into a shell runs what it seems to",
			grant.Command("a; b", usual, "$(c)"), `ambit authorize 'a; b' --to ops --scope operator.ibm.com/s --service-account '$(c)'`,
		},
		"title": {"the usual group need not be said", grant.Title(usual), "NamespaceScope ops/s"},
		"title, older": {
			"the older one tells two scopes apart", grant.Title(old), "NamespaceScope ops/s of namespacescope.ibm.com",
		},
		"back, usual group": {
			"there may be one of the other group that has its name, too",
			grant.RevokeCommand("cloudpak1", usual), "ambit revoke cloudpak1 --to ops --scope operator.ibm.com/s",
		},
		"back": {
			"what is granted can be taken back",
			grant.RevokeCommand("cloudpak1", old), "ambit revoke cloudpak1 --to ops --scope namespacescope.ibm.com/s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if tc.got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, tc.got, tc.want)
			}
		})
	}
}
