package simulation

import (
	"errors"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// limitsActing is the first version of the API server in which acting as somebody can be limited to some requests by default.
var limitsActing = version.MustParseGeneric("1.36")

// accounts is the resource of the right to impersonate a service account, and identities that of the limited right.
var (
	accounts   = schema.GroupResource{Resource: "serviceaccounts"}
	identities = schema.GroupResource{Group: "authentication.k8s.io", Resource: "serviceaccounts"}
)

// right is what Ambit itself needs to act as somebody else.
type right struct {
	verb     string
	resource schema.GroupResource
	// name and namespace are those of what the right is about; without a name it is about all.
	name, namespace string
}

// mayActFor refuses what the API server refuses to Ambit itself when it acts as a service account. The API server first checks
// the right to make this request as some account and the right to act as this one; if either is missing, it checks the right to
// impersonate this account for any request (getImpersonatedUser in impersonation/constrained_impersonation.go of
// k8s.io/apiserver).
func (u *user) mayActFor(r *request) error {
	namespace, name, is := scope.AccountOfUser(u.name)
	if u.actor == "" || u.actor == u.name || !is {
		return nil
	}

	resource, object := u.askedFor(r)
	ways := [][]right{{{"impersonate", accounts, name, namespace}}}

	if u.limitsActing() {
		ways = slices.Insert(ways, 0, []right{
			{"impersonate-on:serviceaccount:" + r.verb, resource, object, r.key.Namespace},
			{"impersonate:serviceaccount", identities, name, namespace},
		})
	}

	var refused error

	for _, way := range ways {
		missing, err := u.missing(way)
		if missing == nil || err != nil {
			return err
		}

		if refused == nil {
			why := words(u.actor, missing.verb, missing.resource, missing.namespace)
			refused = apierrors.NewForbidden(missing.resource, missing.name, errors.New(why))
		}
	}

	return refused
}

// missing is the first of some rights that Ambit itself lacks; nil where it has them all.
func (u *user) missing(needed []right) (*right, error) {
	for i := range needed {
		r := &needed[i]

		has, err := u.actorHolds(r.namespace, rights.To(r.resource, r.name, r.verb))
		if err != nil {
			return nil, err
		}

		if !has {
			return r, nil
		}
	}

	return nil, nil //nolint:nilnil // As documented.
}

// limitsActing says whether the API server knows the limited right. Where its version is not known it is taken to be a new one.
func (s *Simulation) limitsActing() bool {
	server, err := version.ParseGeneric(s.Kubernetes)

	return err != nil || server.AtLeast(limitsActing)
}

// actorHolds says whether Ambit itself holds a right in a namespace, or nobody knows. The rights in the whole cluster come first:
// where these are enough, nobody asks about each namespace.
func (u *user) actorHolds(namespace string, wanted rbacv1.PolicyRule) (bool, error) {
	for _, place := range []string{"", namespace} {
		held, known, err := u.held(u.actor, place)
		if err != nil || !known || authority.Missing(held, []rbacv1.PolicyRule{wanted}) == nil {
			return err == nil, err
		}
	}

	return false, nil
}
