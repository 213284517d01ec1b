package narrow_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// object is a manifest, with what the test looks at.
type object struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Rules    []rbacv1.PolicyRule `json:"rules"`
	RoleRef  rbacv1.RoleRef      `json:"roleRef"`
	Subjects []rbacv1.Subject    `json:"subjects"`
	text     string
}

func objectsOf(w *testbed.World, text string) []object {
	w.Helper()

	var out []object

	for part := range strings.SplitSeq("\n"+text, "\n---") {
		o := object{text: part}
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			w.Fatal(err)
		}

		if o.Kind != "" {
			out = append(out, o)
		}
	}

	return out
}

func textOf(all []object, wanted func(*object) bool) string {
	var b strings.Builder

	for i := range all {
		if wanted(&all[i]) {
			b.WriteString("---\n" + strings.TrimPrefix(all[i].text, "\n") + "\n")
		}
	}

	return b.String()
}

func isRBAC(o *object) bool {
	return slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"}, o.Kind)
}

// isAnswered says whether something has to run for a kind to do no harm: no operator really runs here.
func isAnswered(o *object) bool {
	return strings.HasSuffix(o.Kind, "WebhookConfiguration") || o.Kind == "APIService"
}

// atoms are all rules that the accounts of cluster-wide bindings hold, one by one.
func atoms(all []object) []question {
	rules := map[string][]rbacv1.PolicyRule{}

	for i := range all {
		if all[i].Kind == "ClusterRole" {
			rules[all[i].Metadata.Name] = all[i].Rules
		}
	}

	var out []question

	for i := range all {
		if all[i].Kind != "ClusterRoleBinding" {
			continue
		}

		for _, s := range all[i].Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace != "kube-system" {
				out = append(out, atomsOf("system:serviceaccount:"+s.Namespace+":"+s.Name, rules[all[i].RoleRef.Name])...)
			}
		}
	}

	return unique(out)
}

// unique leaves out what is asked already: an account may hold a rule by two roles.
func unique(all []question) []question {
	asked := map[question]bool{}

	return slices.DeleteFunc(all, func(q question) bool {
		again := asked[q]
		asked[q] = true

		return again
	})
}

func atomsOf(user string, rules []rbacv1.PolicyRule) []question {
	var out []question

	for _, r := range rules {
		for _, verb := range r.Verbs {
			for _, url := range r.NonResourceURLs {
				out = append(out, question{user: user, verb: verb, url: url})
			}

			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					names := r.ResourceNames
					if len(names) == 0 {
						names = []string{""}
					}

					for _, name := range names {
						resource, sub, _ := strings.Cut(resource, "/")
						out = append(out, question{user: user, group: group, resource: resource, sub: sub, verb: verb, name: name})
					}
				}
			}
		}
	}

	return out
}

func in(all []question, namespace string) []question {
	out := slices.Clone(all)
	for i := range out {
		out[i].namespace = namespace
	}

	return out
}

// row is a line of the table.
type row struct {
	operator                  string
	rules, wide, accounts     int
	secretsBefore, secretsNow int
	lost, gained, asked       int
}

// TestRealOperators narrows the default installs of real operators, by one command each, applies what comes out with kubectl, and
// asks the API server about every rule in every kind of namespace. $AMBIT_MANIFESTS is a folder with others: one folder each, in
// which are crds.yaml and install.yaml.
func TestRealOperators(t *testing.T) {
	dir := cmp.Or(os.Getenv("AMBIT_MANIFESTS"), filepath.Join(embedded.Root(), "..", "shared", "manifests"))
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(paths) == 0 {
		t.Skip("there are no manifests of real operators here")
	}

	w := begin(t)
	members := []string{w.Namespace("member"), w.Namespace("member")}
	outside := w.Namespace("outside")

	var table []row

	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			of := *w
			of.T = t
			table = append(table, narrowOne(&of, path, members, outside))
		})
	}

	t.Logf("\n%-28s %5s %5s %4s %14s %13s %5s %6s %6s", "OPERATOR", "RULES", "AFTER", "ACC.", "SECRETS BEFORE", "SECRETS AFTER",
		"LOST", "GAINED", "ASKED")

	for _, r := range table {
		t.Logf("%-28s %5d %5d %4d %14d %13d %5d %6d %6d", r.operator, r.rules, r.wide, r.accounts, r.secretsBefore, r.secretsNow,
			r.lost, r.gained, r.asked)
	}
}

func narrowOne(w *testbed.World, path string, members []string, outside string) row {
	w.Helper()

	crds := read(w, filepath.Join(path, "crds.yaml"))
	before := objectsOf(w, read(w, filepath.Join(path, "install.yaml")))
	questions := atoms(before)
	r := row{operator: filepath.Base(path)}

	kubectl(w, crds, "apply", "--server-side", "-f", "-")

	home := homeOf(before)
	if home != "default" && home != "kube-system" {
		w.MakeNamespace(home)
	}
	kubectl(w, textOf(before, isRBAC), "apply", "-f", "-")

	places := append([]string{"", outside, home}, members...)
	had := map[string][]bool{}

	for _, place := range []string{"", home, outside} {
		had[place] = askAll(w, in(questions, place))
		r.asked += len(questions)
	}

	// Before, a member is a namespace like any other.
	for _, member := range members {
		had[member] = had[outside]
	}

	r.secretsBefore = readableSecrets(w, questions)
	kubectl(w, textOf(before, isRBAC), "delete", "--ignore-not-found", "-f", "-")

	out, errOut, code := ambit(w, "narrow", "-f", path, "--members", strings.Join(members, ","))
	if code != 0 {
		w.Fatalf("exit %d: %s", code, errOut)
	}

	after := objectsOf(w, out)
	kubectl(w, textOf(after, func(o *object) bool {
		return !isAnswered(o) && o.Kind != "CustomResourceDefinition"
	}), "apply", "-f", "-")
	settled(w, after)

	for _, place := range places {
		now := askAll(w, in(questions, place))
		r.asked += len(questions)
		isMember := place == home || slices.Contains(members, place)

		for i := range questions {
			clusterScoped := isClusterScoped(w, &questions[i])

			switch {
			case had[place][i] && !now[i] && (isMember || clusterScoped && place == ""):
				r.lost++

				w.Errorf("%s lost %s in %q", r.operator, &questions[i], place)
			case now[i] && !had[place][i]:
				r.gained++

				w.Errorf("%s gained %s in %q", r.operator, &questions[i], place)
			case now[i] && place == outside && !clusterScoped && questions[i].url == "" && questions[i].resource != "namespaces":
				w.Errorf("%s still may %s in %q", r.operator, &questions[i], place)
			}
		}
	}

	for _, member := range members {
		lease := question{user: questions[0].user, namespace: member, group: "coordination.k8s.io", resource: "leases", verb: "create"}
		if !grants(before, &lease) && askAll(w, []question{lease})[0] {
			w.Errorf("%s gained leases in a member: its leader election was copied", r.operator)
		}
	}

	r.rules, r.wide, r.accounts = wideRules(before), wideRules(after), accounts(before)
	r.secretsNow = readableSecrets(w, questions)

	kubectl(w, textOf(after, func(o *object) bool {
		return isRBAC(o) || o.Kind == "NamespaceScope" || o.Kind == "Deployment"
	}), "delete", "--ignore-not-found", "-f", "-")

	return r
}

func read(w *testbed.World, path string) string {
	w.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		w.Fatal(err)
	}

	return string(text)
}

// homeOf is the namespace of an operator. Some say it of the account in their binding only.
func homeOf(all []object) string {
	for i := range all {
		if all[i].Kind == "Deployment" && all[i].Metadata.Namespace != "" {
			return all[i].Metadata.Namespace
		}
	}

	for i := range all {
		if all[i].Kind == "ClusterRoleBinding" {
			return all[i].Subjects[0].Namespace
		}
	}

	return "default"
}

// grants says whether a cluster-wide binding gave something before.
func grants(all []object, q *question) bool {
	return slices.ContainsFunc(atoms(all), func(a question) bool {
		return a.group == q.group && a.resource == q.resource && (a.verb == q.verb || a.verb == "*")
	})
}

// settled waits until the scopes are Ready.
func settled(w *testbed.World, all []object) {
	w.Helper()

	for i := range all {
		if all[i].Kind != "NamespaceScope" {
			continue
		}

		w.Eventually(all[i].Metadata.Name+" is ready", func() error {
			nss := &operatorv1.NamespaceScope{}
			key := client.ObjectKey{Namespace: all[i].Metadata.Namespace, Name: all[i].Metadata.Name}

			if err := w.Client.Get(w.Context(), key, nss); err != nil {
				return err
			}

			for _, c := range nss.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" && nss.Status.ObservedGeneration == nss.Generation {
					return nil
				}
			}

			return fmt.Errorf("it is %+v", nss.Status.Conditions)
		})
	}
}

// readableSecrets counts the namespaces whose Secrets any of the accounts may read.
func readableSecrets(w *testbed.World, questions []question) int {
	w.Helper()

	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("NamespaceList")

	if err := w.Client.List(w.Context(), list); err != nil {
		w.Fatal(err)
	}

	users := map[string]bool{}
	for i := range questions {
		users[questions[i].user] = true
	}

	n := 0

	for i := range list.Items {
		var asked []question
		for user := range users {
			asked = append(asked, question{user: user, namespace: list.Items[i].GetName(), resource: "secrets", verb: "list"})
		}

		if slices.Contains(askAll(w, asked), true) {
			n++
		}
	}

	return n
}

func wideRules(all []object) int {
	n, bound := 0, map[string]bool{}

	for i := range all {
		if all[i].Kind == "ClusterRoleBinding" {
			bound[all[i].RoleRef.Name] = true
		}
	}

	for i := range all {
		if all[i].Kind == "ClusterRole" && bound[all[i].Metadata.Name] {
			n += len(all[i].Rules)
		}
	}

	return n
}

func accounts(all []object) int {
	found := map[string]bool{}
	for _, q := range atoms(all) {
		found[q.user] = true
	}

	return len(found)
}

// isClusterScoped says whether a resource has no namespace, as the API server has it.
func isClusterScoped(w *testbed.World, q *question) bool {
	switch {
	case q.url != "" || q.resource == "signers" || q.resource == "subjectaccessreviews":
		return true
	case q.resource == "namespaces":
		return slices.Contains([]string{"list", "watch", "create"}, q.verb)
	}

	mapping, err := w.Client.RESTMapper().ResourceFor(schema.GroupVersionResource{Group: q.group, Resource: q.resource})
	if err != nil {
		return false // Wildcards, and kinds that are not installed.
	}

	kind, err := w.Client.RESTMapper().KindFor(mapping)
	if err != nil {
		return false
	}

	m, err := w.Client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)

	return err == nil && m.Scope.Name() == "root"
}
