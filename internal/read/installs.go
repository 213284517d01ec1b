package read

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// installs holds the records of one namespace in which something is installed.
type installs struct {
	namespace string

	accounts table[facts.Account]
	// deployments are whole: they are few, and are compared with what they should be in every field. Those that Ambit did not
	// make are nil.
	deployments table[*appsv1.Deployment]
	services    table[facts.Service]

	stop    context.CancelFunc
	waiting int
	// allowances bound what is remembered of each kind; renewing says that the namespace is about to be listed again.
	allowances allowances
	renewing   bool
}

// allowanceOfDeployments is how many bytes of memory the Deployments of a namespace may take in which something is installed.
// Anybody can claim that Ambit wrote an object, and records of what Ambit wrote are whole; they have as much room as the
// ClusterServiceVersions of which they are made, install.MaxCSVBytes.
const allowanceOfDeployments = 24 << 20

func (i *installs) facts() *facts.Installed {
	f := &facts.Installed{
		LeftOut:     facts.LeftOut{Words: i.allowances.leftOut()},
		Accounts:    i.accounts.byName(),
		Deployments: i.deployments.byName(),
		Services:    i.services.byName(),
	}
	f.LeftOut.Deployments, f.LeftOut.More = i.allowances["Deployments"].namesOut()

	return f
}

// Installs makes sure that what is installed in a namespace is watched. It does not wait; the listener is notified when
// everything there is listed.
func (w *Watches) Installs(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.running == nil {
		w.pending[scope.Installs.In(namespace)] = struct{}{}

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

	in, reconcileKey := &installs{namespace: namespace, allowances: allowances{}}, scope.Installs.In(namespace)
	changed := func() {
		if in.waiting == 0 {
			s.listener.KeyChanged(reconcileKey)
		}
	}
	in.accounts.changed = func(types.NamespacedName, *facts.Account, *facts.Account) { changed() }
	in.deployments.changed = func(types.NamespacedName, **appsv1.Deployment, **appsv1.Deployment) { changed() }
	in.services.changed = func(types.NamespacedName, *facts.Service, *facts.Service) { changed() }

	ctx, stop := context.WithCancel(w.running)
	in.stop = stop
	s.installs[namespace] = in

	listed := func() {
		if in.waiting--; in.waiting == 0 {
			s.listener.KeyChanged(reconcileKey)
		}
	}
	bounded := func() {
		if in.waiting > 0 || ctx.Err() != nil {
			return
		}

		s.listener.KeyChanged(reconcileKey)

		if in.allowances.hasRoom() && !in.renewing {
			in.renewing = true
			time.AfterFunc(renewAfter, func() { w.renewInstalls(in) })
		}
	}

	startInstalled(ctx, w, in, &in.deployments, convertDeployment, &appsv1.DeploymentList{}, allowanceOfDeployments, listed, bounded)
	startInstalled(ctx, w, in, &in.accounts, convertAccount, &corev1.ServiceAccountList{}, allowanceOf, listed, bounded)
	startInstalled(ctx, w, in, &in.services, convertService, &corev1.ServiceList{}, allowanceOf, listed, bounded)
}

// startInstalled starts one watch of what is installed. It is called with the store locked, so that no watch counts as listed
// before the last one was started.
func startInstalled[R any](ctx context.Context, w *Watches, in *installs, t *table[R], convert func(client.Object) (R, bool),
	list client.ObjectList, limit int, listed, bounded func(),
) {
	in.waiting++
	k := whileRunning(ctx, tableSink(t, convert))
	k.allowance, k.bounded = in.allowances.add(list, limit), bounded

	start(ctx, w, &k, list, listed, nil, client.InNamespace(in.namespace))
}

// renewInstalls lists again what is installed in a namespace.
func (w *Watches) renewInstalls(in *installs) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.store.mu.Lock()
	is := w.store.installs[in.namespace] == in && w.running.Err() == nil

	if is {
		in.stop()
		delete(w.store.installs, in.namespace)
	}
	w.store.mu.Unlock()

	if is {
		w.startInstalls(in.namespace)
	}
}

// ReleaseInstalls ends the watches of a namespace in which nothing is installed any more.
func (w *Watches) ReleaseInstalls(namespace string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, scope.Installs.In(namespace))

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

	return facts.OwnersOf(owners)
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
	if !ok || !scope.WrittenByAmbit(d.ManagedFields, scope.MadeDeployment) {
		return nil, ok
	}

	return d.DeepCopy(), true
}

// wroteInstalled records what a write of Ambit's own returned, if it was into a namespace in which something is installed. It is
// called with the store locked.
func (s *Store) wroteInstalled(key types.NamespacedName, obj client.Object, a arrival) {
	in, watched := s.installs[key.Namespace]
	if !watched {
		return
	}

	switch obj.(type) {
	case *appsv1.Deployment:
		if d, ok := convertDeployment(obj); ok {
			wroteRow(s, &in.deployments, in.allowances["Deployments"], key, d, a)
		}
	case *corev1.ServiceAccount:
		r, _ := convertAccount(obj)
		wroteRow(s, &in.accounts, in.allowances["ServiceAccounts"], key, r, a)
	case *corev1.Service:
		r, _ := convertService(obj)
		wroteRow(s, &in.services, in.allowances["Services"], key, r, a)
	}
}

// wroteRow stores a record if there is room for it. If there is none, the watch is about to report the same object, and decides
// what is left out: others may have made large what Ambit writes on.
func wroteRow[R any](s *Store, t *table[R], of *allowance, key types.NamespacedName, r R, a arrival) {
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		t.drop(key, 0)
	}

	if of.addIfRoom(key, Weight(r), leave) {
		t.put(key, r, a)
	}
}

// installsChanged asks for a plan of everything that is installed. It is called with the store locked.
func (s *Store) installsChanged() {
	for namespace := range s.installs {
		s.listener.KeyChanged(scope.Installs.In(namespace))
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

// InstallKeys are those of the namespaces in which something is installed, sorted.
func (s *Store) InstallKeys() []scope.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()

	keys := make([]scope.Key, 0, len(s.installs))
	for _, namespace := range slices.Sorted(maps.Keys(s.installs)) {
		keys = append(keys, scope.Installs.In(namespace))
	}

	return keys
}
