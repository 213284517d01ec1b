package narrow

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// TestCheckOfOtherWays holds that a new version asks for more where something that is no rule and no binding gives it more.
func TestCheckOfOtherWays(t *testing.T) {
	t.Parallel()

	const (
		nss = "apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s, namespace: ops}\n" +
			"spec: {namespaceMembers: [a], restartLabels: {a: b}, csvInjector: {enable: false}}\n---\n"
		csv = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n" +
			"metadata: {name: op.v1, namespace: ops, annotations: {nss.operator.ibm.com/managed-operators: 'x'}}\n" +
			"spec: {install: {strategy: deployment, spec: {deployments: []}}}\n---\n"
		account    = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op, namespace: ops}\n---\n"
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: op, namespace: ops}\n" +
			"spec: {template: {metadata: {labels: {c: d}}, spec: {serviceAccountName: op, containers: []}}}\n---\n"
		controller = "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: rc, namespace: ops}\n" +
			"spec: {template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: op, containers: []}}}\n---\n"
	)

	another := func(apiVersion, kind, rest string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: x, namespace: kube-system}\n" + rest
	}

	for name, tc := range map[string]struct{ before, after, want string }{
		"labels of a scope on pods of another kind": {nss + account + deployment, deployment + controller, "accounts: op"},
		"none of the scope's":                       {nss + account + deployment, strings.Replace(controller, "a: b", "a: c", 1), ""},
		"labels that scopes inject":                 {nss, strings.Replace(nss, "false", "true", 1), "csvInjector: enabled"},
		"a package into which they are":             {csv, strings.Replace(csv, "'x'", "'x, y'", 1), "packages: y"},
		"the same packages":                         {csv, strings.Replace(csv, "'x'", "' x,'", 1), ""},
		"a token of a group": {
			account, another("v1", "Secret", "type: bootstrap.kubernetes.io/token\n"), "it may give anything",
		},
		"a Secret":             {account, another("v1", "Secret", "type: Opaque\n"), ""},
		"who is who at Amazon": {account, strings.Replace(another("v1", "ConfigMap", ""), "name: x", "name: aws-auth", 1), "anything"},
		"whom extensions believe": {
			account, strings.Replace(another("v1", "ConfigMap", ""), "name: x", "name: extension-apiserver-authentication", 1), "anything",
		},
		"a ConfigMap":        {account, another("v1", "ConfigMap", ""), ""},
		"a package":          {account, another("pkg.crossplane.io/v1", "Provider", "spec: {package: a}\n"), "it may give anything"},
		"roles of a project": {account, another("management.cattle.io/v3", "GlobalRoleBinding", "globalRoleName: admin\n"), "anything"},
		"what is installed": {
			account, another("source.toolkit.fluxcd.io/v1", "GitRepository", "spec: {url: a}\n"), "it may give anything",
		},
		"who is in a group": {account, another("user.openshift.io/v1", "Group", "users: [a]\n"), "it may give anything"},
		"what others write": {account, another("kyverno.io/v1", "ClusterPolicy", "spec: {rules: []}\n"), "it may give anything"},
		"tokens of whoever mounts something": {
			account, another("storage.k8s.io/v1", "CSIDriver", "spec: {tokenRequests: [{audience: ''}]}\n"), "it may give anything",
		},
		"a driver": {account, another("storage.k8s.io/v1", "CSIDriver", "spec: {podInfoOnMount: true}\n"), ""},
	} {
		got := asks(t, tc.before, tc.after)
		if len(got) != min(1, len(tc.want)) || len(got) == 1 && !strings.Contains(got[0], tc.want) {
			t.Errorf("%s: asked for is %q, want %q", name, got, tc.want)
		}
	}
}

// TestCheckOfWhatIsThereTwice holds that a version is refused of which nobody knows what holds in the end.
func TestCheckOfWhatIsThereTwice(t *testing.T) {
	t.Parallel()

	scopes := "apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s, namespace: ops}\n"

	for name, text := range map[string]string{
		"ClusterRoleBindings": bound("", "view"), "RoleBindings": bound("ops", "view"), "NamespaceScopes": scopes,
	} {
		_, _, err := Check(stream(t, text+"---\n"+text), stream(t, text), &Options{Kinds: reach.NewKinds()})
		if err == nil || !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", name, err)
		}
	}

	both := bound("ops", "view") + strings.Replace(bound("ops", "view"), "namespace: ops", "namespace: shop", 1)
	if _, _, err := Check(stream(t, both), stream(t, both), &Options{Kinds: reach.NewKinds()}); err != nil {
		t.Errorf("in two namespaces: %v", err)
	}
}

// TestBindingsWithoutANameAreRefused holds that nothing is written which kubectl apply refuses, or which leaves the old binding
// there because nobody knows its name.
func TestBindingsWithoutANameAreRefused(t *testing.T) {
	t.Parallel()

	for _, namespace := range []string{"", "ops"} {
		text := strings.Replace(bound(namespace, "view"), "metadata: {name: ", "metadata: {generateName: ", 1)

		_, err := Narrow(stream(t, text), &Options{Kinds: reach.NewKinds()})
		if err == nil || !strings.Contains(err.Error(), "it has no metadata.name, by which it would be applied; give it one") {
			t.Errorf("in namespace %q: %v", namespace, err)
		}
	}
}

// TestCheckOfRolesThatAreLeftOut holds that a ClusterRole which only the old version has, and stays, is taken by the labels of a
// new one, also where the cluster does not have it yet.
func TestCheckOfRolesThatAreLeftOut(t *testing.T) {
	t.Parallel()

	const (
		part = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: part, labels: {a: b}}\n" +
			"rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n"
		taker = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: taker}\n" +
			"aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\nrules: []\n"
	)

	none := func() ([]rbacv1.ClusterRole, bool) {
		return []rbacv1.ClusterRole{{ObjectMeta: metav1.ObjectMeta{Name: "other"}}}, true
	}

	for before, want := range map[string]int{part: 1, strings.Replace(part, "a: b", "a: c", 1): 0} {
		o := &Options{Kinds: reach.NewKinds(), ClusterRoles: none}
		more, _, err := Check(stream(t, before), stream(t, taker+bound("", "taker")), o)
		if err != nil || len(more) != want || want == 1 && more[0].Rights[0].Resource != "secrets" {
			t.Errorf("of %s, %v: %+v", before, err, more)
		}
	}
}

// TestCheckOfWhatEndsAPolicy holds that a policy counts as changed if the garbage collector will delete it or its parameter, or
// if the parameter is no longer selected.
func TestCheckOfWhatEndsAPolicy(t *testing.T) {
	t.Parallel()

	const list = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: f, namespace: ops, labels: {a: b}}\ndata: {namespaces: a}\n"

	fence := strings.ReplaceAll(fenced, "NAME", "f") + list
	selected := strings.Replace(fence, "paramRef: {name: f, namespace: ops}", "paramRef: {selector: {matchLabels: {a: b}}}", 1)
	owned := "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: 1}], "

	for name, tc := range map[string]struct {
		before, after string
		want          int
	}{
		"as before":              {fence, fence, 0},
		"owned by nobody":        {fence, strings.Replace(fence, "metadata: {name: f}", "metadata: {"+owned+"name: f}", 1), 1},
		"a list owned by nobody": {fence, strings.Replace(fence, "name: f, namespace: ops, ", owned+"name: f, namespace: ops, ", 1), 1},
		"another label":          {fence, strings.Replace(fence, "labels: {a: b}", "labels: {a: c}", 1), 0},
		"no longer selected":     {selected, strings.Replace(selected, "labels: {a: b}", "labels: {a: c}", 1), 1},
		"a parameter of a kind that nobody knows": {
			"---\n" + strings.Split(fence, "---\n")[2] + list,
			strings.Replace("---\n"+strings.Split(fence, "---\n")[2]+list, "kind: ConfigMap", "kind: Limits", 1), 1,
		},
	} {
		if got := asks(t, tc.before, tc.after); len(got) != tc.want {
			t.Errorf("%s: asked for is %q", name, got)
		}
	}
}

// TestCheckOfPoliciesOfTheCluster holds that a new version counts that writes a policy of the cluster or its parameter, which no
// files had.
func TestCheckOfPoliciesOfTheCluster(t *testing.T) {
	t.Parallel()

	const account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op, namespace: ops}\n"

	fence := strings.ReplaceAll(fenced, "NAME", "f")
	list := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: f, namespace: ops}\ndata: {namespaces: a}\n"
	o := &Options{Kinds: reach.NewKinds(), Fences: func() *Stream { return stream(t, fence) }}

	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"none of it":      {account, account, nil},
		"its list":        {account, account + list, []string{"ConfigMap ops/f"}},
		"as before":       {account + list, account + list, nil},
		"another list":    {account, account + strings.Replace(list, "name: f", "name: g", 1), nil},
		"of another kind": {account, account + strings.Replace(list, "ConfigMap", "Limits", 1), nil},
		"the policy": {
			account, account + "---\n" + strings.Replace(strings.Split(fence, "---\n")[1], "v1, kind", "v2, kind", 1),
			[]string{"ValidatingAdmissionPolicy f"},
		},
	} {
		more, _, err := Check(stream(t, tc.before), stream(t, tc.after), o)

		var got []string
		for i := range more {
			got = append(got, more[i].Role)
		}

		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: asked for is %q, %v", name, got, err)
		}
	}
}

// TestCheckRefusesKeysThatAreOtherText holds that a key is refused of which kubectl makes another text, and no other.
func TestCheckRefusesKeysThatAreOtherText(t *testing.T) {
	t.Parallel()

	text := func(key string) string {
		return "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {" + key + ": 'x'}}\n"
	}

	for key, refused := range map[string]bool{
		"yes": true, "on": true, "Y": true, "NO": true, "012": true, "0x1": true, "1_0": true, "1.50": true, "~": true, "TRUE": true,
		"'yes'": false, "true": false, "8080": false, "1.5": false, "nope": false, "1.2.3": false,
		"2001-01-01": false, "!!str yes": false,
	} {
		_, _, err := Check(stream(t), stream(t, text(key)), &Options{Kinds: reach.NewKinds()})
		if (err != nil) != refused {
			t.Errorf("the key %s: %v", key, err)
		}
	}
}

// TestCheckOfWhatIsBoundAndUnknown holds that a ClusterRole is told of by itself where it comes to take what nobody knows,
// although a binding of the files says the rest, and that a RoleBinding of the old version may wait for one.
func TestCheckOfWhatIsBoundAndUnknown(t *testing.T) {
	t.Parallel()

	role := func(name, resource, rest string) string {
		return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\n" +
			"rules: [{apiGroups: [''], resources: [" + resource + "], verbs: [get]}]\n" + rest
	}

	const takes = "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}\n"

	both := bound("", "known") + bound("", "takes") + role("takes", "pods", takes)

	for name, tc := range map[string]struct {
		before, after string
		want, notes   []string
	}{
		"it comes to take others": {
			both + role("known", "pods", ""), both + role("known", "secrets", takes),
			[]string{"account: get secrets", "anything"}, []string{"more rules than the files say", "more rules than the files say"},
		},
		"it is waited for":  {bound("ops", "waited"), role("waited", "pods", ""), []string{"anybody: get pods"}, nil},
		"it is in no files": {bound("", "known"), bound("", "known"), nil, []string{"is not in the files"}},
	} {
		more, notes, err := Check(stream(t, tc.before), stream(t, tc.after), &Options{Kinds: reach.NewKinds()})

		var got []string

		for i := range more {
			who := "anybody: "
			if more[i].Whose+more[i].BoundTo == "" {
				who = "account: "
			}

			if more[i].Unknown {
				got = append(got, "anything")
			} else {
				got = append(got, who+more[i].Rights[0].String())
			}
		}

		said := len(notes) == len(tc.notes)
		for i := range min(len(notes), len(tc.notes)) {
			said = said && strings.Contains(notes[i], tc.notes[i])
		}

		if err != nil || !said || !slices.Equal(got, tc.want) {
			t.Errorf("%s: asked for is %q, with %q, %v", name, got, notes, err)
		}
	}
}
