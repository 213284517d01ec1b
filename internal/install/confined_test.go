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

// TestClusterPermissionsWithoutAnAccount: they are the default account's, as where they are granted.
func TestClusterPermissionsWithoutAnAccount(t *testing.T) {
	t.Parallel()

	csv := &olm.ClusterServiceVersion{}
	csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []olm.StrategyDeploymentPermissions{
		{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
		{ServiceAccountName: "default", Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}}}},
	}

	if got := ClusterPermissions(csv); len(got) != 1 || len(got["default"]) != 2 {
		t.Errorf("got %v, want both rules for the default account", got)
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
		"OpenShift's":   {rule("apps.openshift.io", "deploymentconfigs", "create"), true, false},
		"its builds":    {rule("build.openshift.io", "builds", "create"), true, false},
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
		"processes":     {pod(func(p *corev1.PodSpec) { p.HostPID = true }), true, false},
		"memory":        {pod(func(p *corev1.PodSpec) { p.HostIPC = true }), true, false},
		"files":         {pod(mounting(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}})), true, false},
		"own files":     {pod(mounting(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})), false, false},
		"privileged":    {pod(func(p *corev1.PodSpec) { p.Containers = privileged() }), true, false},
		"at first":      {pod(func(p *corev1.PodSpec) { p.InitContainers = privileged() }), true, false},
		"capabilities":  {pod(secured(corev1.SecurityContext{Capabilities: capable("SYS_ADMIN")})), true, false},
		"raw proc":      {pod(secured(corev1.SecurityContext{ProcMount: new(corev1.UnmaskedProcMount)})), true, false},
		"restricted": {pod(secured(corev1.SecurityContext{
			Privileged: new(false), ProcMount: new(corev1.DefaultProcMount),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		})), false, false},
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

func mounting(source corev1.VolumeSource) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) { p.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
}

func secured(context corev1.SecurityContext) func(*corev1.PodSpec) {
	return func(p *corev1.PodSpec) { p.Containers[0].SecurityContext = &context }
}

func capable(of ...corev1.Capability) *corev1.Capabilities { return &corev1.Capabilities{Add: of} }

// TestWhatAnAdministratorHasToGrant: where nothing cluster-scoped is made, what a CSV needs of that is a requirement, with what
// somebody else has to grant for it.
func TestWhatAnAdministratorHasToGrant(t *testing.T) {
	t.Parallel()

	nodes := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}}}
	csv := member("op.v1", func(c *olm.ClusterServiceVersion) {
		c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []olm.StrategyDeploymentPermissions{
			{ServiceAccountName: "op", Rules: nodes},
		}
	})

	for reason, tc := range map[string]struct {
		lacks map[string]ClusterLack
		phase olm.ClusterServiceVersionPhase
		says  string
		// keeps says whether an install that has begun keeps what was written for it, and one that runs goes on.
		keeps bool
	}{
		"nobody asked":      {nil, olm.CSVPhasePending, "let an administrator grant service account op: get nodes", false},
		"it is not granted": {map[string]ClusterLack{"op": {Rules: nodes}}, olm.CSVPhasePending, "account op: get nodes", false},
		"nobody knows": {
			map[string]ClusterLack{"op": {Unknown: "it is late"}}, olm.CSVPhasePending, "is not known: it is late", true,
		},
		"it is granted":       {map[string]ClusterLack{"op": {}}, olm.CSVPhaseInstallReady, "holds its clusterPermissions", true},
		"another one's lacks": {map[string]ClusterLack{"other": {}}, olm.CSVPhasePending, "grant service account op", false},
	} {
		w := snapshotOf([]string{ownNamespace}, csv)
		w.Accounts = map[string]facts.Account{"op": {Made: true}}
		w.Confined = &Confined{Cluster: tc.lacks, AmbitNamespace: "elsewhere"}

		v := w.Decide(csv)

		var says []string
		for _, s := range v.Requirements {
			says = append(says, s.Message)
		}

		if v.Phase != tc.phase || !strings.Contains(strings.Join(says, "; "), tc.says) {
			t.Errorf("%s: it is %s: %s: %q", reason, v.Phase, v.Message, says)
		}

		if begun := v.KeepRBAC && v.Phase == olm.CSVPhasePending; begun {
			t.Errorf("%s: one that has not begun is given permissions", reason)
		}

		w.Holding = map[string]map[string]struct{}{csv.Name: {ownNamespace: {}}}
		if keeps := w.Decide(csv).KeepRBAC; keeps != tc.keeps {
			t.Errorf("%s: one that has begun keeps its permissions: %t", reason, keeps)
		}

		w.running(csv, 1)

		// One that runs goes on while it is not known whether it still has what it had. What it never had, it does not have.
		for before, had := range map[olm.StatusReason]bool{
			"": false, olm.RequirementStatusReasonNotPresent: false,
			olm.RequirementStatusReasonPresent: true, olm.RequirementStatusReasonNotAvailable: true,
		} {
			csv.Status.RequirementStatus = []olm.RequirementStatus{{Kind: "ClusterRoleBinding", Name: "op", Status: before}}

			v := w.Decide(csv)
			if goesOn := tc.phase == olm.CSVPhaseInstallReady || tc.keeps && had; !v.KeepRBAC || v.ApplyObjects != goesOn {
				t.Errorf("%s, before it was %q: one that runs is %s: %s", reason, before, v.Phase, v.Message)
			}
		}

		csv.Status.Phase = olm.CSVPhasePending
		csv.Status.RequirementStatus = []olm.RequirementStatus{
			{Kind: "ClusterRoleBinding", Name: "op", Status: olm.RequirementStatusReasonNotAvailable},
		}

		if v := w.Decide(csv); v.ApplyObjects != (tc.phase == olm.CSVPhaseInstallReady) {
			t.Errorf("%s: what waits for it is %s: %s", reason, v.Phase, v.Message)
		}

		csv.Status = olm.ClusterServiceVersionStatus{}
	}
}

// TestBeyond: whoever asks beforehand is told what somebody else has to make.
func TestBeyond(t *testing.T) {
	t.Parallel()

	csv := member("op.v1", hooked(about("", "pods")))
	csv.Spec.CustomResourceDefinitions.Required = []olm.CRDDescription{{Name: "gadgets.example.com", Version: "v2"}}

	got := strings.Join(Beyond(csv, func(crd olm.CRDDescription) bool { return crd.Name == widgets }), "; ")
	if !strings.HasPrefix(got, "CustomResourceDefinition gadgets.example.com (v2); ") || strings.Contains(got, widgets) ||
		!strings.Contains(got, "AdmissionWebhook") {
		t.Errorf("beyond its reach are %s", got)
	}
}
