package plan

import (
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
)

// TestRefusalsSayWhy holds that whatever is refused comes with its reason, once.
func TestRefusalsSayWhy(t *testing.T) {
	t.Parallel()

	clash := &predict.Refusal{Reason: "NameClash", Message: "Role r: it is somebody else's"}
	lacks := &predict.Refusal{Reason: "AuthorizationRequired", Message: "it may not patch deployments"}

	object := func(namespace string, r *predict.Refusal) Object {
		return Object{Action: plan.Create, Kind: "Role", Namespace: namespace, Name: "r", Refused: r}
	}

	for name, tc := range map[string]struct {
		reason string
		data   Data
		print  func(p *printer)
		want   string
	}{
		"allowed": {
			"what is allowed needs no reason", Data{Objects: []Object{object("a", nil)}}, (*printer).objects,
			"\nObjects\n  create   Role   r   in a\n",
		},
		"clash": {
			"one reason is told once for all the namespaces", Data{Objects: []Object{object("a", clash), object("b", clash)}},
			(*printer).objects,
			"\nObjects\n  refused: create   Role   r   in a, b\n  refused in a, b: NameClash: Role r: it is somebody else's\n",
		},
		"told": {
			"what a member that fails says is not said again", Data{
				Objects: []Object{object("a", clash)},
				Scopes:  []Scope{{Failed: []predict.FailedMember{{Namespace: "a", Refusal: *clash}}}},
			},
			(*printer).objects, "\nObjects\n  refused: create   Role   r   in a\n",
		},
		"restart": {
			"a restart that is refused says why", Data{Restarts: []Restart{{
				Namespace: "ops", Reader: "Deployment op", Reason: "the list changes", Refused: lacks,
			}}},
			(*printer).restarts, "\nOperators\n  refused: restart   ops   Deployment op   the list changes; " +
				"AuthorizationRequired: it may not patch deployments\n",
		},
		"injection": {
			"and so does an injection", Data{Injections: []Injection{{
				Namespace: "ops", Target: "Deployment op", Action: "inject", Refused: lacks,
			}}},
			(*printer).restarts, "\nOperators\n  refused: inject   ops   Deployment op   the watch list gets into its pods, or " +
				"out of them: inject; AuthorizationRequired: it may not patch deployments\n",
		},
		"install": {
			"what a condition says is not said before without its reason", Data{Installs: []Install{
				{
					Kind: "InstallPlan", Namespace: "ops", Name: "i", Phase: "Failed", Message: "it may not", Refused: true,
					Conditions: []Condition{
						{Type: "Installed", Status: "False", Reason: "InstallComponentFailed", Message: "it may not"},
					},
				},
				{Kind: "InstallPlan", Namespace: "ops", Name: "j", Phase: "Installing", Message: "it waits"},
				{Kind: "OperatorGroup", Namespace: "ops", Name: "og", Targets: []string{"a"}},
			}},
			(*printer).installs, "\nInstalls\n" +
				"  InstallPlan ops/i: Failed\n    Installed=False, InstallComponentFailed: it may not\n" +
				"  InstallPlan ops/j: Installing\n    it waits\n" +
				"  OperatorGroup ops/og\n    targets: a\n",
		},
		"unknown": {
			"what could not be looked at does not count as unchanged",
			Data{Unknown: []Unknown{{Kinds: []string{"NamespaceScopes"}, Namespace: "ops", Why: "it does not come to rest"}}},
			(*printer).head,
			"It is not known whether any object would change. Watch lists to write: 0. Restarts: 0.\nNot complete: what the " +
				"NamespaceScopes of namespace ops would do is unknown, and the plan lacks it: it does not come to rest\n",
		},
		"two groups": {
			"scopes of one name are told apart",
			Data{
				Files: []File{
					{Group: "operator.ibm.com", Kind: "NamespaceScope", Namespace: "ops", Name: "s", Result: "created"},
					{Group: "namespacescope.ibm.com", Kind: "NamespaceScope", Namespace: "ops", Name: "s", Result: "changed"},
				},
				Scopes: []Scope{
					{Scope: "NamespaceScope/ops/s", Group: "operator.ibm.com", Joins: []string{"a"}},
					{Scope: "NamespaceScope/ops/s", Group: "namespacescope.ibm.com", Joins: []string{"b"}},
				},
			},
			func(p *printer) { p.head(); p.scopes() },
			"NamespaceScope ops/s would be created.\nNamespaceScope.namespacescope.ibm.com ops/s would be changed.\n" +
				"No Role or RoleBinding would change. Watch lists to write: 0. Restarts: 0.\n\n" +
				"NamespaceScope ops/s\n  joins:  a\n\nNamespaceScope.namespacescope.ibm.com ops/s\n  joins:  b\n",
		},
		"absent": {
			"what is not there needs no deletion",
			Data{Files: []File{{Kind: "Role", Namespace: "ops", Name: "r", Result: resultAbsent}}},
			(*printer).head, "Role ops/r is not there, so there is nothing to delete.\n" +
				"No Role or RoleBinding would change. Watch lists to write: 0. Restarts: 0.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			p := &printer{data: &tc.data}
			if tc.print(p); p.Text().String() != strings.TrimSuffix(tc.want, "\n") {
				t.Errorf("%s: it says %q", tc.reason, p.Text().String())
			}
		})
	}
}
