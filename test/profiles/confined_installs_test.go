package profiles_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// The namespaces of TestConfinedInstalls: two that are served besides Ambit's own, one whose owner lets the first in, and one
// whose owner lets in nobody.
const (
	kettles, teapots, member, stranger = "kettles", "teapots", "member", "stranger"

	installer = "installer"
)

// TestConfinedInstalls has the profile namespaced serve OperatorGroups and ClusterServiceVersions, with the rights that its
// manifests give it and nothing else.
func TestConfinedInstalls(t *testing.T) {
	c := servingInstalls(t)

	t.Run("WhatIsPlanned", c.sub((*confined).plansInstalls))
	t.Run("AnAuthorizedTargetIsServed", c.sub((*confined).servesTargets))
	t.Run("WhatIsGrantedToOneServesNoOther", c.sub((*confined).servesNoOther))
	t.Run("AmbitsOwnAccount", c.sub((*confined).keepsItsAccount))
	t.Run("AmbitsOwnNamespace", c.sub((*confined).keepsItsNamespace))
	t.Run("WhatHasNoNamespace", c.sub((*confined).saysWhatHasNoNamespace))
	t.Run("ConsentTakenBack", c.sub((*confined).forgetsTargets))
	t.Run("TargetsThatAreNotNamed", c.sub((*confined).refusesSelectors))
	t.Run("NobodyLetsTheOperatorIn", c.sub((*confined).servesNobody))
	t.Run("TheGroupGoes", c.sub((*confined).clears))

	requests, err := readLog(c.Bed)
	if err != nil || !slices.ContainsFunc(requests, func(r request) bool {
		return r.user == ambit && r.verb == "create" && r.resource == "deployments" && !r.refused
	}) {
		t.Fatalf("the audit log says nothing of a Deployment (%v)", err)
	}

	for _, complaint := range clusterWide(requests) {
		t.Error(complaint)
	}
}

// confined is a cluster in which Ambit serves installs in single namespaces.
type confined struct{ *testbed.World }

func (c *confined) sub(test func(*confined)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		test(&confined{&testbed.World{T: t, Bed: c.Bed}})
	}
}

func servingInstalls(t *testing.T) *confined {
	t.Helper()

	w, role := withNamespaces(t, kettles, teapots)
	c := &confined{w}

	for _, name := range []string{kettles, teapots, member, stranger} {
		w.MakeNamespace(name)
	}

	opsNamespaces := []string{kettles, teapots, embedded.Namespace}
	for _, name := range opsNamespaces {
		letIn(w, role, name)
		w.Make(testbed.Account(name, installer))
	}

	arguments := w.InstallNamespaced(opsNamespaces)
	dir := t.TempDir() // It goes after the manager that logs there.

	t.Cleanup(func() {
		if err := w.Manager.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}

		if log, err := os.ReadFile(w.Manager.Log); t.Failed() {
			t.Logf("the manager's log (%v):\n%s", err, log)
		}
	})

	var err error
	if w.Manager, err = embedded.NewManager(t.Context(), w.Config, dir, w.Program, arguments...); err != nil {
		t.Fatal(err)
	}

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	return c
}

// in is an operator in a namespace, with an API of its own.
func (c *confined) in(namespace string) *subscribed {
	return &subscribed{Bed: c.Bed, namespace: namespace, group: namespace + ".example.com", account: installer}
}

// csv is an operator that reads ConfigMaps in its targets, and has no other needs.
func (c *confined) csv(namespace, name string) *olm.ClusterServiceVersion {
	csv := c.in(namespace).csv(name, "", 0)
	csv.Spec.InstallModes = append(csv.Spec.InstallModes, olm.InstallMode{Type: olm.InstallModeTypeMultiNamespace, Supported: true})
	csv.Spec.CustomResourceDefinitions.Owned = nil
	strategy := &csv.Spec.InstallStrategy.StrategySpec
	strategy.ClusterPermissions = nil
	strategy.Permissions = []olm.StrategyDeploymentPermissions{{
		ServiceAccountName: name, Rules: []rbacv1.PolicyRule{testbed.Rule("get configmaps")},
	}}
	strategy.DeploymentSpecs[0].Name = name
	strategy.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = name

	return csv
}

func (c *confined) operatorGroup(namespace string, targets ...string) *operatorsv1.OperatorGroup {
	g := c.in(namespace).operatorGroup()
	g.Spec.TargetNamespaces = targets

	return g
}

// grant grants what "ambit preflight" says is missing for a CSV in a namespace.
func (c *confined) grant(csv *olm.ClusterServiceVersion, in string) {
	c.Helper()

	out, code := c.Ambit("preflight", "csv/"+csv.Name, "-n", csv.Namespace, "--in", in, "-o", "yaml")
	if code != 3 {
		c.Fatalf("preflight ended with %d: %s", code, out)
	}

	for _, words := range []string{"\nAmbit serves", "Note: "} {
		out, _, _ = strings.Cut(out, words)
	}

	path := filepath.Join(c.TempDir(), "missing.yaml")

	if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
		c.Fatal(err)
	}

	if out, err := c.Cluster.Kubectl(c.Context(), "apply", "-f", path); err != nil {
		c.Fatalf("granting what is missing: %v: %s", err, out)
	}
}

// becomes waits until a CSV has a phase, and its message has these words.
func (c *confined) becomes(csv *olm.ClusterServiceVersion, phase olm.ClusterServiceVersionPhase, words ...string) {
	c.Helper()
	c.Eventually(csv.Name+" becomes "+string(phase), func() error {
		if err := c.Client.Get(c.Context(), client.ObjectKeyFromObject(csv), csv); err != nil {
			return err
		}

		for _, word := range words {
			if !strings.Contains(csv.Status.Message, word) {
				return fmt.Errorf("nothing about %q in %s: %s", word, csv.Status.Phase, csv.Status.Message)
			}
		}

		if csv.Status.Phase != phase {
			return fmt.Errorf("it is %s: %s", csv.Status.Phase, csv.Status.Message)
		}

		return nil
	})
}

// isTold waits until an operator is told of targets.
func (c *confined) isTold(csv *olm.ClusterServiceVersion, targets string) {
	c.Helper()
	c.Eventually(csv.Name+" is told of "+targets, func() error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: csv.Namespace, Name: csv.Name}}
		err := errors.Join(c.Client.Get(c.Context(), client.ObjectKeyFromObject(csv), csv),
			c.Client.Get(c.Context(), client.ObjectKeyFromObject(d), d))

		for _, told := range []string{csv.Annotations["olm.targetNamespaces"], d.Spec.Template.Annotations["olm.targetNamespaces"]} {
			if told != targets {
				err = errors.Join(err, fmt.Errorf("it is told of %q", told))
			}
		}

		return err
	})
}

// targetsAre waits until the condition about the targets of a group has a reason, and its message these words; without a reason,
// until there is no such condition.
func (c *confined) targetsAre(g *operatorsv1.OperatorGroup, reason string, words ...string) {
	c.Helper()
	c.Eventually("the targets of "+g.Namespace+" are "+reason, func() error {
		if err := c.Client.Get(c.Context(), client.ObjectKeyFromObject(g), g); err != nil {
			return err
		}

		found := meta.FindStatusCondition(g.Status.Conditions, "TargetNamespacesFound")
		if found == nil && reason == "" {
			return nil
		}

		if found == nil || found.Reason != reason || found.ObservedGeneration != g.Generation {
			return fmt.Errorf("the status is %+v", g.Status)
		}

		for _, word := range words {
			if !strings.Contains(found.Message, word) {
				return fmt.Errorf("nothing about %q in %q", word, found.Message)
			}
		}

		return nil
	})
}

func (c *confined) authorize(namespace, to string) {
	c.Helper()

	if out, code := c.Ambit("authorize", namespace, "--to", to, "--installs"); code != 0 {
		c.Fatalf("authorizing ended with %d: %s", code, out)
	}
}

func (c *confined) servesTargets() {
	group, csv := c.operatorGroup(kettles, kettles, member, stranger), c.csv(kettles, "kettle")
	c.Make(group, csv)
	c.becomes(csv, olm.CSVPhaseFailed, "installer may not", "ambit preflight csv/kettle")
	c.targetsAre(group, "AuthorizationRequired", member, stranger)
	c.authorize(member, kettles)
	c.grant(csv, kettles)
	c.becomes(csv, olm.CSVPhaseSucceeded)
	c.isTold(csv, "kettles,member")
	c.May(kettles, "kettle", kettles, "get configmaps")
	c.May(kettles, "kettle", member, "get configmaps")
	c.targetsAre(group, "AuthorizationRequired", "ambit authorize stranger --to kettles --installs")

	c.Eventually("the group says nothing of a namespace that has let it in", func() error {
		c.targetsAre(group, "AuthorizationRequired")

		message := meta.FindStatusCondition(group.Status.Conditions, "TargetNamespacesFound").Message
		if strings.Contains(message, member+":") {
			return errors.New(message)
		}

		return nil
	})
	c.nothingIn(stranger)
}

// nothingIn holds that Ambit made nothing in a namespace.
func (c *confined) nothingIn(namespace string) {
	c.Helper()

	if made := c.in(namespace).made(c.T); len(made) > 0 {
		c.Errorf("in %s Ambit made %q", namespace, made)
	}
}

// servesNoOther has the author of an install in one served namespace try to use what was granted to another.
func (c *confined) servesNoOther() {
	group, csv := c.operatorGroup(teapots, teapots, member), c.csv(teapots, "teapot")
	c.Make(group, csv)
	c.becomes(csv, olm.CSVPhaseFailed, "installer may not")
	c.targetsAre(group, "AuthorizationRequired", "ambit authorize member --to teapots --installs")
	c.grant(csv, teapots)
	c.becomes(csv, olm.CSVPhaseSucceeded)
	c.isTold(csv, teapots)
	c.May(teapots, "teapot", teapots, "get configmaps")

	if c.Allowed(teapots, "teapot", member, "get configmaps") {
		c.Error("what the owner of member granted to kettles serves teapots")
	}

	// The account of the other namespace has no name here, and Ambit's own no use.
	for account, words := range map[string]string{
		"ambit": "is Ambit's own", "system:serviceaccount:kettles:installer": "make sure the service account exists",
		"default": "Ambit may not act as service account teapots/default",
	} {
		further := c.csv(teapots, "samovar")
		c.Change(group, func() { group.Spec.ServiceAccountName = account })
		c.Make(further)
		c.becomes(further, olm.CSVPhaseFailed, words)
		c.Remove(further)
	}

	c.Change(group, func() { group.Spec.ServiceAccountName = "" })

	further := c.csv(teapots, "samovar")
	c.Make(further)
	c.becomes(further, olm.CSVPhaseFailed, "names no service account")
	// Nobody is let in or out where nobody looks, whoever looked before.
	c.targetsAre(group, "")
	c.Remove(further)
	c.Change(group, func() { group.Spec.ServiceAccountName = installer })
	c.becomes(csv, olm.CSVPhaseSucceeded)

	c.scopesUseNoInstaller()
}

// scopesUseNoInstaller has the author of a NamespaceScope name the account that installs operators.
func (c *confined) scopesUseNoInstaller() {
	c.Helper()

	nss := c.Scope(kettles, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{member}, ServiceAccountName: installer})
	c.Reports(nss, metav1.ConditionFalse, "AuthorizationRequired", "leave spec.serviceAccountName")
	c.Remove(nss)
}

// keepsItsAccount has the author of a ClusterServiceVersion run code as the account that stands for Ambit.
func (c *confined) keepsItsAccount() {
	for name, edit := range map[string]func(*olm.StrategyDetailsDeployment){
		"pods": func(s *olm.StrategyDetailsDeployment) {
			s.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "ambit"
		},
		"pods-by-the-older-field": func(s *olm.StrategyDetailsDeployment) {
			s.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = ""
			s.DeploymentSpecs[0].Spec.Template.Spec.DeprecatedServiceAccount = "ambit"
		},
		"permissions": func(s *olm.StrategyDetailsDeployment) { s.Permissions[0].ServiceAccountName = "ambit" },
	} {
		csv := c.csv(kettles, name)
		edit(&csv.Spec.InstallStrategy.StrategySpec)
		c.Make(csv)
		c.becomes(csv, olm.CSVPhaseFailed, "ambit is Ambit's own")
		c.notInstalled(csv)
	}

	// What is installed and becomes an attack keeps nothing.
	csv := c.csv(kettles, "turncoat")
	c.Make(csv)
	c.grant(csv, kettles)
	c.becomes(csv, olm.CSVPhaseSucceeded)
	c.May(kettles, "turncoat", kettles, "get configmaps")
	c.Change(csv, func() {
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "ambit"
	})
	c.becomes(csv, olm.CSVPhaseFailed, "ambit is Ambit's own")
	c.MayNot(kettles, "turncoat", kettles, "get configmaps")

	d := &appsv1.Deployment{}
	if err := c.Client.Get(c.Context(), client.ObjectKey{Namespace: kettles, Name: "turncoat"}, d); err != nil ||
		d.Spec.Template.Spec.ServiceAccountName != "turncoat" {
		c.Errorf("the pods run as %q (%v)", d.Spec.Template.Spec.ServiceAccountName, err)
	}

	c.Remove(csv)
}

// notInstalled holds that nothing was written for a CSV, and takes it away.
func (c *confined) notInstalled(csv *olm.ClusterServiceVersion) {
	c.Helper()

	name := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name

	err := c.Client.Get(c.Context(), client.ObjectKey{Namespace: csv.Namespace, Name: name}, &appsv1.Deployment{})
	if !apierrors.IsNotFound(err) {
		c.Errorf("there is Deployment %s: %v", name, err)
	}

	c.Remove(csv)
}

// keepsItsNamespace has the author of a ClusterServiceVersion in Ambit's own namespace get at Ambit's account by what an operator
// may do there. The account that installs may do everything in the namespace, and so could hand out everything.
func (c *confined) keepsItsNamespace() {
	w := embedded.Namespace
	everything := testbed.Role(w, "everything", "* *")
	everything.Rules[0].Verbs = []string{"*"}
	c.Make(c.operatorGroup(w, w), everything, testbed.Bind(w, "Role", "everything", w, installer))
	c.May(w, installer, w, "create pods")

	for name, edit := range map[string]func(*olm.StrategyDetailsDeployment){
		"account": func(s *olm.StrategyDetailsDeployment) {
			s.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = installer
		},
		"secret": func(s *olm.StrategyDetailsDeployment) {
			s.DeploymentSpecs[0].Spec.Template.Spec.Volumes = []corev1.Volume{{
				Name: "names", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "ambit-names"}},
			}}
		},
		"machine": func(s *olm.StrategyDetailsDeployment) { s.DeploymentSpecs[0].Spec.Template.Spec.HostPID = true },
		"pods":    func(s *olm.StrategyDetailsDeployment) { s.Permissions[0].Rules[0] = testbed.Rule("create pods") },
		"deploy":  func(s *olm.StrategyDetailsDeployment) { s.Permissions[0].Rules[0] = testbed.Rule("patch deployments") },
		"secrets": func(s *olm.StrategyDetailsDeployment) { s.Permissions[0].Rules[0] = testbed.Rule("get secrets") },
		"all":     func(s *olm.StrategyDetailsDeployment) { s.Permissions[0].Rules[0] = testbed.Rule("get *") },
		"scopes": func(s *olm.StrategyDetailsDeployment) {
			s.Permissions[0].Rules[0] = testbed.Rule("create namespacescopes")
		},
	} {
		csv := c.csv(w, "leads-by-"+name)
		edit(&csv.Spec.InstallStrategy.StrategySpec)
		c.Make(csv)
		c.becomes(csv, olm.CSVPhaseFailed, "install it in another namespace")
		c.notInstalled(csv)
	}

	// Who does none of it is installed.
	csv := c.csv(w, "harmless")
	c.Make(csv)
	c.becomes(csv, olm.CSVPhaseSucceeded)
	c.Remove(csv)
}

// saysWhatHasNoNamespace has an operator need a definition, clusterPermissions and a webhook configuration.
func (c *confined) saysWhatHasNoNamespace() {
	csv := c.csv(kettles, "urn")
	in := c.in(kettles)
	csv.Spec.CustomResourceDefinitions.Owned = []olm.CRDDescription{{Name: "urns." + in.group, Version: "v1", Kind: "Urn"}}
	csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = []olm.StrategyDeploymentPermissions{{
		ServiceAccountName: "urn", Rules: []rbacv1.PolicyRule{testbed.Rule("get nodes")},
	}}
	csv.Spec.WebhookDefinitions = []olm.WebhookDescription{{
		Type: olm.ValidatingAdmissionWebhook, GenerateName: "urns.example.com", DeploymentName: "urn",
		Rules: []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{in.group}, APIVersions: []string{"v1"}, Resources: []string{"urns"}},
		}},
		SideEffects: new(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		FailurePolicy: new(admissionv1.Ignore), ContainerPort: 443,
	}}
	c.Make(csv)
	c.becomes(csv, olm.CSVPhasePending, "urns."+in.group, "clusterPermissions of service account urn", "ValidatingAdmissionWebhook")

	out, code := c.Ambit("preflight", "csv/urn", "-n", kettles, "--in", kettles)
	for _, word := range []string{
		"CustomResourceDefinition urns." + in.group, "kettles/urn", "get nodes", "ValidatingAdmissionWebhook",
	} {
		if code != 3 || !strings.Contains(out, word) {
			c.Errorf("preflight ended with %d and says nothing of %q: %s", code, word, out)
		}
	}

	// An administrator sees to what can be there, and the operator is changed to do without the rest. What they granted counts once
	// Ambit may ask as the account of the operator.
	c.Make(in.crd("urn", "v1"))
	c.grant(csv, kettles)
	c.becomes(csv, olm.CSVPhasePending, "ValidatingAdmissionWebhook")
	c.Change(csv, func() { csv.Spec.WebhookDefinitions = nil })
	c.becomes(csv, olm.CSVPhasePending, "clusterPermissions of service account urn")

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: kettles, Name: "ambit-namespaced-installs"}}
	c.Change(role, func() {
		last := &role.Rules[len(role.Rules)-1]
		last.ResourceNames = append(last.ResourceNames, "urn")
	})
	c.becomes(csv, olm.CSVPhaseSucceeded)

	if out, code := c.Ambit("preflight", "csv/urn", "-n", kettles, "--in", kettles); code != 0 {
		c.Errorf("preflight ended with %d: %s", code, out)
	}

	group := c.operatorGroup(kettles)
	c.Eventually("the group says what people lack", func() error {
		if err := c.Client.Get(c.Context(), client.ObjectKeyFromObject(group), group); err != nil {
			return err
		}

		found := meta.FindStatusCondition(group.Status.Conditions, "UserRolesProvided")
		if found == nil || !strings.Contains(found.Message, "urns."+in.group) {
			return fmt.Errorf("the status is %+v", group.Status)
		}

		return nil
	})
	c.Remove(csv)
}

// forgetsTargets has the owner of a target take back what lets the group in, by hand: while Ambit serves, and while it is away.
func (c *confined) forgetsTargets() {
	csv := c.csv(kettles, "kettle")
	c.May(kettles, "kettle", member, "get configmaps")
	c.takeBack(member)
	c.MayNot(kettles, "kettle", member, "get configmaps")
	c.isTold(csv, kettles)
	c.targetsAre(c.operatorGroup(kettles), "AuthorizationRequired", "ambit authorize member --to kettles --installs")
	c.becomes(csv, olm.CSVPhaseSucceeded)
	c.May(kettles, "kettle", kettles, "get configmaps")
	c.Eventually("nothing is left in member", func() error {
		if made := c.in(member).made(c.T); len(made) > 0 {
			return fmt.Errorf("there is %q", made)
		}

		return nil
	})

	// And back, and taken away while nobody serves.
	c.authorize(member, kettles)
	c.isTold(csv, "kettles,member")
	c.May(kettles, "kettle", member, "get configmaps")

	if err := c.Manager.Stop(); err != nil {
		c.Fatal(err)
	}

	c.takeBack(member)
	c.MayNot(kettles, "kettle", member, "get configmaps")

	if err := c.Manager.Start(); err != nil {
		c.Fatal(err)
	}

	c.isTold(csv, kettles)
	c.authorize(member, kettles)
	c.isTold(csv, "kettles,member")
}

// takeBack deletes what lets the group of kettles into a namespace.
func (c *confined) takeBack(namespace string) {
	c.Helper()

	for _, name := range c.authorizations(namespace) {
		c.Remove(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
}

// authorizations are the RoleBindings by which a namespace lets the group of kettles in.
func (c *confined) authorizations(namespace string) []string {
	c.Helper()

	list := &rbacv1.RoleBindingList{}
	if err := c.Client.List(c.Context(), list, client.InNamespace(namespace), client.MatchingLabels{
		"ambit.dev/authorized-for": kettles,
	}); err != nil || len(list.Items) == 0 {
		c.Fatalf("there are %d authorizations (%v)", len(list.Items), err)
	}

	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}

	return names
}

// refusesSelectors has a group ask for namespaces that it does not name.
func (c *confined) refusesSelectors() {
	group, csv := c.operatorGroup(teapots), c.csv(teapots, "teapot")
	c.becomes(csv, olm.CSVPhaseSucceeded)

	c.Change(group, func() { group.Spec.TargetNamespaces = nil })
	c.targetsAre(group, "NoTargetNamespaces", "for all namespaces", "list them in spec.targetNamespaces")
	c.becomes(csv, olm.CSVPhaseFailed, "list them in spec.targetNamespaces")

	if csv.Annotations["olm.targetNamespaces"] == "" {
		c.Error("the operator is told that it serves all namespaces")
	}

	c.Change(group, func() {
		group.Spec.Selector = &operatorv1.NamespaceSelector{}
		group.Spec.Selector.Raw = []byte(`{"matchLabels":{"team":"a"}}`)
	})
	c.targetsAre(group, "NoTargetNamespaces", "spec.selector selects nothing", "list them in spec.targetNamespaces")
	c.becomes(csv, olm.CSVPhaseFailed, "spec.selector selects nothing")

	// Names win over a selector, as everywhere.
	c.Change(group, func() { group.Spec.TargetNamespaces = []string{teapots} })
	c.becomes(csv, olm.CSVPhaseSucceeded)
}

// clears has everything go while Ambit serves.
func (c *confined) clears() {
	c.May(kettles, "kettle", member, "get configmaps")
	c.Remove(c.operatorGroup(kettles))
	c.MayNot(kettles, "kettle", member, "get configmaps")
	c.MayNot(kettles, "kettle", kettles, "get configmaps")
	c.becomes(c.csv(kettles, "kettle"), olm.CSVPhaseFailed, "no operatorgroups")
	c.nothingIn(member)
}
