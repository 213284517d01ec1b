package waiting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// memory is for how long it is remembered which kinds there are, and what a ClusterRole allows. It is short, since nobody looks
// for what waits of a kind that was defined after that.
const memory = time.Second

// kind is a sort of custom resource that is in namespaces.
type kind struct{ group, version, resource string }

func (k kind) name() string { return k.resource + "." + k.group }

// isWorkedOn says whether somebody with some rules may see all objects of the kind and take a finalizer off them. Who may see
// only some of them by name watches none.
func (k kind) isWorkedOn(rules []rbacv1.PolicyRule) bool {
	return worksOn(rules, func(r *rbacv1.PolicyRule) bool { return has(r.APIGroups, k.group) && has(r.Resources, k.resource) })
}

// worksOn says whether somebody may list and change what those of their rules are about that are wanted. A list has the empty
// name for the API server, and a rule may name that.
func worksOn(rules []rbacv1.PolicyRule, wanted func(*rbacv1.PolicyRule) bool) bool {
	may := func(verb string) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			isAny := len(r.ResourceNames) == 0 || verb == "list" && slices.Contains(r.ResourceNames, "")

			return isAny && has(r.Verbs, verb) && wanted(&r)
		})
	}

	return may("list") && (may("update") || may("patch"))
}

// known are the kinds that there are, sorted, and the API groups whose server does not say which it has.
type known struct {
	kinds  []kind
	silent []string
}

// silentFor is the first silent group in which somebody may work on what is there; empty for none.
func (k *known) silentFor(rules []rbacv1.PolicyRule) string {
	for _, group := range k.silent {
		if worksOn(rules, func(r *rbacv1.PolicyRule) bool { return has(r.APIGroups, group) }) {
			return group
		}
	}

	return ""
}

func has(list []string, word string) bool {
	return slices.Contains(list, word) || slices.Contains(list, rbacv1.APIGroupAll)
}

// mayBeAbout says whether a rule may be about custom resources.
func mayBeAbout(r rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(r.APIGroups, func(group string) bool { return !isKubernetes(group) })
}

// isKubernetes says whether an API group is one of Kubernetes' own.
func isKubernetes(group string) bool {
	return group != rbacv1.APIGroupAll && clientgoscheme.Scheme.IsGroupRegistered(group)
}

// remembered is an answer that is good for a while.
type remembered[T any] struct {
	mu    sync.Mutex
	value T
	taken time.Time
}

func (r *remembered[T]) get(ask func() (T, error)) (T, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if time.Since(r.taken) < memory {
		return r.value, nil
	}

	value, err := ask()
	if err == nil {
		r.value, r.taken = value, time.Now()
	}

	return value, err
}

// allKinds are the kinds that a definition or an aggregated API server brought.
func (l *Finder) allKinds(ctx context.Context) (known, error) {
	return l.kinds.get(func() (known, error) {
		client, err := discovery.NewDiscoveryClientForConfig(l.config)
		if err != nil {
			return known{}, fmt.Errorf("preparing to ask which kinds there are: %w", err)
		}

		lists, err := client.ServerPreferredNamespacedResourcesWithContext(ctx)
		if len(lists) == 0 && err != nil {
			return known{}, fmt.Errorf("asking which kinds there are: %w", err)
		}

		out := known{silent: silentGroups(err)}

		for _, list := range lists {
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil || isKubernetes(version.Group) {
				continue
			}

			for i := range list.APIResources {
				if r := &list.APIResources[i]; !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "list") {
					out.kinds = append(out.kinds, kind{version.Group, version.Version, r.Name})
				}
			}
		}

		slices.SortFunc(out.kinds, func(a, b kind) int { return strings.Compare(a.name(), b.name()) })

		return out, nil
	})
}

// silentGroups are the groups of which a discovery failed, sorted: those of an aggregated API server that is down.
func silentGroups(err error) []string {
	failed, _ := discovery.GroupDiscoveryFailedErrorGroups(err)
	out := make([]string, 0, len(failed))

	for version := range failed {
		if !isKubernetes(version.Group) {
			out = append(out, version.Group)
		}
	}

	slices.Sort(out)

	return out
}

var errNotAsked = errors.New("nothing without a namespace is asked for")

// maxRoles bounds the ClusterRoles that are remembered.
const maxRoles = 1000

// rulesOfClusterRole are the rules of a ClusterRole as it is; none where there is none. It is listed, because Ambit may list
// ClusterRoles and not get them.
func (l *Finder) rulesOfClusterRole(ctx context.Context, name string) ([]rbacv1.PolicyRule, error) {
	if l.NoClusterRoles {
		return nil, errNotAsked
	}

	l.mu.Lock()
	if len(l.roles) >= maxRoles {
		clear(l.roles)
	}

	known := l.roles[name]
	if known == nil {
		known = &remembered[[]rbacv1.PolicyRule]{}
		l.roles[name] = known
	}
	l.mu.Unlock()

	return known.get(func() ([]rbacv1.PolicyRule, error) { return l.listClusterRole(ctx, name) })
}
