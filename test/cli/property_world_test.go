package cli_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// drawn is a world that is drawn by chance.
type drawn struct {
	*testbed.World
	*setting

	random *rand.Rand
	// tag is in the names of everything that belongs to the world and to no namespace.
	tag string
	// ops is where scopes are, and own where operators are installed; rivals is another one of these.
	ops, own, rivals string
	members          []string
	// ending are the namespaces that are deleted.
	ending map[string]struct{}
	// there is what was written and not deleted.
	there map[id]manifest
	// grants are what the last plan with a refusal said that would help.
	grants []map[string]any
	// given are those of them that were applied.
	given []manifest
	// gives are the accounts that groups name, by namespace.
	gives map[string]string
	// made are the names of cluster-scoped objects that Ambit made.
	made    map[id]struct{}
	last    *state
	history []string
	// applied is when something was written last.
	applied time.Time
}

func newDrawn(t *testing.T, s *setting) *drawn {
	t.Helper()

	arguments := slices.Clone(theirs)
	if s.confined() {
		arguments = append(arguments, "--default-scope=false")
	}

	begin := beds.Begin
	if s.confined() && s.installs {
		begin = beds.Own // Its manager serves namespaces that no other world has.
	}

	w := &drawn{
		World: begin(t, s.profile, arguments...), setting: s, random: draws(t, s), tag: utilrand.String(6),
		ending: map[string]struct{}{}, there: map[id]manifest{}, made: map[id]struct{}{}, gives: map[string]string{},
	}

	w.prepare()

	return w
}

// confined says whether Ambit has rights in single namespaces alone.
func (s *setting) confined() bool { return s.profile == "namespaced" }

func (w *drawn) namespaces() []string {
	out := slices.Clone(w.members)

	for _, name := range []string{w.ops, w.own, w.rivals} {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}

	return append(out, w.absent())
}

// absent is a namespace that comes and goes.
func (w *drawn) absent() string { return "absent-" + w.tag }

func (w *drawn) namespaceOf(name string, labels manifest) manifest {
	m := object("v1", "Namespace", "", name, nil)
	if labels != nil {
		m["metadata"].(map[string]any)["labels"] = map[string]any(labels)
	}

	return m
}

// prepare makes what every world begins with.
func (w *drawn) prepare() {
	w.Helper()

	var all []manifest

	for i := range 4 {
		w.members = append(w.members, fmt.Sprintf("m%d-%s", i, w.tag))
		all = append(all, w.namespaceOf(w.members[i], manifest{"team-" + w.tag: strconv.Itoa(i % 2)}))
	}

	if w.scopes {
		w.ops = "ops-" + w.tag
		if w.confined() && !w.installs { // What is installed in Ambit's own namespace is mostly refused.
			w.ops = embedded.Namespace
		} else {
			all = append(all, w.namespaceOf(w.ops, nil))
		}

		all = append(all, w.operators()...)
	}

	if w.installs {
		w.own, w.rivals = "own-"+w.tag, "rivals-"+w.tag
		all = append(all, w.namespaceOf(w.rivals, nil))

		if w.scopes { // What is installed is then served by scopes, too.
			w.own = w.ops
		} else {
			all = append(all, w.namespaceOf(w.own, nil))
		}

		all = append(all, w.installers()...)
	}

	w.apply(&move{name: "prepare", objects: all})

	if w.confined() && w.installs {
		w.serveInstalls(w.own, w.rivals)
	}

	w.settled()
}

// operators are those that scopes are for, and the accounts that write for scopes.
func (w *drawn) operators() []manifest {
	out := []manifest{
		w.definition("kettles", "Kettle"),
		serviceAccount(w.ops, "delegate"), serviceAccount(w.ops, "weak"), serviceAccount(w.ops, "extra"),
		role(w.ops, "at-home", testbed.InOperatorNamespace()...), bind(w.ops, "at-home", "Role", "at-home", w.ops, "delegate"),
		bind(w.ops, "weak-at-home", "Role", "at-home", w.ops, "weak"),
	}

	for i := range 3 {
		name := fmt.Sprintf("op-%d", i)
		out = append(out, serviceAccount(w.ops, name), w.reader(name), role(w.ops, name, roleRules[i]).and(w.onKettles()),
			bind(w.ops, name, "Role", name, w.ops, name))
	}

	for i, m := range w.members {
		if w.confined() && i > 1 {
			continue
		}

		if w.confined() {
			out = append(out, role(m, "consent", append([]string{"get,list,watch roles", "get,list,watch rolebindings"},
				append(testbed.InMember(), roleRules...)...)...).and(w.onKettles()),
				bind(m, "consent", "Role", "consent", embedded.Namespace, embedded.ServiceAccount))
		}

		out = append(out, role(m, "in-member", append(testbed.InMember(), roleRules...)...).and(w.onKettles()),
			bind(m, "in-member", "Role", "in-member", w.ops, "delegate"),
			role(m, "weak", append(testbed.InMember(), roleRules[:2]...)...), bind(m, "weak", "Role", "weak", w.ops, "weak"))
	}

	return out
}

var roleRules = []string{"get secrets", "get,list configmaps", "patch deployments", "create services", "watch pods"}

// reader is an operator that reads the watch list.
func (w *drawn) reader(name string) manifest {
	return w.manifestOf("apps/v1", "Deployment", testbed.Reader(w.ops, name))
}

func (w *drawn) manifestOf(apiVersion, kind string, obj client.Object) manifest {
	raw, err := json.Marshal(obj)
	if err != nil {
		w.Fatal(err)
	}

	out := manifest{}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.Fatal(err)
	}

	delete(out, "status")
	delete(out["metadata"].(map[string]any), "creationTimestamp")

	out["apiVersion"], out["kind"] = apiVersion, kind

	return out
}

// aged waits until the second is over in which the move before was made. The API server rounds to seconds when an object was
// made: which of two is older, where they contend for something, is then up to their names, and no plan knows it.
func (w *drawn) aged() {
	for now := time.Now(); now.Truncate(time.Second).Equal(w.applied.Truncate(time.Second)); now = time.Now() {
		time.Sleep(min(now.Truncate(time.Second).Add(time.Second).Sub(now), 100*time.Millisecond))
	}
}

// apply does what a move says, as kubectl does, and returns what is there then; nil for what is deleted. A plan is about all of a
// file, and kubectl writes one object after the other: Ambit sleeps meanwhile.
func (w *drawn) apply(m *move) map[id]map[string]any {
	w.Helper()

	if !m.delete && slices.ContainsFunc(m.objects, func(obj manifest) bool { return slices.Contains(asking, idOf(obj).kind) }) {
		w.aged()
	}

	if len(m.objects) > 1 {
		w.signal(syscall.SIGSTOP)
		defer w.signal(syscall.SIGCONT)
	}

	out := map[id]map[string]any{}

	if m.delete {
		for _, obj := range m.objects {
			out[idOf(obj)] = nil
			w.remove(obj)
		}

		return out
	}

	path := filepath.Join(w.TempDir(), "move.yaml")
	text, err := w.Cluster.Kubectl(w.Context(), "apply", "-o", "json", "-f", file(w.World, "move.yaml", m.text(w.T)))

	if err != nil {
		w.Fatalf("%v: %s\n%s", path, err, m.text(w.T))
	}

	w.applied = time.Now()

	for _, obj := range parsed(w.T, text) {
		out[idOf(obj)] = obj
	}

	for _, obj := range m.objects {
		w.there[idOf(obj)] = obj
		if obj["kind"] == "Namespace" {
			delete(w.ending, idOf(obj).name)
		}
	}

	return out
}

func (w *drawn) signal(signal syscall.Signal) {
	w.Helper()

	if err := syscall.Kill(w.Manager.PID(), signal); err != nil {
		w.Error(err)
	}
}

func (w *drawn) remove(obj manifest) {
	w.Helper()

	u := &unstructured.Unstructured{Object: obj}
	if err := w.Client.Delete(w.Context(), u, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil &&
		!apierrors.IsNotFound(err) {
		w.Fatal(err)
	}

	delete(w.there, idOf(obj))

	if obj["kind"] != "Namespace" {
		return
	}

	w.ending[u.GetName()] = struct{}{}
	maps.DeleteFunc(w.there, func(of id, _ manifest) bool { return of.namespace == u.GetName() })
}

// everything is the move that writes again what asks for something and is there. Its plan says what is left to do. Where Ambit
// wrote over something, into the list of a group or into a version that it injects into, it would do so again.
func (w *drawn) everything(now *state) *move {
	m := &move{name: "everything"}

	for _, obj := range w.of(asking...) {
		is := now.objects[idOf(obj)]
		if is == nil || w.isEnding(idOf(obj).namespace) || is.raw.GetAnnotations()[scope.AnnotationReplaced] != "" {
			continue
		}

		if (&unstructured.Unstructured{Object: obj}).GetAnnotations()["olm.providedAPIs"] == "" {
			m.objects = append(m.objects, obj)
		}
	}

	return m
}

// refuses holds that the API server does not take what a plan says that it would not. The rest of a move is left out: no plan is
// about that alone.
func (w *drawn) refuses(m *move, p *promise) {
	w.Helper()

	if m.delete {
		return
	}

	for _, obj := range m.objects {
		if !p.refusesFile(idOf(obj)) {
			continue
		}

		alone := &move{objects: []manifest{obj}}
		if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", file(w.World, "move.yaml", alone.text(w.T))); err == nil {
			w.Fatalf("it is taken: %s\n%s", out, alone.text(w.T))
		}
	}
}

// leave deletes an operator namespace in the end, with all that asks for something there, now and then.
func (w *drawn) leave() *move {
	name := cmp.Or(w.ops, w.own)
	// In the profile namespaced, Ambit's rights there go with it, and in any order with what they are for.
	if !w.oneIn(3) || w.profile == "namespaced" {
		return nil
	}

	return &move{name: "the operator namespace", objects: []manifest{w.namespaceOf(name, nil)}, delete: true}
}
