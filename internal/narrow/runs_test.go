package narrow

import (
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// TestCheckOfWhatRunsAsOthers holds that a version asks for more where something of it runs as an account that neither version
// gives anything, or has a token of it: whoever wrote the version then has what others gave that account.
func TestCheckOfWhatRunsAsOthers(t *testing.T) {
	t.Parallel()

	const before = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op, namespace: ops}\n---\n"

	pod := func(namespace, account string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: " + namespace + "}\nspec: {" + account + "}\n---\n"
	}

	for name, tc := range map[string]struct{ before, after, want string }{
		"another account":         {before, before + pod("ops", "serviceAccountName: other"), "Pod ops/x: ops/other"},
		"its own":                 {before, before + pod("ops", "serviceAccountName: op"), ""},
		"the default one":         {before, before + pod("ops", ""), ""},
		"the default one, abroad": {before, before + pod("shop", ""), "Pod shop/x: shop/default"},
		"the default one, by a ReplicationController": {
			before, before + "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: x, namespace: shop}\n" +
				"spec: {template: {spec: {containers: []}}}\n",
			"ReplicationController shop/x: shop/default",
		},
		"the default one, by a ClusterServiceVersion": {
			before, before + "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\n" +
				"metadata: {name: x, namespace: shop}\nspec: {install: {strategy: deployment, " +
				"spec: {deployments: [{name: x, spec: {template: {spec: {containers: []}}}}]}}}\n",
			"ClusterServiceVersion shop/x: shop/default",
		},
		"the default one, by a kind of somebody's": {
			before, before + "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: x, namespace: shop}\n" +
				"spec: {template: {spec: {containers: [{name: a, image: b}]}}}\n", "Rollout shop/x: shop/default",
		},
		"containers that are none": {
			before, before + "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: x, namespace: shop}\n" +
				"spec: {containers: [a]}\n", "",
		},
		"by the older field":   {before, before + pod("ops", "serviceAccount: other"), "Pod ops/x: ops/other"},
		"as before":            {pod("shop", "serviceAccountName: a"), pod("shop", "serviceAccountName: a"), ""},
		"one that gets rights": {before, bound("", "system:auth-delegator") + "---\n" + pod("ops", "serviceAccountName: op"), ""},
		"one of Kubernetes": {
			before, before + strings.ReplaceAll(before, "ops", "kube-system") + pod("kube-system", "serviceAccountName: op"),
			"Pod kube-system/x: kube-system/op",
		},
		"one of OpenShift's oldest namespace, which is there already": {
			strings.ReplaceAll(before, "ops", "openshift"),
			strings.ReplaceAll(before, "ops", "openshift") + pod("openshift", "serviceAccountName: op"),
			"Pod openshift/x: openshift/op",
		},
		"another kind": {
			before, "apiVersion: example.com/v1\nkind: Runner\nmetadata: {name: x, namespace: ops}\n" +
				"spec: {x: &a other, templates: [{spec: {serviceAccountName: *a}}]}\n", "Runner ops/x: ops/other",
		},
		"a token": {
			before, "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\n" +
				"metadata: {name: x, namespace: ops, annotations: {kubernetes.io/service-account.name: other}}\n",
			"Secret ops/x: ops/other",
		},
		"one that it brings where it was not": {
			before, before + strings.ReplaceAll(before, "ops", "shop") + pod("shop", "serviceAccountName: op"), "Pod shop/x: shop/op",
		},
		"one that it brings where it was": {
			before, before + strings.ReplaceAll(before, "name: op,", "name: another,") + pod("ops", "serviceAccountName: another"), "",
		},
		"the default one where it brings another": {
			before, before + strings.ReplaceAll(before, "ops", "shop") + pod("shop", ""), "Pod shop/x: shop/default",
		},
	} {
		got := slices.DeleteFunc(asks(t, tc.before, tc.after), func(of string) bool { return strings.Contains(of, "auth-delegator") })

		want := []string{}
		if who, account, is := strings.Cut(tc.want, ": "); is {
			want = append(want, who+" may do more in the whole cluster, by "+who+": what service account "+account+
				" holds, which it names")
		}

		if !slices.Equal(got, want) {
			t.Errorf("%s: asked for is %q, want %q", name, got, want)
		}
	}
}

// TestCheckOfAccountsThatTheClusterHas holds that an account which a new version brings counts as somebody else's where the
// cluster has it and the old version does not, and as its own where the cluster does not have it, wherever that is.
func TestCheckOfAccountsThatTheClusterHas(t *testing.T) {
	t.Parallel()

	const (
		account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op, namespace: shop}\n---\n"
		pod     = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: shop}\nspec: {serviceAccountName: op}\n---\n"
		other   = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: other, namespace: shop}\n---\n"
	)

	for name, tc := range map[string]struct {
		before       string
		there, known bool
		want         int
	}{
		"it is there":           {other, true, true, 1},
		"the old one has it":    {account, true, true, 0},
		"it is not there":       {"", false, true, 0},
		"nobody knows":          {"", false, false, 1},
		"nobody knows, at home": {other, false, false, 0},
	} {
		o := &Options{Kinds: reach.NewKinds(), AccountThere: func(a Account) (bool, bool) {
			return tc.there && a == Account{Namespace: "shop", Name: "op"}, tc.known
		}}

		if more, _, err := Check(stream(t, tc.before), stream(t, account+pod), o); err != nil || len(more) != tc.want {
			t.Errorf("%s: asked for is %+v, %v", name, more, err)
		}
	}
}
