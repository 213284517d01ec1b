package templates_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// may asks the API server about a person, as "<verb> <resource>" of a group.
func (w *world) may(user, group, namespace, apiGroup, words string) bool {
	w.Helper()

	verb, resource, _ := strings.Cut(words, " ")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{group, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: apiGroup, Resource: resource,
		},
	}}
	w.Make(review)

	return review.Status.Allowed
}

// holds waits until all of it is so at one time.
func (w *world) holds(facts func() map[string]bool) {
	w.Helper()
	w.Eventually("all of it is so", func() error {
		for what, got := range facts() {
			if !got {
				return fmt.Errorf("it is not so that %s", what)
			}
		}

		return nil
	})
}

func TestServiceAccountsUsersAndGroups(t *testing.T) {
	w := begin(t)
	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	w.Make(testbed.Account(ops, "op"))

	account := operatorsv1alpha1.Subject{Kind: "ServiceAccount", Namespace: ops, Name: "op"}
	jane := operatorsv1alpha1.Subject{Kind: "User", Name: "jane " + w.id}
	team := operatorsv1alpha1.Subject{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "team:" + w.id}

	reader := entry("reader-", []string{"get secrets"})
	reader.Subjects = []operatorsv1alpha1.Subject{account, account}
	reader.BindingTemplate = &operatorsv1alpha1.BindingTemplate{Subjects: []operatorsv1alpha1.Subject{jane}}

	template := &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: w.name("t")},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{
			ClusterRoles:    []operatorsv1alpha1.ClusterRoleTemplate{reader, entry("lister-", []string{"list pods"})},
			BindingTemplate: &operatorsv1alpha1.BindingTemplate{Subjects: []operatorsv1alpha1.Subject{team}},
		},
	}
	w.Make(template)
	w.says(w.instance("i", "t", a), yes, "ScopingSuccessful")
	w.binds("i", a, a)
	w.May(ops, "op", a, "get secrets")

	w.holds(func() map[string]bool {
		return map[string]bool{
			"jane reads":           w.may(jane.Name, "", a, "", "get secrets"),
			"the team reads":       w.may("anna", team.Name, a, "", "get secrets"),
			"the team lists":       w.may("anna", team.Name, a, "", "list pods"),
			"jane does not list":   !w.may(jane.Name, "", a, "", "list pods"),
			"jane is not in b":     !w.may(jane.Name, "", b, "", "get secrets"),
			"the operator neither": !w.Allowed(ops, "op", a, "list pods"),
		}
	})

	readers := 0

	for _, binding := range w.bindingsIn(a) {
		if !strings.HasPrefix(binding.RoleRef.Name, "reader-") {
			continue
		}

		if readers++; len(binding.Subjects) != 3 {
			t.Errorf("subjects %v", binding.Subjects)
		}
	}

	if readers != 1 {
		t.Errorf("%d bindings of the reader", readers)
	}
}

// TestSubjectsThatCannotBeBound are named, and keep nobody else from what is theirs.
func TestSubjectsThatCannotBeBound(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	reader := entry("reader-", []string{"get secrets"}, ops+"/op")
	reader.Subjects = append(reader.Subjects,
		operatorsv1alpha1.Subject{Kind: "ServiceAccount", Name: "homeless"},
		operatorsv1alpha1.Subject{Kind: "ServiceAccount", Namespace: ops, Name: "grouped", APIGroup: rbacv1.GroupName},
		operatorsv1alpha1.Subject{Kind: "ServiceAccount", Namespace: ops, Name: "noSuchName"},
		operatorsv1alpha1.Subject{Kind: "User", Namespace: ops, Name: "settled"},
		operatorsv1alpha1.Subject{Kind: "Group", APIGroup: "example.com", Name: "foreigners"})
	template := w.template("t", reader, entry("nobody-", []string{"get pods"}, "/alone"))
	in := w.instance("i", "t", a)

	unbound := []string{
		"spec.clusterRoles[0].subjects[1], ServiceAccount homeless: a service account needs a namespace",
		"grouped", "noSuchName", "settled", "foreigners", "spec.clusterRoles[1].subjects[0], ServiceAccount alone",
		"the others are served",
	}
	w.says(template, no, "TemplatingFailed", unbound...)
	w.says(in, no, "ScopingFailed", unbound...)
	w.May(ops, "op", a, "get secrets")
	w.binds("i", a)

	w.Eventually("the statuses", func() error {
		w.get(template)
		w.get(in)

		if in.Status.BoundNamespaces != 1 || len(template.Status.ClusterRoles) != 2 || len(in.Status.FailedNamespaces) != 0 {
			return fmt.Errorf("of the instance %+v, of the template %+v", in.Status, template.Status)
		}

		return nil
	})

	w.Change(template, func() { template.Spec.ClusterRoles[0].Subjects = template.Spec.ClusterRoles[0].Subjects[:1] })
	w.Change(template, func() { template.Spec.ClusterRoles[1].Subjects[0].Namespace = ops })
	w.says(template, yes, "TemplatingSuccessful")
	w.says(in, yes, "ScopingSuccessful")
	w.binds("i", a, a)
}

// TestSamples applies what config/samples shows. The second of them is the first user story of the enhancement proposal: to
// choose who may use an operator's API.
func TestSamples(t *testing.T) {
	const group = "grafana.example.com"

	w := begin(t)
	other := w.Namespace("other")
	labelled := w.Namespace("labelled", "example.com/grafana=true")
	w.MakeNamespace("team-a")

	for _, sample := range []string{"operator-template.yaml", "users-template.yaml"} {
		path := filepath.Join(embedded.Root(), "config", "samples", sample)
		if _, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", path); err != nil {
			t.Fatal(err)
		}
	}

	for _, name := range []string{"grafana-operator", "grafana-users"} {
		w.says(&operatorsv1alpha1.ScopeInstance{ObjectMeta: metav1.ObjectMeta{Name: name}}, yes, "ScopingSuccessful")
	}

	w.holds(func() map[string]bool {
		return map[string]bool{
			"the operator works in team-a":      w.AllowedIn("grafana-system", "grafana-operator", "team-a", "watch", group, "grafanas"),
			"the operator works by label":       w.Allowed("grafana-system", "grafana-operator", labelled, "create deployments"),
			"the operator works nowhere else":   !w.Allowed("grafana-system", "grafana-operator", other, "get secrets"),
			"jane writes dashboards in team-a":  w.may("jane@example.com", "", "team-a", group, "create dashboards"),
			"so does the group dashboards":      w.may("joe", "dashboards", "team-a", group, "delete dashboards"),
			"jane writes none elsewhere":        !w.may("jane@example.com", "", labelled, group, "create dashboards"),
			"jane does nothing else there":      !w.may("jane@example.com", "", "team-a", "", "get secrets"),
			"auditors look":                     w.may("ann", "auditors", "team-a", group, "list dashboards"),
			"auditors do not touch":             !w.may("ann", "auditors", "team-a", group, "update dashboards"),
			"nobody else gets in":               !w.may("eve", "others", "team-a", group, "list dashboards"),
			"an account of that name elsewhere": !w.AllowedIn(other, "grafana-operator", "team-a", "watch", group, "grafanas"),
		}
	})
}

// TestRulesThatMeanNothingThere: in a namespace, a rule about what has no namespace grants nothing. That is no mistake of the
// administrator's, so it is a warning beside.
func TestRulesThatMeanNothingThere(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"))

	e := entry("all-", []string{"get,list secrets", "list nodes", "get,list namespaces"}, ops+"/op")
	e.Rules = append(e.Rules,
		rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}},
		rbacv1.PolicyRule{
			Verbs: []string{"watch"}, APIGroups: []string{"operators.coreos.com"}, Resources: []string{"scopetemplates/status"},
		},
		rbacv1.PolicyRule{Verbs: []string{"watch"}, APIGroups: []string{"operator.ibm.com"}, Resources: []string{"namespacescopes"}},
		rbacv1.PolicyRule{Verbs: []string{"use"}, APIGroups: []string{"example.com"}, Resources: []string{"unknowns"}},
		rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	w.template("t", e)

	narrow, wide := w.instance("narrow", "t", a), w.instance("wide", "t")
	c := w.effective(narrow, no)
	w.says(narrow, yes, "ScopingSuccessful")
	w.mentions(c.Message, "list nodes", "get /metrics", "watch scopetemplates.operators.coreos.com", "list namespaces")

	for _, word := range []string{"secrets", "get, list namespaces", "namespacescopes", "unknowns"} {
		if strings.Contains(c.Message, word) {
			t.Errorf("it names %s: %s", word, c.Message)
		}
	}

	if c.Reason != "ClusterScopedRules" {
		t.Errorf("reason %s", c.Reason)
	}

	if c := w.effective(wide, yes); c.Reason != "AllEffective" {
		t.Errorf("reason %s", c.Reason)
	}

	w.May(ops, "op", "", "list nodes")
}

func (w *world) effective(in *operatorsv1alpha1.ScopeInstance, status metav1.ConditionStatus) *metav1.Condition {
	w.Helper()

	var found *metav1.Condition

	w.Eventually(in.Name+" speaks of its rules", func() error {
		w.get(in)

		if found = meta.FindStatusCondition(in.Status.Conditions, "RulesEffective"); found == nil || found.Status != status {
			return fmt.Errorf("%+v", in.Status.Conditions)
		}

		return nil
	})

	return found
}

// TestRefusedClusterRole: what the API server itself refuses is told in its words, and the rest is served.
func TestRefusedClusterRole(t *testing.T) {
	w := begin(t)
	ops, a := w.Namespace("ops"), w.Namespace("a")
	w.Make(testbed.Account(ops, "op"), w.refusing("deny-"+w.id))

	probe := testbed.ClusterRole("deny-"+w.id+"-probe", "get pods")
	w.Eventually("the policy is in force", func() error {
		err := w.Client.Create(t.Context(), probe.DeepCopy())
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			return nil
		}

		return fmt.Errorf("not refused: %w", w.Client.Delete(t.Context(), probe.DeepCopy()))
	})

	template := w.template("t",
		entry("deny-"+w.id, []string{"get secrets"}, ops+"/op"),
		entry("fine-", []string{"get pods"}, ops+"/op"))
	in := w.instance("i", "t", a)
	w.says(template, no, "TemplatingFailed", "deny-"+w.id, "not on this cluster")
	w.says(in, no, "ScopingFailed", w.name("t"), "not on this cluster")
	w.May(ops, "op", a, "get pods")
	w.binds("i", a)

	if len(template.Status.ClusterRoles) != 1 || in.Status.BoundNamespaces != 0 {
		t.Errorf("status of the instance %+v, of the template %+v", in.Status, template.Status)
	}
}

// refusing makes a policy that refuses ClusterRoles with a name that begins so, and returns its binding.
func (w *world) refusing(prefix string) *admissionv1.ValidatingAdmissionPolicyBinding {
	w.Helper()

	fail := admissionv1.Fail
	w.Make(&admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: prefix},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule: admissionv1.Rule{
						APIGroups: []string{rbacv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"clusterroles"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("!object.metadata.name.startsWith(%q)", prefix), Message: "not on this cluster",
			}},
		},
	})

	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: prefix},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: prefix, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}
