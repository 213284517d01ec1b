package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// notes is a store that keeps nothing but what it is told.
type notes struct {
	mu   sync.Mutex
	told []string
	// wrote is what the API server answered.
	wrote []client.Object
}

func (n *notes) Wrote(obj client.Object) {
	n.tell("wrote " + obj.GetName())

	n.mu.Lock()
	defer n.mu.Unlock()

	n.wrote = append(n.wrote, obj)
}
func (n *notes) Deleted(_ string, key facts.ProjectedKey) {
	n.tell("deleted " + key.Name)
}
func (n *notes) DeletedConfigMap(_, name string) { n.tell("deleted " + name) }

func (n *notes) PermissionsChangedAt(_, _ string) time.Time { return time.Time{} }

func (n *notes) tell(s string) {
	n.mu.Lock()
	defer n.mu.Unlock()

	n.told = append(n.told, s)
}

// bench is an applier, a client with every right, and a member namespace.
type bench struct {
	*testing.T

	applier *apply.Applier
	client  client.Client
	member  string
	notes   *notes
}

func newBench(t *testing.T) *bench {
	t.Helper()

	config := testcluster.Config(t)

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	n := &notes{}

	return &bench{
		T: t, client: c, notes: n, member: testcluster.Namespace(t, config, "apply"),
		applier: apply.New(config, client.Options{}, n, 4),
	}
}

// role is a projected Role. Its marks point to no operator namespace, so that no manager on the same cluster takes it for its
// own.
func role(name string, verbs ...string) *plan.Copy {
	return &plan.Copy{SourceRole: name, Object: projected.Object{
		Kind: projected.Role, Name: name, ScopeHash: "test", Owner: "test", Source: "test",
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs}},
	}}
}

func binding(name, role string) *plan.Copy {
	return &plan.Copy{SourceRole: role, Object: projected.Object{
		Kind: projected.RoleBinding, Name: name, ScopeHash: "test", Owner: "test", Source: "test",
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "operator"}},
	}}
}

func (b *bench) change(action plan.Action, c *plan.Copy, version uint64) plan.Change {
	return plan.Change{
		Action: action, Namespace: b.member, Copy: c, Version: version, RoleRef: c.RoleRef,
		Key: facts.ProjectedKey{Kind: c.Kind, Name: c.Name},
	}
}

func (b *bench) apply(id apply.Identity, s plan.ScopePlan) *apply.Outcome {
	b.Helper()

	s.Scope = &scope.Scope{}
	p := &plan.Plan{Key: scope.NamespaceScopes.In("ops"), Scopes: []plan.ScopePlan{s}}

	return b.applier.ApplyWith(b.Context(), b.written(p), []apply.Identity{id}, writer.Own())
}

// written is a plan that was written down and read again: it holds all that it takes to apply it.
func (b *bench) written(p *plan.Plan) *plan.Plan {
	b.Helper()

	text, err := json.Marshal(p) //nolint:musttag // Nobody else reads it.
	if err != nil {
		b.Fatal(err)
	}

	again := &plan.Plan{}
	if err := json.Unmarshal(text, again); err != nil { //nolint:musttag // As above.
		b.Fatal(err)
	}

	return again
}

func (b *bench) grant(changes ...plan.Change) *apply.ScopeOutcome {
	b.Helper()

	return &b.apply(writer.Own(), plan.ScopePlan{Grant: changes}).Scopes[0]
}

func (b *bench) role(name string) *rbacv1.Role {
	b.Helper()

	live := &rbacv1.Role{}
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: b.member, Name: name}, live); err != nil {
		b.Fatal(err)
	}

	return live
}

func TestNobodyWritesNothing(t *testing.T) {
	t.Parallel()

	b := newBench(t)

	out := b.apply(writer.Identity{}, plan.ScopePlan{Grant: []plan.Change{b.change(plan.Create, role("r", "get"), 0)}})
	if f := out.Scopes[0].Failures; len(f) != 1 || !errors.Is(f[0].Err, apply.ErrNoIdentity) || f[0].Class != apply.Refused {
		t.Fatalf("a write without an identity is refused, and never Ambit's own: %+v", f)
	}

	err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.member, Name: "r"}, &rbacv1.Role{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it was written all the same: %v", err)
	}

	for _, names := range [][2]string{{"", ""}, {"ns", ""}, {"", "name"}} {
		if id := writer.ServiceAccount(names[0], names[1]); !id.IsNobody() {
			t.Errorf("service account %q is an identity: %v", names, id)
		}
	}
}

func TestDelegateWritesWhatItMay(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	id := writer.ServiceAccount(b.member, "delegate")
	grants := plan.ScopePlan{Grant: []plan.Change{b.change(plan.Create, role("r", "get"), 0)}}

	out := b.apply(id, grants)
	if f := out.Scopes[0].Failures; len(f) != 1 || f[0].Class != apply.Refused ||
		!strings.Contains(f[0].Err.Error(), b.member+"/delegate may not create roles; get pods") {
		t.Fatalf("the API server refuses the delegate, which is told by name with all that is missing: %+v", f)
	}
}

func TestCreateUpdateDelete(t *testing.T) {
	t.Parallel()

	b := newBench(t)

	if out := b.grant(b.change(plan.Create, role("r", "get"), 0)); out.Results[apply.Created] != 1 {
		t.Fatalf("create: %+v", out)
	}

	live := b.role("r")
	live.Labels["team"] = "tenants"

	if err := b.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}

	if out := b.grant(b.change(plan.Update, role("r", "list"), parse(t, live.ResourceVersion))); out.Results[apply.Configured] != 1 {
		t.Fatalf("update: %+v", out)
	}

	if live = b.role("r"); live.Rules[0].Verbs[0] != "list" || live.Labels["team"] != "tenants" {
		t.Errorf("what others put beside it survives: %+v", live)
	}

	stale := b.change(plan.Delete, role("r"), 1)
	if out := b.apply(writer.Own(), plan.ScopePlan{Prune: []plan.Change{stale}}); out.Scopes[0].Failures[0].Class != apply.Conflict {
		t.Errorf("an object that changed since the plan was made is not deleted: %+v", out.Scopes[0])
	}

	seen := b.change(plan.Delete, role("r"), parse(t, b.role("r").ResourceVersion))
	if out := b.apply(writer.Own(), plan.ScopePlan{Prune: []plan.Change{seen}}); out.Scopes[0].Results[apply.Deleted] != 1 {
		t.Errorf("delete: %+v", out.Scopes[0])
	}

	if out := b.apply(writer.Own(), plan.ScopePlan{Prune: []plan.Change{seen}}); out.Scopes[0].Results[apply.Unchanged] != 1 {
		t.Errorf("what is gone already is as it should be: %+v", out.Scopes[0])
	}
}

func TestForeignObjectStays(t *testing.T) {
	t.Parallel()

	b := newBench(t)

	foreign := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.member, Name: "r", Labels: map[string]string{scope.LabelScope: "test", scope.LabelManagedBy: scope.ManagedBy},
	}}
	// Who wrote it may say that they are called ambit.
	if err := b.client.Create(t.Context(), foreign, client.FieldOwner(scope.FieldManager)); err != nil {
		t.Fatal(err)
	}

	out := b.grant(b.change(plan.Create, role("r", "get"), 0), b.change(plan.Create, binding("b", "r"), 0))
	if len(out.Failures) != 1 || out.Failures[0].Class != apply.Conflict {
		t.Fatalf("a Role of somebody else's is a conflict, and its binding is not even tried: %+v", out)
	}

	if live := b.role("r"); live.ResourceVersion != foreign.ResourceVersion {
		t.Error("it was touched")
	}

	err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.member, Name: "b"}, &rbacv1.RoleBinding{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a binding to a Role of somebody else's making: %v", err)
	}
}

// TestObjectMadeInBetween: what takes a rule from a Role is about the very object that was looked at. Somebody who puts a Role
// of their own in its place, or takes rules out of it, and binds themselves to that, gets nothing.
func TestObjectMadeInBetween(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	b.grant(b.change(plan.Create, role("r", "get", "list", "delete"), 0))

	seen := parse(t, b.role("r").ResourceVersion)
	shrink := b.change(plan.Update, role("r", "get", "list"), seen)

	for reason, meddle := range map[string]func() error{
		"rules taken out": func() error {
			live := b.role("r")
			live.Rules = nil

			return b.client.Update(t.Context(), live)
		},
		"a Role of their own": func() error {
			own := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.member, Name: "r"}}

			return errors.Join(b.client.Delete(t.Context(), b.role("r")), b.client.Create(t.Context(), own))
		},
	} {
		if err := meddle(); err != nil {
			t.Fatal(err)
		}

		out := b.apply(writer.Own(), plan.ScopePlan{Revoke: []plan.Change{shrink}}).Scopes[0]
		if live := b.role("r"); len(live.Rules) > 0 || len(out.Failures) != 1 || out.Failures[0].Class != apply.Conflict {
			t.Errorf("%s: got %v, %+v", reason, live.Rules, out)
		}
	}

	// Under a name that Ambit gave nobody else's Role stands, and it goes.
	shrink.Named = true

	out := b.apply(writer.Own(), plan.ScopePlan{Revoke: []plan.Change{shrink}}).Scopes[0]

	err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.member, Name: "r"}, &rbacv1.Role{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("it is there still (%v): %+v", err, out)
	}
}

// TestMarksWrittenAllTheTime: who keeps writing on a copy delays nothing.
func TestMarksWrittenAllTheTime(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	b.grant(b.change(plan.Create, role("r", "get", "list"), 0))

	shrink := b.change(plan.Update, role("r", "get"), parse(t, b.role("r").ResourceVersion))
	live := b.role("r")
	live.Annotations["mine"] = "yes"

	if err := b.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}

	out := b.apply(writer.Own(), plan.ScopePlan{Revoke: []plan.Change{shrink}}).Scopes[0]
	if live := b.role("r"); len(live.Rules[0].Verbs) != 1 || live.Annotations["mine"] != "yes" || len(out.Failures) > 0 {
		t.Errorf("got %+v, %+v", live, out)
	}

	remove := b.change(plan.Delete, role("r"), 1)
	remove.Named = true

	out = b.apply(writer.Own(), plan.ScopePlan{Prune: []plan.Change{remove}}).Scopes[0]
	if out.Results[apply.Deleted] != 1 {
		t.Errorf("it is not deleted: %+v", out)
	}
}

// TestHeldObjectIsEmptied: what does not go is good for nothing.
func TestHeldObjectIsEmptied(t *testing.T) {
	t.Parallel()

	b := newBench(t)
	b.grant(b.change(plan.Create, role("r", "get"), 0), b.change(plan.Create, binding("b", "r"), 0))

	for _, c := range []*plan.Copy{role("r"), binding("b", "r")} {
		obj := c.Kind.Empty(b.member, c.Name)
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["tenants.example.com/mine"]}}`))

		if err := errors.Join(b.client.Patch(t.Context(), obj, patch), b.client.Delete(t.Context(), obj)); err != nil {
			t.Fatal(err)
		}

		empty := b.change(plan.Empty, c, 1)
		empty.Copy = nil

		out := b.apply(writer.Own(), plan.ScopePlan{Prune: []plan.Change{empty}}).Scopes[0]
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) || len(out.Failures) > 0 {
			t.Errorf("%s is there still (%v): %+v", c.Kind, err, out)
		}
	}
}

func TestEveryChangeIsTried(t *testing.T) {
	t.Parallel()

	b := newBench(t)

	changes := make([]plan.Change, 0, 20)
	for i := range 20 {
		c := b.change(plan.Create, role(fmt.Sprintf("r%02d", i), "get"), 0)
		if i%2 == 0 {
			c.Namespace = "no-such-namespace"
		}

		changes = append(changes, c)
	}

	out := b.grant(changes...)
	if out.Results[apply.Created] != 10 || len(out.Failures) != 10 {
		t.Fatalf("one bad namespace keeps no other from being served: %+v", out.Results)
	}

	for _, f := range out.Failures {
		if f.Class != apply.Gone {
			t.Errorf("a namespace that does not exist is gone, not %v: %v", f.Class, f.Err)
		}
	}

	if len(b.notes.told) != 10 {
		t.Errorf("the store was told of %d writes", len(b.notes.told))
	}
}

func parse(t *testing.T, version string) uint64 {
	t.Helper()

	var n uint64
	if _, err := fmt.Sscan(version, &n); err != nil {
		t.Fatal(err)
	}

	return n
}
