package plan_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"testing"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ibmName is the name that IBM's operator gives to its copy of a Role without a dot.
func ibmName(role, account string) string {
	sum := sha256.Sum256([]byte(role + account + "ops"))

	return role + "-" + hex.EncodeToString(sum[:7])
}

// TestWhatIBMsOperatorMadeIsDistinguishedFromForgeries holds that its work is found among any number of objects that bear its
// marks, also a Role whose binding or whose source is gone, and that looking for it costs as much as there is to look at, and not
// its square.
func TestWhatIBMsOperatorMadeIsDistinguishedFromForgeries(t *testing.T) {
	t.Parallel()

	const forged, accounts = 3000, 300

	f := cluster()
	namespaces(f, "served", "evil")

	for i := range accounts {
		f.OperatorNamespace.Accounts[fmt.Sprintf("account-%d", i)] = struct{}{}
	}

	role := func(name string) facts.ProjectedKey { return facts.ProjectedKey{Kind: projected.Role, Name: name} }
	binding := func(name string) facts.ProjectedKey {
		return facts.ProjectedKey{Kind: projected.RoleBinding, Name: name}
	}
	marked := facts.Legacy{Mark: facts.LegacyMark("list", "ops"), Labelled: true, List: "list"}
	bound := func(account, operatorNamespace string) facts.Legacy {
		i := marked
		i.Account, i.AccountNamespace = account, operatorNamespace

		return i
	}

	f.Legacy = map[string]map[facts.ProjectedKey]facts.Legacy{
		"served": {
			role(ibmName("r", "gone")):         marked,
			binding(ibmName("r", "gone")):      bound("gone", "ops"),
			role(ibmName("s", "account-7")):    marked,
			binding(ibmName("s", "elsewhere")): bound("elsewhere", "other"),
		},
		"evil": {},
	}

	for i := range forged {
		name := fmt.Sprintf("forged%d-0123456789abcd", i)
		f.Legacy["evil"][role(name)] = marked
		f.Legacy["evil"][binding(name)] = bound(fmt.Sprintf("made-up-%d", i), "ops")
	}

	s := newScope("s", "served", "evil")
	s.WatchList, s.Accounts = "list", scope.Accounts{}

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	p := plan.New([]scope.Scope{s}, f)

	runtime.ReadMemStats(&after)

	if got := len(p.Scopes[0].Legacy); got != 3 {
		t.Errorf("%d objects go, want 3: %v", got, p.Scopes[0].Legacy)
	}

	if got := len(p.Scopes[0].ForeignLegacy); got != 2*forged+1 {
		t.Errorf("%d objects are left alone, want %d", got, 2*forged+1)
	}

	// Other tests run beside this one. Each name with each account would be ten times as much.
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 100 {
		t.Errorf("the plan took %d MiB", took)
	}
}
