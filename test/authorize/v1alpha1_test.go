package authorize_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
)

// TestLegacyGroup has a scope of the legacy group, which projects every account of its namespace.
func TestLegacyGroup(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeZoo()
		h.makeLegacy("namespacescope", namespacescopev1alpha1.NamespaceScopeSpec{ManualManagement: true,
			NamespaceMembers: []string{"other"}})
		h.must(tool, "authorize", h.ns, "--to", h.ops)

		ambit := account(h.ops, "ambit")
		h.check(ambit, append(needed, "get endpoints x"), []string{"get nodes", "patch deployments.apps x", "create configmaps"})

		if got := h.members(oldGroup + "namespacescope"); !slices.Equal(got, []string{"other", h.ns}) {
			h.Errorf("the members are %v", got)
		}

		before := h.granted()

		// By now the account is one of those that the scope projects, and what it was granted in the operator namespace must
		// not be.
		h.must(tool, "authorize", h.ns, "--to", h.ops)

		if after := h.granted(); !after.equal(&before) {
			h.Errorf("repeating changes\n%+v\nto\n%+v", before, after)
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops)
		h.check(ambit, nil, append(needed, beyond...))

		if got := h.members(oldGroup + "namespacescope"); !slices.Equal(got, []string{"other"}) {
			h.Errorf("the other members stay: %v", got)
		}
	})
}

// TestOneNameInTwoGroups holds that nobody guesses which of two scopes is meant, and that each has a grant of its own.
func TestOneNameInTwoGroups(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		usual := h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		old := h.makeLegacy("namespacescope", namespacescopev1alpha1.NamespaceScopeSpec{})

		const usualName, oldName = "operator.ibm.com/namespacescope", oldGroup + "namespacescope"

		for _, verb := range []string{"authorize", "revoke"} {
			for _, args := range [][]string{{verb, h.ns, "--to", h.ops}, {verb, h.ns, "--to", h.ops, "--scope", "namespacescope"}} {
				h.refuses("one of two", tool, "", 1, []string{"two", usualName, oldName, "GROUP/NAME"}, args)
			}
		}

		h.untouched("one of two")
		h.must(tool, "authorize", h.ns, "--to", h.ops, "--scope", oldName)

		if got := h.members("namespacescope"); len(got) > 0 {
			h.Errorf("the other scope has the members %v", got)
		}

		h.must(tool, "authorize", h.ns, "--to", h.ops, "--scope", usualName)

		if roles, bindings := h.grants(); len(roles) != 2 || len(bindings) != 2 {
			h.Errorf("each has a grant: %d roles, %d bindings", len(roles), len(bindings))
		}

		h.refuses("one of two grants", tool, "", 1, []string{"GROUP/NAME"},
			[]string{"revoke", h.ns, "--to", h.ops, "--grant-only", "--scope", "namespacescope"})

		// What is projected for the one is no reason to wait for the other; the annotation is the same for both.
		h.make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.ns, Name: "copy", Labels: map[string]string{"ambit.dev/scope": compile.OwnerOf(usual).Hash()},
			Annotations: map[string]string{"ambit.dev/owner": compile.LegacyOwner(old).String()},
		}})

		out := h.must(tool, "revoke", h.ns, "--to", h.ops, "--scope", oldName)
		if !strings.Contains(out, "scope namespacescope stays") {
			h.Errorf("it says what stays: %s", out)
		}

		if roles, _ := h.grants(); len(roles) != 1 || len(h.members(oldName)) != 0 || len(h.members("namespacescope")) != 1 {
			h.Errorf("the other scope keeps its grant and its member: %v", roles)
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only", "--scope", "namespacescope")

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("one grant is not ambiguous, but left behind: %v %v", roles, bindings)
		}
	})
}

// TestWithoutTheLegacyGroup has a cluster that does not know the legacy group, or neither.
func TestWithoutTheLegacyGroup(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("only", operatorv1.NamespaceScopeSpec{})
		h.hide("namespacescope.ibm.com")
		h.must(tool, "authorize", h.ns, "--to", h.ops)

		if got := h.members("only"); !slices.Equal(got, []string{h.ns}) {
			h.Errorf("the members are %v", got)
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops)
		h.hide("namespacescope.ibm.com", "operator.ibm.com")
		h.refuses("no group", tool, "", 1, []string{"install Ambit"}, []string{"authorize", h.ns, "--to", h.ops})
	})
}

// hide lets the tools find a cluster that lacks API groups: the same one, seen through a proxy.
func (h *house) hide(groups ...string) {
	h.Helper()

	transport, err := rest.TransportFor(h.config)
	if err != nil {
		h.Fatal(err)
	}

	h.through(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		hidden := slices.ContainsFunc(groups, func(g string) bool { return strings.HasPrefix(r.URL.Path+"/", "/apis/"+g+"/") })

		switch {
		case hidden:
			http.NotFound(w, r)
		case r.URL.Path == "/apis":
			h.listGroups(w, r, transport, groups)
		default:
			server.ServeHTTP(w, r)
		}
	})
}

// through lets the tools find the cluster through a proxy, which sees each request before the API server does.
func (h *house) through(serve func(w http.ResponseWriter, r *http.Request, server http.Handler)) {
	h.Helper()

	transport, err := rest.TransportFor(h.config)
	if err != nil {
		h.Fatal(err)
	}

	host, err := url.Parse(h.config.Host)
	if err != nil {
		h.Fatal(err)
	}

	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r, proxy) }))
	h.Cleanup(server.Close)

	h.server = server.URL
}

// listGroups answers in the legacy form of discovery, which every client takes.
func (h *house) listGroups(w http.ResponseWriter, r *http.Request, transport http.RoundTripper, hidden []string) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, h.config.Host+"/apis", nil)
	if err != nil {
		h.Error(err)

		return
	}

	request.Header.Set("Accept", "application/json")

	response, err := transport.RoundTrip(request)
	if err != nil {
		h.Error(err)

		return
	}
	defer func() { _ = response.Body.Close() }()

	var list metav1.APIGroupList
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		h.Error(err)
	}

	list.Groups = slices.DeleteFunc(list.Groups, func(g metav1.APIGroup) bool { return slices.Contains(hidden, g.Name) })

	w.Header().Set("Content-Type", "application/json")

	if err := json.NewEncoder(w).Encode(list); err != nil {
		h.Error(err)
	}
}
