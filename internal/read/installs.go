package read

import (
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// installs holds the records of one namespace in which something is installed.
type installs struct {
	accounts table[facts.Account]
	// deployments are whole: they are few, and are compared with what they should be in every field. Those that Ambit did not
	// make are nil.
	deployments table[*appsv1.Deployment]
	services    table[facts.Service]

	stop    context.CancelFunc
	waiting int
}

func (i *installs) facts() *facts.Installed {
	f := &facts.Installed{
		Accounts:    make(map[string]facts.Account, len(i.accounts.rows)),
		Deployments: make(map[string]*appsv1.Deployment, len(i.deployments.rows)),
		Services:    make(map[string]facts.Service, len(i.services.rows)),
	}
	copyRows(f.Services, &i.services)
	copyRows(f.Accounts, &i.accounts)
	copyRows(f.Deployments, &i.deployments)

	return f
}

// Installs makes sure that what is installed in a namespace is watched. It does not wait; the listener is told when the
// install key is listed.
func (w *Watches) Installs(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.running == nil {
		w.pending[scope.InstallKey(namespace)] = struct{}{}

		return
	}

	w.startInstalls(namespace)
}

func (w *Watches) startInstalls(namespace string) {
	s := w.store

	s.mu.Lock()
	defer s.mu.Unlock()

	if _, found := s.installs[namespace]; found {
		return
	}

	in, reconcileKey := &installs{}, scope.InstallKey(namespace)
	changed := func() {
		if in.waiting == 0 {
			s.listener.KeyChanged(reconcileKey)
		}
	}
	in.accounts.changed = func(types.NamespacedName, *facts.Account, *facts.Account) { changed() }
	in.deployments.changed = func(types.NamespacedName, **appsv1.Deployment, **appsv1.Deployment) { changed() }
	in.services.changed = func(types.NamespacedName, *facts.Service, *facts.Service) { changed() }

	ctx, stop := context.WithCancel(w.running)
	in.stop, in.waiting = stop, 3
	s.installs[namespace] = in

	listed := func() {
		if in.waiting--; in.waiting == 0 {
			s.listener.KeyChanged(reconcileKey)
		}
	}
	accounts := whileRunning(ctx, tableSink(&in.accounts, convertAccount))
	deployments := whileRunning(ctx, tableSink(&in.deployments, convertDeployment))
	within := client.InNamespace(namespace)

	start(ctx, w, &accounts, &corev1.ServiceAccountList{}, listed, nil, within)
	start(ctx, w, &deployments, &appsv1.DeploymentList{}, listed, nil, within)

	services := whileRunning(ctx, tableSink(&in.services, convertService))
	start(ctx, w, &services, &corev1.ServiceList{}, listed, nil, within)
}

// ReleaseInstalls ends the watches of a namespace in which nothing is installed any more.
func (w *Watches) ReleaseInstalls(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, scope.InstallKey(namespace))

	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	if in, found := w.store.installs[namespace]; found {
		in.stop()
		delete(w.store.installs, namespace)
	}
}

func convertAccount(obj client.Object) (facts.Account, bool) {
	return facts.Account{
		UID: string(obj.GetUID()), Made: writtenByAmbit(obj.GetManagedFields()), Owners: ownersOf(obj),
		Labelled: obj.GetLabels()[scope.LabelManagedBy] == scope.ManagedBy,
	}, true
}

// ownersOf are the UIDs of the owners of an object, sorted.
func ownersOf(obj client.Object) string {
	owners := make([]string, 0, len(obj.GetOwnerReferences()))
	for _, r := range obj.GetOwnerReferences() {
		owners = append(owners, string(r.UID))
	}

	slices.Sort(owners)

	return strings.Join(owners, ",")
}

// convertService keeps of a Service of somebody else that it is there.
func convertService(obj client.Object) (facts.Service, bool) {
	s, ok := obj.(*corev1.Service)
	if !ok || !writtenByAmbit(s.ManagedFields) {
		return facts.Service{}, ok
	}

	return facts.Service{Made: true, Shape: facts.ServiceShape(&s.Spec), Owners: ownersOf(obj)}, true
}

func convertDeployment(obj client.Object) (*appsv1.Deployment, bool) {
	d, ok := obj.(*appsv1.Deployment)
	if !ok || !writtenByAmbit(d.ManagedFields) {
		return nil, ok
	}

	return d.DeepCopy(), true
}

// wroteInstalled takes in what a write of Ambit's own into an install key returned. It is called with the store locked.
func (s *Store) wroteInstalled(key types.NamespacedName, obj client.Object, a arrival) {
	in, watched := s.installs[key.Namespace]
	if !watched {
		return
	}

	switch obj.(type) {
	case *appsv1.Deployment:
		if d, ok := convertDeployment(obj); ok {
			in.deployments.put(key, d, a)
		}
	case *corev1.ServiceAccount:
		r, _ := convertAccount(obj)
		in.accounts.put(key, r, a)
	case *corev1.Service:
		r, _ := convertService(obj)
		in.services.put(key, r, a)
	}
}

// installsChanged asks for a plan of everything that is installed. It is called with the store locked.
func (s *Store) installsChanged() {
	for namespace := range s.installs {
		s.listener.KeyChanged(scope.InstallKey(namespace))
	}
}

// Operators are the UIDs of the owners of the Deployments that Ambit made in a namespace, and whether these are known.
func (s *Store) Operators(namespace string) (map[string]struct{}, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()

	in, watched := s.installs[namespace]
	if !watched || in.waiting > 0 {
		return nil, false
	}

	owners := map[string]struct{}{}

	for _, r := range in.deployments.rows {
		if r.record == nil {
			continue
		}

		for _, owner := range r.record.OwnerReferences {
			owners[string(owner.UID)] = struct{}{}
		}
	}

	return owners, true
}

// InstallKeys are the operator namespaces in which something is installed, sorted.
func (s *Store) InstallKeys() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()

	keys := make([]string, 0, len(s.installs))
	for _, namespace := range slices.Sorted(maps.Keys(s.installs)) {
		keys = append(keys, scope.InstallKey(namespace))
	}

	return keys
}
