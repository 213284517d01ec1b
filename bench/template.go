package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// templateName is the name of the template and of its instance, and templateRoles how many ClusterRoles it has.
	templateName  = "bench"
	templateRoles = 5
	// floorOwner owns what the floor makes, as a template and an instance own what Ambit makes: the garbage collector looks at
	// every object that has an owner.
	floorOwner = "bench-floor"
)

func newTemplate(extra string) *operatorsv1alpha1.ScopeTemplate {
	t := &operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: templateName}}

	for i := range templateRoles {
		entry := operatorsv1alpha1.ClusterRoleTemplate{
			GenerateName: fmt.Sprintf("bench-role-%d-", i), Rules: sourceRules(""),
			Subjects: []operatorsv1alpha1.Subject{{
				Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: accountName(i),
			}},
		}
		if i == 0 {
			entry.Rules = sourceRules(extra)
		}

		t.Spec.ClusterRoles = append(t.Spec.ClusterRoles, entry)
	}

	return t
}

func newInstance() *operatorsv1alpha1.ScopeInstance {
	return &operatorsv1alpha1.ScopeInstance{
		ObjectMeta: metav1.ObjectMeta{Name: templateName},
		Spec: operatorsv1alpha1.ScopeInstanceSpec{
			ScopeTemplateName: templateName,
			NamespaceSelector: &operatorv1.NamespaceSelector{Raw: fmt.Appendf(nil, "{%q:\"true\"}", memberLabel)},
		},
	}
}

// templateObjects are what the floor makes in place of a template and an instance: the ClusterRoles, and their bindings.
func templateObjects(members []string, owner *operatorsv1alpha1.ScopeTemplate) (roles, bindings []client.Object) {
	described := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{scope.LabelManagedBy: "bench", "bench.example.com/scope": "0123456789abcdef"},
			Annotations: map[string]string{"bench.example.com/owner": "ScopeInstance//bench", "bench.example.com/source": name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: operatorsv1alpha1.GroupVersion.String(), Kind: "ScopeTemplate", Name: owner.Name, UID: owner.UID,
			}},
		}
	}

	for i := range newTemplate("").Spec.ClusterRoles {
		name := fmt.Sprintf("bench-floor-%d-0123456789", i)
		roles = append(roles, &rbacv1.ClusterRole{ObjectMeta: described("", name), Rules: sourceRules("")})

		for _, namespace := range members {
			at := described(namespace, name+"-0123456789")
			bindings = append(bindings, bind(&at, "ClusterRole", name, operatorNamespace, accountName(i)))
		}
	}

	return roles, bindings
}

// floorTemplate writes what an instance asks for, and changes a rule.
func (b *bench) floorTemplate(ctx context.Context, round int) error {
	owner := &operatorsv1alpha1.ScopeTemplate{ObjectMeta: metav1.ObjectMeta{Name: floorOwner}}
	if err := b.cluster.admin.Create(ctx, owner); err != nil {
		return err
	}

	roles, bindings := templateObjects(b.members, owner)

	err := b.byFloor(measureTemplate, func() error {
		return errors.Join(b.floor.create(ctx, roles), b.floor.create(ctx, bindings))
	})
	if err != nil {
		return err
	}

	for i := range changes {
		patch, err := rulesPatch(fmt.Sprintf("extra-%d-%d", round, i))
		if err != nil {
			return err
		}

		// Ambit's rights on ClusterRoles include patch, and not update.
		if err := b.byFloor(measureRule, func() error { return b.floor.patch(ctx, roles[:1], patch) }); err != nil {
			return err
		}
	}

	return errors.Join(b.floor.remove(ctx, bindings), b.floor.remove(ctx, roles), b.cluster.admin.Delete(ctx, owner))
}

// ambitTemplate measures from the creation of an instance until it says that everything is bound, and then a changed rule.
func (b *bench) ambitTemplate(ctx context.Context, round int) error {
	if err := b.cluster.admin.Create(ctx, newTemplate("")); err != nil {
		return err
	}

	if err := b.cluster.audit.settled(ctx); err != nil {
		return err
	}

	verify := func() error { return b.verifyTemplate(ctx, len(b.members)*templateRoles) }

	err := b.once(ctx, measureTemplate, func() (cost, error) { return b.bindTemplate(ctx) }, func() error {
		if err := b.cluster.audit.settled(ctx); err != nil {
			return err
		}

		return verify()
	})
	if err != nil {
		return err
	}

	change := func(extra string) (cost, error) { return b.changeRule(ctx, extra) }
	if err := b.changing(ctx, measureRule, round, change, verify); err != nil {
		return err
	}

	return b.dropTemplate(ctx)
}

func (b *bench) bindTemplate(ctx context.Context) (cost, error) {
	return b.measure(ctx, func() error { return b.cluster.admin.Create(ctx, newInstance()) }, &effect{
		what: "the instance", list: &operatorsv1alpha1.ScopeInstanceList{},
		seen: func(_ watch.EventType, obj client.Object) bool {
			in, ok := obj.(*operatorsv1alpha1.ScopeInstance)

			return ok && meta.IsStatusConditionTrue(in.Status.Conditions, "Scoped")
		},
	})
}

// verifyTemplate checks that so many bindings exist, each of a ClusterRole that exists with the right rules, and with the guard
// rule that keeps everybody else from binding it.
func (b *bench) verifyTemplate(ctx context.Context, want int) error {
	var list rbacv1.ClusterRoleList
	if err := b.cluster.admin.List(ctx, &list, client.HasLabels{scope.LabelScope}); err != nil {
		return err
	}

	_, bindings, err := projectedIn(ctx, b.cluster.admin)
	if err != nil {
		return err
	}

	exists := map[string]struct{}{}

	for i := range list.Items {
		rules := list.Items[i].Rules
		bare := scope.WithoutGuard(rules)

		if len(bare) == len(sourceRules("")) && len(rules) == len(bare)+1 {
			exists[list.Items[i].Name] = struct{}{}
		}
	}

	for i := range bindings {
		if _, found := exists[bindings[i].RoleRef.Name]; !found || len(bindings[i].Subjects) != 1 {
			return fmt.Errorf("%w: binding %s/%s gives %v to %v",
				errWrong, bindings[i].Namespace, bindings[i].Name, bindings[i].RoleRef, bindings[i].Subjects)
		}
	}

	if len(bindings) != want || want > 0 && len(exists) != templateRoles || want == 0 && len(exists) > 0 {
		return fmt.Errorf("%w: %d bindings of %d ClusterRoles, not %d", errWrong, len(bindings), len(exists), want)
	}

	return nil
}

func (b *bench) changeRule(ctx context.Context, extra string) (cost, error) {
	current := &operatorsv1alpha1.ScopeTemplate{}
	if err := b.cluster.admin.Get(ctx, client.ObjectKey{Name: templateName}, current); err != nil {
		return cost{}, err
	}

	current.Spec = newTemplate(extra).Spec

	return b.measure(ctx, func() error { return b.cluster.admin.Update(ctx, current) }, &effect{
		what: "the changed rule", list: &rbacv1.ClusterRoleList{}, of: []client.ListOption{client.HasLabels{scope.LabelScope}},
		seen: func(_ watch.EventType, obj client.Object) bool {
			r, ok := obj.(*rbacv1.ClusterRole)

			return ok && slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.Resources, extra)
			})
		},
	})
}

// dropTemplate deletes the template and the instance, and waits until nothing is left of them.
func (b *bench) dropTemplate(ctx context.Context) error {
	if err := b.cluster.admin.Delete(ctx, newInstance()); err != nil {
		return err
	}

	if err := gone(ctx, settleTimeout, func() error { return b.verifyTemplate(ctx, 0) }); err != nil {
		return err
	}

	return errors.Join(b.cluster.admin.Delete(ctx, newTemplate("")), b.cluster.audit.settled(ctx))
}

// tableTemplate adds what was measured of templates.
func (b *bench) tableTemplate(t *table) {
	if !b.options.wants(measureTemplate) {
		return
	}

	t.costs(fmt.Sprintf("a template of %d roles bound", templateRoles), b.figure(measureTemplate),
		b.limit(changeRatio, coldRatioLarge))
	// The bindings, the ClusterRoles, a status each of the template and the instance, and two requests to look up whether the
	// resources in the rules are namespaced.
	b.tableRequests(t, measureTemplate, templateRoles*len(b.members)+templateRoles+2+2)

	t.within("a changed rule of it", b.figure(measureRule), atOnce)
	// In one turn: one ClusterRole and the status of the template, whatever the number of namespaces.
	t.count("  writes", b.counted[measureRule].writes().total(), changes*2)
	t.notef("Requests of measure %s: %s.", measureRule, b.counted[measureRule])
}
