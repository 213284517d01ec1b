package narrow

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/reachtest"
)

// manifests are installs of real operators, where there are some.
const manifests = "../../../shared/manifests"

// tester is a test, of Go or of rapid.
type tester interface {
	Helper()
	Fatal(args ...any)
}

func stream(t tester, texts ...string) *Stream {
	t.Helper()

	s := &Stream{}
	for i, text := range texts {
		if err := s.Read(fmt.Sprintf("file %d", i), strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}

	return s
}

func narrowed(t tester, o Options, texts ...string) (string, *Report) {
	t.Helper()

	if o.As == "" {
		o.As = AsScope
	}

	if o.Kinds == nil {
		o.Kinds = reach.NewKinds()
	}

	s := stream(t, texts...)

	report, err := Narrow(s, &o)
	if err != nil {
		t.Fatal(err)
	}

	out, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}

	return string(out), report
}

// held is what RBAC gives an account in a namespace, or with "" in the cluster, once Ambit has copied what its scopes say.
func held(t tester, text string, a Account, namespace string, members []string) []rbacv1.PolicyRule {
	t.Helper()

	in, err := gather(stream(t, text), "default", reach.NewKinds())
	if err != nil {
		t.Fatal(err)
	}

	if !strings.Contains(text, kindScope) {
		members = nil // Nothing is copied without a scope.
	}

	var rules []rbacv1.PolicyRule

	for _, b := range in.everywhere {
		if a.IsMeant(&b.subjects[0], "") {
			of, _ := in.rulesOf(b.roleRef.Name, &Options{})
			rules = append(rules, of...)
		}
	}

	for _, b := range in.bindings {
		here := b.Namespace == namespace ||
			b.Namespace == a.Namespace && slices.Contains(members, namespace) &&
				b.Annotations[scope.AnnotationProject] != scope.ProjectDisabled

		for i := range b.subjects {
			if !here || !a.IsMeant(&b.subjects[i], b.Namespace) {
				continue
			}

			if b.roleRef.Kind == kindClusterRole {
				of, _ := in.rulesOf(b.roleRef.Name, &Options{})
				rules = append(rules, of...)
			} else {
				rules = append(rules, in.roles[b.Namespace+"/"+b.roleRef.Name].Rules...)
			}
		}
	}

	return rules
}

// anOperator is the manifest of one with the given rules.
func anOperator(rules []rbacv1.PolicyRule) string {
	text, _ := yaml.Marshal(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "op"}, "rules": rules,
	})

	return string(text) + `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}
subjects: [{kind: ServiceAccount, name: op, namespace: ops}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader, namespace: ops}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: ops}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
subjects: [{kind: ServiceAccount, name: op}]
---
# The operator itself
apiVersion: apps/v1
kind: Deployment
metadata: {name: op, namespace: ops}
spec:
  selector: {matchLabels: {app: op}}
  template:
    metadata: {labels: {app: op}}
    spec:
      serviceAccountName: op
      containers:
      - name: manager
        image: example.com/op:1
        env: [{name: WATCH_NAMESPACE, value: "*"}] # all of them
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, scope: Namespaced, names: {plural: widgets}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterwidgets.example.com}
spec: {group: example.com, scope: Cluster, names: {plural: clusterwidgets}}
`
}

func TestAnOperatorGainsNothingAndLosesNothingInItsMembers(t *testing.T) {
	t.Parallel()

	op, members, all := Account{Namespace: "ops", Name: "op"}, []string{"a"}, reachtest.Requests()

	rapid.Check(t, func(t *rapid.T) {
		in := anOperator(rapid.SliceOfN(rapid.Custom(reachtest.RandomRule), 1, 4).Draw(t, "rules"))
		out, _ := narrowed(t, Options{Members: members}, in)

		if again, of := narrowed(t, Options{Members: members}, out); again != out || len(kept(of)) > 0 {
			t.Fatalf("twice is not once:\n%s\n--- became\n%s\n%q", out, again, kept(of))
		}

		for _, namespace := range []string{"", "a", "elsewhere", "ops"} {
			before, after := held(t, in, op, namespace, nil), held(t, out, op, namespace, members)

			if !rights.Covers(before, after) {
				t.Fatalf("in %q it holds %v, more than %v", namespace, after, before)
			}

			for _, q := range all {
				member := namespace == "a" || namespace == "ops"
				if was := reachtest.Allows(before, q); was && (q.Namespaced && member || !q.Namespaced) && !reachtest.Allows(after, q) {
					t.Fatalf("in %q it lost %+v:\n%s\nbecame\n%s", namespace, q, in, out)
				}
			}
		}
	})
}

// TestNarrowedBeforeWithOtherOptions: what was narrowed before is kept, so somebody who gives other options is told that they say
// nothing.
func TestNarrowedBeforeWithOtherOptions(t *testing.T) {
	t.Parallel()

	fence := func(allow ...string) *Fence {
		f, err := NewFence(allow)
		if err != nil {
			t.Fatal(err)
		}

		return f
	}

	// What is kept is narrowed again the next time.
	keep, err := reach.ParseKeep("get secrets")
	if err != nil {
		t.Fatal(err)
	}

	in := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list"}}})
	out, _ := narrowed(t, Options{Members: []string{"a"}, Keep: keep, Fence: fence()}, in)

	for name, tc := range map[string]struct {
		now  Options
		want string
	}{
		"the same":      {Options{Members: []string{"a"}, Fence: fence()}, ""},
		"other members": {Options{Members: []string{"a", "b"}, Fence: fence()}, "NamespaceScope ops/"},
		"another fence": {Options{Members: []string{"a"}, Fence: fence(FenceEvents)}, "ValidatingAdmissionPolicy ambit-fence-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tc.now.Keep = keep

			again, report := narrowed(t, tc.now, out)
			told := strings.Join(kept(report), "\n")

			if again != out || !strings.Contains(told, tc.want) || (told == "") != (tc.want == "") {
				t.Errorf("told was %q\n%s", told, again)
			}
		})
	}
}

// kept are the warnings about what was narrowed before.
func kept(report *Report) []string {
	return slices.DeleteFunc(slices.Clone(report.Warnings), func(w string) bool {
		return !strings.Contains(w, "in the input already")
	})
}

func TestWhatIsNotTouchedStaysAsItWas(t *testing.T) {
	t.Parallel()

	const strange = "# A comment of its own\nkind:   ConfigMap   # odd\napiVersion: v1\nmetadata: { name: 'x' }\n" +
		"data: {a: \"\\u0007\", b: 1e3}\n"

	op := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "nodes"}, Verbs: []string{"get"}}})
	in := strange + "---\n" + op + "--- # last\r\n" + strange

	out, report := narrowed(t, Options{Members: []string{"b", "a"}}, in)
	if !strings.HasPrefix(out, strange) || !strings.Contains(out, "--- # last\r\n"+strange) ||
		strings.Count(out, "The operator itself") != 1 || !strings.Contains(out, "# all of them") {
		t.Errorf("something was lost:\n%s", out)
	}

	if !report.Changed || !slices.Equal(report.LeftOut, []string{"clusterrolebinding op"}) {
		t.Errorf("the report is %+v", report)
	}

	nothing, report := narrowed(t, Options{}, strange)
	if nothing != strange || report.Changed {
		t.Errorf("%q became %q", strange, nothing)
	}
}

func TestFilesAreDocumentsOfTheirOwn(t *testing.T) {
	t.Parallel()

	const first, second = "kind: ConfigMap\napiVersion: v1", "# Of the second.\nkind: Secret\napiVersion: v1\n"

	for text, want := range map[string]string{
		second:                 first + "\n---\n" + second,
		"---\n" + second:       first + "\n---\n" + second,
		"--- {kind: Secret}\n": first + "\n--- {kind: Secret}\n",
	} {
		s := &Stream{}
		for _, text := range []string{first, text} {
			if err := s.Read("file", strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}

		out, err := s.Bytes()
		if err != nil || string(out) != want {
			t.Errorf("the files became %q (%v), want %q", out, err, want)
		}
	}
}

func TestListsAndFunctions(t *testing.T) {
	t.Parallel()

	in := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "nodes"}, Verbs: []string{"get"}}})

	var items []map[string]any

	for text := range strings.SplitSeq(in, "---\n") {
		item := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &item); err != nil {
			t.Fatal(err)
		}

		items = append(items, item)
	}

	plain, _ := narrowed(t, Options{}, in)

	for _, kind := range []map[string]any{
		{"apiVersion": "v1", "kind": "List"}, {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList"},
	} {
		kind["items"] = items
		text, _ := yaml.Marshal(kind)
		out, _ := narrowed(t, Options{}, string(text))

		// The same objects come out, whatever holds them.
		of := func(text string) []string {
			var found []string

			for d := range stream(t, text).objects() {
				found = append(found, d.String())
			}

			slices.Sort(found)

			return found
		}
		if got, want := of(out), of(plain); !slices.Equal(got, want) {
			t.Errorf("%v: %v instead of %v", kind["kind"], got, want)
		}

		if kind["kind"] == "ResourceList" && len(stream(t, out).docs) != 1 {
			t.Error("a function wrote more than its list")
		}
	}
}

func TestHostileInput(t *testing.T) {
	t.Parallel()

	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n"

	for reason, text := range map[string]string{
		"garbage":            "\x00\x01{{{",
		"a tab":              "a:\n\t- b",
		"a key twice":        role + "rules: []\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]",
		"a kind twice":       "kind: ClusterRole\nkind: ClusterRole",
		"rules of no list":   role + "rules: {a: b}",
		"verbs that are map": role + "rules: [{verbs: {a: b}}]",
		"a merge":            role + "x: &x {a: b}\ny: {<<: *x}",
		"a bomb": role + "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]",
		"an endless alias": role + "a: &a [*a]",
		"a deep one":       role + "a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
		"two documents":    role + "...\n" + role,
		"a role twice":     role + "---\n" + role,
		"a Role twice": strings.Replace(role, "ClusterRole", "Role", 1) + "---\n" +
			strings.Replace(role, "ClusterRole\nmetadata: {", "Role\nmetadata: {namespace: default, ", 1),
		"too many rights": role + "rules: [{apiGroups: [" + strings.Repeat("a,", 1000) + "], resources: [" +
			strings.Repeat("a,", 1000) + "], verbs: [a]}]",
		"a key twice, of what it is": "kind: ConfigMap\n" + role + "rules: []",
		"a merge of what it is":      "metadata: {name: x, annotations: &a {kind: ClusterRole}}\n<<: *a",
		"what it is, encoded":        strings.Replace(role, "ClusterRole", "!!binary Q2x1c3RlclJvbGU=", 1),
		"a key, encoded":             strings.Replace(role, "kind:", "!!binary a2luZA==:", 1),
		"a key that is an alias":     "metadata: {name: x, labels: {a: &k kind}}\n*k : ClusterRole",
		"rules, encoded":             role + "!!binary cnVsZXM=: []",
		"a verb, encoded":            role + "rules: [{verbs: [!!binary Kg==]}]",
		"a tag of its own":           role + "rules: [{verbs: [!verb get]}]",
		"a definition that says where twice": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
			"spec: {group: a.example.com, names: {plural: as}, scope: Cluster, scope: Namespaced}",
		"a role of no version":     "kind: Role\nmetadata: {name: x}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]",
		"a workload of none":       "kind: List\napiVersion: v1\nitems: [{kind: Deployment, metadata: {name: x}}]",
		"a function beside others": "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n---\n" + role,
		"text that holds more":     "null\n---x\n" + role,
		"a list of no kind":        "- " + strings.ReplaceAll(role, "\n", "\n  "),
		"a definition of nothing":  "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: []",
	} {
		s := &Stream{}

		err := s.Read("hostile", strings.NewReader(text))
		if err == nil {
			_, err = Narrow(s, &Options{As: AsScope, Kinds: reach.NewKinds()})
		}

		if err == nil {
			t.Errorf("%s was taken", reason)
		} else if !strings.Contains(err.Error(), "hostile") {
			t.Errorf("%s: the file is not named: %v", reason, err)
		}
	}
}

// TestNothingIsHiddenFromIt holds that what kubectl takes for a binding is one here, too, whatever the manifest does to look like
// something else, and that it is narrowed. What it looks like is the first line of each case.
func TestNothingIsHiddenFromIt(t *testing.T) {
	t.Parallel()

	const (
		head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\n"
		meta = "metadata: {name: op}\n"
	)

	plain := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}})
	before, rest, _ := strings.Cut(plain, head+meta)
	binding, after, _ := strings.Cut(rest, "---\n")

	for reason, hidden := range map[string]string{
		"something without a kind": "metadata: {name: op, labels: {a: &k ClusterRoleBinding}}\nkind: *k\n" +
			"apiVersion: rbac.authorization.k8s.io/v1\n" + binding,
		"something without a version": "metadata: {name: op, labels: {a: &v rbac.authorization.k8s.io/v1}}\napiVersion: *v\n" +
			"kind: ClusterRoleBinding\n" + binding,
		"something without a name": head + "subjects: &s [{kind: ServiceAccount, name: &n op, namespace: ops}]\n" +
			"metadata: {name: *n}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}\n",
		"a ConfigMap": "apiVersion: v1\nkind: ConfigMap\nitems:\n- " +
			strings.ReplaceAll(strings.TrimSpace(head+meta+binding), "\n", "\n  ") + "\n",
		"a ConfigMap without data": "apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {a: b}}\nx: &i\n- " +
			strings.ReplaceAll(strings.TrimSpace(head+meta+binding), "\n", "\n  ") + "\nitems: *i\n",
		"a binding of nothing":     head + meta + binding + "roleref: {kind: ClusterRole, name: nothing}\nsubJects: []\n",
		"text, before odd space":   "null\n---\u00a0\n" + inJSON(t, head+meta+binding) + "\n",
		"text, before a comment":   "~\n---# A comment.\n" + inJSON(t, head+meta+binding) + "\n",
		"text, before a new line":  "null\n---\u2028\n" + inJSON(t, head+meta+binding) + "\n",
		"text, before a form feed": "null\n---\f\n" + head + meta + binding,
	} {
		out, report := narrowed(t, Options{Members: []string{"shop"}}, before+hidden+"---\n"+after)

		if held := held(t, out, Account{Namespace: "ops", Name: "op"}, "elsewhere", nil); held != nil {
			t.Errorf("%s: it still holds %v:\n%s", reason, held, out)
		}

		if !slices.Contains(report.LeftOut, "clusterrolebinding op") || strings.Contains(out, "kind: ClusterRoleBinding") {
			t.Errorf("%s: left out is %q:\n%s", reason, report.LeftOut, out)
		}
	}
}

func inJSON(t *testing.T, text string) string {
	t.Helper()

	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	return string(out)
}

// TestADateIsAName holds that a name that looks like a date is that name, whether its manifest quotes it or not.
func TestADateIsAName(t *testing.T) {
	t.Parallel()

	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 2001-01-01}\n" +
		"rules: [{apiGroups: [''], resources: [secrets], resourceNames: [2002-02-02], verbs: [get]}]\n"

	more, notes, err := Check(stream(t, "kind: ConfigMap"), stream(t, role+bound("", "'2001-01-01'")), &Options{})
	if err != nil || len(notes) > 0 || len(more) != 1 || more[0].Unknown {
		t.Errorf("it asks for %+v, %q (%v)", more, notes, err)
	}

	out, _ := narrowed(t, Options{}, role+bound("", "2001-01-01"))
	if !strings.Contains(out, `- "2002-02-02"`) || strings.Contains(out, "T00:00:00Z") {
		t.Errorf("the names became others:\n%s", out)
	}
}

// TestWhatIsNotNarrowedIsNamed holds that a warning names what may give rights by another way than bindings of RBAC, instead of a
// note that nothing was to be narrowed. What the command itself writes is none of that.
func TestWhatIsNotNarrowedIsNamed(t *testing.T) {
	t.Parallel()

	const instance = "apiVersion: operators.coreos.com/v1alpha1\nkind: ScopeInstance\n"

	for text, is := range map[string]bool{
		"apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n":                   true,
		"apiVersion: authorization.openshift.io/v1\nkind: ClusterRoleBinding\n":                      true,
		"apiVersion: example.com/v1\nkind: Grant\nspec: {rules: [{verbs: ['*']}]}\n":                 true,
		"apiVersion: example.com/v1\nkind: Grant\n":                                                  false,
		"apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\n":                                    false,
		"apiVersion: operators.coreos.com/v1alpha1\nkind: ScopeTemplate\nspec: {clusterRoles: []}\n": false,
		instance + "spec: {scopeTemplateName: x}\n":                                                  true,
		instance + "spec: {scopeTemplateName: x, namespaces: [a]}\n":                                 false,
		instance + "spec: {scopeTemplateName: x, namespaceSelector: {a: b}}\n":                       false,
	} {
		_, report := narrowed(t, Options{}, text+"metadata: {name: x}\n")

		named := slices.ContainsFunc(report.Warnings, func(w string) bool {
			return strings.HasSuffix(w, "stay as they are: "+stream(t,
				text+"metadata: {name: x}\n").docs[0].String())
		})
		nothing := slices.ContainsFunc(report.Notes, func(n string) bool { return strings.HasPrefix(n, "nothing was to be narrowed") })

		if named != is || nothing == is {
			t.Errorf("of\n%s\nwarnings are %q, notes %q", text, report.Warnings, report.Notes)
		}
	}
}

// TestNoDefinitionMovesAResource holds that a file cannot have it that something which is in namespaces is in none: a rule about
// it would stay as it is.
func TestNoDefinitionMovesAResource(t *testing.T) {
	t.Parallel()

	definition := "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: deployments.apps}\n" +
		"spec: {group: apps, names: {plural: deployments}, scope: %s}\n"
	in := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get"}}})

	_, err := Narrow(stream(t, in+fmt.Sprintf(definition, "Cluster")), &Options{As: AsScope, Kinds: reach.NewKinds()})
	if err == nil || !strings.Contains(err.Error(), "file 0") || !strings.Contains(err.Error(), "apps/deployments") {
		t.Errorf("it is taken: %v", err)
	}

	out, _ := narrowed(t, Options{}, in+fmt.Sprintf(definition, "Namespaced"))
	if strings.Contains(out, "kind: ClusterRoleBinding") {
		t.Errorf("what says the same as is known changes something:\n%s", out)
	}
}

// TestKeepsThatKeepNothing holds that a right which was to be kept, and which no rule gives in these words, is named: what was
// meant is lost.
func TestKeepsThatKeepNothing(t *testing.T) {
	t.Parallel()

	in := anOperator([]rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "pods/exec", "nodes"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"example.com"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	})

	for keep, told := range map[string]bool{
		"list core/secrets": false, "list secrets": false, "list,watch *": false, "get core/pods/exec": false, "get core/nodes": false,
		"delete example.com/widgets": false, "* example.com/*": false,
		"get pods/exec": true, "watch core/secrets": true, "list secret": true, "list Secrets": true, "list core/pods": true,
		"list example.org/widgets": true,
	} {
		parsed, err := reach.ParseKeep(keep)
		if err != nil {
			t.Fatal(err)
		}

		_, report := narrowed(t, Options{Members: []string{"shop"}, Keep: parsed}, in)

		isNamed := func(w string) bool { return strings.HasPrefix(w, "--keep '") && strings.Contains(w, "keeps nothing") }
		if got := slices.ContainsFunc(report.Warnings, isNamed); got != told {
			t.Errorf("%q is named %t: %q", keep, got, report.Warnings)
		}
	}

	if _, report := narrowed(t, Options{Keep: []reach.Keep{{Verbs: []string{"get"}}}}, "kind: x"); len(report.Warnings) > 0 {
		t.Errorf("where nothing is narrowed, it is told %q", report.Warnings)
	}
}

// TestNarrowedBesideWhatItCameWith holds that what an operator holds in the cluster can be narrowed again before anybody deleted
// its old binding, and that somebody else's object of that name is still refused.
func TestNarrowedBesideWhatItCameWith(t *testing.T) {
	t.Parallel()

	o := Options{
		As: AsScope, Members: []string{"shop"}, Kinds: reach.NewKinds(),
		ClusterRoles: func() ([]rbacv1.ClusterRole, bool) { return nil, false },
	}
	in := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "nodes"}, Verbs: []string{"get"}}})
	rest := `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: op-cluster-scoped, annotations: {ambit.dev/narrowed-from: ClusterRole/op}}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op-cluster-scoped, annotations: {ambit.dev/narrowed-from: ClusterRoleBinding/op}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op-cluster-scoped}
subjects: [{kind: ServiceAccount, name: op, namespace: ops}]
`

	out, report := narrowed(t, o, in+rest)
	if strings.Count(out, "name: op-cluster-scoped") != 3 || len(report.Warnings) > 0 {
		t.Errorf("it became, with %q,\n%s", report.Warnings, out)
	}

	_, report = narrowed(t, o, in+strings.Replace(rest, "resources: [nodes]", "resources: [nodes/status]", 1))
	isNamed := func(w string) bool {
		return strings.HasPrefix(w, "ClusterRole op-cluster-scoped is in the input already")
	}
	if !slices.ContainsFunc(report.Warnings, isNamed) {
		t.Errorf("another remainder is reported as %q", report.Warnings)
	}

	if _, err := Narrow(stream(t, in+strings.ReplaceAll(rest, "ambit.dev/narrowed-from: ", "of: ")), &o); err == nil {
		t.Error("objects of somebody else are taken for what was narrowed")
	}
}

// TestReadsOfNothing holds that a container which nobody runs is named, because what was said of it is lost.
func TestReadsOfNothing(t *testing.T) {
	t.Parallel()

	in := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}})

	for reads, told := range map[string]bool{
		"env:X": false, "op=env:X": false, "op/manager=env:X": false, "op/other=env:X": true, "Op=env:X": true, "other=none": true,
	} {
		parsed, err := ParseReading(reads)
		if err != nil {
			t.Fatal(err)
		}

		_, report := narrowed(t, Options{Members: []string{"shop"}, Reads: []Reading{parsed}}, in)

		isNamed := func(w string) bool {
			return strings.HasPrefix(w, "--reads '") && strings.Contains(w, "says nothing of")
		}
		if got := slices.ContainsFunc(report.Warnings, isNamed); got != told {
			t.Errorf("%q is named %t: %q", reads, got, report.Warnings)
		}
	}
}

func TestAliasesAreWrittenOut(t *testing.T) {
	t.Parallel()

	in := strings.Replace(anOperator(nil), "rules: null", "rules: [{apiGroups: [''], resources: [secrets, nodes], "+
		"verbs: &v [get]}, {apiGroups: [''], resources: [pods], verbs: *v}]", 1)

	out, _ := narrowed(t, Options{}, in)
	if strings.ContainsAny(out, "&") || !rights.Covers(held(t, out, Account{Namespace: "ops", Name: "op"}, "ops", nil),
		[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets", "nodes", "pods"}, Verbs: []string{"get"}}}) {
		t.Errorf("the aliases became\n%s", out)
	}
}

func FuzzNarrow(f *testing.F) {
	f.Add([]byte(anOperator([]rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}})))
	f.Add([]byte("a: &a\n- *a\n---\nkind: List\nitems: [{kind: ClusterRole}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := &Stream{}
		if s.Read("fuzz", bytes.NewReader(text)) != nil {
			return
		}

		report, err := Narrow(s, &Options{As: AsScope, Kinds: reach.NewKinds(), Members: []string{"a"}, Fence: &Fence{}})
		if err != nil {
			return
		}

		out, err := s.Bytes()
		if err != nil {
			return
		}

		if !report.Changed && !bytes.Equal(out, text) {
			t.Errorf("%q became %q, and nothing was said", text, out)
		}
	})
}

func TestRealOperators(t *testing.T) {
	t.Parallel()

	paths, _ := filepath.Glob(filepath.Join(manifests, "*", "install.yaml"))
	if len(paths) == 0 {
		t.Skip("there are no manifests of real operators here")
	}

	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()

			var texts []string

			for _, name := range []string{"crds.yaml", "install.yaml"} {
				text, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
				if err != nil {
					t.Fatal(err)
				}

				texts = append(texts, string(text))
			}

			o := Options{Members: []string{"a", "b"}}
			begin := time.Now()
			out, report := narrowed(t, o, texts...)

			// Seconds on a busy machine; what is quadratic takes minutes.
			if took := time.Since(begin); took > time.Minute {
				t.Errorf("it took %s", took)
			}

			if again, of := narrowed(t, o, out); again != out || of.Changed || len(kept(of)) > 0 {
				t.Error("twice is not once")
			}

			for _, a := range report.Accounts {
				for _, namespace := range []string{"", "a", "elsewhere"} {
					before, after := held(t, texts[1], a.Account, namespace, nil), held(t, out, a.Account, namespace, o.Members)
					if !rights.Covers(before, after) {
						t.Errorf("in %q %v gains %v", namespace, a.Account, authority.Missing(before, after))
					}

					if namespace == "a" && !rights.Covers(after, before) {
						t.Errorf("in %q %v loses %v", namespace, a.Account, authority.Missing(after, before))
					}
				}

				if len(a.Lost) == 0 || !a.Lost[0].Sensitive && a.Account.Name != "keda-webhook" {
					t.Errorf("%v loses %v", a.Account, a.Lost)
				}
			}
		})
	}
}

// TestFenceComesBeforeItsScope: Ambit makes the list of a scope that has none, and the list of a fence is made by whoever applies
// it.
func TestFenceComesBeforeItsScope(t *testing.T) {
	fence, err := NewFence(nil)
	if err != nil {
		t.Fatal(err)
	}

	out, _ := narrowed(t, Options{Members: []string{"a"}, Fence: fence}, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: op}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}
subjects: [{kind: ServiceAccount, name: op, namespace: ops}]
`)

	list, policy, of := strings.Index(out, "\nkind: ConfigMap\n"), strings.Index(out, "\nkind: ValidatingAdmissionPolicy\n"),
		strings.Index(out, "\nkind: NamespaceScope\n")
	if list < 0 || policy < list || of < policy {
		t.Errorf("the list is at %d, the policy at %d and the scope at %d of\n%s", list, policy, of, out)
	}
}
