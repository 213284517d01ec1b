package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// errWrong begins every finding about the cluster's content: a figure that was reached by doing something else, or nothing, is
// worthless.
var errWrong = errors.New("the result is wrong")

// verify checks that the namespaces hold exactly what they should, and no other namespace anything. extra is the resource
// that was last added to the first source role.
func (b *bench) verify(ctx context.Context, namespaces []string, extra string) error {
	roles, bindings, err := projectedIn(ctx, b.cluster.admin)
	if err != nil {
		return err
	}

	each := b.options.accounts * b.options.roles
	rules := map[string][]rbacv1.PolicyRule{}
	held := map[string]int{}

	for i := range roles {
		r := &roles[i]
		rules[r.Namespace+"/"+r.Name] = r.Rules
		held[r.Namespace]++
	}

	for i := range bindings {
		binding := &bindings[i]
		held[binding.Namespace]++

		if err := verifyBinding(binding, rules, extra); err != nil {
			return err
		}
	}

	for _, namespace := range namespaces {
		if held[namespace] != 2*each {
			return fmt.Errorf("%w: namespace %s holds %d projected objects, not %d", errWrong, namespace, held[namespace], 2*each)
		}

		delete(held, namespace)
	}

	if len(held) > 0 {
		return fmt.Errorf("%w: %d namespaces hold projected objects and should not", errWrong, len(held))
	}

	return nil
}

// verifyBinding checks that a binding gives the account of its source the rules of its source.
func verifyBinding(binding *rbacv1.RoleBinding, rules map[string][]rbacv1.PolicyRule, extra string) error {
	source := binding.Annotations[scope.AnnotationSource]
	name := source[strings.LastIndexByte(source, '/')+1:]
	want := sourceRules("")

	if name == roleName(0, 0) {
		want = sourceRules(extra)
	}

	account := name[:strings.LastIndex(name, "-role-")]
	if len(binding.Subjects) != 1 || binding.Subjects[0].Name != account || binding.Subjects[0].Namespace != operatorNamespace {
		return fmt.Errorf("%w: binding %s/%s names %v", errWrong, binding.Namespace, binding.Name, binding.Subjects)
	}

	if !equality.Semantic.DeepEqual(rules[binding.Namespace+"/"+binding.RoleRef.Name], want) {
		return fmt.Errorf("%w: binding %s/%s does not give what %s gives", errWrong, binding.Namespace, binding.Name, source)
	}

	return nil
}

// verifyList checks what the watch list holds; no namespaces means that there is none.
func (b *bench) verifyList(ctx context.Context, namespaces []string) error {
	cm := configMap(listName)

	err := b.cluster.admin.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	if client.IgnoreNotFound(err) != nil {
		return err
	}

	want := ""
	if len(namespaces) > 0 {
		want = listOf(namespaces)
	}

	if got := cm.Data[scope.ListKey]; got != want {
		return fmt.Errorf("%w: the watch list has %d characters, not %d", errWrong, len(got), len(want))
	}

	return nil
}

// gone waits until a check finds nothing any more that should not be there.
func gone(ctx context.Context, limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; {
		if err := check(); err == nil || time.Now().After(deadline) {
			return err
		}

		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// projectedIn lists projected objects, in pages, so that the benchmark itself does not weigh on the API server.
func projectedIn(ctx context.Context, admin client.Client, opts ...client.ListOption) (
	roles []rbacv1.Role, bindings []rbacv1.RoleBinding, err error,
) {
	opts = append(opts, client.HasLabels{scope.LabelScope}, client.Limit(1000))

	for next := ""; ; {
		var page rbacv1.RoleList
		if err := admin.List(ctx, &page, append(opts, client.Continue(next))...); err != nil {
			return nil, nil, fmt.Errorf("listing projected roles: %w", err)
		}

		roles = append(roles, page.Items...)

		if next = page.Continue; next == "" {
			break
		}
	}

	for next := ""; ; {
		var page rbacv1.RoleBindingList
		if err := admin.List(ctx, &page, append(opts, client.Continue(next))...); err != nil {
			return nil, nil, fmt.Errorf("listing projected bindings: %w", err)
		}

		bindings = append(bindings, page.Items...)

		if next = page.Continue; next == "" {
			return roles, bindings, nil
		}
	}
}

// listOf returns the watch list of the members and the operator namespace.
func listOf(members []string) string {
	return joined(append([]string{operatorNamespace}, members...))
}

// joined returns a list as operators read it.
func joined(namespaces []string) string {
	return strings.Join(slices.Sorted(slices.Values(namespaces)), ",")
}

func configMap(name string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{}
	cm.Namespace, cm.Name = operatorNamespace, name

	return cm
}
