package narrow

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// leads is a RoleBinding of kube-system that gives an account a Role there.
func leads(account string, labels map[string]string) rbacv1.RoleBinding {
	return rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "leader", Labels: labels},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindRole, Name: "leader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: account}},
	}
}

// TestWhatTheClusterGivesElsewhere holds that a fence lets through, and no warning about an argument denies, what a RoleBinding
// of the cluster gives an account in another namespace, though the input does not have it, and the output does not either. What
// Ambit made comes and goes with its scopes, so a fence knows nothing of it. What cannot be read is said to be refused.
func TestWhatTheClusterGivesElsewhere(t *testing.T) {
	t.Parallel()

	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	in := strings.Replace(anOperator([]rbacv1.PolicyRule{rule}),
		"image: example.com/op:1", "image: example.com/op:1\n        args: [--leader-election-namespace=kube-system]", 1)

	made := map[string]string{scope.LabelManagedBy: scope.ManagedBy}

	const (
		lets         = `request.resource.group in ["coordination.k8s.io"]`
		holdsNothing = "where it will hold nothing"
		unread       = "could not be read"
		unknown      = "refers to Role leader"
		noted        = "kube-system/leader of the cluster"
	)

	for name, tc := range map[string]struct {
		input    string
		there    []rbacv1.RoleBinding
		noRole   bool
		unread   bool
		unfenced bool
		// lets says whether the fence lets it through; told are the warnings.
		lets bool
		told []string
	}{
		"none":                        {told: []string{holdsNothing}},
		"one of the account":          {there: []rbacv1.RoleBinding{leads("op", nil)}, lets: true},
		"one of another account":      {there: []rbacv1.RoleBinding{leads("other", nil)}, told: []string{holdsNothing}},
		"one that Ambit made":         {there: []rbacv1.RoleBinding{leads("op", made)}, told: []string{holdsNothing}},
		"one whose Role nobody knows": {there: []rbacv1.RoleBinding{leads("op", nil)}, noRole: true, told: []string{unknown}},
		"one that the input has for another": {
			input: strings.Replace(bound("kube-system", "leader"), "of-leader", "leader", 1),
			there: []rbacv1.RoleBinding{leads("op", nil)}, told: []string{"refers to ClusterRole leader"},
		},
		"what is not read":                  {unread: true, told: []string{unread, holdsNothing}},
		"what is not read, without a fence": {unread: true, unfenced: true, told: []string{holdsNothing}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := Options{
				Members: []string{"a"}, Fence: &Fence{},
				RoleBindings: func() ([]rbacv1.RoleBinding, bool) { return tc.there, !tc.unread },
				RoleIn: func(namespace, name string) *rbacv1.Role {
					if tc.noRole || namespace != "kube-system" || name != "leader" {
						return nil
					}

					return &rbacv1.Role{Rules: []rbacv1.PolicyRule{
						{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"update"}},
					}}
				},
			}

			if tc.unfenced {
				o.Fence = nil
			}

			out, report := narrowed(t, o, in, tc.input)
			if is := strings.Contains(out, lets); is != tc.lets {
				t.Errorf("the fence lets it through: %t\n%s", is, out)
			}

			if tc.input == "" && strings.Contains(out, "kind: RoleBinding\nmetadata:\n  name: leader\n  namespace: kube-system") {
				t.Errorf("it is in the output:\n%s", out)
			}

			for _, want := range []string{holdsNothing, unread, unknown, "refers to ClusterRole leader"} {
				told := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, want) })
				if told != slices.Contains(tc.told, want) {
					t.Errorf("of %q it is told %t: %q", want, told, report.Warnings)
				}
			}

			if slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, noted) }) != tc.lets {
				t.Errorf("noted is %q", report.Notes)
			}
		})
	}
}

// TestFencesUnderOtherNames holds that a fence of the cluster is told of, with the command that deletes it, if it is about the
// same account and neither the input nor the output has it.
func TestFencesUnderOtherNames(t *testing.T) {
	t.Parallel()

	in := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}})
	there := func(name, user string) []admissionv1.ValidatingAdmissionPolicy {
		return []admissionv1.ValidatingAdmissionPolicy{{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
				MatchConditions: []admissionv1.MatchCondition{{Expression: `request.userInfo.username in ["x", "` + user + `"]`}},
			},
		}}
	}

	const user = "system:serviceaccount:ops:op"

	for name, tc := range map[string]struct {
		policies []admissionv1.ValidatingAdmissionPolicy
		unread   bool
		told     bool
	}{
		"its own":                       {policies: there("ambit-fence-ops.op", user)},
		"an older one":                  {policies: there("ambit-fence-ops-op", user), told: true},
		"one of another account":        {policies: there("ambit-fence-ops-op", user+"erator")},
		"one that is no fence of Ambit": {policies: there("ops-op", user)},
		"what is not read":              {unread: true},
	} {
		out, report := narrowed(t, Options{
			Members: []string{"a"}, Fence: &Fence{},
			Policies: func() ([]admissionv1.ValidatingAdmissionPolicy, bool) { return tc.policies, !tc.unread },
		}, in)
		if !strings.Contains(out, "name: ambit-fence-ops.op\n") {
			t.Fatalf("there is no fence:\n%s", out)
		}

		is := slices.ContainsFunc(report.Warnings, func(w string) bool {
			return strings.Contains(w, "delete --ignore-not-found validatingadmissionpolicybinding/ambit-fence-ops-op "+
				"validatingadmissionpolicy/ambit-fence-ops-op")
		})
		if is != tc.told {
			t.Errorf("%s: told is %q", name, report.Warnings)
		}

		if slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "policies") }) != tc.unread {
			t.Errorf("%s: noted is %q", name, report.Notes)
		}
	}
}

// TestWhatTheClusterGivesAtHome holds that a RoleBinding of the cluster in the operator's own namespace, which the input does not
// have, is named: the scope copies it into the members, where the input gave nothing of it. What no scope copies is not.
func TestWhatTheClusterGivesAtHome(t *testing.T) {
	t.Parallel()

	in := anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}})
	subject := func(kind, namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name}
	}
	account := subject(rbacv1.ServiceAccountKind, "ops", "op")

	for name, tc := range map[string]struct {
		there  rbacv1.RoleBinding
		form   Form
		unread bool
		// told says that it is named, and noted that such bindings may be missing.
		told, noted bool
	}{
		"of the account":      {there: atHome("extra", account), told: true},
		"without a namespace": {there: atHome("extra", subject(rbacv1.ServiceAccountKind, "", "op")), told: true},
		"by its user name": {
			there: atHome("extra", subject(rbacv1.UserKind, "", "system:serviceaccount:ops:op")), told: true,
		},
		"by the namespace's group": {there: atHome("extra", subject(rbacv1.GroupKind, "", "system:serviceaccounts:ops")), told: true},
		"by everybody's group":     {there: atHome("extra", subject(rbacv1.GroupKind, "", scope.GroupAuthenticated))},
		"of another account":       {there: atHome("extra", subject(rbacv1.ServiceAccountKind, "ops", "other"))},
		"of a namesake":            {there: atHome("extra", subject(rbacv1.ServiceAccountKind, "bank", "op"))},
		"in another namespace":     {there: leads("op", nil)},
		"of the input":             {there: atHome("leader", account)},
		"of a narrowing before":    {there: marked(atHome("extra", account), AnnotationFrom, "ClusterRoleBinding/op")},
		"that stays":               {there: marked(atHome("extra", account), scope.AnnotationProject, scope.ProjectDisabled)},
		"that Ambit made":          {there: managed(atHome("extra", account), scope.ManagedBy)},
		"of an authorization":      {there: managed(atHome("extra", account), scope.ManagedByAuthorization)},
		"where nothing is copied":  {there: atHome("extra", account), form: AsTemplate},
		"that is not read":         {unread: true, noted: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			out, report := narrowed(t, Options{
				As: tc.form, Members: []string{"a"},
				RoleBindings: func() ([]rbacv1.RoleBinding, bool) { return []rbacv1.RoleBinding{tc.there}, !tc.unread },
			}, in)

			const command = "kubectl annotate rolebinding -n ops -- extra ambit.dev/project=disabled"
			isTold := func(warning string) bool { return strings.HasSuffix(warning, command) }
			if told := slices.ContainsFunc(report.Warnings, isTold); told != tc.told {
				t.Errorf("it is told %t: %q", told, report.Warnings)
			}

			isNoted := func(note string) bool { return strings.Contains(note, "RoleBindings of the cluster could not be read") }
			if noted := slices.ContainsFunc(report.Notes, isNoted); noted != tc.noted {
				t.Errorf("it is noted %t: %q", noted, report.Notes)
			}

			if strings.Contains(out, "extra") {
				t.Errorf("it is in the output:\n%s", out)
			}
		})
	}
}

// atHome is a RoleBinding in the operator's namespace.
func atHome(name string, subject rbacv1.Subject) rbacv1.RoleBinding {
	return rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindClusterRole, Name: "edit"},
		Subjects:   []rbacv1.Subject{subject},
	}
}

func marked(b rbacv1.RoleBinding, annotation, value string) rbacv1.RoleBinding {
	b.Annotations = map[string]string{annotation: value}

	return b
}

func managed(b rbacv1.RoleBinding, by string) rbacv1.RoleBinding {
	b.Labels = map[string]string{scope.LabelManagedBy: by}

	return b
}
