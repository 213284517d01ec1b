package narrow

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// runner is an account with the labels of pods that run as it.
type runner struct {
	account Account
	labels  labels.Set
	doc     *Document
}

// runners are what a version runs.
func (v *version) runners() []runner {
	out := v.others

	for a, all := range v.workloads {
		for _, w := range all {
			out = append(out, runner{a, w.labels(), w.doc})
		}
	}

	return out
}

// beyondOperands are the accounts that a scope of the old version comes to project because their pods get its labels: what they
// hold beside it, they hold in its members then. Of a scope with other labels than before, the settings tell.
func beyondOperands(old, young *version) (out []More) {
	before, after := old.runners(), young.runners()

	for i := range old.settings {
		s := &old.settings[i]
		if s.operands == nil {
			continue
		}

		had := s.projected(before, old)

		names := collect.Filter(slices.Sorted(maps.Keys(s.projected(after, old))), func(name string) bool {
			return !had[name] && !slices.ContainsFunc(s.say, func(is setting) bool {
				return is.name == "accounts" && is.value == name
			})
		})

		if len(names) > 0 {
			m := newMore(s.doc)
			if now := young.settingsOf(s.key); now != nil {
				m = newMore(now.doc)
			}

			m.Whose, m.Places = s.whose, []string{s.where}
			m.Says = []string{"accounts: " + strings.Join(names, ", ")}
			out = append(out, m)
		}
	}

	slices.SortFunc(out, func(a, b More) int { return cmp.Compare(a.Whose, b.Whose) })

	return out
}

// projected are the accounts of runners whose pods have the labels of a scope.
func (s *settings) projected(all []runner, v *version) map[string]bool {
	names := map[string]bool{}

	for i := range all {
		if all[i].account.Namespace == v.at(s.doc) && s.operands.Matches(all[i].labels) {
			names[all[i].account.Name] = true
		}
	}

	return names
}

func (v *version) settingsOf(key string) *settings {
	if i := slices.IndexFunc(v.settings, func(s settings) bool { return s.key == key }); i >= 0 {
		return &v.settings[i]
	}

	return nil
}
