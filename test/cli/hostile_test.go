package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// programs are the forms for programs.
var programs = []string{"json", "yaml"}

// hostile are strings that RBAC takes for names and rules, by what they would do to whoever reads them. Each has the word
// hostile, to be found by, and a line that begins with the word Forged.
func hostile() map[string]string {
	const end = "hostile\nForged: nothing is missing."

	return map[string]string{
		"sequences":       "\x1b[31m\x1b]0;title\x07\x1b]8;;http:x.example\x1b\\" + end,
		"one C1 byte":     "\u009b2J\u0085" + end + "\u2028\u2029",
		"overwriting":     "\x00\b\r\x7f\v\f\u00a0\u3000\t " + end,
		"direction":       "\u202e\u2066\u200f\u061ca\u0336\u20dd" + end,
		"nothing to see":  "\u200b\u200d\ufeff\u00ad\u2060\u3164\u2800\U000e0041\ufffe\U0001ffff\ufffd" + end,
		"quotes":          `"'\"\\'` + "`$(id)`;&|<>#- *: {a}: !!x |\n- " + end,
		"a list, of more": "secrets; get, list pods of \"\", hostile, Forged",
	}
}

// makeHostile makes an operator whose Roles, bindings and rules are called and say what is hostile, in an operator namespace
// with a scope that serves a member, and the like beside it. What is bound to nothing is there, too.
func makeHostile(w *testbed.World) (ops, member string) {
	w.Helper()

	ops, member = w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	for what, text := range hostile() {
		rules := []rbacv1.PolicyRule{{
			Verbs: []string{"get", text}, APIGroups: []string{"", text}, Resources: []string{text}, ResourceNames: []string{text},
		}}
		user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: text, Namespace: text}

		bound := testbed.Bind(ops, "Role", text, ops, "op")
		bound.Name, bound.Subjects = text, append(bound.Subjects, user)
		bound.Annotations = map[string]string{"meta.helm.sh/release-name": text}

		dangling := testbed.Bind(ops, "Role", text+"-nowhere", ops, "op")
		dangling.Name = text + "-nowhere"

		cluster := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ops + text}, Rules: rules}
		inCluster := testbed.Bind(ops, "ClusterRole", cluster.Name, ops, "op")
		inCluster.Name = text + "-cluster"

		direct := testbed.Bind(member, "Role", text, ops, "op")
		direct.Name, direct.Labels = text, map[string]string{"namespace-scope-configmap": "namespace-scope-" + ops}

		w.Make(
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: text}, Rules: rules}, bound, dangling, cluster, inCluster,
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: member, Name: text}, Rules: rules}, direct,
		)
		// The test's own context is cancelled by then.
		w.Cleanup(func() {
			if err := w.Client.Delete(context.Background(), cluster); err != nil {
				w.Error(err)
			}
		})

		if bound.Name != text || !slices.Equal(cluster.Rules[0].Resources, []string{text}) {
			w.Fatalf("%s: the API server keeps another text: %q", what, bound.Name)
		}
	}

	return ops, member
}

// forged finds a line that a name made.
var forged = regexp.MustCompile(`(?m)^[\s│├└─-]*Forged`)

// readable fails where something is printed that is not what it looks like.
func readable(w *testbed.World, what, text string) {
	w.Helper()

	for i, r := range text {
		if r != '\n' && (r == unicode.ReplacementChar && text[i] != 0xef ||
			!unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && r != ' ' || r == '\u3164' || r == '\u2800') {
			w.Errorf("%s prints %q", what, text[max(0, i-60):min(len(text), i+60)])

			break
		}
	}

	if found := forged.FindString(text); found != "" {
		w.Errorf("%s prints a line that a name made: %q in\n%s", what, found, text)
	}
}

// decoded are the values of what was printed for programs.
func decoded(w *testbed.World, form, text string) []any {
	w.Helper()

	var out []any

	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 1<<20)
	if form == "json" && !json.Valid([]byte(text)) {
		w.Errorf("it is no JSON: %s", text)
	}

	for {
		var value any

		err := decoder.Decode(&value)
		if err == io.EOF { //nolint:errorlint // The decoder returns it as it is.
			return out
		}

		if err != nil {
			w.Fatalf("it is no %s: %v: %s", form, err, text)
		}

		out = append(out, value)
	}
}

// texts are all strings in a value.
func texts(value any) []string {
	var out []string

	switch value := value.(type) {
	case string:
		out = append(out, value)
	case []any:
		for _, v := range value {
			out = append(out, texts(v)...)
		}
	case map[string]any:
		for k, v := range value {
			out = append(append(out, k), texts(v)...)
		}
	}

	return out
}

// TestHostileNamesReachNoTerminal feeds names and rules that hold whatever RBAC takes through every command in every form. What
// people read is one line for one thing, of characters that show themselves; what programs read is what is there.
func TestHostileNamesReachNoTerminal(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := makeHostile(w)

	// What a delegate lacks is everything; what the manager itself serves is shown as served.
	w.Make(testbed.Account(ops, "delegate"))
	served := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{member}})
	w.Reports(served, metav1.ConditionTrue, "Reconciled")

	scope := file(w, "scope.yaml", `apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: more, namespace: `+ops+`}
spec: {namespaceMembers: [`+member+`], serviceAccountName: delegate, configmapName: more}
`)
	roles := hostileRoles(w, ops)

	inBoth := ops + "," + member

	for name, c := range map[string]struct {
		arguments []string
		// silent says that nothing hostile is to be shown; forms are those besides the table, and exact that they hold every
		// text.
		silent bool
		forms  []string
		exact  bool
	}{
		"tree":        {arguments: []string{"tree", "-n", ops, "--all"}, forms: programs},
		"why":         {arguments: []string{"why", ops + "/op", "-n", member, "--all"}, forms: programs, exact: true},
		"why at home": {arguments: []string{"why", ops + "/op", "-n", ops}, forms: programs, exact: true},
		"matrix":      {arguments: []string{"matrix", "--in", inBoth}, silent: true, forms: programs},
		"page":        {arguments: []string{"matrix", "-o", "html", "--in", inBoth}},
		"drawing":     {arguments: []string{"matrix", "-o", "svg", "--in", inBoth}, silent: true},
		"operators":   {arguments: []string{"operators", "-n", member}, silent: true, forms: programs},
		"authorize": {
			arguments: []string{"authorize", member, "--to", ops, "--dry-run=server"}, forms: programs, exact: true,
		},
		"preflight": {
			arguments: []string{"preflight", "-n", ops, "--service-account", "delegate"}, forms: programs, exact: true,
		},
		"preflight of files": {
			arguments: []string{"preflight", "-f", roles, "--service-account", ops + "/delegate"}, forms: programs, exact: true,
		},
		"plan":              {arguments: []string{"plan", "-f", scope}, forms: programs, exact: true},
		"plan, differences": {arguments: []string{"plan", "-f", scope, "--diff"}},
		"plan of files":     {arguments: []string{"plan", "-f", roles}, forms: programs},
		"plan of deletion":  {arguments: []string{"plan", "-f", roles, "--delete", "--diff"}},
		"take-over":         {arguments: []string{"import", "--take-over", "--dry-run", "-n", ops}},
		"import":            {arguments: []string{"import", "-f", roles}, silent: true},
		"an error":          {arguments: []string{"plan", "-f", hostile()["sequences"]}},
	} {
		out, errOut, code := run(w, c.arguments...)
		readable(w, name, out)
		readable(w, name+", beside it,", errOut)

		if code == cli.ExitUsage || !c.silent && !strings.Contains(out+errOut, "hostile") {
			t.Errorf("%s shows nothing of it, exit code %d: %s%s", name, code, out, errOut)
		}

		for _, form := range c.forms {
			out, errOut, _ := run(w, append(slices.Clone(c.arguments), "-o", form)...)
			readable(w, name+" -o "+form, out)
			readable(w, name+" -o "+form+", beside it,", errOut)

			held := texts(decoded(w, form, out))
			for what, text := range hostile() {
				if c.exact && !slices.Contains(held, text) {
					t.Errorf("%s -o %s: %s is not as it is: %s", name, form, what, out)
				}
			}
		}
	}
}

// TestHostileBundlesReachNoTerminal holds the same of what is not in a cluster yet.
func TestHostileBundlesReachNoTerminal(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")

	var out, errOut bytes.Buffer

	code := cli.Run(t.Context(), []string{"catalog", "operators", "-f", hostileBundle(w)}, &out, &errOut)
	if code != cli.ExitDone || !strings.Contains(errOut.String(), `Secret x\u202e`) {
		t.Fatalf("exit code %d: %s%s", code, out.String(), errOut.String())
	}

	readable(w, "catalog", out.String())
	readable(w, "catalog, beside it,", errOut.String())

	held := strings.Join(texts(any(decoded(w, "yaml", out.String()))), "")
	if !strings.Contains(held, `\u202e`) && !strings.Contains(held, "\u202e") {
		t.Errorf("what the bundle says is lost: %q", held)
	}
}

// hostileBundle is the folder of an operator's bundle.
func hostileBundle(w *testbed.World) string {
	w.Helper()

	dir := w.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "manifests"), 0o700); err != nil {
		w.Fatal(err)
	}

	text, err := json.Marshal(map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion", "metadata": map[string]any{"name": "op.v1"},
		"spec": map[string]any{
			"displayName": hostile()["direction"], "description": hostile()["sequences"],
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{"deployments": []any{}}},
		},
	})
	if err != nil {
		w.Fatal(err)
	}

	for name, content := range map[string]string{
		filepath.Join("manifests", "csv.json"):  string(text),
		filepath.Join("manifests", "left.json"): `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x\u202e"}}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			w.Fatal(err)
		}
	}

	return dir
}

// hostileRoles is a file with Roles of the operator namespace, each with one rule more.
func hostileRoles(w *testbed.World, ops string) string {
	w.Helper()

	var items []any

	for _, text := range hostile() {
		items = append(items, map[string]any{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
			"metadata": map[string]any{"name": text, "namespace": ops},
			"rules":    []any{map[string]any{"apiGroups": []string{text}, "resources": []string{text}, "verbs": []string{text, "list"}}},
		})
	}

	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		w.Fatal(err)
	}

	return file(w, "roles.json", string(list))
}

// TestHostileRulesAreAuthorized holds that what somebody writes into a rule keeps nobody from consenting to it, and that the
// authorization is to exactly that rule, whoever writes it: the command, or kubectl with what the command printed.
func TestHostileRulesAreAuthorized(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := makeHostile(w)
	w.ScopeCalled(ops, "namespacescope", operatorv1.NamespaceScopeSpec{})

	granted := func(how string) {
		t.Helper()

		roles := &rbacv1.RoleList{}
		if err := w.Client.List(t.Context(), roles, client.InNamespace(member),
			client.MatchingLabels{"ambit.dev/authorized-for": ops}); err != nil {
			t.Fatal(err)
		}

		if len(roles.Items) != 1 {
			t.Fatalf("%s: %d grants", how, len(roles.Items))
		}

		for what, text := range hostile() {
			if !slices.ContainsFunc(roles.Items[0].Rules, func(r rbacv1.PolicyRule) bool {
				return slices.Equal(r.Verbs, []string{"get", text}) && slices.Equal(r.APIGroups, []string{"", text}) &&
					slices.Equal(r.Resources, []string{text}) && slices.Equal(r.ResourceNames, []string{text})
			}) {
				t.Errorf("%s: the rule of %s is not granted", how, what)
			}
		}

		w.Remove(&roles.Items[0])
	}

	printed, errOut, code := run(w, "authorize", member, "--to", ops, "-o", "yaml", "--grant-only")
	if code != cli.ExitDone {
		t.Fatalf("authorize: exit code %d: %s%s", code, printed, errOut)
	}

	granted("authorize")

	for _, form := range []string{"yaml", "json"} {
		printed, errOut, code := run(w, "authorize", member, "--to", ops, "-o", form, "--grant-only", "--dry-run=client")
		if code != cli.ExitDone {
			t.Fatalf("authorize: exit code %d: %s%s", code, printed, errOut)
		}

		if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", file(w, "grant."+form, printed)); err != nil {
			t.Fatalf("%v: %s", err, out)
		}

		granted("kubectl apply with -o " + form)
	}
}
