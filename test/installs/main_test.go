// Package installs_test describes OperatorGroups and the ClusterServiceVersions that are their members, where OLM's own
// controllers do not run.
package installs_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

type world struct{ *testbed.World }

func begin(t *testing.T, profile string, arguments ...string) *world {
	t.Helper()

	return &world{beds.Begin(t, profile, arguments...)}
}

// group makes an OperatorGroup called group.
func (w *world) group(namespace string, spec operatorsv1.OperatorGroupSpec) *operatorsv1.OperatorGroup {
	w.Helper()

	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"}, Spec: spec}
	w.Make(g)

	return g
}

func targets(names ...string) operatorsv1.OperatorGroupSpec {
	return operatorsv1.OperatorGroupSpec{TargetNamespaces: names}
}

func selecting(raw string) operatorsv1.OperatorGroupSpec {
	s := &operatorv1.NamespaceSelector{}
	s.Raw = []byte(raw)

	return operatorsv1.OperatorGroupSpec{Selector: s}
}

var allModes = []olm.InstallModeType{
	olm.InstallModeTypeOwnNamespace, olm.InstallModeTypeSingleNamespace, olm.InstallModeTypeMultiNamespace,
	olm.InstallModeTypeAllNamespaces,
}

// csv is an operator with one account, one Deployment, and rules for its targets.
func csv(namespace, name string, edits ...func(*olm.ClusterServiceVersion)) *olm.ClusterServiceVersion {
	c := &olm.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: olm.ClusterServiceVersionSpec{
			DisplayName: name,
			InstallStrategy: olm.NamedInstallStrategy{
				StrategyName: olm.InstallStrategyNameDeployment,
				StrategySpec: olm.StrategyDetailsDeployment{
					Permissions: []olm.StrategyDeploymentPermissions{{
						ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{testbed.Rule("get,list secrets")},
					}},
					DeploymentSpecs: []olm.StrategyDeploymentSpec{{Name: "op", Spec: deployment("op")}},
				},
			},
		},
	}

	for _, mode := range allModes {
		c.Spec.InstallModes = append(c.Spec.InstallModes, olm.InstallMode{Type: mode, Supported: true})
	}

	for _, edit := range edits {
		edit(c)
	}

	return c
}

func deployment(account string) appsv1.DeploymentSpec {
	labels := map[string]string{"app": account}

	return appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				ServiceAccountName: account,
				Containers: []corev1.Container{{
					Name: "operator", Image: "example.com/operator:1",
					Env: []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
						FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"},
					}}},
				}},
			},
		},
	}
}

// owning adds a definition that the operator brings.
func owning(crd, kind string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned, olm.CRDDescription{
			Name: crd, Version: "v1", Kind: kind,
		})
	}
}

// modes leaves only these install modes.
func modes(supported ...olm.InstallModeType) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		for i := range c.Spec.InstallModes {
			c.Spec.InstallModes[i].Supported = slices.Contains(supported, c.Spec.InstallModes[i].Type)
		}
	}
}

// clusterPermissions adds rules for the whole cluster.
func clusterPermissions(rules ...string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		p := olm.StrategyDeploymentPermissions{ServiceAccountName: "op"}
		for _, r := range rules {
			p.Rules = append(p.Rules, testbed.Rule(r))
		}

		c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = append(c.Spec.InstallStrategy.StrategySpec.ClusterPermissions, p)
	}
}

// definition makes a CRD.
func (w *world) definition(plural, kind string) string {
	w.Helper()

	group := "g" + strings.ReplaceAll(w.Namespace("def"), "-", "") + ".example.com"
	keep := true
	w.Make(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: strings.TrimSuffix(plural, "s"), Kind: kind, ListKind: kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
				},
			}},
		},
	})

	return plural + "." + group
}

// becomes waits until a CSV is in a phase for a reason, with these words in its message.
func (w *world) becomes(
	c *olm.ClusterServiceVersion, phase olm.ClusterServiceVersionPhase, reason olm.ConditionReason, words ...string,
) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s becomes %s (%s)", c.Name, phase, reason), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}

		s := &c.Status
		if s.Phase != phase || s.Reason != reason {
			return fmt.Errorf("it is %s (%s): %s", s.Phase, s.Reason, s.Message)
		}

		for _, word := range words {
			if !strings.Contains(s.Message, word) {
				return fmt.Errorf("nothing of %q in %q", word, s.Message)
			}
		}

		return nil
	})
}

func (w *world) succeeds(c *olm.ClusterServiceVersion) {
	w.Helper()
	w.becomes(c, olm.CSVPhaseSucceeded, olm.CSVReasonInstallSuccessful)
}
