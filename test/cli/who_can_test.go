package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// someone is a subject, and how the API server is asked about it.
type someone struct {
	rbacv1.Subject

	user   string
	groups []string
}

// rbacWorld is a random one: roles, aggregated ones among them, and bindings of all kinds of subjects.
type rbacWorld struct {
	*testbed.World

	r          *rand.Rand
	prefix     string
	namespaces []string
	people     []someone
}

// TestWhoCanIsWhatTheAPIServerSays asks both about random bindings: groups, aggregation, names, subresources and wildcards.
func TestWhoCanIsWhatTheAPIServerSays(t *testing.T) {
	w := &rbacWorld{
		World: beds.Begin(t, "cluster", "--restart-interval=1s"), r: testcluster.Draws(t, 0),
		prefix: "who-" + utilrand.String(6),
	}
	w.namespaces = []string{w.Namespace("who"), w.Namespace("who")}
	w.populate()

	asked, held := 0, 0

	for _, q := range []string{
		"get pods", "create pods", "get pods/log", "create pods/exec", "get secrets", "get secrets --name one", "list secrets",
		"delete secrets --name two", "update deployments.apps", "update deployments.apps/scale", "patch statefulsets.apps/scale",
		"get namespaces --name NS", "list namespaces", "get nodes", "patch nodes/status", "deletecollection configmaps", "* *.*",
		"get leases.coordination.k8s.io", "impersonate users --name jane", "use things.example.com", "get things.example.com/status",
	} {
		for _, namespace := range append([]string{""}, w.namespaces...) {
			q := strings.ReplaceAll(q, "NS", w.namespaces[0])

			w.Eventually("who can "+q+" in "+namespace, func() error {
				n, err := w.compare(q, namespace)
				asked, held = asked+len(w.people), held+n

				return err
			})
		}
	}

	t.Logf("%d answers compared, %d of them that somebody may", asked, held)

	if held < 100 {
		t.Error("that is too few to tell anything")
	}
}

// populate makes what is random. The names of the people are those of this test, so that nobody else gets anything.
func (w *rbacWorld) populate() {
	w.Helper()

	for i := range 4 {
		name := fmt.Sprintf("%s-user-%d", w.prefix, i)
		w.people = append(w.people, someone{rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}, name, nil})
		name = fmt.Sprintf("%s-group-%d", w.prefix, i)
		w.people = append(w.people,
			someone{rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}, w.prefix + "-nobody", []string{name}})

		at := w.namespaces[i%2]
		account := fmt.Sprintf("account-%d", i)
		w.Make(testbed.Account(at, account))
		w.people = append(w.people, someone{
			rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: at, Name: account}, "system:serviceaccount:" + at + ":" + account,
			[]string{"system:serviceaccounts", "system:serviceaccounts:" + at, "system:authenticated"},
		})
	}

	for i := range 14 {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.prefix, i)}, Rules: w.rules()}

		switch {
		case i < 3:
			role.Rules = nil
			role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
				{MatchLabels: map[string]string{w.prefix: strconv.Itoa(i)}},
			}}
		case i < 8:
			role.Labels = map[string]string{w.prefix: strconv.Itoa(i % 3)}
		}

		w.Make(role)
		w.Cleanup(func() { _ = w.Client.Delete(w.Context(), role) })
	}

	for i := range 18 {
		b := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.prefix, i)}, RoleRef: w.clusterRole(), Subjects: w.subjects(""),
		}
		if i < 6 { // Fewer, so that not everybody may everything.
			w.Make(b)
		}

		at := w.namespaces[i%2]
		name := fmt.Sprintf("role-%d", i)
		w.Make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: at, Name: name}, Rules: w.rules()})

		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
		if i%3 == 0 {
			ref = w.clusterRole()
		}

		w.Make(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: at, Name: name}, RoleRef: ref, Subjects: w.subjects(at)})
	}
}

func (w *rbacWorld) clusterRole() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprintf("%s-%d", w.prefix, w.r.IntN(14))}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (w *rbacWorld) rules() []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule

	for range 1 + w.r.IntN(3) {
		rule := rbacv1.PolicyRule{
			Verbs: pick(w.r, []string{"get"}, []string{"get", "list"}, []string{"*"}, []string{"create", "update", "patch"},
				[]string{"delete"}),
			APIGroups: pick(w.r, []string{""}, []string{"", "apps"}, []string{"apps"}, []string{"*"}, []string{"example.com"}),
			Resources: pick(w.r, []string{"pods"}, []string{"pods/log", "pods/exec"}, []string{"secrets", "namespaces"}, []string{"*"},
				[]string{"*/scale"}, []string{"deployments", "deployments/scale"}, []string{"pods/*"}, []string{"nodes", "nodes/status"},
				[]string{"things", "*/status"}),
		}

		if w.r.IntN(3) == 0 {
			rule.ResourceNames = pick(w.r, []string{"one"}, []string{"one", "two"}, []string{w.namespaces[0]}, []string{"two", ""})
		}

		out = append(out, rule)
	}

	return out
}

// subjects are some people, and in a namespace also groups that everybody's accounts are in.
func (w *rbacWorld) subjects(namespace string) []rbacv1.Subject {
	var out []rbacv1.Subject

	for range w.r.IntN(4) {
		out = append(out, pick(w.r, w.people...).Subject)
	}

	if namespace == "" || w.r.IntN(3) > 0 {
		return out
	}

	return append(out, pick(w.r,
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "account-0"}, // beside its binding
		rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName,
			Name: "system:serviceaccount:" + w.namespaces[1] + ":account-1"},
		rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts:" + w.namespaces[0]},
		rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"},
	))
}

// whoCan runs the command and returns who may, and the question as the command understood it.
func (w *rbacWorld) whoCan(question, namespace string) (holders []rbacv1.Subject, group, resource string, err error) {
	arguments := append(append([]string{"who-can"}, strings.Fields(question)...), "-o", "json")
	if namespace == "" {
		arguments = append(arguments, "-A")
	} else {
		arguments = append(arguments, "-n", namespace)
	}

	out, errOut, code := run(w.World, arguments...)
	if code != 0 {
		return nil, "", "", errors.New(errOut)
	}

	var said struct {
		Question struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"question"`
		Holders []rbacv1.Subject `json:"holders"`
	}

	err = json.Unmarshal([]byte(out), &said)

	return said.Holders, said.Question.Group, said.Question.Resource, err
}

// compare holds what the command says of everybody against the API server, and returns how many may.
func (w *rbacWorld) compare(question, namespace string) (int, error) {
	holders, group, resource, err := w.whoCan(question, namespace)
	if err != nil {
		return 0, err
	}

	words := strings.Fields(question)
	about := authorizationv1.ResourceAttributes{Namespace: namespace, Verb: words[0], Group: group}
	about.Resource, about.Subresource, _ = strings.Cut(resource, "/")

	if len(words) == 4 {
		about.Name = words[3]
	}

	switch about.Resource {
	case "namespaces":
		about.Namespace = about.Name // That is where a request for one is, and a list of them is nowhere.
	case "nodes":
		about.Namespace = ""
	}

	var (
		errs    = make([]error, len(w.people))
		allowed = make([]bool, len(w.people))
		wait    sync.WaitGroup
	)

	for i := range w.people {
		wait.Go(func() {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: w.people[i].user, Groups: w.people[i].groups, ResourceAttributes: &about,
			}}
			errs[i] = w.Client.Create(w.Context(), review)
			allowed[i] = review.Status.Allowed
		})
	}

	wait.Wait()

	n := 0

	for i := range w.people {
		if allowed[i] {
			n++
		}

		if told := w.people[i].isAmong(holders); told != allowed[i] {
			errs = append(errs, fmt.Errorf("%s: the API server says %t, and who-can %t", w.people[i].Name, allowed[i], told))
		}
	}

	return n, errors.Join(errs...)
}

// isAmong says whether holders name somebody, or a group that they are in.
func (s *someone) isAmong(holders []rbacv1.Subject) bool {
	return slices.ContainsFunc(holders, func(h rbacv1.Subject) bool {
		switch h.Kind {
		case rbacv1.UserKind:
			return h.Name == s.user
		case rbacv1.GroupKind:
			return slices.Contains(s.groups, h.Name)
		}

		return h.Kind == s.Kind && h.Name == s.Name && h.Namespace == s.Namespace
	})
}

// TestQuestionsAboutWhatIsNotThere holds that an answer says when the namespace or the account that it is about does not exist:
// for a misspelt name, "nobody" looks like a good answer. Who may not look is told nothing of that.
func TestQuestionsAboutWhatIsNotThere(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops := w.Namespace("ops")
	w.Make(testbed.Account(ops, "op"))

	nowhere, nobody := "namespace nowhere does not exist", "service account "+ops+"/nobody does not exist"

	for _, tc := range []struct {
		question string
		want     []string
	}{
		{"who-can get secrets -n OPS", nil},
		{"who-can get secrets -n nowhere", []string{nowhere}},
		{"who-can get secrets -A", nil},
		{"who-can get nodes -n nowhere", nil},
		{"who-can get namespaces --name nowhere", []string{nowhere}},
		{"why OPS/op -n OPS", nil},
		{"why OPS/op -n nowhere", []string{nowhere}},
		{"why OPS/nobody -n OPS", []string{nobody}},
		{"why OPS/nobody -n nowhere --verb get --resource secrets", []string{nobody, nowhere}},
		{"narrow --from OPS/op", nil},
		{"narrow --from OPS/nobody", []string{nobody}},
		{"who-can get secrets -n nowhere --as jane", nil},
		{"why OPS/nobody -n nowhere --as jane", nil},
	} {
		_, errOut, code := run(w, strings.Fields(strings.ReplaceAll(tc.question, "OPS", ops))...)

		var got []string

		for _, note := range []string{nobody, nowhere} {
			if strings.Contains(errOut, "Note: "+note) {
				got = append(got, note)
			}
		}

		if !slices.Equal(got, tc.want) || code != cli.ExitDone && code != cli.ExitMissing {
			t.Errorf("%s: exit %d, and told is %q, want %q: %s", tc.question, code, got, tc.want, errOut)
		}
	}
}
