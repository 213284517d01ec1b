package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// floor is the bare client: it knows what to write and does nothing but write it.
type floor struct {
	// connections are clients of one account, each with a connection of its own.
	connections []client.WithWatch
	pace
	// template is what Ambit projected into one member, so that the floor writes the same, byte for byte: Roles before
	// RoleBindings.
	template []client.Object
	// tried are the best times of the sample at each pace.
	tried map[pace]time.Duration
}

// pace is how many connections there are, and how many writes are under way at once over all of them.
type pace struct {
	over, parallel int
}

// paces are those that are tried.
func paces() []pace {
	var out []pace

	for _, over := range []int{1, maxConnections} {
		for _, parallel := range []int{8, 16, 32, 64} {
			out = append(out, pace{over, parallel})
		}
	}

	return out
}

// nth is the client for the nth write.
func (f *floor) nth(i int) client.WithWatch { return f.connections[i%f.over] }

// record takes the template from a member that Ambit serves.
func (f *floor) record(ctx context.Context, admin client.Client, member string) error {
	roles, bindings, err := projectedIn(ctx, admin, client.InNamespace(member))
	if err != nil {
		return err
	}

	for i := range roles {
		r := &roles[i]
		f.template = append(f.template, &rbacv1.Role{ObjectMeta: bare(&r.ObjectMeta), Rules: r.Rules})
	}

	for i := range bindings {
		b := &bindings[i]
		f.template = append(f.template,
			&rbacv1.RoleBinding{ObjectMeta: bare(&b.ObjectMeta), RoleRef: b.RoleRef, Subjects: b.Subjects})
	}

	return nil
}

func bare(m *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Labels: m.Labels, Annotations: m.Annotations}
}

// objects returns what all the namespaces should hold.
func (f *floor) objects(namespaces []string) []client.Object {
	out := make([]client.Object, 0, len(namespaces)*len(f.template))

	for _, roles := range []bool{true, false} {
		for _, namespace := range namespaces {
			for _, obj := range f.template {
				if _, isRole := obj.(*rbacv1.Role); isRole == roles {
					c, _ := obj.DeepCopyObject().(client.Object)
					c.SetNamespace(namespace)
					out = append(out, c)
				}
			}
		}
	}

	return out
}

// firstRole is what Ambit made in one member of the role that the measures "change" and "drift" are about.
func (f *floor) firstRole() (role *rbacv1.Role, binding *rbacv1.RoleBinding) {
	for _, obj := range f.template {
		if !isOfFirstRole(obj) {
			continue
		}

		switch obj := obj.(type) {
		case *rbacv1.Role:
			role = obj
		case *rbacv1.RoleBinding:
			binding = obj
		}
	}

	return role, binding
}

// isOfFirstRole says whether an object was made of the first role or its binding, which are called the same. The name of the
// object says nothing: it is new in each member and each time.
func isOfFirstRole(obj client.Object) bool {
	return strings.HasSuffix(obj.GetAnnotations()[scope.AnnotationSource], "/"+operatorNamespace+"/"+roleName(0, 0))
}

func (f *floor) create(ctx context.Context, objects []client.Object) error {
	return each(ctx, len(objects), f.parallel, func(i int) error {
		return f.nth(i).Create(ctx, objects[i], client.FieldOwner(scope.FieldManager))
	})
}

func (f *floor) patch(ctx context.Context, objects []client.Object, patch client.Patch) error {
	return each(ctx, len(objects), f.parallel, func(i int) error {
		return f.nth(i).Patch(ctx, objects[i], patch, client.FieldOwner(scope.FieldManager))
	})
}

// remove deletes bindings before roles, as a revocation does.
func (f *floor) remove(ctx context.Context, objects []client.Object) error {
	backwards := slices.Clone(objects)
	slices.Reverse(backwards)

	return each(ctx, len(backwards), f.parallel, func(i int) error {
		err := f.nth(i).Delete(ctx, backwards[i])
		if apierrors.IsNotFound(err) {
			return nil
		}

		return err
	})
}

// listManager is not Ambit's own: Ambit takes back what it once wrote into a ConfigMap that no scope names.
const listManager = "bench"

// writeList writes a list into the floor's ConfigMap, by server-side apply like Ambit.
func (f *floor) writeList(ctx context.Context, namespaces []string) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": operatorNamespace, "name": floorList},
		"data":     map[string]string{scope.ListKey: listOf(namespaces)},
	})
	if err != nil {
		return err
	}

	return f.nth(0).Patch(ctx, configMap(floorList), applyPatch(body), client.FieldOwner(listManager), client.ForceOwnership)
}

// tune finds the pace at which the floor is fastest on this machine. Two tries each, since the first may meet a
// busy moment.
func (f *floor) tune(ctx context.Context, members []string) error {
	sample := members[:min(len(members), 25)]
	f.tried = map[pace]time.Duration{}

	for range 2 {
		for _, at := range paces() {
			f.pace = at
			objects := f.objects(sample)
			started := time.Now()

			if err := f.create(ctx, objects); err != nil {
				return fmt.Errorf("trying the floor with %s: %w", at, err)
			}

			if took := time.Since(started); f.tried[at] == 0 || took < f.tried[at] {
				f.tried[at] = took
			}

			if err := f.remove(ctx, objects); err != nil {
				return err
			}
		}
	}

	f.pace = slices.MinFunc(paces(), func(a, b pace) int { return cmp.Compare(f.tried[a], f.tried[b]) })

	return nil
}

func (p pace) String() string {
	return fmt.Sprintf("%d writes at once over %d connections", p.parallel, p.over)
}
