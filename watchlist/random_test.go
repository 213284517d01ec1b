package watchlist

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// journal is a handler that keeps what it was told, and every event that should not have been.
type journal struct {
	mu    sync.Mutex
	known map[string]string // namespace/name to resource version
	wrong []string
	seen  map[string]bool // namespace/name@version, of adds and updates, ever
	end   map[string]bool // namespaces in which no event may come any more
}

func newJournal() *journal {
	return &journal{known: map[string]string{}, seen: map[string]bool{}, end: map[string]bool{}}
}

func (j *journal) on(object any, what string) {
	if d, gone := object.(toolscache.DeletedFinalStateUnknown); gone {
		object = d.Obj
	}

	o, ok := object.(client.Object)
	if !ok {
		return
	}

	j.mu.Lock()
	defer j.mu.Unlock()

	name := o.GetNamespace() + "/" + o.GetName()
	version, known := j.known[name]

	switch {
	case j.end[o.GetNamespace()]:
		j.wrong = append(j.wrong, what+" of "+name+" after its namespace left")
	case what == "add" && known:
		j.wrong = append(j.wrong, "a second add of "+name)
	case what == "update" && (!known || version == o.GetResourceVersion()):
		j.wrong = append(j.wrong, "an update of "+name+" that is none")
	case what == "delete" && !known:
		j.wrong = append(j.wrong, "a delete of "+name+", which was not known")
	}

	if what == "delete" {
		delete(j.known, name)
	} else {
		j.known[name] = o.GetResourceVersion()
		j.seen[name+"@"+o.GetResourceVersion()] = true
	}
}

func (j *journal) OnAdd(object any, _ bool) { j.on(object, "add") }
func (j *journal) OnUpdate(_, object any)   { j.on(object, "update") }
func (j *journal) OnDelete(object any)      { j.on(object, "delete") }
func (j *journal) errors() []string         { j.mu.Lock(); defer j.mu.Unlock(); return slices.Clone(j.wrong) }
func (j *journal) forget(namespace string) {
	j.within(namespace, func(name string) { delete(j.known, name) })
}
func (j *journal) reopen(namespace string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.end, namespace)
}
func (j *journal) of(namespace string) []string {
	var out []string

	j.within(namespace, func(name string) { out = append(out, name+"@"+j.known[name]) })
	slices.Sort(out)

	return out
}

// versions are those of objects in namespaces that were ever seen.
func (j *journal) versions(namespaces []string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()

	var out []string

	for version := range j.seen {
		if namespace, _, _ := strings.Cut(version, "/"); slices.Contains(namespaces, namespace) {
			out = append(out, version)
		}
	}

	slices.Sort(out)

	return out
}

func (j *journal) within(namespace string, visit func(string)) {
	j.mu.Lock()
	defer j.mu.Unlock()

	for name := range j.known {
		if strings.HasPrefix(name, namespace+"/") {
			visit(name)
		}
	}
}

// rounds is how many namespaces join and leave: few by default, WATCHLIST_ROUNDS for the long mode.
func rounds(t testing.TB) int {
	t.Helper()

	if n, err := strconv.Atoi(os.Getenv("WATCHLIST_ROUNDS")); err == nil {
		return n
	}

	t.Log("WATCHLIST_ROUNDS=1000 is the long mode")

	return 150
}

// TestRandomJoinsAndLeaves compares what handlers are told with a reference that watches the whole cluster, while namespaces
// join and leave and somebody writes into all of them.
func TestRandomJoinsAndLeaves(t *testing.T) {
	names := makeNamespaces(t, 8)
	l, source := newList(t, "")
	c, stop := startCache(t, apiServer, l, nil)
	j := newJournal()

	informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)

	registration, err := informer.AddEventHandler(j)
	must(t, err)

	eventually(t, "an empty scope is synced", registration.HasSynced)

	ctx, done := context.WithCancel(t.Context())

	var writers sync.WaitGroup

	for _, namespace := range names {
		writers.Go(func() { scribble(ctx, t, namespace) })
	}

	// Warm up, so that what exists once is there when it is counted.
	source.push(t, strings.Join(names, ","))
	eventually(t, "all are served", func() bool { return len(l.Namespaces()) == len(names) && open(l) })
	source.push(t, "")
	eventually(t, "none is served", func() bool { return len(l.Namespaces()) == 0 })
	forgetAll(j, names)

	var highest int

	in := map[string]bool{}

	for range rounds(t) {
		namespace := names[rand.IntN(len(names))]
		in[namespace] = !in[namespace]

		if in[namespace] {
			j.reopen(namespace)
		}

		source.push(t, strings.Join(chosen(in), ","))
		// Now and then the list changes again before the change is through.
		if rand.IntN(3) > 0 {
			want := len(chosen(in))
			eventually(t, "the list is served", func() bool { return len(l.Namespaces()) == want && open(l) })
		}

		if !in[namespace] {
			eventually(t, namespace+" is gone", func() bool { return l.live().space(namespace) == nil })
			j.mu.Lock()
			j.end[namespace] = true
			j.mu.Unlock()
			j.forget(namespace)
		} else {
			eventually(t, namespace+" is there", func() bool { return l.live().space(namespace) != nil })
		}

		highest = max(highest, cacheGoroutines(goroutines()))
	}

	everyVersion(t, j, chosen(in))
	done()
	writers.Wait()

	for _, namespace := range chosen(in) {
		compare(t, j, namespace)
	}

	for _, wrong := range j.errors() {
		t.Error(wrong)
	}

	t.Logf("%d versions of objects were told; goroutines at most %d", len(j.seen), highest)

	source.push(t, "")
	eventually(t, "none is served at the end", func() bool { return len(l.Namespaces()) == 0 })
	stop()
	nothingLeft(t)
}

// everyVersion watches the whole cluster for a while, beside the journal: what the one sees of a namespace the other does, too.
func everyVersion(t *testing.T, j *journal, namespaces []string) {
	t.Helper()

	reference := newJournal()

	c, err := cache.New(apiServer, cache.Options{})
	must(t, err)

	informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)

	registration, err := informer.AddEventHandler(reference)
	must(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() { done <- c.Start(ctx) }()

	eventually(t, "the reference is synced", registration.HasSynced)
	eventually(t, "the reference saw much", func() bool { return len(reference.versions(namespaces)) >= 25*len(namespaces) })
	cancel()
	must(t, <-done)

	versions := reference.versions(namespaces)

	var missed []string

	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		told := j.versions(namespaces)

		missed = slices.DeleteFunc(slices.Clone(versions), func(version string) bool {
			_, is := slices.BinarySearch(told, version)

			return is
		})
		if len(missed) == 0 {
			break
		}
	}

	for _, version := range missed {
		t.Errorf("%s was missed", version)
	}

	t.Logf("the reference saw %d versions in the %d namespaces that are served", len(versions), len(namespaces))
}

func forgetAll(j *journal, names []string) {
	for _, name := range names {
		j.forget(name)
	}
}

func chosen(in map[string]bool) []string {
	var out []string

	for name, there := range in {
		if there {
			out = append(out, name)
		}
	}

	return out
}

func open(l *List) bool {
	c := l.live()

	c.mu.RLock()
	defer c.mu.RUnlock()

	for _, s := range c.spaces {
		if !s.open || s.leaving {
			return false
		}
	}

	return true
}

// scribble writes, changes and deletes ConfigMaps until the context ends.
func scribble(ctx context.Context, t *testing.T, namespace string) {
	t.Helper()

	configMaps := clients(t, apiServer).CoreV1().ConfigMaps(namespace)

	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("cm-%d", rand.IntN(6))
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"i": strconv.Itoa(i)}}

		var err error

		switch rand.IntN(4) {
		case 0:
			err = configMaps.Delete(ctx, name, metav1.DeleteOptions{})
		case 1:
			_, err = configMaps.Create(ctx, cm, metav1.CreateOptions{})
		default:
			_, err = configMaps.Update(ctx, cm, metav1.UpdateOptions{})
		}

		if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) &&
			!apierrors.IsConflict(err) {
			t.Errorf("writing into %s: %v", namespace, err)
		}

		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	}
}

// compare waits until the journal knows of a namespace what the API server says.
func compare(t *testing.T, j *journal, namespace string) {
	t.Helper()

	found, err := clients(t, apiServer).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)

	var want []string
	for i := range found.Items {
		want = append(want, namespace+"/"+found.Items[i].Name+"@"+found.Items[i].ResourceVersion)
	}

	slices.Sort(want)

	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if slices.Equal(j.of(namespace), want) {
			return
		}
	}

	t.Errorf("of %s the handler knows\n%v\nand the API server\n%v", namespace, j.of(namespace), want)
}

// goroutines are the stacks of all.
func goroutines() string {
	var out strings.Builder

	_ = pprof.Lookup("goroutine").WriteTo(&out, 2)

	return out.String()
}

// cacheGoroutines counts those that belong to informers or to a cache of this package.
func cacheGoroutines(stacks string) int {
	n := 0

	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(stack, "client-go/tools/cache.") || strings.Contains(stack, "watchlist.(*liveCache)") ||
			strings.Contains(stack, "watchlist.(*latch)") || strings.Contains(stack, "watchlist.(*space)") {
			n++
		}
	}

	return n
}

// nothingLeft waits until no goroutine of a cache runs any more; a watch and a store have one each.
func nothingLeft(t *testing.T) {
	t.Helper()

	var stacks string

	for limit := time.Now().Add(patience); time.Now().Before(limit); time.Sleep(50 * time.Millisecond) {
		if stacks = goroutines(); cacheGoroutines(stacks) == 0 {
			return
		}
	}

	t.Errorf("goroutines are left of a cache that ended:\n%s", stacks)
}

// TestNothingOfANamespaceStays looks for what a namespace left in memory, by a finalizer on its cache.
func TestNothingOfANamespaceStays(t *testing.T) {
	ns := makeNamespaces(t, 2)
	makeConfigMap(t, ns[0], "a", nil)

	l, source := newList(t, strings.Join(ns, ","))
	c, _ := startCache(t, apiServer, l, nil)
	informer, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	_, err = informer.AddEventHandler(newJournal())
	must(t, err)

	freed := make(chan struct{})
	runtime.AddCleanup(l.live().space(ns[0]), func(c chan struct{}) { close(c) }, freed)

	source.push(t, ns[1])
	eventually(t, "the namespace's cache is free", func() bool {
		runtime.GC()

		return isClosed(freed)
	})
}
