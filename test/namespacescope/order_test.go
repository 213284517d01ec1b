package namespacescope_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// history is what happened to the watch list and to the projected RBAC, in the order in which the API server did it.
// Resource versions give that order also between kinds; which watch tells first says nothing.
type history struct {
	mu     sync.Mutex
	events []event
}

type event struct {
	version int
	// listed is the watch list; nil for an event of RBAC.
	listed []string
	// namespace and object name a Role or RoleBinding; gone says that it was deleted.
	namespace, object string
	gone              bool
}

// record begins a history of an operator namespace's list and of the RBAC projected from it.
func (w *world) record(ops string) *history {
	w.Helper()

	h := &history{}
	hash := client.HasLabels{scopeLabel}

	for list, opts := range map[client.ObjectList][]client.ListOption{
		&corev1.ConfigMapList{}: {client.InNamespace(ops)}, &rbacv1.RoleList{}: {hash}, &rbacv1.RoleBindingList{}: {hash},
	} {
		changes, err := w.client.Watch(w.Context(), list, opts...)
		if err != nil {
			w.Fatal(err)
		}

		go h.follow(w.Context(), ops, changes)
	}

	return h
}

func (h *history) follow(ctx context.Context, ops string, changes watch.Interface) {
	defer changes.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case c, open := <-changes.ResultChan():
			if !open {
				return
			}

			if obj, ok := c.Object.(client.Object); ok {
				h.add(ops, obj, c.Type == watch.Deleted)
			}
		}
	}
}

func (h *history) add(ops string, obj client.Object, gone bool) {
	e := event{version: versionOf(obj.GetResourceVersion()), gone: gone}

	switch o := obj.(type) {
	case *corev1.ConfigMap:
		if o.Name != defaultList {
			return
		}

		e.listed = []string{}
		if !gone {
			e.listed = strings.Split(o.Data["namespaces"], ",")
		}
	default:
		if o.GetAnnotations()["ambit.dev/owner"] != "NamespaceScope/"+ops+"/scope" {
			return
		}

		e.namespace, e.object = o.GetNamespace(), fmt.Sprintf("%T %s", o, o.GetName())
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	h.events = append(h.events, e)
}

// ended says whether the history tells that the list and all RBAC are gone. Each kind has a watch of its own, and each watch
// tells in its own time.
func (h *history) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.sort()

	gone, held := false, map[string]bool{}

	for _, e := range h.events {
		name := e.namespace + " " + e.object

		switch {
		case e.listed != nil:
			gone = e.gone
		case e.gone:
			delete(held, name)
		default:
			held[name] = true
		}
	}

	if !gone || len(held) > 0 {
		return fmt.Errorf("the list is gone: %t, and there is %v", gone, held)
	}

	return nil
}

func (h *history) sort() {
	slices.SortFunc(h.events, func(a, b event) int { return a.version - b.version })
}

// check replays the history: whenever the list names a member, all of its RBAC has to be there. It returns how often a
// member was named, so that a history of nothing proves nothing.
func (h *history) check(ops string, objects int) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.sort()

	var (
		named  int
		listed []string
		held   = map[string]map[string]bool{}
	)

	for _, e := range h.events {
		switch {
		case e.listed != nil:
			listed = e.listed
		case held[e.namespace] == nil:
			held[e.namespace] = map[string]bool{e.object: true}
		case e.gone:
			delete(held[e.namespace], e.object)
		default:
			held[e.namespace][e.object] = true
		}

		for _, member := range listed {
			if member == ops {
				continue
			}

			named++

			// A copy whose creation is answered late is made once more, and one of the two goes again.
			if len(held[member]) < objects {
				return named, fmt.Errorf("at version %d the list names %s, which holds %v of %d objects",
					e.version, member, held[member], objects)
			}
		}
	}

	return named, nil
}

func TestRBACIsThereAsLongAsTheListNamesAMember(t *testing.T) {
	w := begin(t)
	ops := w.namespace("home")
	w.operator(ops, "op")
	w.grant(ops, "op", "pods", "get pods")
	w.grant(ops, "op", "services", "get services")

	all := names(6, "member")
	for _, member := range all {
		w.namespaceCalled(member)
	}

	h := w.record(ops)
	nss := w.scope(ops, "scope", members(all[:2]...))
	w.lists(ops, defaultList, append(all[:2:2], ops)...)

	for _, some := range [][]string{all, all[3:], all[:4], {all[0], all[5]}, all, nil, all[2:]} {
		w.setMembers(nss, some...)
		w.lists(ops, defaultList, append(slices.Clone(some), ops)...)

		for _, member := range some {
			// The API server's own view of RBAC may lag a moment behind what it stores.
			w.eventually("rights in a listed member", func() error {
				return w.checkAllowed(on(ops, "op", member, "get services"))
			})
		}
	}

	w.delete(nss)
	w.gone(nss)
	w.mayNot(ops, "op", all[5], "get secrets")
	w.eventually("the history is complete", h.ended)

	if named, err := h.check(ops, 6); err != nil || named < len(all) {
		t.Errorf("%d times was a member named: %v", named, err)
	}
}

func TestRefusedMemberDoesNotEnterTheList(t *testing.T) {
	w := begin(t)
	ops, served := w.namespace("home"), w.namespace("served")
	refused := w.namespace("refused", refusesRoles)
	w.operator(ops, "op")
	w.grant(ops, "op", "refused-role", "get pods")
	w.untilRefusing(refused)

	nss := w.scope(ops, "scope", members(refused, served))

	// On a busy machine the API server's answer to an attempt, in either member, may come later than Ambit waits for it, also after
	// it has refused another.
	message := "1 of 3 members are not fully served: " + refused + " (RoleNotProjected)"
	w.eventually("the refusal is reported, and nothing else", func() error {
		if err := w.failed(nss, refused, "RoleNotProjected"); err != nil {
			return err
		}

		c := meta.FindStatusCondition(nss.Status.Conditions, "Ready")
		if c == nil || c.Reason != "MembersFailed" || c.Message != message || len(nss.Status.FailedMembers) != 1 {
			return fmt.Errorf("failedMembers are %+v, Ready is %+v", nss.Status.FailedMembers, c)
		}

		return nil
	})
	w.lists(ops, defaultList, ops, served)
	w.equal("status.validatedMembers", nss.Status.ValidatedMembers, []string{ops, served})
	w.event(ops, "RoleNotProjected", refused)

	// Every other role and member is served.
	w.may(ops, "op", served, "get pods")
	w.may(ops, "op", served, "get secrets")
	w.may(ops, "op", refused, "get secrets")
	w.mayNot(ops, "op", refused, "get pods")

	w.allowRoles(refused, nss)
	w.ready(nss)
	w.lists(ops, defaultList, ops, refused, served)
	w.may(ops, "op", refused, "get pods")
	w.equal("status.unprojectedRoles", len(nss.Status.UnprojectedRoles), 0)
}

// allowRoles ends the refusals in a namespace. The API server and Ambit each learn of the label by a watch. If Ambit is the
// first and is refused once more, it tries again at the next change, or later each time; so there is a change of its scope.
func (w *world) allowRoles(namespace string, nss *operatorv1.NamespaceScope) {
	w.Helper()

	key, _, _ := strings.Cut(refusesRoles, "=")
	w.relabel(namespace, key, "no-more")
	w.eventually("roles are allowed in "+namespace, func() error {
		return w.client.Create(w.Context(), role(namespace, "refused-probe"), client.DryRunAll)
	})
	w.change(nss, func() { metav1.SetMetaDataAnnotation(&nss.ObjectMeta, "touched", "by somebody") })
}

func TestListedMemberStaysWhenARoleIsRefusedLater(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a", refusesRoles), w.namespace("b")
	w.operator(ops, "op")
	w.untilRefusing(a)

	nss := w.scope(ops, "scope", members(a, b))
	w.ready(nss)
	w.lists(ops, defaultList, a, b, ops)

	w.grant(ops, "op", "refused-role", "get pods")

	w.eventually("the refusal is reported", func() error { return w.failed(nss, a, "RoleNotProjected") })
	w.reports(nss, "Ready", metav1.ConditionFalse, "MembersFailed")
	w.may(ops, "op", b, "get pods")
	w.steadily("the member stays in the list", func() error { return w.checkList(ops, defaultList, a, b, ops) })
	w.equal("status.validatedMembers", nss.Status.ValidatedMembers, []string{a, b, ops})

	// Nor does another member's coming or going put it out.
	w.setMembers(nss, a)
	w.lists(ops, defaultList, a, ops)

	// Giving up the role settles it.
	w.delete(binding(ops, "refused-role", "", ""))
	w.ready(nss)
}
