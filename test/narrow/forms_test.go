package narrow_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// vendor is an operator as vendors ship them: with rules about namespaces, about the cluster, about both, and URLs. The leader
// election is meant for its own namespace.
const vendor = `# What the vendor says.
apiVersion: v1
kind: ServiceAccount
metadata: {name: op, namespace: OPS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: OPS-op}
rules:
  - {apiGroups: [""], resources: [configmaps, secrets], verbs: [get, list, watch, create, update]}
  - {apiGroups: [""], resources: [namespaces], verbs: [get, list, watch]} # both
  - {apiGroups: ["", apps], resources: [namespaces], verbs: [delete]} # by another group, too
  - {apiGroups: [""], resources: [nodes, persistentvolumes], verbs: [get, list]}
  - {apiGroups: [""], resources: [secrets], resourceNames: [one, two], verbs: [delete]}
  - {apiGroups: [""], resources: [pods/exec, pods/log], verbs: [create, get]}
  - {apiGroups: [apps], resources: [deployments, deployments/scale, statefulsets], verbs: ["*"]}
  - {apiGroups: [batch], resources: ["*"], verbs: [get, patch]}
  - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, patch]}
  - {apiGroups: [storage.k8s.io], resources: ["*"], verbs: [list]}
  - {nonResourceURLs: [/metrics, /op/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: OPS-op}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: OPS-op}
subjects: [{kind: ServiceAccount, name: op, namespace: OPS}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: leader, namespace: OPS}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leader, namespace: OPS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leader}
subjects: [{kind: ServiceAccount, name: op, namespace: OPS}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: op, namespace: OPS}
spec:
  selector: {matchLabels: {app: op}}
  template:
    metadata: {labels: {app: op}}
    spec:
      serviceAccountName: op
      containers:
        - name: manager
          image: registry.example.com/op:1
          env: [{name: WATCH_NAMESPACE, value: ""}]
`

// narrowing is an operator of a vendor that is to be narrowed.
type narrowing struct {
	*testbed.World

	ops, outside string
	members      []string
	input        string
	questions    []question
	// had is what the operator might do as the vendor has it, by namespace.
	had map[string][]bool
}

// asShipped installs the vendor's operator by install, and asks what it may do.
func asShipped(t *testing.T, install func(n *narrowing)) *narrowing {
	t.Helper()

	w := begin(t)
	n := &narrowing{
		World: w, ops: w.Namespace("ops"), outside: w.Namespace("outside"), members: []string{w.Namespace("member"),
			w.Namespace("member")},
	}
	n.input = strings.ReplaceAll(vendor, "OPS", n.ops)

	objects := objectsOf(w, n.input)
	n.questions = atoms(objects)

	// A wildcard is not kept in the whole cluster, but what it means there.
	for i := range n.questions {
		if q := &n.questions[i]; q.group == "storage.k8s.io" {
			q.resource = "storageclasses"
		}
	}

	account := "system:serviceaccount:" + n.ops + ":op"
	// What a wildcard means in a namespace, and what no rule gives and the operator shall not gain.
	n.questions = append(n.questions,
		question{user: account, group: "coordination.k8s.io", resource: "leases", verb: "create"},
		question{user: account, resource: "secrets", verb: "delete"},
		question{user: account, resource: "pods", verb: "get"},
		question{user: account, resource: "nodes", verb: "delete"},
		question{user: account, group: "storage.k8s.io", resource: "csistoragecapacities", verb: "list"},
		question{user: account, group: "rbac.authorization.k8s.io", resource: "roles", verb: "get"},
	)

	install(n)
	n.Eventually("the vendor's operator has its rights", func() error {
		n.had = n.answers()
		if !n.had[n.outside][0] {
			return fmt.Errorf("it may not %s", &n.questions[0])
		}

		return nil
	})

	return n
}

func (n *narrowing) places() []string { return append([]string{"", n.outside, n.ops}, n.members...) }

func (n *narrowing) answers() map[string][]bool {
	n.Helper()

	out := map[string][]bool{}
	for _, place := range n.places() {
		out[place] = askAll(n.World, in(n.questions, place))
	}

	return out
}

func (n *narrowing) membersFlag() string { return "--members=" + strings.Join(n.members, ",") }

// narrowed waits until the operator has lost nothing in its members, and holds that it gained nothing and has nothing elsewhere.
func (n *narrowing) narrowed() {
	n.Helper()
	n.Eventually("nothing is lost or gained, and nothing left elsewhere", func() error {
		now := n.answers()

		for _, place := range n.places() {
			for i := range n.questions {
				if err := n.judge(&n.questions[i], place, n.had[place][i], now[place][i]); err != nil {
					return err
				}
			}
		}

		return nil
	})
}

func (n *narrowing) judge(q *question, place string, had, has bool) error {
	wide := isClusterScoped(n.World, q)
	member := place == n.ops || slices.Contains(n.members, place)

	switch {
	case has && !had:
		return fmt.Errorf("gained %s in %q", q, place)
	case had && !has && (member || wide):
		return fmt.Errorf("lost %s in %q", q, place)
	case has && !member && !wide:
		return fmt.Errorf("still may %s in %q", q, place)
	}

	return nil
}

func (n *narrowing) applied(manifests string) {
	n.Helper()
	kubectl(n.World, manifests, "apply", "-f", "-")
}

// narrow runs ambit narrow.
func (n *narrowing) narrow(arguments ...string) (out, report string) {
	n.Helper()

	out, report, code := ambit(n.World, append([]string{"narrow", n.membersFlag()}, arguments...)...)
	if code != 0 {
		n.Fatalf("exit %d: %s", code, report)
	}

	return out, report
}

// TestNarrowAsTemplate: a ScopeTemplate and its instance give in the members what the vendor gave everywhere.
func TestNarrowAsTemplate(t *testing.T) {
	n := asShipped(t, func(n *narrowing) { n.applied(n.input) })
	out, report := n.narrow("-f", write(n.World, n.input), "--as", "template")

	n.applied(out)
	n.deleted(report)
	n.narrowed()

	if again, _ := n.narrow("-f", write(n.World, out), "--as", "template"); again != out {
		t.Errorf("a second time, other manifests come out:\n%s", difference(out, again))
	}
}

// deleted runs the commands with which a report says that the old bindings are to be deleted.
func (n *narrowing) deleted(report string) {
	n.Helper()

	commands := 0

	for line := range strings.Lines(report) {
		_, command, is := strings.Cut(line, "kubectl delete ")
		if !is {
			continue
		}

		commands++

		kubectl(n.World, "", append([]string{"delete"}, strings.Fields(command)...)...)
	}

	if commands == 0 {
		n.Fatalf("the report has no command that deletes the old binding:\n%s", report)
	}
}

// TestNarrowWhatRuns: --from writes what -f does for the manifests of what runs, and nothing is lost when the old binding goes.
func TestNarrowWhatRuns(t *testing.T) {
	n := asShipped(t, func(n *narrowing) { n.applied(n.input) })
	byFile, _ := n.narrow("-f", write(n.World, n.input))
	out, report := n.narrow("--from", n.ops+"/op")

	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "NamespaceScope"} {
		if a, b := shapes(n.World, byFile, kind), shapes(n.World, out, kind); a != b {
			t.Errorf("of kind %s, -f writes\n%s\nand --from\n%s", kind, a, b)
		}
	}

	n.applied(out)
	settled(n.World, objectsOf(n.World, out))
	n.deleted(report)
	n.narrowed()

	// What runs now is narrow already.
	if again, report, code := ambit(n.World, "narrow", n.membersFlag(), "--from", n.ops+"/op"); strings.TrimSpace(again) != "" {
		t.Errorf("a second time, exit %d and\n%s\n%s", code, again, report)
	}
}

// TestNarrowAUserName: a ClusterRoleBinding that names the account by its user name is narrowed as any other. What the account
// holds by a group stays, and is said to.
func TestNarrowAUserName(t *testing.T) {
	n := asShipped(t, func(n *narrowing) {
		before := "name: " + n.ops + "-op}\nsubjects: [{kind: ServiceAccount, name: op, namespace: " + n.ops + "}]"
		after := "name: " + n.ops + `-op}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "system:serviceaccount:` + n.ops + `:op"}]`
		n.input = strings.Replace(n.input, before, after, 1)

		if !strings.Contains(n.input, after) {
			n.Fatal("the vendor's manifest has another form")
		}

		n.applied(n.input)
	})

	out, report := n.narrow("--from", n.ops+"/op")
	n.applied(out)
	settled(n.World, objectsOf(n.World, out))
	n.deleted(report)
	n.narrowed()

	byGroup := strings.NewReplacer("User", "Group", "system:serviceaccount:"+n.ops+":op", "system:serviceaccounts:"+n.ops)
	n.applied(byGroup.Replace(n.input))

	_, report = n.narrow("--from", n.ops+"/op")
	if !strings.Contains(report, n.ops+"/op holds it as before") || strings.Contains(report, "nothing was to be narrowed") {
		t.Errorf("of a group, it is said\n%s", report)
	}
}

// shapes are what the objects of a kind say that decides about rights.
func shapes(w *testbed.World, text, kind string) string {
	w.Helper()

	var out []string

	for _, o := range objectsOf(w, text) {
		// The Role of the leader election stays as it is, and --from writes only what changes.
		if o.Kind == kind && (kind != "Role" || o.Metadata.Name != "leader") {
			out = append(out, fmt.Sprintf("%s/%s rules %v role %v subjects %v",
				o.Metadata.Namespace, o.Metadata.Name, o.Rules, o.RoleRef, o.Subjects))
		}
	}

	slices.Sort(out)

	return strings.Join(out, "\n")
}

// difference is the first line in which texts differ.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d: %q, and then %q", i+1, as[i], bs[i])
		}
	}

	return fmt.Sprintf("%d lines, and then %d", len(as), len(bs))
}

// TestNarrowIsIdempotent: what comes out goes in again, and comes out byte by byte.
func TestNarrowIsIdempotent(t *testing.T) {
	w := begin(t)
	ops, member := w.Namespace("ops"), w.Namespace("member")
	n := &narrowing{World: w, ops: ops, members: []string{member}}
	input := strings.ReplaceAll(vendor, "OPS", ops)

	for _, flags := range [][]string{
		nil, {"--as", "template"}, {"--as", "template", "--keep", "list core/secrets"}, {"--keep", "get,list,watch *"}, {"--keep",
			"get,list,watch *", "--fence"},
		{"--fence", "--fence-allow", "status,events"}, {"--member-labels", "team=a"},
	} {
		once, _ := n.narrow(append([]string{"-f", write(w, input)}, flags...)...)
		if twice, _ := n.narrow(append([]string{"-f", write(w, once)}, flags...)...); once != twice {
			t.Errorf("%v: %s", flags, difference(once, twice))
		}
	}
}

// run runs a tool of bin/tools with the cluster.
func (n *narrowing) run(folder, tool string, arguments ...string) string {
	n.Helper()

	c := exec.CommandContext(n.Context(), filepath.Join(embedded.Root(), "bin", "tools", tool), arguments...)
	c.Dir = folder
	c.Env = append(os.Environ(), "KUBECONFIG="+n.Cluster.Kubeconfig, "HOME="+n.TempDir(),
		"HELM_PLUGINS="+filepath.Join(folder, "plugins"), "PATH="+filepath.Dir(n.Program)+":"+os.Getenv("PATH"))

	var errOut strings.Builder

	c.Stderr = &errOut

	out, err := c.Output()
	if err != nil {
		n.Fatalf("%s %v: %v\n%s", tool, arguments, err, errOut.String())
	}

	return string(out)
}

func (n *narrowing) file(folder, name, text string) {
	n.Helper()

	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		n.Fatal(err)
	}

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		n.Fatal(err)
	}
}

// TestNarrowWithHelm: a release that was installed as shipped is upgraded with ambit for its post-renderer. Helm deletes the old
// binding, a further upgrade changes nothing, and with the release everything goes.
func TestNarrowWithHelm(t *testing.T) {
	narrowsWith(t, "helm", func(n *narrowing, _ string) []string {
		return []string{"--post-renderer", n.Program, "--post-renderer-args", "narrow", "--post-renderer-args", n.membersFlag()}
	})
}

// TestNarrowWithHelm4: the same, by the plugin that the documentation has.
func TestNarrowWithHelm4(t *testing.T) {
	narrowsWith(t, "helm4", func(n *narrowing, folder string) []string {
		doc, err := os.ReadFile(filepath.Join(embedded.Root(), "docs", "narrow.md"))
		if err != nil {
			n.Fatal(err)
		}

		_, plugin, found := strings.Cut(string(doc), "# plugin.yaml\n")
		if !found {
			n.Fatal("docs/narrow.md has no plugin.yaml")
		}

		plugin, _, _ = strings.Cut(plugin, "```")
		n.file(folder, "plugins/ambit-narrow/plugin.yaml", plugin)

		return []string{"--post-renderer", "ambit-narrow", "--post-renderer-args", n.membersFlag()}
	})
}

// narrowsWith upgrades a release with one of bin/tools; filter prepares the post-renderer in a folder, and returns its flags.
func narrowsWith(t *testing.T, helm string, filter func(n *narrowing, folder string) []string) {
	t.Helper()

	folder := t.TempDir()
	n := asShipped(t, func(n *narrowing) {
		n.file(folder, "op/Chart.yaml", "apiVersion: v2\nname: op\nversion: 1.0.0\n")
		n.file(folder, "op/templates/op.yaml", n.input)
		n.run(folder, helm, "install", "op", "op", "-n", n.ops)
	})

	upgrade := append([]string{"upgrade", "op", "op", "-n", n.ops}, filter(n, folder)...)
	n.run(folder, helm, upgrade...)
	n.narrowed()

	once := n.run(folder, helm, "get", "manifest", "op", "-n", n.ops)
	n.run(folder, helm, upgrade...)

	if twice := n.run(folder, helm, "get", "manifest", "op", "-n", n.ops); once != twice {
		t.Errorf("a second upgrade changes the release: %s", difference(once, twice))
	}

	// As a filter of what helm template prints, it writes the same.
	piped := filepath.Join(folder, "rendered.yaml")
	n.file(folder, "rendered.yaml", n.run(folder, helm, "template", "op", "op", "-n", n.ops))

	out, _ := n.narrow("-f", piped)
	for _, kind := range []string{"ClusterRole", "Role", "RoleBinding", "NamespaceScope"} {
		if a, b := shapes(n.World, once, kind), shapes(n.World, out, kind); a != b {
			t.Errorf("of kind %s, the release has\n%s\nand the filter writes\n%s", kind, a, b)
		}
	}

	n.run(folder, helm, "uninstall", "op", "-n", n.ops)
	n.Eventually("nothing is left of the release", func() error {
		for place, answers := range n.answers() {
			if i := slices.Index(answers, true); i >= 0 {
				return fmt.Errorf("it still may %s in %q", &n.questions[i], place)
			}
		}

		return nil
	})
}

// TestNarrowWithKustomize: ambit is a function that kustomize runs.
func TestNarrowWithKustomize(t *testing.T) {
	n := asShipped(t, func(n *narrowing) { n.applied(n.input) })
	folder := t.TempDir()

	n.file(folder, "op.yaml", n.input)
	n.file(folder, "kustomization.yaml", "resources: [op.yaml]\ntransformers: [narrow.yaml]\n")
	n.file(folder, "narrow.yaml", fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata:
  name: narrow
  annotations:
    config.kubernetes.io/function: |
      exec: {path: %s, args: [narrow, --quiet]}
data:
  members: %s
`, n.Program, strings.Join(n.members, ",")))

	build := []string{"build", "--enable-alpha-plugins", "--enable-exec", "."}
	out := n.run(folder, "kustomize", build...)
	direct, report := n.narrow("-f", filepath.Join(folder, "op.yaml"))

	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "NamespaceScope"} {
		if a, b := shapes(n.World, direct, kind), shapes(n.World, out, kind); a != b {
			t.Errorf("of kind %s, ambit writes\n%s\nand kustomize\n%s", kind, a, b)
		}
	}

	n.applied(out)
	settled(n.World, objectsOf(n.World, out))
	n.deleted(report)
	n.narrowed()

	// Twice in one build gives the same as once.
	n.file(folder, "kustomization.yaml", "resources: [op.yaml]\ntransformers: [narrow.yaml, again.yaml]\n")
	text, err := os.ReadFile(filepath.Join(folder, "narrow.yaml"))
	if err != nil {
		t.Fatal(err)
	}

	n.file(folder, "again.yaml", strings.Replace(string(text), "name: narrow", "name: again", 1))

	if twice := n.run(folder, "kustomize", build...); twice != out {
		t.Errorf("twice: %s", difference(out, twice))
	}
}
