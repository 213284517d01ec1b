package simulation

import (
	"strconv"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
)

// Scopes is a cluster in memory in which the manager's applier writes what scopes ask for. What they project is kept as the types
// have it, without a record of who wrote which field: there may be tens of thousands of copies. The few other objects that are
// written for a scope are in a Cluster. What is written gets into the records as in the manager, by what the write returned.
type Scopes struct {
	*Simulation

	// Live finds a Role, RoleBinding, ClusterRole or ClusterRoleBinding that was there in the beginning; nil where there is none.
	Live func(namespace string, key facts.ProjectedKey) client.Object
	// Self is the user that Ambit itself is, where it may do no more than was granted to it; empty where it may do everything.
	Self string

	once *read.Once
	// copies are those that were written, nil for those that were deleted.
	copies  map[facts.ClusterKey]client.Object
	touched map[facts.ClusterKey]struct{}
	at      time.Time
}

// NewScopes returns a cluster of what was read at a time. Its records are those of the manager's own reader, and change with it.
func NewScopes(scheme *runtime.Scheme, mapper meta.RESTMapper, once *read.Once, at time.Time) *Scopes {
	c := NewCluster(scheme, mapper)
	c.version, c.later = read.Later, map[Key]client.Object{}

	s := &Scopes{
		Simulation: New(c), once: once, at: at, copies: map[facts.ClusterKey]client.Object{}, touched: map[facts.ClusterKey]struct{}{},
		Live: func(string, facts.ProjectedKey) client.Object { return nil },
	}
	s.roleOf, c.now = s.copiedRole, s.Now
	once.Settle()

	return s
}

// Holds says what users hold, where that is known.
func (s *Scopes) Holds(of Asker) { s.holds = of }

// Add puts an object there as it is.
func (s *Scopes) Add(obj client.Object) error {
	if key, is := copyKeyOf(obj); is {
		s.copies[key] = obj

		return nil
	}

	gvk, err := apiutil.GVKForObject(obj, s.cluster.scheme)
	if err != nil {
		return err //nolint:wrapcheck // It says which type nobody knows.
	}

	s.cluster.later[Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}] = obj

	return nil
}

// Declare puts a resource there that asks for a scope.
func (s *Scopes) Declare(obj client.Object) error {
	u, err := s.cluster.toJSON(obj)
	if err != nil {
		return err
	}

	// Whatever somebody proposes is older than what is written here.
	u.SetResourceVersion("1")
	s.cluster.objects[keyOf(u)] = u

	return nil
}

// Now is the clock, which stands still until it is set.
func (s *Scopes) Now() time.Time { return s.at }

// Set sets the clock.
func (s *Scopes) Set(at time.Time) { s.at = at }

// Writes is larger with each write.
func (s *Scopes) Writes() int { return s.cluster.writes }

// Begin forgets what was written so far, for Wrote.
func (s *Scopes) Begin() { clear(s.touched) }

// Wrote returns what happened since Begin to an object of a projected kind.
func (s *Scopes) Wrote(namespace string, key facts.ProjectedKey) apply.Result {
	at := facts.ClusterKey{Namespace: namespace, ProjectedKey: key}

	_, touched := s.touched[at]

	switch {
	case !touched:
		return apply.Unchanged
	case s.copies[at] == nil:
		return apply.Deleted
	default:
		return apply.Configured
	}
}

// Applier is the manager's, and writes here.
func (s *Scopes) Applier() *apply.Applier {
	a := apply.Simulated(func(name string) client.Client {
		if name == "" {
			name = s.Self
		}

		return &copyist{&user{s.Simulation, name, s.Self}, s}
	}, records{s.once.Store()})
	a.Now = s.Now

	return a
}

// records are those of the manager's own reader. What may be done does not change in here.
type records struct{ *read.Store }

// PermissionsChangedAt is never.
func (records) PermissionsChangedAt(string) time.Time { return time.Time{} }

var _ apply.Recorder = records{}

// copy finds an object of a kind that is projected; nil where there is none.
func (s *Scopes) copy(key facts.ClusterKey) client.Object {
	if obj, written := s.copies[key]; written {
		return obj
	}

	return s.Live(key.Namespace, key.ProjectedKey)
}

func (s *Scopes) copiedRole(ref rbacv1.RoleRef, namespace string) client.Object {
	key := facts.ClusterKey{Namespace: namespace, ProjectedKey: facts.ProjectedKey{Kind: projected.Kind(ref.Kind), Name: ref.Name}}
	if key.Kind.IsClusterScoped() {
		key.Namespace = ""
	}

	return s.copy(key)
}

// put stores a version of an object, or with nil that it is gone.
func (s *Scopes) put(key facts.ClusterKey, obj client.Object) {
	s.copies[key] = obj
	s.touched[key] = struct{}{}
	s.cluster.version++
	s.cluster.writes++

	if obj != nil {
		obj.SetResourceVersion(strconv.FormatUint(s.cluster.version, 10))
	}

	// Of what has no namespace, more is known than the applier tells.
	switch {
	case !key.Kind.IsClusterScoped():
	case obj == nil:
		s.once.EndCluster(key.Kind, key.Name)
	default:
		s.once.Add(obj)
	}
}

// evict ends a pod, and says whether there was one.
func (s *Scopes) evict(pod types.NamespacedName) bool {
	if !s.once.EndPod(pod) {
		return false
	}

	s.cluster.writes++

	return true
}

// copyKeyOf names an object, and says whether it is of a kind that is projected.
func copyKeyOf(obj client.Object) (facts.ClusterKey, bool) {
	kind, is := projected.KindOf(obj)

	return facts.ClusterKey{Namespace: obj.GetNamespace(), ProjectedKey: facts.ProjectedKey{Kind: kind, Name: obj.GetName()}}, is
}
