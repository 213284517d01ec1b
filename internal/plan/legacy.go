package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/projected"
)

const (
	// Propagation is how long the API server's authorizer may take to learn of a Role and of the binding that refers to it. It
	// watches the two separately, so what replaces another permission has to be there for a while before the other may go.
	Propagation = time.Second
	// maxNames bounds the names that are worked out to recognise the work of IBM's operator in one namespace: whoever administers
	// the namespace decides how many objects are looked at, and must not thereby keep others waiting. The objects beyond the bound
	// are left alone.
	maxNames = 50_000
)

// legacyName is the name that IBM's operator gives to its copies of a Role for a service account (its
// controllers/namespacescope_controller.go, CreateRole).
func legacyName(role, account, operatorNamespace string) string {
	sum := sha256.Sum256([]byte(role + account + operatorNamespace))
	stem, _, _ := strings.Cut(role, ".")

	return stem + "-" + hex.EncodeToString(sum[:7])
}

// planLegacy finds what IBM's operator projected for an operator namespace and Ambit projects now. Whatever differs from
// what that operator writes, in its name or its labels, is somebody's own work and stays.
func (p *Plan) planLegacy(f *facts.Facts) {
	if len(f.Legacy) == 0 {
		return
	}

	h := newLegacyIndex(f)

	for i := range p.Scopes {
		list := p.Scopes[i].Scope.WatchList
		// Scopes that share a list have the same legacy objects.
		if list == "" || slices.ContainsFunc(p.Scopes[:i], func(s ScopePlan) bool { return s.Scope.WatchList == list }) {
			continue
		}

		for namespace, objects := range h.of(list) {
			s := p.takesOver(list, namespace)
			served := sync.OnceValue(func() bool { return p.isServed(list, namespace, f) })
			h.names = maxNames

			for _, o := range objects {
				if !h.isLegacy(&o, list) {
					s.ForeignLegacy = append(s.ForeignLegacy, fmt.Sprintf("%s %s/%s", o.key.Kind, namespace, printable.Name(o.key.Name)))
				} else if served() {
					s.Legacy = append(s.Legacy, Change{Action: Delete, Namespace: namespace, Key: o.key, Version: o.live.Version})
				}
			}
		}
	}

	for i := range p.Scopes {
		sortChanges(p.Scopes[i].Legacy)
		slices.Sort(p.Scopes[i].ForeignLegacy)
	}
}

// takesOver is the scope that removes the legacy objects of a namespace, of those that share a list: the first of which the
// namespace is a member, since whoever writes for that has rights there, else the first that stays. One that is being deleted
// would wait for rights that it never needed.
func (p *Plan) takesOver(list, namespace string) *ScopePlan {
	rank := func(s *ScopePlan) int {
		switch {
		case s.Scope.WatchList != list:
			return 0
		case s.Scope.Deleting():
			return 1
		case !s.isMember(namespace):
			return 2
		default:
			return 3
		}
	}

	best := &p.Scopes[0]

	for i := range p.Scopes {
		if s := &p.Scopes[i]; rank(s) > rank(best) {
			best = s
		}
	}

	return best
}

// legacyIndex is what bears the mark of IBM's operator, and what distinguishes its work from that of others.
type legacyIndex struct {
	operatorNamespace string
	// objects are those of each mark, by namespace, each sorted by kind and name.
	objects map[string]map[string][]legacyObject
	// roles are those of the operator namespace, by what a name that IBM's operator makes of them begins with.
	roles    map[string][]string
	accounts []string
	// known are names that were found to be that operator's, with the account that each is for.
	known map[string]string
	// names is how many may still be worked out for the namespace that is looked at.
	names int
}

type legacyObject struct {
	key  facts.ProjectedKey
	live facts.Legacy
}

func newLegacyIndex(f *facts.Facts) *legacyIndex {
	h := &legacyIndex{
		operatorNamespace: f.Key.Namespace, objects: map[string]map[string][]legacyObject{}, roles: map[string][]string{},
		accounts: slices.Sorted(maps.Keys(f.OperatorNamespace.Accounts)), known: map[string]string{},
	}

	for name := range f.OperatorNamespace.Roles {
		stem, _, _ := strings.Cut(name, ".")
		h.roles[stem] = append(h.roles[stem], name)
	}

	for namespace, objects := range f.Legacy {
		for key, live := range objects {
			if h.objects[live.Mark] == nil {
				h.objects[live.Mark] = map[string][]legacyObject{}
			}

			h.objects[live.Mark][namespace] = append(h.objects[live.Mark][namespace], legacyObject{key, live})
		}
	}

	for _, namespaces := range h.objects {
		for _, objects := range namespaces {
			// Bindings come first: one says for whom it is, and so for whom the Role of the same name is.
			slices.SortFunc(objects, func(a, b legacyObject) int {
				return cmp.Or(-cmp.Compare(a.key.Kind, b.key.Kind), cmp.Compare(a.key.Name, b.key.Name))
			})
		}
	}

	return h
}

// of are the objects that are marked for a list of the operator namespace, by namespace. What the bindings among them say is
// known from then on.
func (h *legacyIndex) of(list string) map[string][]legacyObject {
	objects := h.objects[facts.LegacyMark(list, h.operatorNamespace)]

	for _, namespace := range slices.Sorted(maps.Keys(objects)) {
		h.names = maxNames

		for _, o := range objects[namespace] {
			if o.key.Kind == projected.RoleBinding && o.live.Account != "" && o.live.AccountNamespace == h.operatorNamespace {
				h.isNamed(o.key.Name, o.live.Account)
			}
		}
	}

	return objects
}

func (h *legacyIndex) isLegacy(o *legacyObject, list string) bool {
	if !o.live.Labelled || o.live.List != list {
		return false
	}

	switch o.key.Kind {
	case projected.RoleBinding:
		return o.live.AccountNamespace == h.operatorNamespace && o.live.Account != "" && h.known[o.key.Name] == o.live.Account
	case projected.Role:
		_, known := h.known[o.key.Name]

		return known || slices.ContainsFunc(h.accounts, func(account string) bool { return h.isNamed(o.key.Name, account) })
	case projected.ClusterRole, projected.ClusterRoleBinding:
	}

	return false
}

// isNamed says whether a name is that of IBM's operator's copy of some Role for an account. A Role that is gone by now had the
// name of the copy up to its last dash, unless there was a dot in it.
func (h *legacyIndex) isNamed(name, account string) bool {
	if of, known := h.known[name]; known {
		return of == account
	}

	dash := strings.LastIndex(name, "-")
	if dash <= 0 {
		return false
	}

	for _, role := range append(slices.Clip(h.roles[name[:dash]]), name[:dash]) {
		if h.names--; h.names < 0 {
			return false
		}

		if legacyName(role, account, h.operatorNamespace) == name {
			h.known[name] = account

			return true
		}
	}

	return false
}

// isServed says whether nobody misses the legacy objects of a namespace when they go: all scopes that share the list have their
// permissions there, and the API server's authorizer knows of these.
func (p *Plan) isServed(list, namespace string, f *facts.Facts) bool {
	member := false

	for i := range p.Scopes {
		s := &p.Scopes[i]
		if s.Scope.WatchList != list || s.Scope.Deleting() || !s.isMember(namespace) {
			continue
		}

		if s.isPending(namespace) {
			return false
		}

		member = true
	}

	return !member || p.isSettled(f, namespace)
}

// isSettled says whether the API server's authorizer knows of all permissions in a namespace. One that is being written is the
// reason for another plan when that has ended.
func (p *Plan) isSettled(f *facts.Facts, namespace string) bool {
	if settled := f.Granted.Add(Propagation); f.Now.Before(settled) {
		p.wake(settled)

		return false
	}

	_, writes := f.Granting[namespace]

	return !writes
}
