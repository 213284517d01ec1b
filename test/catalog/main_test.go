// Package catalog_test describes CatalogSources, Subscriptions and InstallPlans on a real API server, with the program that
// users run, under the rights that it is installed with.
package catalog_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

// world is one test's view of a cluster, with a namespace and an API group of its own.
type world struct {
	*testbed.World

	namespace, group string
}

func begin(t *testing.T, profile string, arguments ...string) *world {
	t.Helper()

	w := &world{World: beds.Begin(t, profile, arguments...), group: rand.String(6) + ".example.com"}
	w.namespace = w.Namespace("subscribed")

	return w
}

const (
	sourceName = "operators"
	pkg        = "kettle"
)

// version is a ClusterServiceVersion in a catalog.
type version struct {
	name, number, replaces string
	// metadata and spec are further lines.
	metadata, spec []string
}

func (w *world) yaml(v version) string {
	out := []string{
		"- apiVersion: operators.coreos.com/v1alpha1", "  kind: ClusterServiceVersion", "  metadata:", "    name: " + v.name,
	}
	for _, l := range v.metadata {
		out = append(out, "    "+l)
	}

	out = append(out, "  spec:", "    version: "+v.number, "    displayName: Kettle")
	if v.replaces != "" {
		out = append(out, "    replaces: "+v.replaces)
	}

	out = append(out,
		"    customresourcedefinitions: {owned: [{name: kettles."+w.group+", version: v1, kind: Kettle}]}",
		"    installModes:",
		"    - {type: OwnNamespace, supported: true}", "    - {type: SingleNamespace, supported: true}",
		"    - {type: MultiNamespace, supported: true}", "    - {type: AllNamespaces, supported: true}",
		"    install:", "      strategy: deployment", "      spec:",
		"        permissions:",
		"        - {serviceAccountName: kettle, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]}",
		"        deployments:",
		"        - name: kettle", "          spec:", "            selector: {matchLabels: {app: kettle}}", "            template:",
		"              metadata: {labels: {app: kettle}}",
		"              spec: {serviceAccountName: kettle, containers: [{name: kettle, image: 'example.com/kettle:"+v.number+"'}]}",
	)

	for _, l := range v.spec {
		out = append(out, "    "+l)
	}

	return strings.Join(out, "\n") + "\n"
}

// nodes are clusterPermissions, as lines of install.spec.
func nodes() []string {
	return []string{
		"    clusterPermissions:",
		"    - {serviceAccountName: kettle, rules: [{apiGroups: [''], resources: [nodes], verbs: [get, list]}]}",
	}
}

// content is a catalog whose newest version is the last one.
func (w *world) content(versions ...version) map[string]string {
	var all strings.Builder
	for _, v := range versions {
		all.WriteString(w.yaml(v))
	}

	return map[string]string{
		"clusterServiceVersions": all.String(),
		"packages": "- packageName: " + pkg + "\n  channels: [{name: stable, currentCSV: " +
			versions[len(versions)-1].name + "}]\n",
		"customResourceDefinitions": w.definition("v1"),
	}
}

func (w *world) definition(versions ...string) string {
	var out strings.Builder

	out.WriteString("- apiVersion: apiextensions.k8s.io/v1\n  kind: CustomResourceDefinition\n" +
		"  metadata: {name: kettles." + w.group + "}\n" +
		"  spec:\n    group: " + w.group + "\n    scope: Namespaced\n" +
		"    names: {plural: kettles, singular: kettle, kind: Kettle, listKind: KettleList}\n    versions:\n")

	for i, v := range versions {
		fmt.Fprintf(&out, "    - {name: %s, served: true, storage: %t, "+
			"schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n", v, i == 0)
	}

	return out.String()
}

// offer makes a catalog in a namespace.
func (w *world) offer(namespace string, content map[string]string) *corev1.ConfigMap {
	w.Helper()

	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manifests"}, Data: content}
	w.Make(cm, &olm.CatalogSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sourceName},
		Spec:       olm.CatalogSourceSpec{SourceType: olm.SourceTypeInternal, ConfigMap: cm.Name, DisplayName: "Kettles"},
	})

	return cm
}

// subscribe makes a Subscription for the package, from the catalog of its own namespace.
func (w *world) subscribe(edits ...func(*olm.SubscriptionSpec)) *olm.Subscription {
	w.Helper()

	s := &olm.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "my-" + pkg},
		Spec: &olm.SubscriptionSpec{
			Package: pkg, Channel: "stable", CatalogSource: sourceName, CatalogSourceNamespace: w.namespace,
			InstallPlanApproval: olm.ApprovalAutomatic,
		},
	}

	for _, edit := range edits {
		edit(s.Spec)
	}

	w.Make(s)

	return s
}

func manual(s *olm.SubscriptionSpec) { s.InstallPlanApproval = olm.ApprovalManual }

func starting(name string) func(*olm.SubscriptionSpec) {
	return func(s *olm.SubscriptionSpec) { s.StartingCSV = name }
}

// own makes an OperatorGroup for the namespace itself, with an account or without.
func (w *world) own(account string) *operatorsv1.OperatorGroup {
	w.Helper()

	g := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "own"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: []string{w.namespace}, ServiceAccountName: account},
	}
	w.Make(g)

	return g
}

// account makes a service account that may do anything in its namespace, as in the seed of scoped installs.
func (w *world) account(name string) {
	w.Helper()
	w.Make(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: name}},
		})
}

// grant gives an account rights in the cluster.
func (w *world) grant(account string, rules ...rbacv1.PolicyRule) {
	w.Helper()

	name := account + "-" + w.namespace
	w.Make(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.namespace, Name: account}},
		})
}

func definitions() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
		Verbs: []string{"get", "create", "patch"},
	}
}

func (w *world) get(obj client.Object) error {
	return w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj)
}

// state waits until a Subscription is in a state with that version installed.
func (w *world) state(s *olm.Subscription, state olm.SubscriptionState, installed string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("the Subscription is %q with %q", state, installed), func() error {
		if err := w.get(s); err != nil {
			return err
		}

		if s.Status.State != state || s.Status.InstalledCSV != installed {
			return fmt.Errorf("it is %+v", s.Status)
		}

		return nil
	})
}

// says waits for a condition of a Subscription; with an empty reason, for its absence.
func (w *world) says(s *olm.Subscription, kind olm.SubscriptionConditionType, reason string, words ...string) {
	w.Helper()
	w.Eventually(fmt.Sprintf("the Subscription says %s (%s)", kind, reason), func() error {
		if err := w.get(s); err != nil {
			return err
		}

		c := s.Status.GetCondition(kind)
		if c.Reason != reason || (reason != "") != (c.Status != corev1.ConditionUnknown) {
			return fmt.Errorf("it says %+v", s.Status.Conditions)
		}

		return mentions(c.Message, words...)
	})
}

func mentions(message string, words ...string) error {
	for _, word := range words {
		if !strings.Contains(message, word) {
			return fmt.Errorf("nothing of %q in %q", word, message)
		}
	}

	return nil
}

// plan waits for the InstallPlan that a Subscription names to be in a phase.
func (w *world) plan(s *olm.Subscription, phase olm.InstallPlanPhase) *olm.InstallPlan {
	w.Helper()

	ip := &olm.InstallPlan{}

	w.Eventually("the InstallPlan is "+string(phase), func() error {
		if err := w.get(s); err != nil {
			return err
		}

		if s.Status.InstallPlanRef == nil {
			return fmt.Errorf("the Subscription names none: %+v", s.Status)
		}

		ip.Namespace, ip.Name = s.Status.InstallPlanRef.Namespace, s.Status.InstallPlanRef.Name
		if err := w.get(ip); err != nil {
			return err
		}

		if ip.Status.Phase != phase {
			return fmt.Errorf("%s for %v is %s: %+v, %s", ip.Name, ip.Spec.ClusterServiceVersionNames, ip.Status.Phase,
				ip.Status.Conditions, ip.Status.Message)
		}

		return nil
	})

	return ip
}

// plans are the InstallPlans of the namespace, for which version each is.
func (w *world) plans() []string {
	w.Helper()

	list := &olm.InstallPlanList{}
	if err := w.Client.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}

	var out []string
	for i := range list.Items {
		out = append(out, strings.Join(list.Items[i].Spec.ClusterServiceVersionNames, "+"))
	}

	slices.Sort(out)

	return out
}

func (w *world) approve(ip *olm.InstallPlan) {
	w.Helper()
	w.Change(ip, func() { ip.Spec.Approved = true })
}

func (w *world) csv(name string) *olm.ClusterServiceVersion {
	return &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
}
