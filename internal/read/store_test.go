package read

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ear notes what a store tells.
type ear struct {
	heard       []string
	permissions []facts.ClusterPermissions
}

func (e *ear) KeyChanged(reconcileKey scope.Key) { e.heard = append(e.heard, reconcileKey.String()) }
func (e *ear) KeyUnblocked(reconcileKey scope.Key) {
	e.heard = append(e.heard, "unblocked "+reconcileKey.String())
}
func (e *ear) NamespaceChanged(name string, _, _ *facts.Namespace) {
	e.heard = append(e.heard, "namespace "+name)
}
func (e *ear) PermissionsChanged(namespace string) {
	e.heard = append(e.heard, "permissions "+namespace)
}
func (e *ear) ClusterPermissionsChanged(of facts.ClusterPermissions) {
	e.heard = append(e.heard, "permissions ")
	e.permissions = append(e.permissions, of)
}
func (e *ear) ClusterChanged(keys []scope.Key, everybody bool) {
	if everybody {
		e.heard = append(e.heard, "cluster")
	}

	for _, key := range keys {
		e.heard = append(e.heard, "cluster of "+key.String())
	}
}
func (e *ear) EverythingChanged() { e.heard = append(e.heard, "everything") }

// filledBy is what fills a table of cluster-scoped objects, as a watch that has listed does.
func filledBy(s *Store, kind projected.Kind, t *clusterTable) sink[clusterRecord] {
	k := s.clusterSink(kind, t)
	k.lock, k.done = &s.mu, func() {}

	return k
}

func (e *ear) take() []string {
	heard := e.heard
	e.heard = nil

	return heard
}

// ops is the reconcile key of the scopes of namespace ops.
func ops() scope.Key { return scope.NamespaceScopes.In("ops") }

func copyOf(namespace, operatorNamespace, version string) *rbacv1.Role {
	o := projected.Object{
		Kind: projected.Role, Name: "copy", ScopeHash: "hash",
		Owner: "NamespaceScope/" + operatorNamespace + "/s", Source: "Role/" + operatorNamespace + "/r",
	}
	role := o.In(namespace).(*rbacv1.Role)
	role.ResourceVersion = version
	role.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: scope.FieldManager}}

	return role
}

func roleSink(s *Store) *sink[projectedRecord] {
	k := s.projected.sink(projected.Role)
	k.lock, k.done = &s.mu, func() {}

	return &k
}

var copyKey = facts.ProjectedKey{Kind: projected.Role, Name: "copy"}

func TestOlderNewsIsNoNews(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	roles := roleSink(s)

	must(t, roles.Add(copyOf("member", "ops", "10")))

	if got := e.take(); !slices.Equal(got, []string{"ops"}) {
		t.Errorf("a new object is news for its operator namespace: %v", got)
	}

	edited := copyOf("member", "ops", "12")
	edited.Rules = []rbacv1.PolicyRule{{Verbs: []string{"*"}}}
	must(t, roles.Update(edited))
	e.take()
	must(t, roles.Update(copyOf("member", "ops", "11")))

	if got := e.take(); len(got) != 0 {
		t.Errorf("an older version is no news: %v", got)
	}

	must(t, roles.Delete(copyOf("member", "ops", "11")))

	if s.Size(ops()) != 1 {
		t.Error("a deletion that is older than the object took it away")
	}

	must(t, roles.Delete(copyOf("member", "ops", "13")))

	if got := e.take(); s.Size(ops()) != 0 || !slices.Equal(got, []string{"ops"}) {
		t.Errorf("a deletion is news: %v, %d objects", got, s.Size(ops()))
	}
}

func TestOwnWritesAreKnownAtOnceAndNoNews(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	roles := roleSink(s)

	s.Wrote(copyOf("member", "ops", "10"))

	if s.Size(ops()) != 1 || len(e.take()) != 0 {
		t.Error("a write of one's own is known and is no news")
	}

	must(t, roles.Add(copyOf("member", "ops", "10")))

	if got := e.take(); len(got) != 0 {
		t.Errorf("nor is it when the watch tells of it: %v", got)
	}

	s.Deleted("member", copyKey)

	if s.Size(ops()) != 0 || len(e.take()) != 0 {
		t.Error("a deletion of one's own is known and is no news")
	}
}

// TestDeletedStaysDeleted: the answer to a write may arrive after the watch told that the object was deleted since.
func TestDeletedStaysDeleted(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	roles := roleSink(s)

	must(t, roles.Add(copyOf("member", "ops", "10")))
	must(t, roles.Update(copyOf("member", "ops", "11")))
	must(t, roles.Delete(copyOf("member", "ops", "12")))
	s.Wrote(copyOf("member", "ops", "11"))

	if n := s.Size(ops()); n != 0 {
		t.Error("a late answer brought an object back that is deleted")
	}

	s.Wrote(copyOf("member", "ops", "13"))

	if n := s.Size(ops()); n != 1 {
		t.Error("an object that was made again is not known")
	}

	// A deletion of Ambit's own has no version; the object may come back with any.
	s.Deleted("member", copyKey)
	s.Wrote(copyOf("member", "ops", "15"))

	if n := s.Size(ops()); n != 1 {
		t.Error("an object that was replaced is not known")
	}
}

// TestDeletedByAmbitStaysDeleted: a watch that is late tells of the object that Ambit made, and of what it wrote into it, after
// Ambit has deleted it. That would be taken for the copy that is wanted, and nothing would be made in its place.
func TestDeletedByAmbitStaysDeleted(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	roles := roleSink(s)

	must(t, roles.Replace(nil, "5"))
	s.Wrote(copyOf("member", "ops", "10"))
	s.Wrote(copyOf("member", "ops", "11"))
	s.Deleted("member", copyKey)

	for _, late := range []string{"10", "11"} {
		must(t, roles.Add(copyOf("member", "ops", late)))

		if n := s.Size(ops()); n != 0 {
			t.Errorf("version %s, which is older than the deletion, brought the object back", late)
		}
	}

	must(t, roles.Delete(copyOf("member", "ops", "12")))

	if lost := s.projected.lost.of(bucket{key: ops()}); len(lost) != 0 {
		t.Errorf("its deletion is taken for somebody else's: %v", lost)
	}

	must(t, roles.Add(copyOf("member", "ops", "13")))

	if n := s.Size(ops()); n != 1 {
		t.Error("an object that was made again is not known")
	}
}

// TestConfigMapDeletedByAmbitStaysDeleted is the same for a watch list.
func TestConfigMapDeletedByAmbitStaysDeleted(t *testing.T) {
	t.Parallel()

	var (
		e    ear
		s    = NewStore(&e)
		list = func(version string) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "list", ResourceVersion: version}}
		}
		key = types.NamespacedName{Namespace: "ops", Name: "list"}
	)

	h := newOperatorNamespace(func() {})
	s.operatorNamespaces["ops"] = h

	s.Wrote(list("10"))

	if _, known := h.maps.rows[key]; !known {
		t.Fatal("a list that was written is not known")
	}

	s.DeletedConfigMap("ops", "list")
	h.kind(list("10")).takeIn(list("10"), arrival{version: 10})

	if _, known := h.maps.rows[key]; known {
		t.Error("a watch that is late brought the list back")
	}

	h.kind(list("12")).takeIn(list("12"), arrival{version: 12})

	if _, known := h.maps.rows[key]; !known {
		t.Error("a list that was made again is not known")
	}
}

func TestANewListReplacesWhatIsOlder(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	roles := roleSink(s)

	must(t, roles.Replace([]any{copyOf("a", "ops", "5"), copyOf("b", "ops", "6")}, "7"))
	s.Wrote(copyOf("c", "ops", "20"))
	must(t, roles.Replace([]any{copyOf("b", "ops", "6")}, "15"))

	got := s.projected.of(ops())
	if _, found := got["a"]; found {
		t.Error("what a newer list lacks is gone")
	}

	if _, found := got["c"]; !found {
		t.Error("what was written after the list was made is still there")
	}

	if got["b"][copyKey].Version != 6 {
		t.Errorf("b is %+v", got["b"])
	}
}

func TestMarksThatMoveAreNewsForBothOperatorNamespaces(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	roles := roleSink(s)

	must(t, roles.Add(copyOf("member", "ops", "1")))
	e.take()
	must(t, roles.Update(copyOf("member", "other", "2")))

	if got := e.take(); !slices.Contains(got, "ops") || !slices.Contains(got, "other") {
		t.Errorf("the old and the new operator namespace hear of it: %v", got)
	}

	bare := copyOf("member", "ops", "3")
	bare.Labels, bare.Annotations = nil, nil
	must(t, roles.Update(bare))

	if got := e.take(); !slices.Equal(got, []string{"other"}) || s.Size(scope.NamespaceScopes.In("other")) != 0 {
		t.Errorf("an object that lost every mark is gone for its operator namespace: %v", got)
	}
}

// TestListAnewIsNewsOfPermissions: what changed between two lists nobody saw, so anybody may have got permissions.
func TestListAnewIsNewsOfPermissions(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	roles := roleSink(s)
	roles.other = s.permissionsChanged

	plain := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "member", Name: "plain", ResourceVersion: "1"}}
	must(t, roles.Replace([]any{plain, copyOf("served", "ops", "1")}, "1"))

	if got := e.take(); slices.Contains(got, "permissions member") {
		t.Errorf("the first list is no change: %v", got)
	}

	must(t, roles.Replace([]any{plain, copyOf("served", "ops", "1")}, "2"))

	if got := e.take(); !slices.Equal(got, []string{"permissions member"}) {
		t.Errorf("got %v", got)
	}
}

// TestNameDecidesWhateverTheMarksSay: whoever takes the marks of a copy away, or writes others, neither hides it nor gives it to
// somebody else; and no marks make a copy of what Ambit did not call so.
func TestNameDecidesWhateverTheMarksSay(t *testing.T) {
	t.Parallel()

	names, err := projected.NewNames(make([]byte, projected.KeySize), time.Now())
	if err != nil {
		t.Fatal(err)
	}

	copyKey := facts.ProjectedKey{Kind: projected.Role, Name: names.New(projected.Role, "member", ops(), "copy-0123456789")}

	for reason, change := range map[string]func(*rbacv1.Role){
		"as it was made": func(*rbacv1.Role) {},
		"no mark at all": func(r *rbacv1.Role) { r.Labels, r.Annotations, r.ManagedFields = nil, nil, nil },
		"no label":       func(r *rbacv1.Role) { r.Labels = nil },
		"another owner": func(r *rbacv1.Role) {
			r.Annotations[scope.AnnotationOwner] = "NamespaceScope/elsewhere/s"
		},
		"marks that say nothing": func(r *rbacv1.Role) {
			r.Annotations = map[string]string{scope.AnnotationOwner: "x", scope.AnnotationSource: "y"}
		},
	} {
		var e ear

		s := NewStore(&e)
		s.Name(names)

		role := copyOf("member", "ops", "1")
		role.Name, role.CreationTimestamp = copyKey.Name, metav1.Now()
		change(role)

		if err := roleSink(s).Add(role); err != nil {
			t.Fatal(err)
		}

		if _, found := s.projected.of(ops())["member"][copyKey]; !found || !s.Projected(ops()) ||
			s.Projected(scope.NamespaceScopes.In("elsewhere")) {
			t.Errorf("%s: it is not known for what it is", reason)
		}
	}

	for reason, name := range map[string]string{
		"a name of one's own": "copy", "a name that looks like one": "copy-0123456789abcdef",
		"the name of a copy elsewhere": names.New(projected.Role, "other", ops(), "copy-0123456789"),
	} {
		var e ear

		s := NewStore(&e)
		s.Name(names)

		role := copyOf("member", "ops", "1")
		role.Name, role.CreationTimestamp = name, metav1.Now()

		if err := roleSink(s).Add(role); err != nil {
			t.Fatal(err)
		}

		if s.Projected(ops()) {
			t.Errorf("%s, and all marks: it is taken for a copy", reason)
		}

		// What was made before names told is known by its marks.
		role.CreationTimestamp.Time, role.ResourceVersion = names.Since().Add(-time.Minute), "2"
		if err := roleSink(s).Update(role); err != nil || !s.Projected(ops()) {
			t.Errorf("%s, from before there was a key: it is not taken over (%v)", reason, err)
		}
	}
}

func TestBirthIsWhatTheWatchSaw(t *testing.T) {
	t.Parallel()

	h := newOperatorNamespace(func() {})
	key := types.NamespacedName{Namespace: "ops", Name: "p"}
	first, second := time.Unix(100, 0), time.Unix(200, 0)
	pod := func(created time.Time) facts.Pod {
		return facts.Pod{PodRef: facts.PodRef{Name: "p"}, Birth: facts.Birth{Created: created}}
	}

	h.pods.put(key, pod(first), arrival{version: 5})

	if got := h.pods.rows[key].record.BornAt; got != 0 {
		t.Errorf("the birth of a pod that was there already is unknown, not %d", got)
	}

	h.pods.put(key, pod(second), arrival{version: 7, born: true})
	h.pods.put(key, pod(second), arrival{version: 9})

	if got := h.pods.rows[key].record.BornAt; got != 7 {
		t.Errorf("a later change is no birth: %d", got)
	}

	h.pods.drop(key, 10)
	h.pods.put(key, pod(second), arrival{version: 12})

	if got := h.pods.rows[key].record.BornAt; got != 0 {
		t.Errorf("the birth of a pod that came with a list is unknown, not %d", got)
	}
}

func TestFactsWaitForEveryList(t *testing.T) {
	t.Parallel()

	var e ear

	s := NewStore(&e)
	if _, listed := s.Facts(ops(), time.Now()); listed {
		t.Error("an operator namespace that is not watched has no facts")
	}

	h := newOperatorNamespace(func() {})
	h.waiting = 1
	s.operatorNamespaces["ops"] = h

	if _, listed := s.Facts(ops(), time.Now()); listed {
		t.Error("nor has one that is not listed")
	}

	h.waiting = 0
	s.waiting = 1

	if _, listed := s.Facts(ops(), time.Now()); listed {
		t.Error("nor has any before the cluster is listed")
	}

	s.waiting = 0

	if _, listed := s.Facts(ops(), time.Now()); !listed {
		t.Error("now it has")
	}
}

func TestSinkTakesNothingButObjects(t *testing.T) {
	t.Parallel()

	roles := roleSink(NewStore(&ear{}))
	if err := roles.Add("text"); err == nil {
		t.Error("a string was taken for an object")
	}

	// An object of another kind is left alone.
	must(t, roles.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}))
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkFacts(b *testing.B) {
	s := NewStore(&ear{})
	for i := range 1000 {
		for j := range 40 {
			role := copyOf(fmt.Sprintf("member-%d", i), "ops", "1")
			role.Name = fmt.Sprintf("copy-%d", j)
			s.Wrote(role)
		}
	}

	for b.Loop() {
		s.projected.of(ops())
	}
}

// TestClusterRolesThatComeAndGoArePermissions: a binding may have been there before its ClusterRole, and what an account may do
// is not remembered from before that. Those that Ambit makes itself change nothing for whoever it writes as.
func TestClusterRolesThatComeAndGoArePermissions(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		manager string
		want    bool
	}{{"kubectl", true}, {scope.FieldManager, false}} {
		s := NewStore(&ear{})
		k := filledBy(s, projected.ClusterRole, &s.clusterRoles)
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "reads", ResourceVersion: "1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: tc.manager}},
		}}

		must(t, k.Add(role))

		came := s.PermissionsChangedAt("member", "ops")
		if came.IsZero() == tc.want {
			t.Errorf("%s made it: permissions changed at %s", tc.manager, came)
		}

		role = role.DeepCopy()
		role.ResourceVersion = "2"
		must(t, k.Delete(role))

		if went := s.PermissionsChangedAt("member", "ops"); went.After(came) != tc.want {
			t.Errorf("%s made it, and it went: permissions changed at %s, after %s", tc.manager, went, came)
		}
	}
}

// TestClusterRolesAreNoNewsForWhoeverDoesNotBindThem: each operator that somebody installs brings ClusterRoles, and there may be
// ten thousand operator namespaces.
func TestClusterRolesAreNoNewsForWhoeverDoesNotBindThem(t *testing.T) {
	t.Parallel()

	e := &ear{}
	s := NewStore(e)
	s.installs["csvs"] = &installs{}

	for namespace, of := range map[string]rbacv1.RoleRef{
		"binds": {Kind: "ClusterRole", Name: "reads"}, "other": {Kind: "ClusterRole", Name: "writes"},
		"role": {Kind: "Role", Name: "reads"},
	} {
		in := newOperatorNamespace(func() {})
		in.bindings.put(types.NamespacedName{Namespace: namespace, Name: "b"}, facts.Binding{RoleRef: of}, arrival{version: 1})
		s.operatorNamespaces[namespace] = in
	}

	k := filledBy(s, projected.ClusterRole, &s.clusterRoles)
	binds := "unblocked " + scope.NamespaceScopes.In("binds").String()
	installs, templates := "cluster of "+scope.Installs.In("csvs").String(), "cluster of "+scope.TemplatesKey().String()
	ofScope := map[string]string{scope.LabelScope: "s"}

	for i, tc := range []struct {
		reason  string
		happens func(any) error
		manager string
		labels  map[string]string
		want    []string
	}{
		{"one of somebody else's comes", k.Add, "helm", nil, []string{"permissions ", binds}},
		{"and goes: it was in the way, perhaps", k.Delete, "helm", nil, []string{installs, templates, "permissions ", binds}},
		{"one for users of an API comes", k.Add, scope.FieldManager, nil, []string{binds}},
		{"and goes: somebody deleted it, perhaps", k.Delete, scope.FieldManager, nil, []string{installs, templates, binds}},
		{"one of a scope comes", k.Add, scope.FieldManager, ofScope, []string{binds}},
		{"and goes, of which its owner hears", k.Delete, scope.FieldManager, ofScope, []string{binds}},
	} {
		must(t, tc.happens(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: "reads", ResourceVersion: strconv.Itoa(i + 1), Labels: tc.labels,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: tc.manager, Operation: metav1.ManagedFieldsOperationApply}},
		}}))

		got := e.take()
		slices.Sort(tc.want)

		if slices.Sort(got); !slices.Equal(got, tc.want) {
			t.Errorf("%s: told of %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// TestOwnDeletionsAreNoLoss: a watch may tell of what Ambit deletes before the API server's answer does. It is not taken for what
// somebody else deleted, which is remembered until it comes again.
func TestOwnDeletionsAreNoLoss(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		reason string
		then   func(*Store, *sink[projectedRecord])
		lost   int
	}{
		{"somebody else deleted it", func(*Store, *sink[projectedRecord]) {}, 1},
		{"Ambit did", func(s *Store, _ *sink[projectedRecord]) { s.Deleted("member", copyKey) }, 0},
		{"Ambit deleted another one", func(s *Store, _ *sink[projectedRecord]) {
			s.Deleted("member", facts.ProjectedKey{Kind: projected.Role, Name: "another"})
		}, 1},
		{"it came again", func(_ *Store, k *sink[projectedRecord]) { must(t, k.Add(copyOf("member", "ops", "7"))) }, 0},
		{"it came again, and went", func(_ *Store, k *sink[projectedRecord]) {
			must(t, k.Add(copyOf("member", "ops", "7")))
			must(t, k.Delete(copyOf("member", "ops", "8")))
		}, 1},
	} {
		s := NewStore(&ear{})
		k := roleSink(s)

		must(t, k.Add(copyOf("member", "ops", "5")))
		must(t, k.Delete(copyOf("member", "ops", "6")))
		tc.then(s, k)

		lost := &s.projected.lost
		if got := len(lost.of(bucket{key: ops()})["member"]); got != tc.lost || len(lost.by) != tc.lost || len(lost.at) != tc.lost {
			t.Errorf("%s: %d are lost, and %d and %d remembered, want %d", tc.reason, got, len(lost.by), len(lost.at), tc.lost)
		}
	}
}

// TestBindingsAskForWhomTheyBind: whoever may write ClusterRoleBindings binds whom they like, as often as they like. All of these
// are asked for together, so that they can be kept waiting, and nobody else is.
func TestBindingsAskForWhomTheyBind(t *testing.T) {
	t.Parallel()

	e := &ear{}
	s := NewStore(e)
	s.installs["csvs"], s.operatorNamespaces["ops"] = &installs{}, newOperatorNamespace(func() {})

	k := filledBy(s, projected.ClusterRoleBinding, &s.clusterBindings)

	account := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "a"}
	}
	every := rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: scope.GroupAccounts}

	both := []string{"cluster of " + scope.Installs.In("csvs").String(), "cluster of " + ops().String()}

	for i, tc := range []struct {
		subjects []rbacv1.Subject
		want     []string
	}{
		{[]rbacv1.Subject{account("nowhere")}, nil},
		{[]rbacv1.Subject{account("csvs"), account("ops"), account("nowhere")}, both},
		{[]rbacv1.Subject{every}, append([]string{"cluster"}, both...)},
		{nil, []string{"cluster"}},
	} {
		must(t, k.Update(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "b", ResourceVersion: strconv.Itoa(i + 1)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "nothing"}, Subjects: tc.subjects,
		}))

		if got := slices.DeleteFunc(e.take(), func(s string) bool { return s == "permissions " }); !slices.Equal(got, tc.want) {
			t.Errorf("with %v: told of %q, want %q", tc.subjects, got, tc.want)
		}
	}
}
