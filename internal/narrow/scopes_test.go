package narrow

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// operatorIn is an operator whose Deployment has a name in a namespace.
func operatorIn(namespace, name string) string {
	return strings.NewReplacer("{name: op, namespace: ops}", "{name: "+name+", namespace: "+namespace+"}", "namespace: ops",
		"namespace: "+namespace).Replace(
		anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}))
}

// inTheCluster are the cluster-scoped objects of a manifest that narrowing makes, and of which each namespace needs its own.
func inTheCluster(t *testing.T, text string) []string {
	t.Helper()

	var out []string

	stream(t, text).each(func(d *Document) {
		if strings.HasPrefix(d.Kind, "ValidatingAdmissionPolicy") || d.Kind == "ScopeTemplate" || d.Kind == "ScopeInstance" {
			out = append(out, d.String())
		}
	})

	return out
}

// TestNamesOfTheClusterDiffer holds that operators of different namespaces share no cluster-scoped object, whatever their names:
// whoever applied the second would take the first one's fence or rights away.
func TestNamesOfTheClusterDiffer(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("a", 63)

	for name, tc := range map[string]struct{ one, oneName, other, otherName string }{
		"one named as the other's namespace":  {"grafana", "grafana-operator", "grafana-operator", "grafana-operator"},
		"named as their namespaces":           {"a", "a-b", "a-b", "b"},
		"what one ends with the other begins": {"a", "b-c", "a-b", "c"},
		"long ones":                           {long, long, long[1:], "a" + long[1:]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, o := range []Options{{As: AsScope, Fence: &Fence{}}, {As: AsTemplate}} {
				one, _ := narrowed(t, o, operatorIn(tc.one, tc.oneName))
				other, _ := narrowed(t, o, operatorIn(tc.other, tc.otherName))
				found := inTheCluster(t, other)

				if len(found) != 2 {
					t.Errorf("made is %q", found)
				}

				for _, of := range inTheCluster(t, one) {
					if slices.Contains(found, of) {
						t.Errorf("%s is for both", of)
					}
				}
			}
		})
	}
}

// TestNamesOfTheClusterStay holds that what was narrowed when names were put together in another way keeps them, and that no
// operator takes those of another.
func TestNamesOfTheClusterStay(t *testing.T) {
	t.Parallel()

	before := strings.NewReplacer("name: ambit-fence-grafana.grafana-operator\n", "name: ambit-fence-grafana-operator\n",
		"policyName: ambit-fence-grafana.grafana-operator\n", "policyName: ambit-fence-grafana-operator\n",
		"name: grafana.grafana-operator\n", "name: grafana-operator\n",
		"scopeTemplateName: grafana.grafana-operator\n", "scopeTemplateName: grafana-operator\n")

	for _, o := range []Options{{As: AsScope, Fence: &Fence{}}, {As: AsTemplate}} {
		out, _ := narrowed(t, o, operatorIn("grafana", "grafana-operator"))
		out = before.Replace(out)

		if again, report := narrowed(t, o, out); again != out {
			t.Errorf("%q\n%s\nbecame\n%s", report.Warnings, out, again)
		}

		other := strings.ReplaceAll(operatorIn("grafana-operator", "grafana-operator"), "{name: op}", "{name: op2}")
		both, _ := narrowed(t, o, out, other)
		if found := inTheCluster(t, both); len(slices.Compact(slices.Sorted(slices.Values(found)))) != 4 {
			t.Errorf("made is %q", found)
		}
	}
}
