package namespacescope_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// In the namespaced profile a manager is told its operator namespaces when it starts, and may do in other namespaces what
// their owners granted to it. So operator namespaces are made beforehand, and every other namespace lets Ambit in as soon as
// it exists.

const (
	// opsWanted is how many operator namespaces all tests need together. None is used twice: what is left of one test would be
	// another one's riddle.
	opsWanted = 145
	// profileRole is the Role by which the profile lets Ambit work in its operator namespace.
	profileRole = "ambit-namespaced"
	// lateAccess is how much longer it may take until Ambit sees a namespace that lets it in after a scope named it: no watch
	// tells, so it asks every five seconds.
	lateAccess = 10 * time.Second
	// lateEnd is how much longer it may take until Ambit sees that a namespace ends: not before Kubernetes takes its RBAC
	// away, for which it takes its time when many end at once.
	lateEnd = 20 * time.Second
)

// prescribedHomes have names that documents prescribe.
func prescribedOperatorNamespaces() []string { return []string{"ibm-common-services"} }

// operator namespaces are the namespaces that the manager serves, and which of them no test has taken yet.
type opsNamespaces struct {
	all []string

	mu   sync.Mutex
	free []string
}

func (h *opsNamespaces) take() (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if len(h.free) == 0 {
		return "", fmt.Errorf("all %d operator namespaces are taken; raise opsWanted", opsWanted)
	}

	name := h.free[0]
	h.free = h.free[1:]

	return name, nil
}

// prepareHomes makes the operator namespaces, with the rights of the profile's own operator namespace in each.
func (s *system) prepareOperatorNamespaces(ctx context.Context) error {
	installed := &rbacv1.Role{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: ambitNamespace, Name: profileRole}, installed); err != nil {
		return err
	}

	s.opsNamespaces.free = names(opsWanted, "home")
	s.opsNamespaces.all = slices.Concat(s.opsNamespaces.free, prescribedOperatorNamespaces())

	errs := make([]error, len(s.opsNamespaces.all))

	var workers sync.WaitGroup

	for worker := range 8 {
		workers.Go(func() {
			for i := worker; i < len(s.opsNamespaces.all); i += 8 {
				errs[i] = s.makeOperatorNamespace(ctx, s.opsNamespaces.all[i], installed.Rules)
			}
		})
	}

	workers.Wait()

	// This waits until the API server knows of it, and so of all that was written before.
	return errors.Join(errors.Join(errs...), s.open(ctx, metav1.NamespaceDefault))
}

func (s *system) makeOperatorNamespace(ctx context.Context, name string, rules []rbacv1.PolicyRule) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}

	err := s.client.Create(ctx, ns.DeepCopy())
	// An earlier run of the tests may have just left the cluster.
	for end := time.Now().Add(testbed.Patience); apierrors.IsAlreadyExists(err) && time.Now().Before(end); time.Sleep(interval) {
		err = s.client.Create(ctx, ns.DeepCopy())
	}

	if err != nil {
		return err
	}

	s.finally(ns)

	meta := metav1.ObjectMeta{Namespace: name, Name: profileRole}

	return errors.Join(
		s.client.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}),
		s.client.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: profileRole},
			Subjects: []rbacv1.Subject{subject(ambitNamespace, ambitAccount)},
		}),
	)
}

// open lets all operator namespaces into a namespace, as "ambit authorize" does, and waits until the API server knows. Which
// rules the tests' scopes will project is not known yet, so instead of them the grant has the right to hand out any, and which
// operator namespace it will be, neither, so it is one grant for all.
func (s *system) open(ctx context.Context, namespace string) error {
	if s.profile != namespaced {
		return nil
	}

	given := grant.Grant{Namespace: namespace, To: ambitNamespace, Account: ambitAccount, Rules: append(
		authority.GrantFor(&plan.ScopePlan{}),
		rbacv1.PolicyRule{APIGroups: []string{rbacGroup}, Resources: []string{"roles"}, Verbs: []string{"bind", "escalate"}},
		rbacv1.PolicyRule{APIGroups: []string{rbacGroup}, Resources: []string{"clusterroles"}, Verbs: []string{"bind"}},
	)}

	binding := given.RoleBinding()
	for _, ops := range s.opsNamespaces.all {
		binding.Subjects = append(binding.Subjects, subject(ops, grant.DefaultAccount))
	}

	for _, obj := range []client.Object{given.Role(), binding} {
		// Namespaces that stay may have been opened by another test.
		if err := client.IgnoreAlreadyExists(s.client.Create(ctx, obj)); err != nil {
			return fmt.Errorf("letting Ambit into %s: %w", namespace, err)
		}
	}

	return s.until(ctx, on(ambitNamespace, ambitAccount, namespace, "list rolebindings"), true)
}

// letIn lets Ambit into a namespace of the test.
func (w *world) letIn(namespace string) {
	w.Helper()

	if err := w.open(w.Context(), namespace); err != nil {
		w.Fatal(err)
	}
}

// operator namespace takes one of the operator namespaces that the manager knows.
func (w *world) newOps(labels map[string]string) string {
	w.Helper()

	name, err := w.opsNamespaces.take()
	if err != nil {
		w.Fatal(err)
	}

	if len(labels) > 0 {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		w.change(ns, func() { maps.Copy(ns.Labels, labels) })
	}

	w.namespaces = append(w.namespaces, name)

	return name
}

// leaveHomes deletes the scope that the manager made by itself, and what outlives the tests.
func (s *system) leaveOperatorNamespaces(ctx context.Context) error {
	given := grant.Grant{Namespace: metav1.NamespaceDefault, To: ambitNamespace, Account: ambitAccount}
	own := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{
		Namespace: ambitNamespace, Name: controllers.DefaultScopeName,
	}}

	var errs []error
	for _, obj := range []client.Object{own, given.RoleBinding(), given.Role()} {
		errs = append(errs, client.IgnoreNotFound(s.client.Delete(ctx, obj)))
	}

	return errors.Join(errs...)
}
