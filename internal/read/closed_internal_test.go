package read

import (
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestWhyClosed has whose business a refused access is: of the owner of the namespace, or of who lets Ambit act as others. Which
// way to act as somebody the API server speaks of depends on what it allowed last.
func TestWhyClosed(t *testing.T) {
	t.Parallel()

	accounts, roles := schema.GroupResource{Resource: "serviceaccounts"}, rbacv1.Resource("roles")

	for name, tc := range map[string]struct {
		err             error
		scopes, install string
	}{
		"the account may not list": {
			apierrors.NewForbidden(roles, "", errors.New(`User "system:serviceaccount:ops:a" cannot list resource "roles"`)),
			noAccess, noAccess,
		},
		"the older right": {
			apierrors.NewForbidden(accounts, "a", errors.New(`User "x" cannot impersonate resource "serviceaccounts"`)),
			mayNotActAs, mayNotInstallAs,
		},
		"the limited right": {
			apierrors.NewForbidden(roles, "", errors.New(`User "x" cannot impersonate-on:serviceaccount:list resource "roles"`)),
			mayNotActAs, mayNotInstallAs,
		},
		"the right to be that account": {
			apierrors.NewForbidden(accounts, "a", errors.New(`User "x" cannot impersonate:serviceaccount resource "serviceaccounts"`)),
			mayNotActAs, mayNotInstallAs,
		},
		"no namespace": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "a"), noAccess, noAccess},
		"no answer":    {errors.New("User cannot be reached"), noAccess, noAccess},
	} {
		for key, want := range map[scope.Key]string{
			scope.NamespaceScopes.In("ops"): tc.scopes, scope.Installs.In("ops"): tc.install,
		} {
			d := &access{accessKey: accessKey{key, "a"}}
			if got := d.whyClosed(tc.err); got != want {
				t.Errorf("%s, %v: %q, want %q", name, key, got, want)
			}
		}
	}
}
