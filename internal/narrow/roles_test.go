package narrow

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// TestCheckOfRolesThatTakeOthersOfTheCluster holds that a new version asks for more where a ClusterRole of the files takes, by
// labels, the rules of those that the cluster has: for anything, if nobody knows these. What an old one took by the same
// labels is nothing more, and what is taken by one that is taken counts, too.
func TestCheckOfRolesThatTakeOthersOfTheCluster(t *testing.T) {
	t.Parallel()

	const head = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: "

	taking := func(name, label, of string) string {
		return head + name + ", labels: {l: " + label + "}}\n" +
			"aggregationRule: {clusterRoleSelectors: [{matchLabels: {l: " + of + "}}]}\n"
	}
	secrets := head + "secrets, labels: {l: c}}\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n"
	all := taking("x", "a", "all") + bound("", "x")

	const (
		unknown = "ops/op may do more in the whole cluster, by ClusterRoleBinding of-x: nobody knows the rules of ClusterRole x, " +
			"so it may give anything"
		known = "ops/op may do more in the whole cluster, by ClusterRole x: get secrets"
		whole = "whoever is bound to ClusterRole x may do more there, by ClusterRole x: "
	)

	cluster := []rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "live", Labels: map[string]string{"l": "all"}}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{"l": "a"}}, Rules: []rbacv1.PolicyRule{}},
	}

	for name, tc := range map[string]struct {
		before, after string
		there         []rbacv1.ClusterRole
		want          []string
	}{
		"of a cluster that nobody asks":   {"", all, nil, []string{unknown}},
		"of one that is asked":            {"", all, cluster, []string{known}},
		"of one that has none":            {"", all, []rbacv1.ClusterRole{}, nil},
		"as before":                       {all, all, nil, nil},
		"as before, of one that is asked": {all, all, cluster, nil},
		"by other labels":                 {taking("x", "a", "b") + bound("", "x"), all, nil, []string{unknown}},
		"by other labels, where it is bound": {
			taking("x", "a", "b"), taking("x", "a", "all"), cluster, []string{whole + "get secrets"},
		},
		"by one that it takes": {
			taking("x", "a", "b") + bound("", "x"),
			taking("x", "a", "b") + bound("", "x") + taking("y", "b", "c") + secrets, []rbacv1.ClusterRole{}, []string{known},
		},
		"in a circle": {
			"", taking("x", "a", "b") + taking("y", "b", "a") + bound("", "x"), []rbacv1.ClusterRole{}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := &Options{Kinds: reach.NewKinds()}
			if tc.there != nil {
				o.ClusterRoles = func() ([]rbacv1.ClusterRole, bool) { return tc.there, true }
			}

			got := askedFor(t, tc.before, tc.after, o)
			if !slices.Equal(got, tc.want) {
				t.Errorf("asked for is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestRolesThatTakeOthersOfTheClusterAreNamed holds that narrow warns of a binding that it leaves where its ClusterRole may take
// rules that are not in the input.
func TestRolesThatTakeOthersOfTheClusterAreNamed(t *testing.T) {
	t.Parallel()

	const text = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n" +
		"aggregationRule: {clusterRoleSelectors: [{matchLabels: {l: all}}]}\n"

	report, err := Narrow(stream(t, text+bound("", "x")), &Options{Kinds: reach.NewKinds(), Members: []string{"shop"}})
	if err != nil {
		t.Fatal(err)
	}

	want := "ClusterRole x, which may have more rules than the input says"
	if all := report.Warnings; len(all) != 1 || !strings.Contains(all[0], want) {
		t.Errorf("the warnings are %q", all)
	}
}

// TestCheckOfRolesThatTheClusterHas holds that a new version asks for more where it gives more rules to a role that the old one
// does not have and the cluster does, to whoever is bound to that; and that what the cluster gives back to a role, whatever the
// files say, counts for whom the files bind to it.
func TestCheckOfRolesThatTheClusterHas(t *testing.T) {
	t.Parallel()

	role := func(kind, meta, resources string) string {
		return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + meta + "}\n" +
			"rules: [{apiGroups: [''], resources: [" + resources + "], verbs: [get]}]\n"
	}
	get := func(resource string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}}
	}
	there := []rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Rules: get("pods")},
		{ObjectMeta: metav1.ObjectMeta{Name: "taking"}, Rules: get("nodes"), AggregationRule: &rbacv1.AggregationRule{}},
		{ObjectMeta: metav1.ObjectMeta{Name: "edit"}, Rules: get("secrets"), AggregationRule: &rbacv1.AggregationRule{}},
	}

	const (
		op      = "ops/op may do more in the whole cluster, by "
		whoever = "whoever is bound to "
	)

	for name, tc := range map[string]struct {
		before, after string
		offline       bool
		want          []string
	}{
		"more of another's ClusterRole": {
			after: role(kindClusterRole, "theirs", "pods, secrets"),
			want:  []string{whoever + "ClusterRole theirs may do more there, by ClusterRole theirs: get secrets"},
		},
		"as much": {after: role(kindClusterRole, "theirs", "pods")},
		"more of another's Role": {
			after: role(kindRole, "theirs, namespace: ops", "pods, secrets"),
			want:  []string{whoever + "Role theirs may do more in namespace ops, by Role theirs: get secrets"},
		},
		"a Role of a name that another namespace has": {after: role(kindRole, "theirs, namespace: shop", "pods, secrets")},
		"more of a ClusterRole that everybody has": {
			after: role(kindClusterRole, "'system:basic-user'", "secrets"), offline: true,
			want: []string{whoever + "ClusterRole system:basic-user may do more there, by ClusterRole system:basic-user: get secrets"},
		},
		"more of a Role of Kubernetes": {
			after: role(kindRole, "'system:controller:token-cleaner', namespace: kube-system", "pods"), offline: true,
			want: []string{whoever + "Role system:controller:token-cleaner may do more in namespace kube-system, by Role " +
				"system:controller:token-cleaner: get pods"},
		},
		"no less of one that everybody has": {
			after: role(kindClusterRole, "edit", "") + bound("", "edit"), want: []string{op + "ClusterRole edit: get secrets"},
		},
		"no less of one, and nobody is asked": {
			after: role(kindClusterRole, "edit", "") + bound("", "edit"), offline: true,
			want: []string{op + "ClusterRoleBinding of-edit: nobody knows the rules of ClusterRole edit, so it may give anything"},
		},
		"as before": {
			before: role(kindClusterRole, "edit", "") + bound("", "edit"), after: role(kindClusterRole, "edit", "") + bound("", "edit"),
			offline: true,
		},
		"no less of one that takes rules": {
			after: role(kindClusterRole, "taking", "") + bound("", "taking"), want: []string{op + "ClusterRole taking: get nodes"},
		},
		"more of one that is bound, and had by whom the files bind": {
			before: role(kindClusterRole, "x", "secrets") + bound("", "x") + role(kindClusterRole, "y", ""),
			after: role(kindClusterRole, "x", "secrets") + bound("", "x") + role(kindClusterRole, "y", "secrets, pods") +
				strings.Replace(bound("", "y"), "of-y", "y", 1),
			want: []string{
				op + "ClusterRole y: get pods", whoever + "ClusterRole y may do more there, by ClusterRole y: get secrets; get pods",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := &Options{Kinds: reach.NewKinds()}
			if !tc.offline {
				o.ClusterRoles = func() ([]rbacv1.ClusterRole, bool) { return there, true }
				o.Roles = func(name string) *rbacv1.ClusterRole {
					if i := slices.IndexFunc(there, func(r rbacv1.ClusterRole) bool { return r.Name == name }); i >= 0 {
						return &there[i]
					}

					return nil
				}
				o.RoleIn = func(namespace, name string) *rbacv1.Role {
					if namespace+"/"+name != "ops/theirs" {
						return nil
					}

					return &rbacv1.Role{Rules: get("pods")}
				}
			}

			got := askedFor(t, tc.before, tc.after, o)
			if !slices.Equal(got, tc.want) {
				t.Errorf("asked for is %q, want %q", got, tc.want)
			}
		})
	}
}
