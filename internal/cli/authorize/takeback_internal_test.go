package authorize

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// granted are the RoleBinding and the Role of a grant to ops in the namespace m.
func granted(g *grant.Grant) []grantedObject {
	g.Namespace, g.To, g.Account = "m", "ops", "ambit"
	role := g.Role()
	role.UID = types.UID("uid-of-" + role.Name)
	binding := g.RoleBinding()
	binding.UID, binding.OwnerReferences = types.UID("uid-of-binding-"+role.Name), grant.GoesWith(role)

	return []grantedObject{{Object: binding, kind: "RoleBinding"}, {Object: role, kind: roleKind}}
}

func scopeNamed(group int, name string) scope.Owner {
	return grant.Wanted{Group: grant.Groups()[group], Name: name}.Owner("ops")
}

// allGrants are grants of every sort.
func allGrants() []grantedObject {
	return slices.Concat(granted(&grant.Grant{}), granted(&grant.Grant{Installs: true}),
		granted(&grant.Grant{Scope: scopeNamed(0, "a")}), granted(&grant.Grant{Scope: scopeNamed(0, "b")}),
		granted(&grant.Grant{Scope: scopeNamed(1, "a")}))
}

// short are the names of grants without what they have in common, each once.
func short(all []grantedObject) string {
	var out []string

	for _, g := range all {
		name := strings.TrimPrefix(g.GetName(), scope.AuthorizationPrefix+"ops")
		if name == "" {
			name = "none"
		}

		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}

	return strings.Join(out, " ")
}

// TestWhichGrantsAreTakenBack: a grant that is for one scope, or for installs, stays where another is meant; one that is for no
// scope goes with any.
func TestWhichGrantsAreTakenBack(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		options      RevokeOptions
		scope        *scope.Scope
		grants       []grantedObject
		mine, others string
		fails        string
	}{
		"nobody names a scope, so it is everything": {grants: allGrants(), mine: "none +installs .a .b .a:namespacescope.ibm.com"},
		"a scope is there": {
			scope: &scope.Scope{Owner: scopeNamed(0, "a")}, grants: allGrants(), mine: "none .a",
			others: "+installs .b .a:namespacescope.ibm.com",
		},
		"a scope of the older group is there": {
			scope: &scope.Scope{Owner: scopeNamed(1, "a")}, grants: allGrants(), mine: "none .a:namespacescope.ibm.com",
			others: "+installs .a .b",
		},
		"a scope is named that is gone": {
			options: RevokeOptions{GrantOptions: GrantOptions{Scope: "b"}}, grants: allGrants(), mine: "none .b",
			others: "+installs .a .a:namespacescope.ibm.com",
		},
		"a name that two scopes have": {
			options: RevokeOptions{GrantOptions: GrantOptions{Scope: "a"}}, grants: allGrants(), fails: "give --scope GROUP/NAME",
		},
		"a name and its group": {
			options: RevokeOptions{GrantOptions: GrantOptions{Scope: "namespacescope.ibm.com/a"}}, grants: allGrants(),
			mine: "none .a:namespacescope.ibm.com", others: "+installs .a .b",
		},
		"what is installed is meant": {
			options: RevokeOptions{Installs: true}, grants: allGrants(), mine: "+installs",
			others: "none .a .b .a:namespacescope.ibm.com",
		},
		"nothing was granted": {scope: &scope.Scope{Owner: scopeNamed(0, "a")}},
	} {
		tc.options.To = "ops"

		mine, others, err := tc.options.divide(tc.grants, tc.scope)
		if short(mine) != tc.mine || short(others) != tc.others {
			t.Errorf("%s: taken back are %q, and %q stay; want %q and %q", reason, short(mine), short(others), tc.mine, tc.others)
		}

		if failed := err != nil; failed != (tc.fails != "") || failed && !strings.Contains(err.Error(), tc.fails) {
			t.Errorf("%s: %v, want %q", reason, err, tc.fails)
		}
	}
}

// TestGrantsThatStayAreNamed: for each there is the command that takes it back, once, though it is a Role and a RoleBinding, and
// those for installs are one to users, however many parts they have.
func TestGrantsThatStayAreNamed(t *testing.T) {
	t.Parallel()

	part := granted(&grant.Grant{Installs: true, Part: true, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}})
	for _, form := range []string{output.Table, output.YAML} {
		var out, errOut bytes.Buffer

		o := RevokeOptions{GrantOptions: GrantOptions{Namespace: "m", To: "ops", Output: form}}
		o.Out, o.ErrOut = terminal.NewWriter(&out), terminal.NewWriter(&errOut)

		if err := o.showOthers(slices.Concat(allGrants(), part)); err != nil {
			t.Fatal(err)
		}

		// What programs read holds objects, and no words.
		said, silent := out.String(), errOut.String()
		if form != output.Table {
			said, silent = silent, said
		}

		if silent != "" || strings.Count(said, "\n") != 5 {
			t.Errorf("%s: it says %q, and beside it %q", form, said, silent)
		}

		for _, line := range []string{
			"to take it back: ambit revoke m --to ops --installs\n",
			"to take it back: ambit revoke m --to ops --scope operator.ibm.com/a\n",
			"to take it back: ambit revoke m --to ops --scope operator.ibm.com/b\n",
			"to take it back: ambit revoke m --to ops --scope namespacescope.ibm.com/a\n",
			"which is for no scope, stays; ambit revoke without --installs takes it back\n",
		} {
			if !strings.Contains(said, line) {
				t.Errorf("%s: nothing says %q: %q", form, line, said)
			}
		}
	}
}

// TestBindingsThatStillGiveSomething: after a revocation, each binding is named by which accounts of the other namespace still
// have something, but for grants that were named, and for what goes with the grants. What should go, and does not, is named.
func TestBindingsThatStillGiveSomething(t *testing.T) {
	t.Parallel()

	gone, stay := granted(&grant.Grant{Scope: scopeNamed(0, "gone")}), granted(&grant.Grant{Scope: scopeNamed(0, "stays")})
	stay[0].SetOwnerReferences(nil) // It was named, whoever may have changed it since.

	role := gone[1]
	theirs := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "m", Name: "ambit"}
	owned := func(change func(*metav1.OwnerReference)) []metav1.OwnerReference {
		refs := grant.GoesWith(role)
		change(&refs[0])

		return refs
	}
	same := func(*metav1.OwnerReference) {}
	renewed := func(r *metav1.OwnerReference) { r.UID = "x" }
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "ambit"}
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }

	for reason, tc := range map[string]struct {
		subjects   []rbacv1.Subject
		owners     []metav1.OwnerReference
		finalizers []string
		stays      bool
	}{
		"garbage collection does not come to it": {[]rbacv1.Subject{account}, owned(same), nil, true},
		"it goes with a grant that stays, too": {
			[]rbacv1.Subject{account}, append(owned(same), grant.GoesWith(stay[1])...), nil, false,
		},
		"an account of it":                  {[]rbacv1.Subject{account}, nil, nil, true},
		"all accounts of it":                {[]rbacv1.Subject{group("system:serviceaccounts:ops")}, nil, nil, true},
		"one of several subjects":           {[]rbacv1.Subject{group("people"), account}, nil, nil, true},
		"a user that is an account of it":   {[]rbacv1.Subject{{Kind: "User", Name: "system:serviceaccount:ops:x"}}, nil, nil, true},
		"an account of another namespace":   {[]rbacv1.Subject{theirs}, nil, nil, false},
		"another group":                     {[]rbacv1.Subject{group("system:serviceaccounts:m"), group("ops")}, nil, nil, false},
		"a user called like the group":      {[]rbacv1.Subject{{Kind: "User", Name: "system:serviceaccounts:ops"}}, nil, nil, false},
		"nobody":                            {nil, nil, nil, false},
		"it goes with the grant":            {[]rbacv1.Subject{account}, owned(same), nil, false},
		"a finalizer keeps it":              {[]rbacv1.Subject{account}, owned(same), []string{"example.com/keep"}, true},
		"its owner is another of that name": {[]rbacv1.Subject{account}, owned(renewed), nil, true},
		"its owner is of another kind": {
			[]rbacv1.Subject{account}, owned(func(r *metav1.OwnerReference) { r.Kind = "Secret" }), nil, true,
		},
		"its owner is of another group": {
			[]rbacv1.Subject{account}, owned(func(r *metav1.OwnerReference) { r.APIVersion = "example.com/v1" }), nil, true,
		},
		"its owner has another name": {
			[]rbacv1.Subject{account}, owned(func(r *metav1.OwnerReference) { r.Name = "x" }), nil, true,
		},
		"another owner keeps it": {
			[]rbacv1.Subject{account},
			append(owned(same), metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "s"}), nil, true,
		},
	} {
		scheme, err := controllers.Scheme()
		if err != nil {
			t.Fatal(err)
		}

		other := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "m", Name: "other", UID: "other", OwnerReferences: tc.owners, Finalizers: tc.finalizers,
			},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: tc.subjects,
		}
		elsewhere := &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "elsewhere"}, Subjects: []rbacv1.Subject{account},
		}
		objects := []client.Object{other, elsewhere, stay[0].Object, stay[1].Object}
		w := &session{
			Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
					_, isLast := into.(*rbacv1.RoleList)
					if isLast && reason == "it goes with the grant" {
						if err := c.Delete(ctx, other.DeepCopy()); client.IgnoreNotFound(err) != nil {
							return err
						}
					}

					return c.List(ctx, into, options...)
				},
			}).Build(), namespace: "m", to: "ops",
		}

		kept, err := w.kept(t.Context(), gone, stay, checkInterval)
		if err != nil {
			t.Fatal(err)
		}

		var names []string
		for _, b := range kept {
			names = append(names, b.Name)
		}

		if want := map[bool]string{true: "other"}[tc.stays]; strings.Join(names, " ") != want {
			t.Errorf("%s: %q still give something, want %q", reason, names, want)
		}
	}
}

// TestNothingIsGoneBeforeTheAPIServerAnswers: one that needs longer than the timeout, or than a request may take, has not said
// that nothing is left.
func TestNothingIsGoneBeforeTheAPIServerAnswers(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		answers, requests time.Duration
		left              []string
		fails             bool
	}{
		"it answers in time":           {time.Second, time.Hour, []string{"Role copy"}, false},
		"it answers later":             {time.Minute, time.Hour, []string{"Role copy"}, false},
		"it answers no request at all": {time.Minute, time.Second, nil, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			scheme, err := controllers.Scheme()
			if err != nil {
				t.Fatal(err)
			}

			owner := scopeNamed(0, "a")
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
				Namespace: "m", Name: "copy", Annotations: map[string]string{scope.AnnotationOwner: owner.String()},
			}}
			list := func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
				ctx, cancel := context.WithTimeout(ctx, tc.requests)
				defer cancel()

				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(tc.answers):
					return c.List(ctx, into, options...)
				}
			}
			w := &session{namespace: "m", to: "ops", Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(role).
				WithInterceptorFuncs(interceptor.Funcs{List: list}).Build()}

			left, err := w.waitUntilGone(t.Context(), owner, 10*time.Second)
			if !slices.Equal(left, tc.left) || (err != nil) != tc.fails {
				t.Errorf("%s: %q are left, %v", reason, left, err)
			}
		})
	}
}

// TestManyBindingsThatStay: the first are named, each with the command that deletes it, and the others are counted.
func TestManyBindingsThatStay(t *testing.T) {
	t.Parallel()

	for n, more := range map[int]string{0: "", maxKept: "", maxKept + 1: "1 more RoleBindings", 25: "15 more RoleBindings"} {
		var (
			out  bytes.Buffer
			kept []*rbacv1.RoleBinding
		)

		for i := range n {
			kept = append(kept, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("it's-%d", i)}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "edit"},
			})
		}

		o := RevokeOptions{GrantOptions: GrantOptions{Namespace: "m", To: "ops", Output: output.Table}}
		o.Out = terminal.NewWriter(&out)

		if err := o.showKept(kept); err != nil {
			t.Fatal(err)
		}

		// A name may hold what a shell reads as more than a name.
		if got, want := strings.Count(out.String(), `kubectl delete rolebinding -n m -- 'it'\''s-`), min(n, maxKept); got != want {
			t.Errorf("%d of %d are named with their commands: %s", got, want, out.String())
		}

		if !strings.Contains(out.String(), more) || strings.Contains(out.String(), "more RoleBindings") != (more != "") {
			t.Errorf("of %d it says %q", n, out.String())
		}
	}
}

// TestWhyWhatWasProjectedIsStillThere: a namespace that labels select joins again, however often it is taken out.
func TestWhyWhatWasProjectedIsStillThere(t *testing.T) {
	t.Parallel()

	s := &scope.Scope{Owner: scopeNamed(0, "a")}
	left := []string{"RoleBinding a", "RoleBinding b", "Role a", "Role b", "Role c"}

	if said := stillThere("m", s, left).Error(); !strings.Contains(said, "is Ambit running?") ||
		!strings.Contains(said, "RoleBinding a, RoleBinding b, Role a and 2 more") ||
		!strings.Contains(said, "-l ambit.dev/scope="+s.Owner.Hash()) {
		t.Errorf("it says %q", said)
	}

	s.Members.Selector = labels.Everything()
	if said := stillThere("m", s, left).Error(); !strings.Contains(said, "does its namespaceSelector still select m?") ||
		strings.Contains(said, "is Ambit running?") {
		t.Errorf("of one with a selector it says %q", said)
	}
}
