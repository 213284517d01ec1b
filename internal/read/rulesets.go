package read

import (
	"crypto/sha256"
	"encoding/json"
	"strings"
	"unique"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxRuleSets is how many bytes of what ClusterRoles say are remembered: the largest are left out first. A large cluster has
	// some hundred kilobytes of them.
	maxRuleSets = 16 << 20
	// maxRuleSet is how many bytes of what one says are. The users' ClusterRole of an OperatorGroup with 2,000 APIs has as many.
	maxRuleSet = 256 << 10
	// smallRuleSet is what counts for nothing there: it takes less than what is remembered of each ClusterRole anyway. Ambit makes
	// some of these for each OperatorGroup, and most say the same.
	smallRuleSet = 512
)

// ruleSet is what a ClusterRole says: as JSON, which is shared by all that say the same, and by a sum, which tells it apart. The
// text may be left out. One that says nothing has neither.
type ruleSet struct {
	text unique.Handle[string]
	sum  [sha256.Size]byte
}

func convertRules(obj client.Object) ruleSet {
	role, ok := obj.(*rbacv1.ClusterRole)
	if !ok || len(role.Rules) == 0 {
		return ruleSet{}
	}

	text, err := json.Marshal(role.Rules)
	if err != nil {
		return ruleSet{} // Rules are plain data.
	}

	out := ruleSet{sum: sha256.Sum256(text)}
	if len(text) <= maxRuleSet {
		out.text = unique.Make(string(text))
	}

	return out
}

func (r *ruleSet) size() int {
	if r.text == (unique.Handle[string]{}) {
		return 0
	}

	return len(r.text.Value())
}

// read returns the rules, unless they are left out.
func (r *ruleSet) read() (rules []rbacv1.PolicyRule, known bool) {
	if r.size() == 0 {
		return nil, *r == ruleSet{}
	}

	if err := json.NewDecoder(strings.NewReader(r.text.Value())).Decode(&rules); err != nil {
		return nil, false // They were encoded here.
	}

	return rules, true
}

// boundRules leaves out what the largest ClusterRoles say where that of all is too much. Whoever may write ClusterRoles decides
// how much it is, also by Ambit's field manager.
func (s *Store) boundRules(key types.NamespacedName) {
	record := s.clusterRoles.rows[key].record

	s.ruleSets.addUnlessSmall(key, record.weight(), smallRuleSet, func() {
		row := s.clusterRoles.rows[key]
		row.record.lighten()
		s.clusterRoles.rows[key] = row
	})
}
