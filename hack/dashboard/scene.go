package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	restartInterval = 10 * time.Second
	// pause is between two acts of the scene.
	pause = 12 * time.Second
	// account is the name of every operator's account.
	account = "operator"
)

// act is one thing that happens.
type act func(ctx context.Context, c client.Client) error

// play has three operators get scopes, namespaces join and leave, and permissions be refused and then granted.
func play(ctx context.Context, c client.Client) error {
	for _, a := range []act{
		together(operator("databases", false, "get,list,watch secrets", "create,update,delete statefulsets.apps"),
			scope("databases", operatorv1.NamespaceScopeSpec{NamespaceSelector: labelled("databases")})),
		namespaces("databases", 0, 20),
		together(operator("messaging", true, "get,list,watch configmaps"),
			scope("messaging", operatorv1.NamespaceScopeSpec{
				NamespaceSelector: labelled("messaging"), WorkloadInjector: &operatorv1.WorkloadInjector{Enable: new(true)},
			})),
		namespaces("messaging", 0, 8), namespaces("messaging", 8, 12),
		together(operator("backups", false, "get,list,watch persistentvolumeclaims"), delegate("backups"),
			namespaces("backups", 0, 10), authorizations("backups", 0, 4),
			scope("backups", operatorv1.NamespaceScopeSpec{NamespaceSelector: labelled("backups"), ServiceAccountName: "delegate"})),
		namespaces("databases", 20, 30), namespaces("messaging", 12, 15),
		authorizations("backups", 4, 7), authorizations("backups", 7, 10),
		changes("databases"),
		leave("databases", 10, 30), leave("messaging", 0, 9),
	} {
		if err := a(ctx, c); err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("playing the scene: %w", ctx.Err())
		case <-time.After(pause):
		}
	}

	return nil
}

// create makes objects.
func create(objects ...client.Object) act {
	return func(ctx context.Context, c client.Client) error {
		for _, obj := range objects {
			if err := c.Create(ctx, obj); err != nil {
				return fmt.Errorf("making %T %s: %w", obj, obj.GetName(), err)
			}
		}

		return nil
	}
}

// together runs several acts without a pause in between.
func together(acts ...act) act {
	return func(ctx context.Context, c client.Client) error {
		for _, a := range acts {
			if err := a(ctx, c); err != nil {
				return err
			}
		}

		return nil
	}
}

func name(team string, number int) string { return fmt.Sprintf("%s-%02d", team, number) }

func labelled(team string) *operatorv1.NamespaceSelector {
	return &operatorv1.NamespaceSelector{Raw: fmt.Appendf(nil, `{"matchLabels":{"served-by":%q}}`, team)}
}

func scope(ops string, spec operatorv1.NamespaceScopeSpec) act {
	return create(&operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: ops}, Spec: spec})
}

// operator makes a namespace with an operator and its Role. The operator reads the list, or waits until it is injected.
func operator(ops string, injected bool, rules ...string) act {
	reader := testbed.Reader(ops, account)
	if injected {
		reader.Spec.Template.Spec.Containers[0].Env = nil
	}

	return create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ops}}, testbed.Account(ops, account),
		testbed.Role(ops, account, rules...), testbed.Bind(ops, "Role", account, ops, account), reader,
	)
}

func namespaces(team string, from, to int) act {
	var objects []client.Object
	for i := from; i < to; i++ {
		objects = append(objects, &corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Name: name(team, i), Labels: map[string]string{"served-by": team}},
		})
	}

	return create(objects...)
}

// delegate makes the account as which Ambit writes for an operator.
func delegate(ops string) act {
	return create(
		testbed.Account(ops, "delegate"), testbed.Role(ops, "at-home", testbed.InOperatorNamespace()...),
		testbed.Bind(ops, "Role", "at-home", ops, "delegate"),
	)
}

// authorizations has namespaces authorize the delegate; before, each of them is refused.
func authorizations(ops string, from, to int) act {
	var objects []client.Object

	for i := from; i < to; i++ {
		member := name(ops, i)
		objects = append(objects,
			testbed.Role(member, "authorization", append(testbed.InMember(), "get,list,watch persistentvolumeclaims")...),
			testbed.Bind(member, "Role", "authorization", ops, "delegate"))
	}

	return create(objects...)
}

// changes gives an operator one more permission.
func changes(ops string) act {
	return func(ctx context.Context, c client.Client) error {
		role := &rbacv1.Role{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: ops, Name: account}, role); err != nil {
			return fmt.Errorf("reading the role of %s: %w", ops, err)
		}

		role.Rules = append(role.Rules, testbed.Rule("list,watch pods"))

		return c.Update(ctx, role)
	}
}

// leave removes the label from namespaces.
func leave(team string, from, to int) act {
	return func(ctx context.Context, c client.Client) error {
		for i := from; i < to; i++ {
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name(team, i)}}
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"served-by":null}}}`))

			if err := c.Patch(ctx, ns, patch); err != nil {
				return fmt.Errorf("having %s leave: %w", ns.Name, err)
			}
		}

		return nil
	}
}
