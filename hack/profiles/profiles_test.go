package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// files are what the chart installs, which is what kustomize builds of the profiles.
const files = "../../charts/ambit/files"

func tableOf(t *testing.T, profile string) rights {
	t.Helper()

	objects, err := profileObjects(files, profile)
	if err != nil {
		t.Fatal(err)
	}

	table := rights{}
	if err := table.add(profile, objects); err != nil {
		t.Fatal(err)
	}

	if len(table) == 0 {
		t.Fatalf("the profile %s gives Ambit nothing, which cannot be", profile)
	}

	return table
}

// itself is the one account of its own namespace that Ambit may act as in the profile namespaced. With several operator
// namespaces, a copy of the Role lets it be the account of that name in each of them.
const itself = "serviceaccounts/ambit"

func TestNamespacedHoldsNothingElsewhere(t *testing.T) {
	t.Parallel()

	for of, verbs := range tableOf(t, "namespaced") {
		if all := verbs[where{"namespaced", true}]; len(all) > 0 {
			t.Errorf("in the whole cluster Ambit may %v %v; what the profile promises is nothing", all, of)
		}

		if own := verbs[where{"namespaced", false}]; slices.Contains(own, "impersonate") && of.name != itself {
			t.Errorf("Ambit may %v %v; whoever may write a scope could act as any account of the namespace", own, of)
		}
	}
}

func TestDelegatedWritesNothingForScopes(t *testing.T) {
	t.Parallel()

	reads := []string{"get", "list", "watch"}
	// Status, finalizers and events are Ambit's own, and the index that the guard reads; so are the list of provided APIs, which
	// OLM keeps in an annotation of the group and not in its status, and the InstallPlan that says what a Subscription would
	// have installed: making it installs nothing. Everything else is written as a delegate.
	own := []string{
		"namespacescopes", "namespacescopes/status", "namespacescopes/finalizers", "scopetemplates/status",
		"scopeinstances/status", "events", "clusterroles/ambit-operator-groups",
		"operatorgroups/status", "clusterserviceversions/status", "catalogsources/status", "subscriptions/status",
		"installplans/status",
	}
	exactly := map[string]string{
		"operatorgroups": "patch", "installplans": "create", "scopes": "serve",
		// Questions, which leave nothing behind.
		"tokenreviews": "create", "subjectaccessreviews": "create",
	}

	for of, verbs := range tableOf(t, "delegated") {
		itself, _ := apart(verbs[where{"delegated", true}])
		for _, verb := range itself {
			if !slices.Contains(reads, verb) && !slices.Contains(own, of.name) && exactly[of.name] != verb &&
				verb != impersonates.verb {
				t.Errorf("in the whole cluster Ambit may %s %v; only a delegate should", verb, of)
			}
		}
	}
}

// impersonates is the right to act as a service account, to do what the rights on behalf of accounts name.
var impersonates = struct {
	resource

	verb string
}{resource{"authentication.k8s.io", "serviceaccounts"}, "impersonate:serviceaccount"}

// Whoever has the token of a delegated Ambit has in another account's name what Ambit writes, and nothing that can be read or
// run.
func TestDelegatedActsAsOthersOnlyToWrite(t *testing.T) {
	t.Parallel()

	table := tableOf(t, "delegated")

	if verbs := table[impersonates.resource][where{"delegated", true}]; !slices.Equal(verbs, []string{impersonates.verb}) {
		t.Errorf("Ambit may %q accounts; want %q and no more", verbs, impersonates.verb)
	}

	if slices.Contains(table[resource{"", "serviceaccounts"}][where{"delegated", true}], "impersonate") {
		t.Error("Ambit may do whatever an account may")
	}

	never := []string{"secrets", "pods", "serviceaccounts/token", "pods/exec", "nodes/proxy"}
	closed := 0

	for of, verbs := range table {
		_, asOthers := apart(verbs[where{"delegated", true}])
		closed += len(asOthers)

		if len(asOthers) > 0 && slices.Contains(never, of.name) {
			t.Errorf("Ambit may %v %v as any account", asOthers, of)
		}

		for _, verb := range asOthers {
			if slices.Contains([]string{"list", "watch", "*", "deletecollection", "update", "escalate", "bind"}, verb) {
				t.Errorf("Ambit may %s %v as any account, and never does", verb, of)
			}
		}
	}

	if closed == 0 {
		t.Error("Ambit may do nothing as a delegate")
	}
}

func TestNoProfileHoldsMoreThanCluster(t *testing.T) {
	t.Parallel()

	most := tableOf(t, "cluster")

	for _, profile := range []string{"delegated", "namespaced"} {
		for of, verbs := range tableOf(t, profile) {
			everywhere, own := verbs[where{profile, true}], verbs[where{profile, false}]

			for _, verb := range slices.Concat(everywhere, own) {
				// The default scope, which only the namespaced profile makes by itself.
				if verb == "create" && of.name == "namespacescopes" && profile == "namespaced" {
					continue
				}

				// Who may act as all accounts, to do anything, may act as this one, and may do what is listed.
				if of.name == itself || of == impersonates.resource || strings.HasPrefix(verb, onBehalf) {
					continue
				}

				may := most[of][where{"cluster", true}]
				if !slices.Contains(everywhere, verb) {
					may = slices.Concat(may, most[of][where{"cluster", false}])
				}

				if !slices.Contains(may, verb) {
					t.Errorf("the profile %s may %s %v, and the profile cluster may not", profile, verb, of)
				}
			}
		}
	}
}

func TestRightsShowEveryRule(t *testing.T) {
	t.Parallel()

	const binding = `
kind: RoleBinding
metadata: {name: ambit, namespace: ops}
roleRef: {kind: Role, name: ambit}
subjects: [{kind: ServiceAccount, name: ambit, namespace: ops}]
---
kind: Role
`

	for name, tc := range map[string]struct{ reason, role, want string }{
		"URL": {
			reason: "a rule without resources would be left out of the table",
			role: `metadata: {name: ambit, namespace: ops}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]`,
			want: "cannot show",
		},
		"Elsewhere": {
			reason: "a role of another namespace is another role",
			role:   `metadata: {name: ambit, namespace: other}`,
			want:   "not there",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			objects, err := readObjects(file(t, binding+tc.role))
			if err != nil {
				t.Fatal(err)
			}

			if err := (rights{}).add("cluster", objects); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant an error with %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestRightsShowNames(t *testing.T) {
	t.Parallel()

	objects, err := readObjects(file(t, `
kind: RoleBinding
metadata: {name: ambit, namespace: ops}
roleRef: {kind: Role, name: ambit}
subjects: [{kind: ServiceAccount, name: ambit, namespace: ops}]
---
kind: Role
metadata: {name: ambit, namespace: ops}
rules: [{apiGroups: [""], resources: [secrets], resourceNames: [one], verbs: [get]}]`))
	if err != nil {
		t.Fatal(err)
	}

	table := rights{}
	if err := table.add("cluster", objects); err != nil {
		t.Fatal(err)
	}

	if _, all := table[resource{"", "secrets"}]; all || table[resource{"", "secrets/one"}] == nil {
		t.Errorf("a right to one object is not a right to all of them: %v", table)
	}
}

func TestSame(t *testing.T) {
	t.Parallel()

	const (
		one       = "kind: Role\nmetadata: {name: one, namespace: ops}\nrules: []\n"
		two       = "kind: Role\nmetadata:\n  name: two\n  namespace: ops\n"
		namespace = "kind: Namespace\nmetadata: {name: ops}\n"
	)

	for name, tc := range map[string]struct{ reason, want, got, says string }{
		"Order":     {reason: "a set has no order", want: one + "---\n" + two, got: two + "---\n" + one},
		"Namespace": {reason: "Helm makes the namespace", want: namespace + "---\n" + one, got: one},
		"Comments":  {reason: "comments are not content", want: one, got: "# Source: x\n---\n# Source: y\n" + one},
		"Missing":   {reason: "an object short", want: one + "---\n" + two, got: one, says: "Role ops/two is missing"},
		"Extra":     {reason: "an object more", want: one, got: one + "---\n" + two, says: "Role ops/two is there"},
		"Twice":     {reason: "one of two would hide the other", want: one, got: one + "---\n" + one, says: "twice"},
		"Content": {
			reason: "the same object with other content", want: one, got: strings.Replace(one, "[]", "[{}]", 1),
			says: `Role ops/one differs: line 5: want "rules: []", got "rules:"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			err := compare(file(t, tc.want), file(t, tc.got))

			switch {
			case tc.says == "" && err != nil:
				t.Errorf("%s: want the same, got: %v", tc.reason, err)
			case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("%s: want an error with %q, got: %v", tc.reason, tc.says, err)
			}
		})
	}
}

func file(t *testing.T, text string) string {
	t.Helper()

	path := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}
