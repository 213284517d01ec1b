package narrow

import (
	"maps"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
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

	for d := range stream(t, text).objects() {
		if strings.HasPrefix(d.Kind, "ValidatingAdmissionPolicy") || d.Kind == "ScopeTemplate" || d.Kind == "ScopeInstance" {
			out = append(out, d.String())
		}
	}

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

// deployed is a Deployment of the operator's account, whose containers have a variable each; "" is for none.
func deployed(name string, variables ...string) string {
	var b strings.Builder

	b.WriteString("---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + ", namespace: ops}\n" +
		"spec:\n  selector: {matchLabels: {app: " + name + "}}\n  template:\n    metadata: {labels: {app: " + name + "}}\n" +
		"    spec:\n      serviceAccountName: op\n      containers:\n")

	for i, variable := range variables {
		b.WriteString("      - name: c" + string(rune('0'+i)) + "\n        image: example.com/of/" + name + ":1\n")

		if variable != "" {
			b.WriteString("        env: [{name: " + variable + ", value: all}]\n")
		}
	}

	return b.String()
}

// TestEveryInjectorFindsItsWorkloads holds that each scope that injects a variable has a workload that bears its labels and reads
// that variable, and that what no scope injects stays as it was: what was emptied and is never injected makes an operator watch
// everything. A workload takes part in one scope, so a second variable of it is warned of.
func TestEveryInjectorFindsItsWorkloads(t *testing.T) {
	t.Parallel()

	const one, other = "WATCH_NAMESPACE", "TARGET_NAMESPACES"

	for name, tc := range map[string]struct {
		workloads []string
		scopes    int
		// left are the variables that stay as they were.
		left   int
		warned bool
		// labels are those of the workloads, by the variable that the scope injects.
		labels map[string]string
	}{
		"one workload": {workloads: []string{deployed("a", one)}, scopes: 1, labels: map[string]string{"a": one}},
		"workloads with the same variable": {
			workloads: []string{deployed("a", one), deployed("b", one)}, scopes: 1, labels: map[string]string{"a": one, "b": one},
		},
		"workloads with different variables": {
			workloads: []string{deployed("a", one), deployed("b", other)}, scopes: 2, labels: map[string]string{"a": one, "b": other},
		},
		"and the other way round": {
			workloads: []string{deployed("a", other), deployed("b", one)}, scopes: 2, labels: map[string]string{"a": other, "b": one},
		},
		"and one that reads none": {
			workloads: []string{deployed("a", one), deployed("b", other), deployed("c", "")}, scopes: 2,
			labels: map[string]string{"a": one, "b": other, "c": other}, warned: true,
		},
		"one workload with different variables": {
			workloads: []string{deployed("a", one, other)}, scopes: 1, left: 1, warned: true, labels: map[string]string{"a": one},
		},
		"one workload with different variables, and another": {
			workloads: []string{deployed("a", one, other), deployed("b", other)}, scopes: 2, left: 1, warned: true,
			labels: map[string]string{"a": one, "b": other},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			operator, _, _ := strings.Cut(anOperator([]rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
			}), "# The operator itself")
			o := Options{Members: []string{"m"}}
			out, report := narrowed(t, o, operator, strings.Join(tc.workloads, ""))

			if again, _ := narrowed(t, o, out); again != out {
				t.Errorf("twice is not once:\n%s\nbecame\n%s", out, again)
			}

			in, err := gather(stream(t, out), "ops", nil)
			if err != nil {
				t.Fatal(err)
			}

			variables := map[string]string{} // By the value of the label.
			workloads := slices.Concat(slices.Collect(maps.Values(in.workloads))...)

			for d := range stream(t, out).objects() {
				var s operatorv1.NamespaceScope
				if d.Kind != kindScope {
					continue
				}

				if err := d.into(&s); err != nil {
					t.Fatal(err)
				}

				variables[string(s.Spec.RestartLabels[LabelScope])] = *s.Spec.WorkloadInjector.Variable

				if !slices.ContainsFunc(workloads, func(w *workload) bool { return w.hasEmpty(&s) }) {
					t.Errorf("scope %s finds no workload:\n%s", s.Name, out)
				}
			}

			for _, w := range workloads {
				if got := variables[text(w.template, "metadata", "labels", LabelScope)]; got != tc.labels[w.name] {
					t.Errorf("%s is of the scope that injects %q, want %q", w, got, tc.labels[w.name])
				}
			}

			if len(variables) != tc.scopes || strings.Count(out, "value: all") != tc.left || len(report.Warnings) > 0 != tc.warned {
				t.Errorf("%d scopes, %q\n%s", len(variables), report.Warnings, out)
			}
		})
	}
}

// hasEmpty says whether a scope's injector finds a workload, and in it an empty variable of a container that it injects into.
func (w *workload) hasEmpty(s *operatorv1.NamespaceScope) bool {
	for key, value := range s.Spec.RestartLabels {
		if text(w.template, "metadata", "labels", key) != string(value) {
			return false
		}
	}

	for i := range w.spec.Containers {
		c := &w.spec.Containers[i]
		for j := range c.Env {
			if slices.Contains(s.Spec.WorkloadInjector.Containers, c.Name) && c.Env[j].Name == *s.Spec.WorkloadInjector.Variable &&
				c.Env[j].Value == "" {
				return true
			}
		}
	}

	return false
}
