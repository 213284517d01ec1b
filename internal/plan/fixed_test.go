package plan_test

import (
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestFixedIsWhatIsCalledSo: a ClusterRole with a fixed name is none that is called otherwise, whatever its marks say:
// somebody who may create ClusterRoles and bind them would hold what that one gets. It goes, and the right one is made, or
// kept.
func TestFixedIsWhatIsCalledSo(t *testing.T) {
	t.Parallel()

	const name, mine = "olm.og.group.admin-x", "a-role-of-mine"

	group := func(aggregates ...string) []scope.Scope {
		return []scope.Scope{{
			Owner: scope.Owner{Group: "operators.coreos.com", Kind: "OperatorGroup", Namespace: "ops", Name: "group"},
			Key:   scope.Installs.In("ops"), Created: now, Members: scope.Members{Everywhere: true},
			Defines: []scope.ClusterRole{{Name: name, Aggregates: aggregates, Fixed: true}},
		}}
	}

	for reason, isThere := range map[string]bool{"the right one is there": true, "it is not": false} {
		f := cluster()
		f.Key, f.Names = scope.Installs.In("ops"), newNames()

		before := plan.New(group(), f)
		forged := before.Scopes[0].Copies[0].Object
		forged.Name = mine
		record := live(&forged)
		record.Named = false

		if isThere {
			carryOut(f, &before)
		}

		if f.Projected[""] == nil {
			f.Projected[""] = map[facts.ProjectedKey]*facts.Projected{}
		}

		f.Projected[""][facts.ProjectedKey{Kind: projected.ClusterRole, Name: mine}] = &record

		for range 3 {
			p := plan.New(group("gives-things"), f)
			for _, c := range p.Scopes[0].Grant {
				if c.Key.Name != name {
					t.Errorf("%s: %s of ClusterRole %s gives it what the group gives", reason, c.Action, c.Key.Name)
				}
			}

			carryOut(f, &p)

			f.Now = f.Now.Add(time.Minute)
		}

		_, right := f.Projected[""][facts.ProjectedKey{Kind: projected.ClusterRole, Name: name}]
		if !right || len(f.Projected[""]) != 1 {
			t.Errorf("%s: left are %v", reason, f.Projected[""])
		}
	}
}
