package narrow

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// TestGrantsAreComparedOneByOne holds that what is made ready once for many grants says the same as to look at all that a subject
// held, in each place, for each grant.
func TestGrantsAreComparedOneByOne(t *testing.T) {
	t.Parallel()

	some := func(values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 1, 2, rapid.ID)
	}
	rule := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: some("pods", "secrets", "*").Draw(t, "resources"),
			Verbs: some("get", "list", "*").Draw(t, "verbs"),
		}
	})
	places := rapid.OneOf(rapid.Just([]place{{}}), rapid.SliceOfNDistinct(
		rapid.SampledFrom([]place{in("a"), in("b"), in("c"), {text: "somewhere"}}), 1, 4, rapid.ID))

	rapid.Check(t, func(t *rapid.T) {
		// Several grants share a list of rules, as those of bindings to one role do.
		lists := rapid.SliceOfN(rapid.SliceOfN(rule, 0, 3), 1, 4).Draw(t, "lists")
		grants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) grant {
			return grant{
				subject: rbacv1.Subject{Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "subject")}, doc: &Document{},
				places:  places.Draw(t, "places"),
				rules:   rapid.SampledFrom(lists).Draw(t, "rules"),
				unknown: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"p", "q"}), 0, 2, rapid.ID).Draw(t, "unknown"),
			}
		}), 0, 8)
		had, has := grants.Draw(t, "had"), grants.Draw(t, "has")

		got, err := beyondGrants(had, has)
		if err != nil {
			t.Fatal(err)
		}

		// By grant and place.
		said := func(all []More) (out []string) {
			for _, m := range all {
				where := strings.TrimPrefix(strings.Join(append(m.Places, m.Namespace), ", "), "in the namespaces ")
				for name := range strings.SplitSeq(where, ", ") {
					if name != "" || m.Namespace == "" && len(m.Places) == 0 {
						out = append(out, fmt.Sprint(m.Account, m.New, m.Unknown, m.Rules, m.Rights, name))
					}
				}
			}

			slices.Sort(out)

			return out
		}

		var want []More

		for i := range has {
			for _, p := range has[i].places {
				want = append(want, oneByOne(had, &has[i], p)...)
			}
		}

		if got, want := said(got), said(want); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

func oneByOne(had []grant, g *grant, p place) []More {
	var held []rbacv1.PolicyRule

	m, unknown := newMore(g.doc), slices.Clone(g.unknown)
	m.New = true

	for _, of := range had {
		if of.subject != g.subject {
			continue
		}

		m.New = false

		if slices.Contains(of.places, place{}) || slices.Contains(of.places, p) {
			held = append(held, of.rules...)
			unknown = slices.DeleteFunc(unknown, func(from string) bool { return slices.Contains(of.unknown, from) })
		}
	}

	m.in([]place{p})
	m.of(&g.subject)
	m.Unknown = len(unknown) > 0

	if more := authority.Missing(held, g.rules); more != nil {
		m.Rules, m.Rights = more, reach.Rights(more)
	}

	if !m.Unknown && len(m.Rules) == 0 {
		return nil
	}

	return []More{m}
}

// versions are manifests of which a check once took more than their share of work, with n objects of a kind.
func versions() map[string]func(n int) string {
	const account = "{kind: ServiceAccount, name: op, namespace: ops}"

	each := func(text func(i int) string) func(n int) string {
		return func(n int) string {
			var b strings.Builder
			for i := range n {
				b.WriteString(text(i))
			}

			return b.String()
		}
	}

	return map[string]func(n int) string{
		"ClusterRoles that are bound to one account": each(func(i int) string {
			return toWhom(fmt.Sprintf("role-%d", i), fmt.Sprintf("things%d", i), account)
		}),
		"one ClusterRole with many parts, bound many times": func(n int) string {
			return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\nrules: []\n" +
				"aggregationRule: {clusterRoleSelectors: [{matchLabels: {of: all}}]}\n" + each(func(i int) string {
				return strings.NewReplacer("I", strconv.Itoa(i)).Replace("---\napiVersion: rbac.authorization.k8s.io/v1\n" +
					"kind: ClusterRole\nmetadata: {name: partI, labels: {of: all}}\n" +
					"rules: [{apiGroups: [''], resources: [tI], verbs: [get]}]\n" +
					"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: bI}\n" +
					"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}\nsubjects: [" + account + "]\n")
			})(n)
		},
		"fences with their lists": each(func(i int) string {
			return strings.NewReplacer("NAME", fmt.Sprintf("f%d", i)).Replace(fenced + "---\napiVersion: v1\nkind: ConfigMap\n" +
				"metadata: {name: NAME, namespace: ops}\ndata: {namespaces: a}\n")
		}),
		"labels by which namespaces are selected": each(func(i int) string {
			return strings.NewReplacer("I", strconv.Itoa(i)).Replace("---\napiVersion: v1\nkind: Namespace\n" +
				"metadata: {name: nI, labels: {kI: b}}\n---\napiVersion: example.com/v1\n" +
				"kind: Thing\nmetadata: {name: tI}\nspec: {namespaceSelector: {matchLabels: {kI: b}}}\n")
		}),
	}
}

const fenced = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec: {paramKind: {apiVersion: v1, kind: ConfigMap}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, paramRef: {name: NAME, namespace: ops}}
`

// TestWorkOfACheckGrowsWithTheInput holds that four times as many objects take about four times the memory. Times depend on the
// machine.
//
//nolint:paralleltest // What other tests allocate would count, too.
func TestWorkOfACheckGrowsWithTheInput(t *testing.T) {
	const few, times = 100, 4

	for what, of := range versions() {
		work := func(n int) uint64 {
			var before, after runtime.MemStats

			old, young := stream(t, of(n)), stream(t, of(n))

			runtime.ReadMemStats(&before)

			if more, _, err := Check(old, young, &Options{Kinds: reach.NewKinds()}); err != nil || len(more) > 0 {
				t.Error(more, err)
			}

			runtime.ReadMemStats(&after)

			return after.TotalAlloc - before.TotalAlloc
		}

		if small, large := work(few), work(few*times); large > small*(times+2) {
			t.Errorf("%s: %d take %d bytes, and %d take %d", what, few, small, few*times, large)
		}
	}
}

// BenchmarkCheck compares a large version with itself: the time for each object should not grow with their number.
func BenchmarkCheck(b *testing.B) {
	for what, of := range versions() {
		for _, n := range []int{100, 1_000} {
			b.Run(fmt.Sprintf("%s/%d", what, n), func(b *testing.B) {
				text := of(n)

				for b.Loop() {
					var old, young Stream
					if err := errors.Join(old.Read("old", strings.NewReader(text)), young.Read("young", strings.NewReader(text))); err != nil {
						b.Fatal(err)
					}

					if _, _, err := Check(&old, &young, &Options{Kinds: reach.NewKinds()}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
