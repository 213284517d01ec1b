package reach_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// of is a rule, each list of which is written with commas.
func of(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","),
		ResourceNames: names,
	}
}

// said are rights in words, each sensitive one with an exclamation mark.
func said(rights []reach.Right) []string {
	out := make([]string, 0, len(rights))

	for i := range rights {
		if out = append(out, rights[i].String()); rights[i].Sensitive {
			out[i] += "!"
		}
	}

	return out
}

// TestRights: rights by resource, those first through which more can be had than they say, also where a wildcard includes them.
func TestRights(t *testing.T) {
	t.Parallel()

	rbac, admission := rbacv1.GroupName, "admissionregistration.k8s.io"

	for reason, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  []string
	}{
		"verbs of several rules come once, sorted": {
			[]rbacv1.PolicyRule{of("", "configmaps", "watch,get"), of("", "configmaps", "get,list")},
			[]string{"get,list,watch configmaps"},
		},
		"what is harmless is sorted by name": {
			[]rbacv1.PolicyRule{of("", "services,configmaps", "get"), of("apps", "deployments", "get")},
			[]string{"get apps/deployments", "get configmaps", "get services"},
		},
		"the worst is first": {
			[]rbacv1.PolicyRule{of("", "configmaps,pods,pods/exec,secrets", "create,get")},
			[]string{"create,get secrets!", "create,get pods/exec!", "create,get pods!", "create,get configmaps"},
		},
		"reading pods is harmless": {[]rbacv1.PolicyRule{of("", "pods,pods/log", "get,list,watch")}, []string{
			"get,list,watch pods", "get,list,watch pods/log",
		}},
		"deleting secrets is, too": {[]rbacv1.PolicyRule{of("", "secrets", "delete")}, []string{"delete secrets"}},
		"a secret of another group is none": {
			[]rbacv1.PolicyRule{of("example.com", "secrets", "get")}, []string{"get example.com/secrets"},
		},
		"URLs are rights, too": {
			[]rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}, []string{"get /metrics"},
		},
		"all URLs are no resource": {
			[]rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}, of("", "configmaps", "get")},
			[]string{"* /*", "get configmaps"},
		},
		"and nothing of all resources is taken from them": {
			[]rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}, of("", "*", "delete")},
			[]string{"delete nodes/proxy!", "delete *!", "get /*"},
		},
		"whoever writes workloads runs pods": {
			[]rbacv1.PolicyRule{of("apps", "deployments", "patch"), of("batch", "jobs", "create")},
			[]string{"patch apps/deployments!", "create batch/jobs!"},
		},
		"whoever may bind may have everything": {[]rbacv1.PolicyRule{of(rbac, "clusterroles", "bind")}, []string{
			"bind rbac.authorization.k8s.io/clusterroles!",
		}},
		"so may who impersonates":             {[]rbacv1.PolicyRule{of("", "users", "impersonate")}, []string{"impersonate users!"}},
		"a node runs everything, by any verb": {[]rbacv1.PolicyRule{of("", "nodes/proxy", "delete")}, []string{"delete nodes/proxy!"}},
		"a certificate may be anybody's": {
			[]rbacv1.PolicyRule{of("certificates.k8s.io", "certificatesigningrequests/approval", "update")},
			[]string{"update certificates.k8s.io/certificatesigningrequests/approval!"},
		},
		"deleting what guards is as bad as changing it": {
			[]rbacv1.PolicyRule{of(admission, "validatingwebhookconfigurations,mutatingwebhookconfigurations", "delete")}, []string{
				"delete admissionregistration.k8s.io/validatingwebhookconfigurations!",
				"delete admissionregistration.k8s.io/mutatingwebhookconfigurations",
			},
		},
		"any verb is each of them": {[]rbacv1.PolicyRule{of("", "serviceaccounts/token", "*")}, []string{"* serviceaccounts/token!"}},
		"everything of the core group": {[]rbacv1.PolicyRule{of("", "*", "get")}, []string{
			"get secrets!", "get pods/exec!", "get pods/attach!", "get nodes/proxy!", "get *!",
		}},
		"everything of a group with dots": {[]rbacv1.PolicyRule{of(rbac, "*", "create")}, []string{
			"create rbac.authorization.k8s.io/*!", "create rbac.authorization.k8s.io/clusterrolebindings!",
			"create rbac.authorization.k8s.io/rolebindings!", "create rbac.authorization.k8s.io/clusterroles!",
			"create rbac.authorization.k8s.io/roles!",
		}},
		"everything of a group without": {[]rbacv1.PolicyRule{of("batch", "*", "create")}, []string{
			"create batch/*!", "create batch/jobs!", "create batch/cronjobs!",
		}},
		"a subresource of everything": {
			[]rbacv1.PolicyRule{of("", "*/exec", "create")}, []string{"create pods/exec!", "create */exec!"},
		},
		"what is called as a subresource": {[]rbacv1.PolicyRule{of("", "exec", "create")}, []string{"create exec"}},
		"a resource of every group": {
			[]rbacv1.PolicyRule{of("*", "deployments", "create")}, []string{"create apps/deployments!", "create */deployments!"},
		},
		"a wildcard with a harmless verb": {[]rbacv1.PolicyRule{of("batch", "*", "delete")}, []string{"delete batch/*"}},
	} {
		if got := said(reach.Rights(tc.rules)); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", reason, got, tc.want)
		}
	}
}

// TestAllowAny: a rule for some names counts, and one for another resource does not.
func TestAllowAny(t *testing.T) {
	t.Parallel()

	secrets := reach.Resource{Name: "secrets"}

	for reason, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want bool
	}{
		"the second verb":  {of("", "secrets", "list"), true},
		"by name":          {of("", "secrets", "get", "one"), true},
		"by a wildcard":    {of("*", "*", "*"), true},
		"another verb":     {of("", "secrets", "watch"), false},
		"another resource": {of("", "pods", "get"), false},
		"another group":    {of("example.com", "secrets", "get"), false},
	} {
		if got := reach.AllowAny([]rbacv1.PolicyRule{tc.rule}, secrets, "get", "list"); got != tc.want {
			t.Errorf("%s: %t", reason, got)
		}
	}

	if reach.AllowAny([]rbacv1.PolicyRule{of("", "secrets", "get")}, secrets) {
		t.Error("none of no verbs is allowed")
	}
}
