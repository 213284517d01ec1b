package release_test

import (
	"fmt"
	"sync/atomic"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// right is what an account of a namespace may do in another.
type right struct{ namespace, account, in, words string }

// scopes makes one of everything that gives rights: a NamespaceScope from ops to a, a template that an instance binds in b, an
// operator that a group installs for a target, and one that a group installs for all namespaces. It returns the rights, the
// NamespaceScope, and what has each of them reach one namespace more, and waits until it does.
func (w *world) scopes() ([]right, *operatorv1.NamespaceScope, func()) {
	w.Helper()

	ops, a, b := w.Namespace("ops"), w.Namespace("a"), w.Namespace("b")
	grouped, target, everywhere := w.Namespace("grouped"), w.Namespace("target"), w.Namespace("everywhere")

	w.Operator(ops, "op", "get secrets")
	subject := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{a}})

	instance := &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: "i"},
		Spec:       operatorsv1alpha1.ScopeInstanceSpec{ScopeTemplateName: "t", Namespaces: []string{b}},
	}
	w.Make(testbed.Account(ops, "templated"), &operatorsv1alpha1.ScopeTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "t"},
		Spec: operatorsv1alpha1.ScopeTemplateSpec{ClusterRoles: []operatorsv1alpha1.ClusterRoleTemplate{{
			GenerateName: "reader-", Rules: []rbacv1.PolicyRule{testbed.Rule("get configmaps")},
			Subjects: []operatorsv1alpha1.Subject{{Kind: "ServiceAccount", Namespace: ops, Name: "templated"}},
		}}},
	}, instance)

	group := func(namespace string, targets ...string) *operatorsv1.OperatorGroup {
		return &operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "group"},
			Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: targets},
		}
	}

	narrow := group(grouped, target)
	w.Make(narrow, installedOperator(grouped), group(everywhere), installedOperator(everywhere))

	rights := []right{
		{ops, "op", a, "get secrets"},
		{ops, "templated", b, "get configmaps"},
		{grouped, "installed", target, "get secrets"},
		{grouped, "installed", grouped, "get secrets"},
		{grouped, "installed", b, "get pods"},
		{everywhere, "installed", a, "get secrets"},
	}

	for _, r := range rights {
		w.May(r.namespace, r.account, r.in, r.words)
	}

	for _, namespace := range []string{grouped, everywhere} {
		w.Eventually("the operator of "+namespace+" is installed", func() error { return w.succeeded(namespace) })
	}

	return rights, subject, func() {
		w.Change(subject, func() { subject.Spec.NamespaceMembers = append(subject.Spec.NamespaceMembers, b) })
		w.Change(instance, func() { instance.Spec.Namespaces = append(instance.Spec.Namespaces, a) })
		w.Change(narrow, func() { narrow.Spec.TargetNamespaces = append(narrow.Spec.TargetNamespaces, b) })
		w.May(ops, "op", b, "get secrets")
		w.May(ops, "templated", a, "get configmaps")
		w.May(grouped, "installed", b, "get secrets")
	}
}

// succeeded says what keeps an operator from being installed.
func (w *world) succeeded(namespace string) error {
	csv := &olm.ClusterServiceVersion{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "installed.v1"}, csv); err != nil {
		return fmt.Errorf("looking at it: %w", err)
	}

	if csv.Status.Phase != olm.CSVPhaseSucceeded {
		return fmt.Errorf("it is %s: %s", csv.Status.Phase, csv.Status.Message)
	}

	return nil
}

// installedOperator is one with rules for its targets and rules for the whole cluster.
func installedOperator(namespace string) *olm.ClusterServiceVersion {
	labels := map[string]string{"app": "installed"}
	permissions := func(words string) []olm.StrategyDeploymentPermissions {
		return []olm.StrategyDeploymentPermissions{{
			ServiceAccountName: "installed", Rules: []rbacv1.PolicyRule{testbed.Rule(words)},
		}}
	}

	csv := &olm.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "installed.v1"},
		Spec: olm.ClusterServiceVersionSpec{
			DisplayName: "installed",
			InstallStrategy: olm.NamedInstallStrategy{
				StrategyName: olm.InstallStrategyNameDeployment,
				StrategySpec: olm.StrategyDetailsDeployment{
					Permissions: permissions("get secrets"), ClusterPermissions: permissions("get pods"),
					DeploymentSpecs: []olm.StrategyDeploymentSpec{{Name: "installed", Spec: appsv1.DeploymentSpec{
						Selector: &metav1.LabelSelector{MatchLabels: labels},
						Template: corev1.PodTemplateSpec{
							ObjectMeta: metav1.ObjectMeta{Labels: labels},
							Spec: corev1.PodSpec{
								ServiceAccountName: "installed",
								Containers:         []corev1.Container{{Name: "operator", Image: "example.com/operator:1"}},
							},
						},
					}}},
				},
			},
		},
	}

	for _, mode := range []olm.InstallModeType{
		olm.InstallModeTypeOwnNamespace, olm.InstallModeTypeSingleNamespace, olm.InstallModeTypeMultiNamespace,
		olm.InstallModeTypeAllNamespaces,
	} {
		csv.Spec.InstallModes = append(csv.Spec.InstallModes, olm.InstallMode{Type: mode, Supported: true})
	}

	return csv
}

// looksAnyway is how often rights are looked at while no RBAC changes.
const looksAnyway = 100 * time.Millisecond

// watchRights asks at every change of RBAC, and in between, whether everybody still has what they had, until the test is over.
// Nothing but such a change takes a right away.
func (w *world) watchRights(rights []right) (*atomic.Int64, func() string) {
	w.Helper()

	var (
		looks atomic.Int64
		gap   atomic.Value
	)

	changed := w.changesOfRBAC()

	go func() {
		for w.Context().Err() == nil {
			for _, r := range rights {
				allowed, err := w.Review(r.namespace, r.account, r.in, r.words)
				if err == nil && !allowed {
					gap.CompareAndSwap(nil, fmt.Sprintf("%s/%s may not %s in %s at %s", r.namespace, r.account, r.words, r.in, time.Now()))
				}

				if err == nil {
					looks.Add(1)
				}
			}

			select {
			case <-changed:
			case <-time.After(looksAnyway):
			case <-w.Context().Done():
			}
		}
	}()

	return &looks, func() string {
		text, _ := gap.Load().(string)

		return text
	}
}

// changesOfRBAC tells of changes of RBAC anywhere, several at a time as one.
func (w *world) changesOfRBAC() <-chan struct{} {
	w.Helper()

	changed := make(chan struct{}, 1)

	for _, list := range []client.ObjectList{
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		events, err := w.Client.Watch(w.Context(), list)
		if err != nil {
			w.Fatal(err)
		}

		go func() {
			for range events.ResultChan() {
				select {
				case changed <- struct{}{}:
				default: // Whoever looks next sees this one, too.
				}
			}
		}()
	}

	return changed
}
