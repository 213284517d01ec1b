package report

import (
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// mostOrphans is how many deleted scopes of a namespace are reported, and of each of them how many namespaces. All namespaces are
// named, or counted, where the scope was. Whoever writes marks by hand can invent any number of scopes.
const mostOrphans = 10

// OrphanReporter reports once what deleted scopes left behind, where Ambit may not remove it, and again when something is left of
// other scopes. There is no status any more that could say so.
type OrphanReporter struct {
	Recorder events.EventRecorder
	Metrics  *Metrics
	// Scheme has the version of each kind that can be an owner.
	Scheme *runtime.Scheme
	// Exists says whether events can be written in a namespace.
	Exists func(namespace string) bool
	// Namespaced says that events may be written where scopes are, and nowhere else.
	Namespaced bool

	mu    sync.Mutex
	byKey map[scope.Key]left
}

// left is how many objects that grant something are left of the scopes of a reconcile key, and a digest of which scopes are those
// of which any object is left.
type left struct {
	granting int
	scopes   string
}

// Report reports what is left in the cluster after a plan was applied. Losing its memory costs a duplicate event.
func (t *OrphanReporter) Report(p *plan.Plan, out *apply.Outcome, f *facts.Facts) {
	t.say(p.Key, orphansLeft(p, out, f))
}

// ReportLeft reports what a plan that is not applied leaves in the cluster.
func (t *OrphanReporter) ReportLeft(p *plan.Plan, f *facts.Facts) {
	t.say(p.Key, OrphansOf(p.Orphans, f))
}

// Forget is for a reconcile key of which nothing is left.
func (t *OrphanReporter) Forget(key scope.Key) { t.say(key, nil) }

func (t *OrphanReporter) say(key scope.Key, of []Orphans) {
	if !t.note(key, of) {
		return
	}

	for i := range of[:min(len(of), mostOrphans)] {
		t.report(&of[i])
	}
}

// note counts what is left of a reconcile key, and says whether that is of other scopes than before, or was emptied since.
func (t *OrphanReporter) note(key scope.Key, of []Orphans) bool {
	t.mu.Lock()
	defer t.mu.Unlock()

	var now left

	words := make([]string, 0, 3*len(of))

	for i := range of {
		now.granting += of[i].Granting
		words = append(words, of[i].Owner.String(), of[i].Hash, strconv.FormatBool(of[i].Emptied))
	}

	if len(of) > 0 {
		now.scopes = scope.Digest(16, words...)
	}

	before := t.byKey[key]
	if before == now {
		return false
	}

	if t.byKey == nil {
		t.byKey = map[scope.Key]left{}
	}

	if t.byKey[key] = now; now == (left{}) {
		delete(t.byKey, key)
	}

	all := 0
	for _, l := range t.byKey {
		all += l.granting
	}

	t.Metrics.orphans.Set(float64(all))

	return now.scopes != before.scopes
}

// report sends events to where the scope was, and to where something is left of it.
func (t *OrphanReporter) report(of *Orphans) {
	// Without a group, the hash does not vouch for the owner, whose name may be none at all.
	versions := t.Scheme.VersionsForGroupKind(schema.GroupKind{Group: of.Owner.Group, Kind: of.Owner.Kind})
	if of.Owner.Group != "" && len(versions) > 0 && t.Exists(of.Owner.Namespace) {
		t.event(versions[0].String(), of.Owner.Kind, of.Owner.Namespace, of.Owner.Name, of.event())
	}

	if t.Namespaced {
		return
	}

	for _, namespace := range of.Namespaces[:min(len(of.Namespaces), mostOrphans)] {
		kind, name, _ := strings.Cut(of.Objects[namespace][0], " ")
		t.event(rbacv1.SchemeGroupVersion.String(), kind, namespace, name, of.eventIn(namespace))
	}
}

func (t *OrphanReporter) event(version, kind, namespace, name string, e Event) {
	about := &corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: name}
	e.Send(t.Recorder, about)
}
