package cli_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var update = flag.Bool("update", false, "write docs/tour.md and the golden files")

// The demo's namespace and scope.
const (
	ops       = "ibm-common-services"
	scopeName = "namespacescope"
)

// introduction has a ~ for each backquote.
const introduction = `# A tour of the command line

Every verb, on the cluster of the demo. To follow it, run ~make run~, and type what is behind each ~$~ in another
terminal, in the folder of the repository; ~ambit~ is ~bin/ambit~, and ~kubectl ambit~ is the same once ~bin/ambit~ is
also called ~kubectl-ambit~ somewhere in your ~PATH~.

A test makes this page and fails when a command says anything else: see [test/cli](../test/cli). All flags are in
[docs/cli](cli/ambit.md).
`

// tour is the walk, and the page that is made of it.
type tour struct {
	*testbed.World

	page bytes.Buffer
	// commands says that the page ends with commands whose output is not shown.
	commands bool
}

// TestTour walks through every verb on the cluster of the demo, writes down what it sees as docs/tour.md, and then holds the
// other forms of each command against their golden files. Nothing else runs on its cluster.
func TestTour(t *testing.T) {
	w := &tour{World: beds.Own(t, "cluster")}
	w.page.WriteString(strings.ReplaceAll(introduction, "~", "`"))

	w.before()
	w.after()
	w.elsewhere()
	page := bytes.ReplaceAll(append(bytes.TrimSpace(w.page.Bytes()), '\n'), []byte("\n\n\n"), []byte("\n\n"))
	w.keep(filepath.Join(embedded.Root(), "docs", "tour.md"), page)

	for _, g := range goldens {
		t.Run(g.name, func(t *testing.T) { w.golden(t, g) })
	}

	w.screenshot()
}

// before is what is asked before a change is made.
func (w *tour) before() {
	w.title("See it before")
	w.say("Two operators, and a scope that has only their own namespace. In `cloudpak1` they may do nothing yet.")
	w.kubectl("apply -f test/demo/1-scope.yaml")
	w.ready()
	w.kubectl("apply -f test/demo/1-operators.yaml")
	w.kubectl("create namespace cloudpak1")
	w.Running(ops)
	w.ambit("operators -n cloudpak1", 0)

	w.say("What would adding `cloudpak1` to the scope do? Nothing is changed yet; the operators would restart, because " +
		"the list that they read changes.")
	w.ambit("plan -f test/demo/3-scope.yaml", 0)

	w.say("So it happens, and there is nothing left to plan.")
	w.kubectl("apply -f test/demo/3-scope.yaml")
	w.ready()
	w.restarted()
	w.ambit("plan -f test/demo/3-scope.yaml", 0)

	w.say("A Role of an operator changes in the operator namespace. Its copy would follow, and `--diff` shows how.")
	w.ambit("plan -f test/demo/5-role.yaml --diff", 0)

	w.say("Whoever may not make a change is told so, and the exit code is 3. Jane may view the two namespaces, and nothing else; " +
		"what she may not read is named.")

	for _, namespace := range []string{ops, "cloudpak1"} {
		w.kubectl("create rolebinding jane -n " + namespace + " --clusterrole=view --user=jane@example.com")
		w.kubectl("create role jane -n " + namespace + " --verb=get,list --resource=roles,rolebindings")
		w.kubectl("create rolebinding jane-roles -n " + namespace + " --role=jane --user=jane@example.com")
	}

	for _, namespace := range []string{ops, "cloudpak1"} {
		w.Eventually("Jane may look at "+namespace, func() error {
			return w.As("jane@example.com").List(w.Context(), &rbacv1.RoleBindingList{}, client.InNamespace(namespace))
		})
	}

	w.ambit("plan -f test/demo/7-scope.yaml --as jane@example.com", 3)

	w.say("What does somebody lack to apply a folder? `-o yaml` prints the Roles that grant exactly that.")
	w.ambit("preflight -f test/demo/1-operators.yaml --for-user jane@example.com", 3)
}

// after is what is asked afterwards.
func (w *tour) after() {
	w.title("Understand it after")
	w.say("Why may `secretman` do anything in `cloudpak1`?")
	w.ambit("why ibm-common-services/secretman -n cloudpak1", 0)

	w.say("One question, and one whose answer is no: the exit code is 3.")
	w.ambit("why ibm-common-services/secretman -n cloudpak1 --verb create --resource secrets", 0)
	w.ambit("why ibm-common-services/secretman -n default --verb create --resource secrets", 3)

	w.say("Which operators serve `cloudpak1`, and may Jane use them there?")
	w.ambit("operators -n cloudpak1 --as jane@example.com", 0)

	w.say("A further member that does not exist, and a template with its instances: who is served where, and what is wrong?")
	// Who wrote last is told by times in whole seconds.
	for now := time.Now().Unix(); time.Now().Unix() == now; {
		time.Sleep(10 * time.Millisecond)
	}

	w.kubectl("patch nss namespacescope -n ibm-common-services --type=merge " +
		`-p {"spec":{"namespaceMembers":["cloudpak1","cloudpak2"]}}`)
	w.reports("MembersFailed")
	w.kubectl("apply -f config/samples")
	w.scoped("grafana-operator")
	w.scoped("grafana-users")
	w.ambit("tree", 0)
	w.ambit("matrix", 0)

	w.say("`ambit matrix -o html` writes the same as one page, in which a click on a cell, or Enter, shows the rules and where " +
		"they come from; `-o svg` is a drawing for documents.\n\n![The matrix of the demo as a page](images/matrix.png)")
}

// elsewhere is what comes from elsewhere.
func (w *tour) elsewhere() {
	w.title("Bring it over")
	w.say("A NamespaceScope of the legacy group becomes one of `operator.ibm.com`; `--apply` would create it.")
	w.show("cat older.yaml", older)

	w.page.WriteString("```console\n$ ambit import -f older.yaml\n")
	out, errOut, code := run(w.World, "import", "-f", file(w.World, "older.yaml", older))
	w.page.WriteString(out + errOut + "```\n\n")

	if code != 0 {
		w.Errorf("import: exit code %d: %s", code, errOut)
	}

	w.say("After IBM's operator, `ambit import --take-over` shows its steps first. Here there is nothing left to do.")
	w.ambit("import --take-over -n ibm-common-services --dry-run", 0)

	w.say("`ambit import csv/NAME` makes a ScopeTemplate and a ScopeInstance of what OLM installed, and `ambit authorize` and " +
		"`ambit revoke` are how a namespace's owner lets operators in: see [authorizations](authorize.md).")
}

const older = `apiVersion: namespacescope.ibm.com/v1alpha1
kind: NamespaceScope
metadata:
  name: older
  namespace: ibm-common-services
spec:
  namespaceMembers: [cloudpak1]
  projected-serviceaccounts: [secretman]
`

func (w *tour) title(text string) { fmt.Fprintf(&w.page, "\n## %s\n\n", text) }

func (w *tour) say(text string) { w.commands = false; fmt.Fprintf(&w.page, "%s\n\n", wrap(text)) }

func (w *tour) show(command, text string) {
	fmt.Fprintf(&w.page, "```console\n$ %s\n%s```\n\n", command, text)
}

// wrap breaks a paragraph into lines.
func wrap(text string) string {
	const width = 124

	var b strings.Builder

	column := 0

	for i, word := range strings.Split(text, " ") {
		if i > 0 {
			if column+1+len(word) > width {
				b.WriteString("\n")

				column = 0
			} else {
				b.WriteString(" ")

				column++
			}
		}

		b.WriteString(word)
		column += len(word)
	}

	return b.String()
}

// kubectl runs a line of kubectl and writes it down, without what it says.
func (w *tour) kubectl(line string) {
	w.Helper()
	w.quietly(line)

	// Commands that follow each other are one block.
	const end = "```\n\n"
	if w.commands && bytes.HasSuffix(w.page.Bytes(), []byte(end)) {
		w.page.Truncate(w.page.Len() - len(end))
	} else {
		w.page.WriteString("```console\n")
	}

	fmt.Fprintf(&w.page, "$ kubectl %s\n%s", quoted(line), end)

	w.commands = true
}

// quoted puts what a shell would take apart into quotes.
func quoted(line string) string {
	words := strings.Split(line, " ")
	for i := range words {
		if strings.ContainsAny(words[i], "{*") {
			words[i] = "'" + words[i] + "'"
		}
	}

	return strings.Join(words, " ")
}

func (w *tour) quietly(line string) {
	w.Helper()

	words := strings.Split(line, " ")
	for i := range words {
		words[i] = rooted(words[i])
	}

	if out, err := w.Cluster.Kubectl(w.Context(), words...); err != nil {
		w.Fatalf("kubectl %s: %v: %s", line, err, out)
	}
}

// rooted is a path of the repository, from wherever the test runs.
func rooted(word string) string {
	if strings.HasPrefix(word, "test/") || strings.HasPrefix(word, "config/") {
		return filepath.Join(embedded.Root(), word)
	}

	return word
}

// ambit runs a line of ambit and writes down what it says.
func (w *tour) ambit(line string, want int) {
	w.Helper()

	words := strings.Split(line, " ")
	for i := range words {
		words[i] = rooted(words[i])
	}

	out, errOut, code := run(w.World, words...)
	if code != want {
		w.Errorf("ambit %s: exit code %d, want %d: %s%s", line, code, want, out, errOut)
	}

	fmt.Fprintf(&w.page, "```console\n$ ambit %s\n%s%s```\n\n", line, out, errOut)

	w.commands = false
}

// ready waits until the scope of the demo is.
func (w *tour) ready() { w.reports("Reconciled") }

func (w *tour) reports(reason string) {
	w.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: scopeName}}
	w.Reports(nss, map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[reason == "Reconciled"],
		reason)
}

// scoped waits until a ScopeInstance has a status.
func (w *tour) scoped(name string) {
	w.Helper()
	w.Eventually(name+" has a status", func() error {
		out, err := w.Cluster.Kubectl(w.Context(), "get", "scopeinstance", name, "-o", "jsonpath={.status.conditions[*].reason}")
		if err == nil && !strings.Contains(out, "Scoping") {
			err = errors.New("it says " + out)
		}

		return err
	})
}

// restarted waits until the operators have been told of the list, and run.
func (w *tour) restarted() {
	w.Helper()
	w.Eventually("the operators restart for the list", func() error {
		cm := &corev1.ConfigMap{}
		if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: ops, Name: "namespace-scope"}, cm); err != nil {
			return err
		}

		var list appsv1.DeploymentList
		if err := w.Client.List(w.Context(), &list, client.InNamespace(ops)); err != nil {
			return err
		}

		for i := range list.Items {
			d := &list.Items[i]
			if d.Spec.Template.Annotations[scope.AnnotationListHash] != cm.Annotations[scope.AnnotationListHash] {
				return errors.New(d.Name + " has not been restarted")
			}
		}

		return nil
	})
	w.Running(ops)
}

// keep compares what was seen with a file, or writes it.
func (w *tour) keep(path string, got []byte) {
	w.Helper()

	got = steady(got)

	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			w.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}

	if !bytes.Equal(got, want) {
		w.Errorf("%s differs from what was seen; look at the difference after go test ./test/cli -run Tour -update\n%s", path,
			difference(string(want), string(got)))
	}
}

func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\nwant %s\ngot  %s", i+1, a[i], b[i])
		}
	}

	return fmt.Sprintf("want %d lines, got %d", len(a), len(b))
}

// golden is a command whose whole output is kept in testdata.
type golden struct {
	name string
	line string
	code int
}

var goldens = []golden{
	{"plan.json", "plan -f test/demo/7-scope.yaml -o json", 0},
	{"plan-delete.txt", "plan --delete -f test/demo/3-scope.yaml", 0},
	{"plan-folder.yaml", "plan -f config/samples -o yaml", 0},
	{"plan-nothing.txt", "plan -f test/demo/4-certificate.yaml", 1},
	{"plan-install.txt", "plan -f test/cli/testdata/bundle/manifests/csv.yaml", 3},
	{"plan-unread.txt", "plan -f test/demo/3-scope.yaml --as nobody", 1},
	{"why.json", "why ibm-common-services/certman -n cloudpak1 -o json", 0},
	{"why-all.txt", "why ibm-common-services/certman -n ibm-common-services --all", 0},
	{"why-jane.txt", "why ibm-common-services/certman -n cloudpak1 --as jane@example.com", 0},
	{"why-nobody.txt", "why ibm-common-services/certman -n cloudpak1 --as nobody", 0},
	{"tree.json", "tree -o json", 0},
	{"tree-one.txt", "tree ibm-common-services/namespacescope --all --in cloudpak1", 0},
	{"tree-failed.txt", "tree --failed", 0},
	{"tree-none.txt", "tree nosuch", 1},
	{"tree-jane.txt", "tree -n ibm-common-services --as jane@example.com", 0},
	{"tree-jane-one.txt", "tree ibm-common-services/namespacescope --as jane@example.com", 0},
	{"matrix.yaml", "matrix --operator cert* -o yaml", 0},
	{"matrix-failed.txt", "matrix --failed", 0},
	{"matrix-own.txt", "matrix -n ibm-common-services --all", 0},
	{"matrix-nobody.txt", "matrix --as nobody", 0},
	{"matrix.html", "matrix -o html", 0},
	{"matrix.svg", "matrix -o svg", 0},
	{"operators.json", "operators -n team-a -o json", 0},
	{"operators-none.txt", "operators -n kube-public", 0},
	{"operators-nowhere.txt", "operators -n nosuch", 1},
	{"preflight.yaml", "preflight -f config/samples/users-template.yaml --service-account team-a/deployer --in team-a -o yaml", 3},
	{"preflight-me.txt", "preflight -f test/demo/1-operators.yaml", 0},
	{"import-csv.txt", "import csv/etcd -n default", 1},
	{"usage-plan.txt", "plan", 2},
	{"usage-why.txt", "why secretman", 2},
	{"usage-question.txt", "why a/b --verb get", 2},
	{"usage-output.txt", "tree -o wide", 2},
	{"usage-pattern.txt", "matrix --in [", 2},
	{"usage-import.txt", "import -f x --take-over", 2},
	{"usage-kind.txt", "import deployment/x", 2},
}

var (
	times = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\dZ)?( UTC)?`)
	uids  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	named = regexp.MustCompile(`([a-z0-9.]+-)[0-9a-f]{16}\b`)
)

// steady gives copies names that are the same each time.
func steady(text []byte) []byte {
	return named.ReplaceAllFunc(text, func(name []byte) []byte {
		prefix := name[:len(name)-16]

		return append(bytes.Clone(prefix), scope.Digest(16, string(prefix))...)
	})
}

// golden runs a command and compares everything that it prints.
func (w *tour) golden(t *testing.T, g golden) {
	t.Helper()

	words := strings.Split(g.line, " ")
	for i := range words {
		words[i] = rooted(words[i])
	}

	out, errOut, code := run(w.World, words...)
	if code != g.code {
		t.Errorf("exit code %d, want %d: %s", code, g.code, errOut)
	}

	if code == 1 || code == 2 {
		if strings.Count(errOut, "\n") != 1 {
			t.Errorf("an error is one line: %s", errOut)
		}
	}

	text := out
	if errOut != "" {
		text += "--- beside the output\n" + errOut
	}

	text = times.ReplaceAllString(strings.ReplaceAll(text, embedded.Root()+"/", ""), "(a time)")

	sub := &tour{World: &testbed.World{T: t, Bed: w.Bed}}
	sub.keep(filepath.Join("testdata", g.name), []byte(uids.ReplaceAllString(text, "(a uid)")))
}

// screenshot keeps a picture of the page for the tour, with -update, where there is a browser.
func (w *tour) screenshot() {
	browser, err := exec.LookPath("chromium")
	if !*update {
		return
	}

	if err != nil {
		w.Log("SKIPPED: there is no chromium here, so docs/images/matrix.png stays as it is; install Debian's package chromium")

		return
	}

	out, _, _ := run(w.World, "matrix", "-o", "html")
	// The picture shows what a click does.
	click := `<script>document.querySelector("td.served").click()</script></body>`
	page := file(w.World, "matrix.html", strings.Replace(out, "</body>", click, 1))

	shot := exec.CommandContext(context.WithoutCancel(w.Context()), browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--hide-scrollbars", "--user-data-dir="+w.TempDir(), "--virtual-time-budget=3000", "--window-size=1180,720",
		"--screenshot="+filepath.Join(embedded.Root(), "docs", "images", "matrix.png"), "file://"+page)
	if text, err := shot.CombinedOutput(); err != nil {
		w.Fatalf("%v: %s", err, text)
	}
}
