package install

import (
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
)

func TestResolveNamed(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		group  Group
		want   string
	}{
		"names":    {"only names are known", Group{Named: []string{"b", "a", "b"}}, "a,b"},
		"both":     {"names win, as everywhere", Group{Named: []string{"a"}, Selector: []byte(`{}`)}, "a"},
		"selector": {"labels cannot be read", Group{Selector: []byte(`{"matchLabels":{"a":"b"}}`)}, ""},
		"nothing":  {"silence never means all", Group{}, ""},
		"all":      {"nor does a name that says so", Group{Named: []string{"a", ""}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tc.group.ResolveNamed()
			if strings.Join(got.Namespaces, ",") != tc.want || compile.IsEverywhere(got.Namespaces) ||
				(tc.want == "") != (got.Problem != "") {
				t.Errorf("%s: %+v, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestTrespass: what a CSV may not do where Ambit runs, and where it does not.
func TestTrespass(t *testing.T) {
	t.Parallel()

	rule := func(group, resource string, verbs ...string) func(*olm.StrategyDetailsDeployment) {
		return func(s *olm.StrategyDetailsDeployment) {
			s.Permissions = []olm.StrategyDeploymentPermissions{{ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs},
			}}}
		}
	}
	pod := func(edit func(*corev1.PodSpec)) func(*olm.StrategyDetailsDeployment) {
		return func(s *olm.StrategyDetailsDeployment) { edit(&s.DeploymentSpecs[0].Spec.Template.Spec) }
	}

	for name, tc := range map[string]struct {
		edit func(*olm.StrategyDetailsDeployment)
		// home and elsewhere say whether it is refused where Ambit runs, and in another namespace.
		home, elsewhere bool
	}{
		"nothing":       {func(*olm.StrategyDetailsDeployment) {}, false, false},
		"configmaps":    {rule("", "configmaps", "*"), false, false},
		"logs":          {rule("", "pods/log", "get"), false, false},
		"look at pods":  {rule("", "pods", "get", "list", "watch"), false, false},
		"pods":          {rule("", "pods", "create"), true, false},
		"exec":          {rule("", "pods/exec", "get"), true, false},
		"all of pods":   {rule("", "pods/*", "get"), true, false},
		"deployments":   {rule("apps", "deployments", "patch"), true, false},
		"jobs":          {rule("batch", "jobs", "create"), true, false},
		"secrets":       {rule("", "secrets", "get"), true, false},
		"everything":    {rule("*", "*", "get"), true, false},
		"tokens":        {rule("", "serviceaccounts/token", "create"), true, false},
		"impersonation": {rule("", "serviceaccounts", "impersonate"), true, false},
		"roles":         {rule(rbacv1.GroupName, "roles", "escalate"), true, false},
		"scopes":        {rule("operator.ibm.com", "namespacescopes", "create"), true, false},
		"older scopes":  {rule("namespacescope.ibm.com", "*", "patch"), true, false},
		"groups":        {rule(olm.GroupName, "operatorgroups", "update"), true, false},
		"versions":      {rule(olm.GroupName, "clusterserviceversions", "patch"), true, false},
		"what it reads": {rule("operator.ibm.com", "namespacescopes", "get", "list", "watch"), false, false},
		"its condition": {rule(olm.GroupName, "operatorconditions", "get", "update", "patch"), false, false},
		"its requests":  {rule("operator.ibm.com", "operandrequests", "*"), false, false},
		"host":          {pod(func(p *corev1.PodSpec) { p.HostNetwork = true }), true, false},
		"privileged":    {pod(func(p *corev1.PodSpec) { p.Containers = privileged() }), true, false},
		"Ambit's Secret": {pod(func(p *corev1.PodSpec) {
			p.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "names"}}
		}), true, false},
		"a strong one": {pod(func(p *corev1.PodSpec) { p.ServiceAccountName = "strong" }), true, false},
		"its own":      {pod(func(p *corev1.PodSpec) { p.ServiceAccountName = "ambit" }), true, true},
		"older field":  {pod(func(p *corev1.PodSpec) { p.ServiceAccountName, p.DeprecatedServiceAccount = "", "ambit" }), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			csv := member("op.v1")
			csv.Spec.InstallStrategy.StrategySpec.Permissions = nil
			csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "op"
			tc.edit(&csv.Spec.InstallStrategy.StrategySpec)

			for home, want := range map[string]bool{ownNamespace: tc.home, "elsewhere": tc.elsewhere} {
				w := snapshotOf([]string{ownNamespace}, csv)
				w.Accounts = map[string]facts.Account{"strong": {}, "op": {Made: true}}
				w.Confined = &Confined{Accounts: []string{"ambit"}, AmbitNamespace: home, Secret: "names"}

				if got := w.Decide(csv); (got.Reason == olm.CSVReasonComponentFailed) != want || want && got.KeepRBAC {
					t.Errorf("with Ambit in %s it is %s: %s", home, got.Reason, got.Message)
				}
			}
		})
	}
}

func privileged() []corev1.Container {
	return []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}
}
