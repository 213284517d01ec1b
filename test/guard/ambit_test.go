package guard_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// TestAmbitsOwnAccount: a scope in Ambit's own namespace can name Ambit's own account, and would then be written with
// Ambit's own rights after all. It is an account like any other: for those who may impersonate it, or run a pod as it.
func TestAmbitsOwnAccount(t *testing.T) {
	h := begin(t)
	h.elsewhere = testcluster.Namespace(t, h.config, "guard-elsewhere")

	// The people have names of this test, and write in Ambit's namespace. Nothing of it is for real: a manager may run.
	room := *h
	room.namespace = embedded.Namespace

	var (
		writesScopes = room.hereAs("ambit-edit", rule(scopes.Group, scopes.Resource, "create"))
		impersonates = rule(core, "serviceaccounts", "impersonate", embedded.ServiceAccount)
		createsPods  = rule(core, "pods", "create")
	)

	ways := map[string]operation{
		"ByName":       {do: create(fresh, map[string]any{account: embedded.ServiceAccount})},
		"ByManual":     {do: create(fresh, map[string]any{manualField: true})},
		"ByApply":      {do: apply(fresh, map[string]any{account: embedded.ServiceAccount})},
		"ByOlder":      {do: create(fresh, map[string]any{manualField: true}), group: olderGroup},
		"ByOlderApply": {do: apply(fresh, map[string]any{manualField: true}), group: olderGroup},
	}

	for name, tc := range map[string]struct {
		reason string
		who    *somebody
		may    bool
	}{
		"WritesScopes": {
			reason: "to write scopes beside Ambit is not to have Ambit's rights",
			who:    h.user("only-scopes", writesScopes),
		},
		"RightsElsewhere": {
			reason: "an account of the same name in another namespace is another account",
			who:    h.user("elsewhere", writesScopes, h.there(impersonates), h.there(createsPods)),
		},
		"ImpersonatesAnother": {
			reason: "may use one account of the namespace, and it is not Ambit's",
			who:    h.user("another", writesScopes, room.here(rule(core, "serviceaccounts", "impersonate", writer))),
		},
		"Impersonates": {
			reason: "may act as Ambit anyway",
			who:    h.user("impersonator", writesScopes, room.here(impersonates)),
			may:    true,
		},
		"CreatesPods": {
			reason: "may run a pod as Ambit anyway",
			who:    h.user("pod-creator", writesScopes, room.here(createsPods)),
			may:    true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			room := room
			room.T = t
			room.welcome(tc.who)

			for _, way := range slices.Sorted(maps.Keys(ways)) {
				err := ways[way].do(room.request(tc.who, resourceOf(ways[way].group), dryRun))

				switch {
				case tc.may && err != nil:
					t.Errorf("%s\n%s: want: allowed, got: %v", tc.reason, way, err)
				case !tc.may && refusedBy(err) != delegateIdentity:
					t.Errorf("%s\n%s: want: refused by %s, got: %v", tc.reason, way, delegateIdentity, err)
				}
			}
		})
	}
}
