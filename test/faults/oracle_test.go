package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// settled waits until the cluster is what the planner says, and stays so: a fresh reading of everything gives an empty
// plan, and every object is compared, field by field, with what the plan holds.
//
// An API server that was away is listed and watched again within ten seconds; the rest of the time is for a busy machine.
func (w *world) settled() {
	w.t.Helper()

	var last error

	for deadline := time.Now().Add(settling); time.Now().Before(deadline); time.Sleep(300 * time.Millisecond) {
		if last = w.check(); last == nil {
			return
		}
	}

	w.t.Fatalf("the cluster is not what the planner says: %v", last)
}

func (w *world) check() error {
	f, err := w.facts()
	if err != nil {
		return err
	}

	var list operatorv1.NamespaceScopeList
	if err := suite.client.List(w.t.Context(), &list, client.InNamespace(w.ops)); err != nil {
		return err
	}

	scopes := make([]scope.Scope, 0, len(list.Items))
	for i := range list.Items {
		scopes = append(scopes, compile.NamespaceScope(&list.Items[i]))
	}

	p := plan.New(scopes, f)
	if !plantest.IsEmpty(&p) {
		text, err := json.Marshal(&p) //nolint:musttag // Nobody reads it but who mends this.

		return errors.Join(fmt.Errorf("the plan is not empty:\n%s", text), err)
	}

	if !p.Again.IsZero() {
		return fmt.Errorf("there is more to do at %s", p.Again)
	}

	return w.compare(&p, f)
}

// facts reads the cluster anew, without any help of the manager.
func (w *world) facts() (*facts.Facts, error) {
	f, err := testbed.Watched(w.t.Context(), suite.client, w.ops)
	if err != nil {
		return nil, err
	}

	f.AmbitNamespace, f.RestartInterval = "ambit-system", restartInterval
	suite.births.settle(f)

	return f, nil
}

// compare goes through all Roles and RoleBindings of the cluster that speak of this world: each is planned, and each that
// is planned is there, as planned.
func (w *world) compare(p *plan.Plan, f *facts.Facts) error {
	want := map[string]*projected.Object{}

	for i := range p.Scopes {
		for _, member := range p.Scopes[i].Members {
			for j := range p.Scopes[i].Copies {
				o := &p.Scopes[i].Copies[j].Object
				want[fmt.Sprintf("%s %s/%s", o.Kind, member, o.Slot)] = o
			}
		}
	}

	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
	)
	if err := errors.Join(suite.client.List(w.t.Context(), &roles), suite.client.List(w.t.Context(), &bindings)); err != nil {
		return err
	}

	var problems []string

	slots := map[string]string{}

	for i := range roles.Items {
		r := from(&roles.Items[i])
		slots[roles.Items[i].Namespace+"/"+r.Name] = r.Slot
		problems = append(problems, w.compareOne(want, f, r, roles.Items[i].Namespace)...)
	}

	for i := range bindings.Items {
		b := from(&bindings.Items[i])
		if b.RoleRef.Kind == string(projected.Role) {
			b.RoleRef.Name = slots[bindings.Items[i].Namespace+"/"+b.RoleRef.Name]
		}

		problems = append(problems, w.compareOne(want, f, b, bindings.Items[i].Namespace)...)
	}

	for name := range want {
		problems = append(problems, name+" is missing")
	}

	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}

	return nil
}

// compareOne compares by slot: what copies are called in the end, the planner does not know.
func (w *world) compareOne(want map[string]*projected.Object, f *facts.Facts, live projected.Object, namespace string) []string {
	live.Name = live.Slot

	name := fmt.Sprintf("%s %s/%s", live.Kind, namespace, live.Slot)
	o, planned := want[name]
	delete(want, name)

	switch {
	case planned && !equality.Semantic.DeepEqual(*o, live):
		return []string{fmt.Sprintf("%s is %+v, planned is %+v", name, live, *o)}
	case !planned && scope.OwnerKey(live.Owner) == scope.NamespaceScopes.In(w.ops) && !f.Namespaces[namespace].Terminating:
		return []string{name + " is left over"}
	default:
		return nil
	}
}

func from(live client.Object) projected.Object {
	o, _ := projected.From(live)

	return o
}
