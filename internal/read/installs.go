package read

import (
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// installs holds the records of one namespace in which something is installed.
type installs struct {
	records

	accounts table[facts.Account]
	// deployments are whole: they are few, and are compared with what they should be in every field. Those that Ambit did not
	// make are nil.
	deployments table[*appsv1.Deployment]
	services    table[facts.Service]
}

// allowanceOfDeployments is how many bytes of memory the Deployments of a namespace may take in which something is installed.
// Anybody can claim that Ambit wrote an object, and records of what Ambit wrote are whole; they have as much room as the
// ClusterServiceVersions of which they are made, install.MaxCSVBytes.
const allowanceOfDeployments = 24 << 20

func newInstalls(changed func()) *installs {
	i := &installs{records: records{allowances: allowances{}, stop: func() {}}}
	i.accounts.changed = func(types.NamespacedName, *facts.Account, *facts.Account) { changed() }
	i.deployments.changed = func(types.NamespacedName, **appsv1.Deployment, **appsv1.Deployment) { changed() }
	i.services.changed = func(types.NamespacedName, *facts.Service, *facts.Service) { changed() }

	deployments := newKind(&i.deployments, &appsv1.DeploymentList{}, convertDeployment)
	deployments.limit = allowanceOfDeployments

	i.kinds = map[reflect.Type]kind{
		reflect.TypeFor[*corev1.ServiceAccount](): newKind(&i.accounts, &corev1.ServiceAccountList{}, convertAccount),
		reflect.TypeFor[*appsv1.Deployment]():     deployments,
		reflect.TypeFor[*corev1.Service]():        newKind(&i.services, &corev1.ServiceList{}, convertService),
	}

	return i
}

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

func convertAccount(obj client.Object) (facts.Account, bool) {
	return facts.Account{
		UID: string(obj.GetUID()), Made: writtenByAmbit(obj.GetManagedFields()), Owners: ownersOf(obj),
		Labelled: obj.GetLabels()[scope.LabelManagedBy] == scope.ManagedBy, Ending: obj.GetDeletionTimestamp() != nil,
	}, true
}

// ownersOf are the UIDs of the owners of an object, sorted.
func ownersOf(obj client.Object) string {
	return facts.OwnersOf(collect.Map(obj.GetOwnerReferences(), func(r metav1.OwnerReference) string { return string(r.UID) }))
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

	return s.installKeys()
}

func (s *Store) installKeys() []scope.Key {
	return collect.Map(slices.Sorted(maps.Keys(s.installs)), scope.Installs.In)
}
