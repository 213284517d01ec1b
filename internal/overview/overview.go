// Package overview says who is served where: operators, namespaces, and the state of each pair. Every view is made from one
// list of services; a further way to install operators adds its services to it. It is pure.
package overview

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// Everywhere is the namespace of what holds in the whole cluster.
const Everywhere = ""

// State is how an operator is served in a namespace.
type State string

// The states. OwnNamespace is the operator's own namespace. Idle is one where nothing is projected, because it has no
// permissions in the operator namespace. Partial misses some of its permissions, Failed all of them. Unknown is one of which
// the caller may not read enough to know.
const (
	OwnNamespace State = "own"
	Served       State = "served"
	Idle         State = "idle"
	Partial      State = "partial"
	Failed       State = "failed"
	Unknown      State = "unknown"
)

// NotRead is the reason of an Unknown state of which the scope's status says nothing bad.
const NotRead = "NotRead"

// Finishing is the reason of a Served state that ends, because the namespace left the scope or is being deleted.
const Finishing = "Finishing"

// AnyAccount stands for the accounts of a namespace that may not be read. No account can have this name.
const AnyAccount = "*"

// Operator is an account that is served: a service account, or a user or group of an operator's API.
type Operator struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String names the operator for users.
func (o Operator) String() string {
	switch {
	case o.Namespace != "":
		return o.Namespace + "/" + o.Name
	case o.Kind == rbacv1.ServiceAccountKind:
		return o.Name
	default:
		return o.Kind + " " + o.Name
	}
}

// Role is a role that an operator has in a namespace.
type Role struct {
	// Name is what users know it by, such as "Role ops/secretman", or the permissions of a ClusterServiceVersion.
	Name string `json:"name"`
	// Binding is what was copied, such as "RoleBinding ops/secretman"; empty when the scope says it itself.
	Binding string              `json:"binding,omitempty"`
	Rules   []rbacv1.PolicyRule `json:"rules,omitempty"`
	// Missing says that it is not there yet, or was refused.
	Missing bool `json:"missing,omitempty"`
}

// Service is one operator in one namespace, by one scope.
type Service struct {
	Operator  Operator `json:"operator"`
	Namespace string   `json:"namespace"`
	// Scope is the resource that asks for it, such as "NamespaceScope ops/s".
	Scope string `json:"scope"`
	// Besides says that an operator that serves some namespaces holds this in the whole cluster as well, which serves none.
	Besides bool  `json:"besides,omitempty"`
	State   State `json:"state"`
	// Reason and Message say why it is not fully served.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Roles   []Role `json:"roles"`
}

// Scope is a resource that declares where operators work.
type Scope struct {
	Name  string `json:"name"`
	Group string `json:"group"`
	// Ready, Reason and Message are from its summary condition; Ready is Unknown if it has none.
	Ready   string `json:"ready"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Remarks are what the planner has to say.
	Remarks []string `json:"remarks,omitempty"`
	// Failed are namespaces that are not served at all, or of which the status says that they are not fully served.
	Failed []FailedNamespace `json:"failed,omitempty"`
	// NotRead are namespaces whose content is unknown.
	NotRead []string `json:"notRead,omitempty"`
	// Empty are its namespaces while it has no account: no service tells of them.
	Empty []MemberTree `json:"-"`
	// ClusterWide is what its operators hold in all namespaces, whatever its members are.
	ClusterWide []ClusterWide `json:"clusterWide,omitempty"`
	// Owned are the custom resources on which, as it says itself, its operators work, as resource.group; nil if it does not say.
	Owned []string `json:"owned,omitempty"`
}

// FailedNamespace is a namespace that a scope asks for, and why it is not served.
type FailedNamespace struct {
	Namespace string `json:"namespace"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
}

// Overview is everything.
type Overview struct {
	Scopes []Scope
	// Services are sorted by operator, namespace and scope.
	Services []Service
	// Namespaces are those that exist, as far as may be known, and those that some service is about, sorted.
	Namespaces []string
}

// New sorts what there is.
func New(scopes []Scope, services []Service, namespaces []string) *Overview {
	all := sets.New(namespaces...)

	for i := range services {
		if services[i].Namespace != Everywhere {
			all.Insert(services[i].Namespace)
		}

		// Programs get an empty list, and not null.
		if services[i].Roles == nil {
			services[i].Roles = []Role{}
		}
	}

	slices.SortFunc(services, func(a, b Service) int { return Compare(&a, &b) })
	slices.SortStableFunc(scopes, func(a, b Scope) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
	})

	return &Overview{Scopes: scopes, Services: services, Namespaces: sets.List(all)}
}

// Compare is the order in which New sorts services.
func Compare(a, b *Service) int {
	return cmp.Or(compareOperators(a.Operator, b.Operator), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Scope, b.Scope))
}

func compareOperators(a, b Operator) int {
	// Service accounts come first, then groups and users.
	return cmp.Or(boolRank(a.Namespace == "")-boolRank(b.Namespace == ""), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// Add adds services that are not among the others yet.
func Add(services, more []Service) []Service {
	type key struct {
		operator         Operator
		namespace, scope string
	}

	known := map[key]struct{}{}
	for i := range services {
		known[key{services[i].Operator, services[i].Namespace, services[i].Scope}] = struct{}{}
	}

	for i := range more {
		if _, is := known[key{more[i].Operator, more[i].Namespace, more[i].Scope}]; !is {
			services = append(services, more[i])
		}
	}

	return services
}

// Filter says which services to keep. A nil function keeps all.
type Filter struct {
	Operator, Namespace func(string) bool
	// OnlyFailed keeps the services that are not fully there, as far as that is known.
	OnlyFailed bool
	// OnlyServing leaves out what operators hold in the whole cluster besides.
	OnlyServing bool
}

func (f *Filter) keeps(s *Service) bool {
	if f.Operator != nil && !f.Operator(s.Operator.String()) ||
		f.Namespace != nil && s.Namespace != Everywhere && !f.Namespace(s.Namespace) {
		return false
	}

	// Something is missing, by what was seen or by the scope's status.
	isFailed := s.State == Failed || s.State == Partial || s.State == Unknown && s.Reason != NotRead

	return (!f.OnlyFailed || isFailed) && (!f.OnlyServing || !s.Besides)
}

// Keep returns what a filter keeps.
func (o *Overview) Keep(f Filter) *Overview {
	out := &Overview{Scopes: o.Scopes}

	for i := range o.Services {
		s := &o.Services[i]
		if f.keeps(s) {
			out.Services = append(out.Services, *s)
		}
	}

	if f.OnlyFailed {
		out.Scopes = slices.Clone(o.Scopes)
		for i := range out.Scopes {
			out.Scopes[i].keepFailed()
		}
	}

	out.Namespaces = collect.Filter(o.Namespaces, func(name string) bool { return f.Namespace == nil || f.Namespace(name) })

	return out
}

// keepFailed keeps, of the namespaces that could not be read, those that failed according to the status.
func (s *Scope) keepFailed() {
	s.Empty = nil
	s.NotRead = slices.DeleteFunc(slices.Clone(s.NotRead), func(name string) bool {
		return !slices.ContainsFunc(s.Failed, func(f FailedNamespace) bool { return f.Namespace == name })
	})
}

// Owned returns the custom resources that operators work on, for those of which some resource says so.
func (o *Overview) Owned() map[Operator][]string {
	said := map[string][]string{}

	for i := range o.Scopes {
		if s := &o.Scopes[i]; s.Owned != nil {
			said[s.Name] = s.Owned
		}
	}

	out := map[Operator][]string{}

	for i := range o.Services {
		s := &o.Services[i]

		if owned, says := said[s.Scope]; says {
			all := slices.Concat(out[s.Operator], owned)
			slices.Sort(all)
			out[s.Operator] = slices.Compact(all)
		}
	}

	return out
}
