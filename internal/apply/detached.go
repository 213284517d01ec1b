package apply

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// memberWait is how long everything else waits for a write of a copy. What an admission webhook of one member takes is no
	// reason for the others to be served later.
	memberWait = time.Second
	// shortWait is the same in a namespace that keeps a write waiting already.
	shortWait = memberWait / 10
	// writeLimit is how long such a write may take at all; the API server gives webhooks 30 seconds.
	writeLimit = 35 * time.Second
	// maxDetached bounds the writes that are under way although nobody waits for them. Beyond that, whoever has most makes room.
	maxDetached = 256
	// maxHere is the same for those of one sort in one operator namespace, whose administrator decides how many there are. Beyond
	// that, they are made when others have ended; those of installs are tried before, and withdrawn.
	maxHere = 8
	// maxMember is the same for those in one member, whose owner may decide which of them hang. All are tried, because what takes
	// permissions away may be among those that do not; which are too many then are withdrawn.
	maxMember = 16
)

// ErrUnanswered is why a change is not made yet: its write is still under way.
var ErrUnanswered = errors.New(
	"the API server has not answered yet, perhaps because of an admission webhook; nothing else waits for it")

// writeKey identifies a write that is under way: its reconcile key, identity and namespace, and what it writes, in the words of
// what.
type writeKey struct {
	key                   scope.Key
	user, namespace, what string
	// action is what is done with a copy; empty in the operator namespace.
	action plan.Action
}

// isHere says whether it is a write in the operator namespace.
func (w writeKey) isHere() bool { return w.namespace == here(w.key) }

// sort is what is written in the operator namespace, whatever it is written to.
func (w writeKey) sort() string {
	sort, _, _ := strings.Cut(w.what, " ")

	return sort
}

// isInstall says whether it is a write of an install. No plan has it, and others of its kind need not hang where it does.
func (w writeKey) isInstall() bool { return w.isHere() && strings.HasPrefix(w.what, installs) }

// isOnce says whether it must not be made twice: a restart would record two times, and a copy be there under two names, until one
// of them is taken away again. Any other write that is made twice has one result.
func (w writeKey) isOnce() bool {
	return w.action == plan.Create || w.isHere() && strings.HasPrefix(w.what, restartsReader)
}

// grants says whether somebody may hold more by it.
func (w writeKey) grants() bool { return w.action == plan.Create || w.action == plan.Update }

// here stands for the operator namespace among the namespaces in which something is under way. No member can have this name.
func here(key scope.Key) string { return key.String() + "/" }

// underWay is one write while it lasts.
type underWay struct {
	cancel context.CancelFunc
	ended  chan struct{}
	// is identifies the write once it is detached, which left says; done says that it has ended. ceded says that it is cancelled to
	// make room for others, and about to end.
	is                writeKey
	left, done, ceded bool
	// of is what there is to tell once it has succeeded.
	of LateWrite
}

// hasDetached says whether a write in a namespace is under way for which nobody waits.
func (h *breaker) hasDetached(namespace string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	for w := range h.detached {
		if w.namespace == namespace {
			return true
		}
	}

	return false
}

// granting are the namespaces in which a write for a reconcile key is under way that grants something and for which nobody waits.
func (h *breaker) granting(key scope.Key) map[string]struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()

	var out map[string]struct{}

	for w := range h.detached {
		if w.key != key || !w.grants() {
			continue
		}

		if out == nil {
			out = map[string]struct{}{}
		}

		out[w.namespace] = struct{}{}
	}

	return out
}

// isKnown says whether a write is under way already, or may be made once only and was since a plan began to be applied last, and
// how long another one in its namespace is waited for.
func (h *breaker) isKnown(w writeKey) (is bool, wait time.Duration) {
	wait = memberWait
	if h.hasDetached(w.namespace) {
		wait = shortWait
	}

	h.mu.Lock()
	defer h.mu.Unlock()

	_, detached := h.detached[w]
	_, ended := h.ended[w.key][w]

	return detached || ended && w.isOnce() || w.isHere() && !w.isInstall() && h.isCrowded(w), wait
}

// isCrowded says whether as many writes are under way in a member, or of a sort in an operator namespace, as nobody may wait for.
func (h *breaker) isCrowded(w writeKey) bool {
	most, count := maxMember, 0
	if w.isHere() {
		most = maxHere
	}

	for other := range h.detached {
		if other.namespace == w.namespace && (!w.isHere() || other.sort() == w.sort()) {
			count++
		}
	}

	return count >= most
}

// leave notes that nobody waits for a write any more, and says whether that may be. One that cannot be left may not be waited for
// either: it is withdrawn, and made when others have ended.
func (h *breaker) leave(w writeKey, u *underWay) (left, withdraw bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if _, twice := h.detached[w]; twice || u.done {
		return false, w.isHere()
	}

	if h.isCrowded(w) || !h.hasRoom(w) {
		return false, true
	}

	u.is, u.left = w, true
	h.detached[w] = u

	return true, false
}

// isLeft notes that a write has ended, and says whether nobody waited for it.
func (h *breaker) isLeft(u *underWay) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	u.done = true

	return u.left
}

// end forgets a write for which nobody waited. Why one in the operator namespace failed is kept for the next plan; note remembers
// what hung in a member.
func (h *breaker) end(u *underWay, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	delete(h.detached, u.is)

	if err == nil && u.of.isWrite() {
		h.made[u.is.key] = append(h.made[u.is.key], u.of)
	}

	if u.is.action.TakesAway() || u.is.isOnce() && err == nil {
		if h.ended[u.is.key] == nil {
			h.ended[u.is.key] = map[writeKey]struct{}{}
		}

		h.ended[u.is.key][u.is] = struct{}{}
	}

	if err != nil && u.is.isHere() && !errors.Is(err, context.Canceled) {
		h.late.Add(u.is, err, writeLimit)
	}
}

// lateAnswer is why a write failed for which nobody waited, once; nil if it did not.
func (h *breaker) lateAnswer(w writeKey) error {
	late, is := h.late.Get(w)
	if !is {
		return nil // What comes just now is for the next one who asks.
	}

	h.late.Remove(w)

	err, _ := late.(error) // Nothing else is in it.

	return err
}

// changeBounded makes a change in a member, and waits for it for a bounded time, since others wait meanwhile. A change that
// takes longer continues detached, and asks for a plan once it has ended. Until then it counts as a transient failure.
func (r *run) changeBounded(ctx context.Context, id Identity, c *plan.Change) (Result, error) {
	d := r.doubts[c]
	if c.Namespace == "" || r.Late == nil {
		return r.timed(ctx, id, c, d)
	}

	own := *c

	return r.await(ctx, r.memberWrite(id, c), LateWrite{}, attempted(c, ErrUnanswered), func(ctx context.Context) (Result, error) {
		return r.timed(ctx, id, &own, d)
	})
}

// Bounded makes a write of an install in the same way, for a reconcile that is not to wait for it before it revokes anything.
// what says what it writes to. The write may go on when this has returned.
func (a *Applier) Bounded(ctx context.Context, key scope.Key, what string, write func(context.Context) error) error {
	r := &run{Applier: a, plan: &plan.Plan{Key: key}}

	return r.writeBounded(ctx, installs+what, LateWrite{}, write)
}

// writeBounded makes a write in the operator namespace in the same way; of is what there is to tell should it succeed late. It
// says nothing of members: what hangs here may be an admission webhook for other kinds.
func (r *run) writeBounded(ctx context.Context, what string, of LateWrite, write func(context.Context) error) error {
	if r.Late == nil {
		return write(ctx)
	}

	w := r.operatorNamespaceWrite(what)
	// A late refusal is reported once. After that the write is tried again, like one that was refused at once.
	if err := r.breaker.lateAnswer(w); err != nil {
		return err
	}

	_, err := r.await(ctx, w, of, ErrUnanswered, func(ctx context.Context) (Result, error) { return Configured, write(ctx) })

	return err
}

// await makes a write, and waits for it as long as others can wait. After that, it returns the error unanswered, as it does for a
// write that is under way already and for one that may be made once only and was, without the plan's knowledge.
func (r *run) await(
	ctx context.Context, w writeKey, of LateWrite, unanswered error, write func(context.Context) (Result, error),
) (Result, error) {
	is, wait := r.breaker.isKnown(w)
	if _, ended := r.ended[w]; ended && w.isOnce() {
		is = true
		r.Late(r.plan.Key) // The plan may know of it, and want it again.
	}

	if is {
		return Failed, unanswered
	}

	asking, held := withHeldBack(ctx)
	limited, cancel := withLimit(asking, held, writeLimit)
	answers, u := make(chan answer, 1), &underWay{cancel: cancel, ended: make(chan struct{}), of: of}

	go func() {
		defer close(u.ended)
		defer cancel()

		result, err := write(limited)
		answers <- answer{result, err}

		if !r.breaker.isLeft(u) {
			return
		}

		if err == nil && result.isWrite() && !w.isHere() {
			r.noteWritten(r.plan.Key, map[string]struct{}{w.namespace: {}})
		}

		// Before it counts as ended: a plan is to know of it in one way or the other.
		if w.grants() && (err == nil || Classify(err) == Transient) {
			r.noteGranted(r.plan.Key)
		}

		r.breaker.end(u, err)
		r.Late(r.plan.Key)
	}()

	// Time for which the API server had no room for the write does not count.
	for waited := time.Duration(0); waited < wait+held.soFar(); {
		more := wait + held.soFar() - waited

		select {
		case got := <-answers:
			return got.result, got.err
		case <-time.After(more):
			waited += more
		}
	}

	left, withdraw := r.breaker.leave(w, u)
	if left {
		return Failed, unanswered
	}

	return lastAnswer(withdraw, cancel, answers, unanswered)
}

// answer is what became of a write.
type answer struct {
	result Result
	err    error
}

// lastAnswer is the answer to a write that cannot be left.
func lastAnswer(withdraw bool, cancel func(), answers <-chan answer, unanswered error) (Result, error) {
	if withdraw {
		cancel()
	}

	got := <-answers
	if withdraw && errors.Is(got.err, context.Canceled) {
		return Failed, unanswered
	}

	return got.result, got.err
}

func (r *run) memberWrite(id Identity, c *plan.Change) writeKey {
	return writeKey{r.plan.Key, id.String(), c.Namespace, what(c), c.Action}
}

func (r *run) operatorNamespaceWrite(what string) writeKey {
	return writeKey{key: r.plan.Key, namespace: here(r.plan.Key), what: what}
}

// What is written in the operator namespace, each with what it is written to. There is one write to each at a time; a plan that
// wants something else there writes again when that one has ended.
const writesList, restartsReader, injectsInto, installs = "list ", "restart ", "injection into ", "install "

// timed makes a change, and notes in the breaker how long it took. What it is not known of whether it is refused is only tried
// while few such writes are under way, and tells of the others.
func (r *run) timed(ctx context.Context, id Identity, c *plan.Change, d doubt) (Result, error) {
	if d.review != nil && !d.review.begin() {
		return Failed, attempted(c, ErrUnanswered)
	}

	ctx, held := withHeldBack(ctx)
	began := time.Now()
	result, err := r.change(ctx, id, c)

	if !r.isSilent(ctx, began.Add(held.soFar()), err) {
		r.breaker.note(c, began.Add(held.soFar()), err)
	}

	if d.review != nil {
		d.review.learn(what(c), err)
	}

	return result, err
}
