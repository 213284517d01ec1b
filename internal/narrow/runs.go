package narrow

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// runsAs says what of a version runs as which account: whoever wrote the version has what that holds.
type runsAs map[Account]*Document

// runsOf are the accounts that something of a stream runs as, or has a token of, each with the first document that says so.
func runsOf(s *Stream, in *input, namespace string) runsAs {
	out := runsAs{}
	add := func(a Account, d *Document) {
		if a.Name != "" && out[a] == nil {
			out[a] = d
		}
	}

	for a, all := range in.workloads {
		add(a, all[0].doc)
	}

	for d := range s.objects() {
		where := cmp.Or(d.Namespace, namespace)

		switch d.Kind {
		case kindDefinition, kindScope: // They speak of accounts, and run nothing.
		case "Secret":
			add(Account{Namespace: where, Name: text(d.body, "metadata", "annotations", corev1.ServiceAccountNameKey)}, d)
		default:
			for _, r := range podsOf(d, where) {
				add(r.account, d)
			}

			for name := range accountsNamed(d) {
				add(Account{Namespace: where, Name: name}, d)
			}
		}
	}

	return out
}

// podsOf are the pods that a kind makes which is not narrowed, such as a ReplicationController or an Argo Rollout.
func podsOf(d *Document, namespace string) []runner {
	if d.Kind == kindDefinition || d.Kind == kindScope || isRead(d.Kind) {
		return nil
	}

	var out []runner

	for n, parent := range nodes(d.body) {
		if all := child(n, "containers"); all != nil && all.Kind == yaml.SequenceNode &&
			(len(all.Content) == 0 || followed(all.Content[0]).Kind == yaml.MappingNode) {
			name := cmp.Or(text(n, "serviceAccountName"), text(n, "serviceAccount"), scope.DefaultAccount)
			out = append(out, runner{Account{Namespace: namespace, Name: name}, entries(at(parent, "metadata", "labels")), d})
		}
	}

	return out
}

// accountsNamed are the accounts that pods have, wherever a kind keeps what its pods are made from.
func accountsNamed(d *Document) map[string]bool {
	out := map[string]bool{}

	for n := range nodes(d.body) {
		for key, value := range pairs(n) {
			name := followed(key).Value
			if of := followed(value); of.Kind == yaml.ScalarNode && (name == "serviceAccountName" || name == "serviceAccount") {
				out[of.Value] = true
			}
		}
	}

	return out
}

// beyondRuns are the accounts that something of a new version runs as, and nothing of the old one did, and that are not its own:
// they hold what others gave them.
func beyondRuns(old, young *version, o *Options) (out []More) {
	for a, d := range young.runs {
		if old.runs[a] != nil || young.isItsOwn(a, old, o) {
			continue
		}

		m := newMore(d)
		m.Whose, m.Says = d.String(), []string{"what service account " + a.Namespace + "/" + a.Name + " holds, which it names"}
		out = append(out, m)
	}

	slices.SortFunc(out, func(a, b More) int { return cmp.Or(cmp.Compare(a.Whose, b.Whose), slices.Compare(a.Says, b.Says)) })

	return out
}

// isItsOwn says whether an account is one that a version brings, or the one that pods have which name none, where the version is
// at home. To bring one that is there makes it nobody's own: it keeps what it holds. Nobody brings those of system namespaces.
func (v *version) isItsOwn(a Account, old *version, o *Options) bool {
	atHome := v.namespace == a.Namespace || old.home[a.Namespace]

	switch {
	case isSystem(a.Namespace):
		return false
	case old.brings(a):
		return true
	case a.Name == scope.DefaultAccount:
		return atHome
	case !v.brings(a):
		return false
	}

	if o.AccountThere != nil {
		if there, known := o.AccountThere(a); known {
			return !there
		}
	}

	return atHome
}

// brings says whether a version makes an account, or has OLM make it.
func (v *version) brings(a Account) bool {
	return v.accounts[a] || v.made[a]
}
