package main

import (
	"context"
	"errors"
	"fmt"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	// installNamespace is that of the group, installs how many operators it has, and installAccounts how many accounts with
	// permissions each of those.
	installNamespace = "bench-installs"
	installs         = 5
	installAccounts  = 2
)

func installAccount(operator, account int) string {
	return fmt.Sprintf("installed-%d-%d", operator, account)
}

func newGroup(members []string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: installNamespace, Name: "bench"},
		Spec:       operatorsv1.OperatorGroupSpec{TargetNamespaces: members},
	}
}

func newCSV(operator int) *olm.ClusterServiceVersion {
	csv := &olm.ClusterServiceVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: installNamespace, Name: fmt.Sprintf("installed-%d.v1.0.0", operator)},
		Spec: olm.ClusterServiceVersionSpec{
			DisplayName: "bench", InstallModes: []olm.InstallMode{{Type: olm.InstallModeTypeMultiNamespace, Supported: true}},
			InstallStrategy: olm.NamedInstallStrategy{StrategyName: olm.InstallStrategyNameDeployment},
		},
	}
	strategy := &csv.Spec.InstallStrategy.StrategySpec
	strategy.DeploymentSpecs = []olm.StrategyDeploymentSpec{{
		Name: fmt.Sprintf("installed-%d", operator), Spec: installed(operator).Spec,
	}}

	for i := range installAccounts {
		strategy.Permissions = append(strategy.Permissions, olm.StrategyDeploymentPermissions{
			ServiceAccountName: installAccount(operator, i), Rules: sourceRules(""),
		})
	}

	return csv
}

// installed is the Deployment of an operator.
func installed(operator int) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: installNamespace, Name: fmt.Sprintf("installed-%d", operator)},
		Spec:       testbed.PodsOf(installAccount(operator, 0)),
	}
}

// installObjects are what the floor makes in place of the operators of a group: first the Roles, then the bindings, and then
// the accounts and Deployments.
func installObjects(members []string) (roles, bindings, others []client.Object) {
	for operator := range installs {
		for account := range installAccounts {
			name := installAccount(operator, account)
			others = append(others, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: installNamespace, Name: name}})

			for _, namespace := range append([]string{installNamespace}, members...) {
				described := metav1.ObjectMeta{
					Namespace: namespace, Name: fmt.Sprintf("installed-%d.v1.0.0-%s-0123456789", operator, name),
					Labels: map[string]string{scope.LabelManagedBy: "bench", "bench.example.com/scope": "0123456789abcdef"},
					Annotations: map[string]string{
						"bench.example.com/owner":  "ClusterServiceVersion/" + installNamespace + "/" + name,
						"bench.example.com/source": "ClusterServiceVersion/" + installNamespace + "/" + name,
					},
				}
				roles = append(roles, &rbacv1.Role{ObjectMeta: described, Rules: sourceRules("")})
				bindings = append(bindings, bind(&described, "Role", described.Name, installNamespace, name))
			}
		}

		others = append(others, installed(operator))
	}

	return roles, bindings, others
}

// floorInstalls writes what the operators of a group ask for.
func (b *bench) floorInstalls(ctx context.Context, _ int) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: installNamespace}}
	if err := client.IgnoreAlreadyExists(b.cluster.admin.Create(ctx, ns)); err != nil {
		return err
	}

	roles, bindings, others := installObjects(b.members)

	err := b.byFloor(measureInstalls, func() error {
		return errors.Join(b.floor.create(ctx, roles), b.floor.create(ctx, bindings), b.floor.create(ctx, others))
	})
	if err != nil {
		return err
	}

	if err := errors.Join(b.floor.remove(ctx, bindings), b.floor.remove(ctx, roles)); err != nil {
		return err
	}

	// The floor has Ambit's rights, which do not let it delete accounts.
	return each(ctx, len(others), b.floor.parallel, func(i int) error { return b.cluster.admin.Delete(ctx, others[i]) })
}

// ambitInstalls measures from the creation of the ClusterServiceVersions until the last of their Deployments exists; everything
// else has to exist before. The manager is started anew, so that its peak of memory is that of the installs.
func (b *bench) ambitInstalls(ctx context.Context, _ int) error {
	if err := errors.Join(b.manager.stop(), b.manager.start(ctx)); err != nil {
		return err
	}

	if err := b.cluster.admin.Create(ctx, newGroup(b.members)); err != nil {
		return err
	}

	if err := b.cluster.audit.settled(ctx); err != nil {
		return err
	}

	err := b.once(ctx, measureInstalls, func() (cost, error) { return b.install(ctx) }, func() error {
		if err := b.cluster.audit.settled(ctx); err != nil {
			return err
		}

		return b.verifyInstalls(ctx, installs*installAccounts*(len(b.members)+1))
	})
	if err != nil {
		return err
	}

	peak, _ := b.manager.process().memory()
	b.memory.installs = max(b.memory.installs, peak)

	return b.uninstall(ctx)
}

func (b *bench) install(ctx context.Context) (cost, error) {
	seen := map[string]struct{}{}

	return b.measure(ctx, func() error {
		for i := range installs {
			if err := b.cluster.admin.Create(ctx, newCSV(i)); err != nil {
				return err
			}
		}

		return nil
	}, &effect{
		what: "the operators",
		list: &appsv1.DeploymentList{}, of: []client.ListOption{client.InNamespace(installNamespace)},
		seen: func(_ watch.EventType, obj client.Object) bool {
			seen[obj.GetName()] = struct{}{}

			return len(seen) == installs
		},
	})
}

// verifyInstalls checks that so many Roles and bindings exist, and that the annotation of each operator names every member.
func (b *bench) verifyInstalls(ctx context.Context, want int) error {
	roles, bindings, err := projectedIn(ctx, b.cluster.admin)
	if err != nil {
		return err
	}

	if len(roles) != want || len(bindings) != want {
		return fmt.Errorf("%w: %d Roles and %d bindings, not %d", errWrong, len(roles), len(bindings), want)
	}

	var list olm.ClusterServiceVersionList
	if err := b.cluster.admin.List(ctx, &list, client.InNamespace(installNamespace)); err != nil {
		return err
	}

	for i := range list.Items {
		csv := &list.Items[i]
		if told := csv.Annotations[operatorsv1.TargetsAnnotation]; want > 0 && told != joined(b.members) {
			return fmt.Errorf("%w: %s is told %d characters of targets", errWrong, csv.Name, len(told))
		}
	}

	return nil
}

// uninstall deletes everything, and waits until nothing is left of it.
func (b *bench) uninstall(ctx context.Context) error {
	here := client.InNamespace(installNamespace)
	if err := b.cluster.admin.DeleteAllOf(ctx, &olm.ClusterServiceVersion{}, here); err != nil {
		return err
	}

	// 20,000 objects go, beside the garbage collector.
	if err := gone(ctx, 5*settleTimeout, func() error { return b.verifyInstalls(ctx, 0) }); err != nil {
		return err
	}

	return errors.Join(b.cluster.admin.DeleteAllOf(ctx, &operatorsv1.OperatorGroup{}, here),
		b.cluster.admin.DeleteAllOf(ctx, &appsv1.Deployment{}, here), b.cluster.audit.settled(ctx))
}

// tableInstalls adds what was measured of installs.
func (b *bench) tableInstalls(t *table) {
	if !b.options.wants(measureInstalls) {
		return
	}

	t.costs(fmt.Sprintf("%d operators of a group, with %d accounts each", installs, installAccounts),
		b.figure(measureInstalls), b.limit(changeRatio, coldRatioLarge))
	// A Role and a binding of each account in each namespace; and of each operator its accounts, the annotation, the Deployment,
	// and a status when it is written, while its pods come, and when it runs.
	b.tableRequests(t, measureInstalls, installs*(2*installAccounts*(len(b.members)+1)+installAccounts+1+1+4))
	t.bytes("  peak memory", b.memory.installs, memoryLimit)
}
