package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// closed is why nothing is known of a namespace.
const closed = "you may not read its roles and rolebindings, so what is there is unknown"

// Snapshot is what was read at one time.
type Snapshot struct {
	// Cluster is a cluster in memory of what was read, from which the facts come.
	Cluster *simulation.Cluster

	mu    sync.Mutex
	once  *read.Once
	taken time.Time
	// assumed are the namespaces that could not be looked up.
	assumed map[string]struct{}
	// lists are the watch lists of each reconcile key.
	lists map[scope.Key][]string
	// rbac says of each list of roles or bindings that was asked for whether it may be read.
	rbac map[rbacList]bool
	// unfollowed are the operator namespaces whose Leases could not be listed.
	unfollowed map[string]struct{}
}

// newSnapshot is empty.
func (r *Reader) newSnapshot(scopes []scope.Scope) *Snapshot {
	s := &Snapshot{
		once: read.NewOnce(operatorNamespacesOf(scopes)), taken: time.Now(), assumed: map[string]struct{}{},
		lists: map[scope.Key][]string{}, rbac: map[rbacList]bool{}, unfollowed: map[string]struct{}{},
	}
	s.Cluster = simulation.NewCluster(r.Scheme(), r.RESTMapper(), s.once, s.taken)

	for i := range scopes {
		s.lists[scopes[i].Key] = append(s.lists[scopes[i].Key], scopes[i].WatchList)
	}

	return s
}

// Live is a Role, RoleBinding, ClusterRole or ClusterRoleBinding that was read; nil where there is none.
func (s *Snapshot) Live(namespace string, key facts.ProjectedKey) client.Object {
	return s.Cluster.Before(simulation.Key{
		Kind:           schema.GroupKind{Group: rbacv1.GroupName, Kind: string(key.Kind)},
		NamespacedName: types.NamespacedName{Namespace: namespace, Name: key.Name},
	})
}

// Facts are those for a reconcile key, as the manager's own reader would have them.
func (s *Snapshot) Facts(key scope.Key) *facts.Facts {
	f, listed := s.once.Store.Facts(key, s.taken, s.lists[key]...)
	if !listed {
		return nil
	}

	s.Amend(f)

	return f
}

// Amend takes out of facts what could not be read.
func (s *Snapshot) Amend(f *facts.Facts) {
	for name, ns := range f.Namespaces {
		if s.IsClosed(name) && !ns.Terminating {
			ns.Closed = closed
			f.Namespaces[name] = ns
		}
	}

	if !s.has("clusterroles", "") {
		f.ClusterRoles = nil
	}
}

// ClusterBindings are those of the accounts of a reconcile key, as the manager's own reader would have them.
func (s *Snapshot) ClusterBindings(
	reconcileKey scope.Key, scopes []scope.Scope, isClusterScoped func(group, resource string) bool,
) facts.ClusterBindings {
	if !s.HasRBAC("") {
		return facts.ClusterBindings{}
	}

	return s.once.Store.ClusterBindings(reconcileKey, scopes, isClusterScoped)
}

// Abandoned are the facts of the namespaces that projected objects point to and that have no scope, or from which something was
// installed, as far as was read.
func (s *Snapshot) Abandoned() []*facts.Facts { return s.once.Abandoned(s.taken) }

// IsClosed says whether Roles or RoleBindings of a namespace may not be read.
func (s *Snapshot) IsClosed(namespace string) bool {
	return slices.ContainsFunc([]string{"roles", "rolebindings"}, func(resource string) bool {
		read, asked := s.rbac[rbacList{resource, namespace}]

		return asked && !read
	})
}

// IsHidden says whether a namespace could not be looked up, so that nobody knows its labels.
func (s *Snapshot) IsHidden(namespace string) bool {
	_, is := s.assumed[namespace]

	return is
}

// Facts reads what plans for the operator namespaces of these scopes are made from. Which others have to be read may depend on
// namespaces that are proposed.
func (r *Reader) Facts(ctx context.Context, scopes []scope.Scope, proposed ...*corev1.Namespace) (*Snapshot, error) {
	s := r.newSnapshot(scopes)

	// Namespaces come first: which others have to be read may depend on them.
	var namespaces corev1.NamespaceList

	listed, err := r.Need(ctx, &namespaces, "namespaces", "")
	if err != nil {
		return nil, err
	}

	for i := range namespaces.Items {
		s.Cluster.Add(&namespaces.Items[i])
	}

	for _, ns := range proposed {
		namespaces.Items = append(namespaces.Items, *ns)
	}

	concerned := concerned(scopes, namespaces.Items)
	if listed == Forbidden {
		if err := r.lookUp(ctx, s, concerned); err != nil {
			return nil, err
		}
	}

	jobs := append(r.besides(ctx, s, scopes),
		func() error { return r.rbac(ctx, s, concerned, &rbacv1.RoleList{}, "roles") },
		func() error { return r.rbac(ctx, s, concerned, &rbacv1.RoleBindingList{}, "rolebindings") })
	if err := r.Each(ctx, "reading the cluster", len(jobs), func(i int) error { return jobs[i]() }); err != nil {
		return nil, err
	}

	return s, nil
}

// besides are the jobs that read everything but namespaces and what is projected into them.
func (r *Reader) besides(ctx context.Context, s *Snapshot, scopes []scope.Scope) []func() error {
	jobs := []func() error{
		func() error { return r.rbacIn(ctx, s, []string{""}, &rbacv1.ClusterRoleList{}, "clusterroles") },
		func() error {
			return r.rbacIn(ctx, s, []string{""}, &rbacv1.ClusterRoleBindingList{}, "clusterrolebindings")
		},
	}

	for _, namespace := range operatorNamespacesOf(scopes) {
		jobs = append(jobs, r.operatorNamespaceJobs(ctx, s, namespace)...)
	}

	return append(jobs, r.olmJobs(ctx, s, scopes)...)
}

// podsAndAccounts are lists of what runs as which service account, by resource.
func podsAndAccounts() map[string]client.ObjectList {
	lists := map[string]client.ObjectList{"serviceaccounts": &corev1.ServiceAccountList{}, "pods": &corev1.PodList{}}
	for i := range facts.WorkloadTypes {
		lists[facts.WorkloadTypes[i].Resource.Resource] = facts.WorkloadTypes[i].NewList()
	}

	return lists
}

func (r *Reader) operatorNamespaceJobs(ctx context.Context, s *Snapshot, namespace string) []func() error {
	lists := podsAndAccounts()
	lists["configmaps"] = &corev1.ConfigMapList{}
	jobs := make([]func() error, 0, len(lists))

	for resource, list := range lists {
		jobs = append(jobs, func() error { return r.into(ctx, s, list, resource, namespace) })
	}

	return append(jobs, func() error {
		list := &coordinationv1.LeaseList{}
		listed, err := r.Lists(ctx, list, "leases", namespace)
		s.take(list)

		if listed != Complete {
			s.mu.Lock()
			defer s.mu.Unlock()

			s.unfollowed[namespace] = struct{}{}
		}

		return err
	})
}

// HidesFollowers says whether the caller may not list the Leases of an operator namespace: operators that follow their list look
// like others there, which are restarted.
func (s *Snapshot) HidesFollowers(namespace string) bool {
	_, hidden := s.unfollowed[namespace]

	return hidden
}

// olmJobs read ClusterServiceVersions where a scope injects into them or did, and their webhooks.
func (r *Reader) olmJobs(ctx context.Context, s *Snapshot, scopes []scope.Scope) []func() error {
	var jobs []func() error

	operatorNamespaces := map[string]struct{}{}

	for i := range scopes {
		if scopes[i].InjectCSVs || scopes[i].Injected {
			operatorNamespaces[scopes[i].Key.Namespace] = struct{}{}
		}
	}

	for _, namespace := range slices.Sorted(maps.Keys(operatorNamespaces)) {
		jobs = append(jobs, func() error {
			list := scope.NewOLMList(scope.KindCSV)

			listed, err := r.Need(ctx, list, "clusterserviceversions", namespace)
			if err != nil {
				return err
			}

			s.mu.Lock()
			defer s.mu.Unlock()

			s.once.CSVs(namespace, listed == Complete)

			for i := range list.Items {
				s.Cluster.Add(&list.Items[i])
			}

			return nil
		})
	}

	if len(operatorNamespaces) > 0 {
		jobs = append(jobs,
			func() error {
				return r.into(ctx, s, &admissionv1.MutatingWebhookConfigurationList{}, "mutatingwebhookconfigurations", "")
			},
			func() error {
				return r.into(ctx, s, &admissionv1.ValidatingWebhookConfigurationList{}, "validatingwebhookconfigurations", "")
			})
	}

	return jobs
}

// into lists a resource and records what there is.
func (r *Reader) into(ctx context.Context, s *Snapshot, list client.ObjectList, resource, namespace string) error {
	_, err := r.Need(ctx, list, resource, namespace)
	s.take(list)

	return err
}

func (s *Snapshot) take(list client.ObjectList) {
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, obj := range Objects(list) {
		s.Cluster.Add(obj)
	}
}

// lookUp finds out one by one which namespaces exist. One that may not be looked up is taken to exist.
func (r *Reader) lookUp(ctx context.Context, s *Snapshot, names []string) error {
	return r.Each(ctx, "looking for namespaces", len(names), func(i int) error {
		if !canBe(names[i]) {
			return nil
		}

		ns := &corev1.Namespace{}
		err := r.Get(ctx, client.ObjectKey{Name: names[i]}, ns)

		s.mu.Lock()
		defer s.mu.Unlock()

		switch {
		case err == nil:
			s.Cluster.Add(ns)
		case apierrors.IsForbidden(err):
			r.Deny(Denied{Verb: "get", Resource: namespaceResource, Namespace: names[i]})

			s.assumed[names[i]] = struct{}{}
			s.Cluster.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i]}})
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("looking for namespace %s: %w", names[i], err)
		}

		return nil
	})
}

// concerned are the namespaces that plans for these scopes are about, sorted.
func concerned(scopes []scope.Scope, namespaces []corev1.Namespace) []string {
	var names []string

	for i := range scopes {
		s := &scopes[i]
		names = slices.Concat(names, s.Members.Named, s.Reported, s.Failed)

		if !s.Explicit() {
			names = append(names, s.Key.Namespace)
		}

		if s.Members.Selector == nil {
			continue
		}

		for j := range namespaces {
			if s.Members.Selector.Matches(labels.Set(namespaces[j].Labels)) {
				names = append(names, namespaces[j].Name)
			}
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// operatorNamespacesOf are the namespaces of the scopes, sorted.
func operatorNamespacesOf(scopes []scope.Scope) []string {
	operatorNamespaces := map[string]struct{}{}

	for i := range scopes {
		if !scopes[i].Explicit() {
			operatorNamespaces[scopes[i].Key.Namespace] = struct{}{}
		}
	}

	return slices.Sorted(maps.Keys(operatorNamespaces))
}
