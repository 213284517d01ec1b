package compile_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/compile"
)

func templateOf(name string, spec operatorsv1alpha1.ScopeTemplateSpec) *operatorsv1alpha1.ScopeTemplate {
	return &operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}, Spec: spec}
}

func entriesOf(names ...string) operatorsv1alpha1.ScopeTemplateSpec {
	var spec operatorsv1alpha1.ScopeTemplateSpec
	for _, n := range names {
		spec.ClusterRoles = append(spec.ClusterRoles, operatorsv1alpha1.ClusterRoleTemplate{GenerateName: n})
	}

	return spec
}

func namesOf(t *operatorsv1alpha1.ScopeTemplate) []string {
	var names []string
	for _, d := range compile.ScopeTemplate(t, true).Scope.Defines {
		names = append(names, d.Name)
	}

	return names
}

func TestNamesOfClusterRoles(t *testing.T) {
	t.Parallel()

	first := namesOf(templateOf("t", entriesOf("a-", "b-", "a-")))
	if again := namesOf(templateOf("t", entriesOf("a-", "b-", "a-"))); !slices.Equal(first, again) {
		t.Errorf("the names are not the same again: %v, %v", first, again)
	}

	for i, begins := range []string{"a-", "b-", "a-"} {
		if !strings.HasPrefix(first[i], begins) || len(first[i]) != len(begins)+10 {
			t.Errorf("%q is not %q and ten digits", first[i], begins)
		}
	}

	// Names that stay are those of ClusterRoles that stay: an entry that comes or goes elsewhere changes no other.
	if more := namesOf(templateOf("t", entriesOf("c-", "a-", "b-", "a-"))); !slices.Equal(first, more[1:]) {
		t.Errorf("an entry in front changed the others: %v, %v", first, more)
	}

	all := slices.Concat(first, namesOf(templateOf("u", entriesOf("a-", "b-", "a-"))))
	if slices.Sort(all); len(slices.Compact(all)) != 6 {
		t.Errorf("two entries have one name: %v", all)
	}

	// Without separators in what is hashed, these would run together.
	if x, y := namesOf(templateOf("ab", entriesOf("c"))), namesOf(templateOf("a", entriesOf("bc"))); x[0][1:] == y[0][2:] {
		t.Errorf("one hash for two entries: %v, %v", x, y)
	}
}

func TestTemplateExistsWhileReferredTo(t *testing.T) {
	t.Parallel()

	for _, referred := range []bool{true, false} {
		s := compile.ScopeTemplate(templateOf("t", entriesOf("a-")), referred).Scope
		if s.Members.Everywhere != referred || s.Members.Unconfirmed || s.OwnerUID != "u" || s.OwnerVersion != "v1alpha1" {
			t.Errorf("referred %t: %+v", referred, s)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()

	account := operatorsv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "a"}
	bound := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "a"}

	for name, tc := range map[string]struct {
		reason  string
		from    operatorsv1alpha1.Subject
		want    []rbacv1.Subject
		problem string
	}{
		"ServiceAccount": {reason: "has a namespace and no group", from: account, want: []rbacv1.Subject{bound}},
		"User": {
			reason: "has a group and no namespace", from: operatorsv1alpha1.Subject{Kind: "User", Name: "jane"},
			want: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "jane"}},
		},
		"Group": {
			reason: "the same", from: operatorsv1alpha1.Subject{Kind: "Group", Name: "team a", APIGroup: rbacv1.GroupName},
			want: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: "team a"}},
		},
		"Homeless": {
			reason: "an account without a namespace is never guessed", problem: "needs a namespace",
			from: operatorsv1alpha1.Subject{Kind: "ServiceAccount", Name: "a"},
		},
		"NoName": {
			reason: "the API server would refuse the binding with all its subjects", problem: "can be called so",
			from: operatorsv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "Upper"},
		},
		"GroupOfAccount": {
			reason: "so would it this", problem: "has no apiGroup",
			from: operatorsv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "ops", Name: "a", APIGroup: "v1"},
		},
		"NamespaceOfUser": {
			reason: "a user is a user everywhere; somebody meant something else", problem: "only a service account has a namespace",
			from: operatorsv1alpha1.Subject{Kind: "User", Namespace: "ops", Name: "jane"},
		},
		"GroupOfGroup": {
			reason: "there is one API group of users", problem: "apiGroup",
			from: operatorsv1alpha1.Subject{Kind: "Group", APIGroup: "example.com", Name: "team"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			spec := entriesOf("a-", "b-")
			spec.ClusterRoles[0].Subjects = []operatorsv1alpha1.Subject{tc.from, tc.from}
			spec.ClusterRoles[0].BindingTemplate = &operatorsv1alpha1.BindingTemplate{Subjects: []operatorsv1alpha1.Subject{tc.from}}

			got := compile.ScopeTemplate(templateOf("t", spec), true)
			if tc.problem == "" {
				if len(got.Problems) > 0 || len(got.Binds) != 1 || !reflect.DeepEqual(got.Binds[0].Subjects, tc.want) {
					t.Errorf("%s: %+v", tc.reason, got)
				}

				return
			}

			if len(got.Binds) > 0 || len(got.Problems) != 3 || !strings.Contains(got.Problems[0], tc.problem) ||
				!strings.HasPrefix(got.Problems[2], "spec.clusterRoles[0].bindingTemplate.subjects[0], ") {
				t.Errorf("%s: %+v", tc.reason, got)
			}
		})
	}

	// Those of the whole template go to each entry.
	spec := entriesOf("a-", "b-")
	spec.BindingTemplate = &operatorsv1alpha1.BindingTemplate{Subjects: []operatorsv1alpha1.Subject{account}}

	for _, b := range compile.ScopeTemplate(templateOf("t", spec), true).Binds {
		if !reflect.DeepEqual(b.Subjects, []rbacv1.Subject{bound}) {
			t.Errorf("%s goes to %v", b.Role, b.Subjects)
		}
	}
}

func TestReachOfInstances(t *testing.T) {
	t.Parallel()

	selects := func(raw string) operatorsv1alpha1.ScopeInstanceSpec {
		return operatorsv1alpha1.ScopeInstanceSpec{NamespaceSelector: &operatorv1.NamespaceSelector{Raw: []byte(raw)}}
	}

	for name, tc := range map[string]struct {
		reason      string
		spec        operatorsv1alpha1.ScopeInstanceSpec
		reached     operatorsv1alpha1.Reach
		annotation  string
		everywhere  bool
		unconfirmed bool
		kept        bool
	}{
		"New": {reason: "nothing said from the beginning", everywhere: true, unconfirmed: true},
		"Always": {
			reason: "it was so before", reached: operatorsv1alpha1.ReachCluster, everywhere: true, unconfirmed: true,
		},
		"Emptied":   {reason: "it had namespaces", reached: operatorsv1alpha1.ReachNamespaces, kept: true},
		"Confirmed": {reason: "in so many words", reached: operatorsv1alpha1.ReachNamespaces, annotation: "true", everywhere: true},
		"Misspelt":  {reason: "and in no others", reached: operatorsv1alpha1.ReachNamespaces, annotation: "True", kept: true},
		"Named": {
			reason: "names are names, whatever is allowed", annotation: "true",
			spec: operatorsv1alpha1.ScopeInstanceSpec{Namespaces: []string{"a"}},
		},
		"EmptySelector": {reason: "an empty selector is one", spec: selects(`{}`), annotation: "true"},
		"BadSelector":   {reason: "so is one that cannot be read", spec: selects(`{"matchLabels":{"a":"b"},"c":"d"}`)},
		"AnySelector":   {reason: "so is one", spec: selects(`{"a":"b"}`)},
		"SelectsNothing": {
			reason: "and one that matches nothing", spec: selects(`{"nobody":"has-this"}`), reached: operatorsv1alpha1.ReachCluster,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			in := &operatorsv1alpha1.ScopeInstance{Spec: tc.spec}
			in.Status.Reach = tc.reached

			if tc.annotation != "" {
				in.Annotations = map[string]string{operatorsv1alpha1.AnnotationAllowClusterWide: tc.annotation}
			}

			got := compile.ScopeInstance(in, nil)
			if m := got.Members; m.Everywhere != tc.everywhere || m.Unconfirmed != tc.unconfirmed || m.Kept != tc.kept {
				t.Errorf("%s: %+v", tc.reason, m)
			}

			if m := got.Members; (m.Kept || m.Unconfirmed) && m.Problem == "" {
				t.Errorf("%s: it does not say why: %+v", tc.reason, m)
			}

			if len(got.Binds) > 0 {
				t.Errorf("without a template it binds %v", got.Binds)
			}
		})
	}
}

func TestInstanceUnitesNamesAndSelector(t *testing.T) {
	t.Parallel()

	in := &operatorsv1alpha1.ScopeInstance{Spec: operatorsv1alpha1.ScopeInstanceSpec{
		Namespaces: []string{"b", "a", "b"}, NamespaceSelector: &operatorv1.NamespaceSelector{Raw: []byte(`{"team":"x"}`)},
	}}
	m := compile.ScopeInstance(in, nil).Members

	if !slices.Equal(m.Named, []string{"a", "b"}) || !m.Selector.Matches(labels.Set{"team": "x"}) ||
		m.Selector.Matches(labels.Set{}) {
		t.Errorf("%+v", m)
	}
}
